import { createHmac } from 'node:crypto';
import { isJson, literalValues } from './json.ts';
import { type Marker, type RedactPass, redactLiterals, redactText } from './redact-text.ts';
import { createSecretlint } from './secretlint.ts';
import type { SecretScanner } from './span.ts';
import { runInSlices, runSync } from './time-slice.ts';

export { findPrivateTexts } from './scanners.ts';

/**
 * Removes secrets from text before it is written, embedded or shown to a model. Best effort, linear time, idempotent.
 * A secret becomes `[REDACTED:type:hmac8]`; equal secrets get equal marks.
 */
export interface Redactor {
  /** For short texts: synchronous, our own rules only. Returns the same string when nothing is found. */
  text(text: string): string;
  /**
   * Redacts inside string literals; all other characters stay. An open private tag continues through later `text` and
   * `content` members. Input that is not JSON is treated as text.
   */
  json(jsonText: string): Redacted;
  /** All rules, for texts of any length. */
  readonly full: {
    text(text: string): Promise<string>;
    json(jsonText: string): Promise<Redacted>;
  };
}

interface Redacted {
  readonly text: string;
  readonly redacted: boolean;
}

export interface RedactorOptions {
  readonly markKey: Buffer;
  /** Applies secretlint's rules in `full`, and receives the errors of rules that fail on a text. */
  readonly onRuleError?: (rule: string, error: unknown) => void;
}

// A mark is a word boundary, so a pass can expose a secret that was joined to the one before.
const MAX_PASSES = 8;

export function createRedactor({ markKey, onRuleError }: RedactorOptions): Redactor {
  const scanner: SecretScanner = onRuleError === undefined ? async () => [] : createSecretlint(onRuleError);
  const mark: Marker = (type, secret) => {
    const digest = createHmac('sha256', markKey).update(secret, 'utf8').digest('hex');
    return `[REDACTED:${type}:${digest.slice(0, 8)}]`;
  };

  function redactSync(input: string, pass: RedactPass): string {
    let output = input;
    for (let i = 0; i < MAX_PASSES; i += 1) {
      const next = runSync(pass(output, [], mark));
      if (next === output) break;
      output = next;
    }
    return output;
  }

  async function redactFully(input: string, pass: RedactPass, scanned: (text: string) => string): Promise<string> {
    let output = input;
    for (let i = 0; i < MAX_PASSES; i += 1) {
      const next = await runInSlices(pass(output, await scanner(scanned(output)), mark));
      if (next === output) break;
      output = next;
    }
    return output;
  }

  const toRedacted = (output: string, input: string): Redacted => ({ text: output, redacted: output !== input });
  const full: Redactor['full'] = {
    text: (input) => redactFully(input, redactText, (text) => text),
    json: async (input) =>
      toRedacted(
        isJson(input) ? await redactFully(input, redactLiterals, literalValues) : await full.text(input),
        input,
      ),
  };
  return {
    text: (input) => redactSync(input, redactText),
    json: (input) => toRedacted(redactSync(input, isJson(input) ? redactLiterals : redactText), input),
    full,
  };
}
