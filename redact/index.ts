import { createHmac, randomBytes } from 'node:crypto';
import { readOrCreateSecret } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';
import { isJson, literalValues } from './json.ts';
import { type Marker, type RedactPass, redactLiterals, redactText } from './redact-text.ts';
import type { SecretScanner } from './span.ts';
import { runInSlices, runSync } from './time-slice.ts';

export { findPrivateTexts as privateTexts } from './scanners.ts';
export { createSecretlint } from './secretlint.ts';
export type { SecretScanner } from './span.ts';

/**
 * Takes secrets out of text before it is written, embedded or shown to a model. Best effort, linear time,
 * idempotent. A secret becomes `[REDACTED:type:hmac8]`, the same one always the same mark.
 */
export interface Redactor {
  /** The very same string when nothing was found. For short texts: one go, our own rules alone. */
  text(text: string): string;
  /**
   * Redacts inside the string literals; every other character, number and escape stays as it was. A private
   * tag left open goes on through the later `text` and `content` members. What is not JSON is treated as text.
   */
  json(jsonText: string): Redacted;
  /** The same with every rule there is, for texts of any length. */
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
  /** Asked beside our own rules in `full`. */
  readonly scanner?: SecretScanner;
}

export function createRedactor({ markKey, scanner = async () => [] }: RedactorOptions): Redactor {
  const mark: Marker = (type, secret) => {
    const digest = createHmac('sha256', markKey).update(secret, 'utf8').digest('hex');
    return `[REDACTED:${type}:${digest.slice(0, 8)}]`;
  };

  function atOnce(input: string, pass: RedactPass): string {
    let output = input;
    for (let i = 0; i < MOST_PASSES; i += 1) {
      const next = runSync(pass(output, [], mark));
      if (next === output) break;
      output = next;
    }
    return output;
  }

  async function fully(input: string, pass: RedactPass, scanned: (text: string) => string): Promise<string> {
    let output = input;
    for (let i = 0; i < MOST_PASSES; i += 1) {
      const next = await runInSlices(pass(output, await scanner(scanned(output)), mark));
      if (next === output) break;
      output = next;
    }
    return output;
  }

  const said = (output: string, input: string): Redacted => ({ text: output, redacted: output !== input });
  const full: Redactor['full'] = {
    text: (input) => fully(input, redactText, (text) => text),
    json: async (input) =>
      said(isJson(input) ? await fully(input, redactLiterals, literalValues) : await full.text(input), input),
  };
  return {
    text: (input) => atOnce(input, redactText),
    json: (input) => said(atOnce(input, isJson(input) ? redactLiterals : redactText), input),
    full,
  };
}

/**
 * The install's key for the marks; made on first use.
 *
 * @throws CometError `unsafe_file` when the file is not ours alone
 */
export async function markKey(paths: HomePaths): Promise<Buffer> {
  return Buffer.from(await readOrCreateSecret(paths.markKeyFile, () => randomBytes(32).toString('hex')), 'hex');
}

// A mark is an edge of its own: it can set free what was glued to the secret before it.
const MOST_PASSES = 8;
