import { isPlaceholder } from './assignments.ts';
import { bitsPerCharacter } from './entropy.ts';
import type { Span } from './span.ts';

/** `NAME=value` as files of settings and shells have it; both sides bounded. */
const SETTING = /(?<![\w$.=-](?<!\\[nrt]))([A-Z][A-Z0-9_]{1,60})=(\\?["'])?([^\s"'`\\<>]{10,300})(?![^\s"'`\\<>])/g;
/** Names whose value nobody else should know, although they do not say so outright. */
const GUARDED =
  /(?:^|_)(?:KEY|AUTH|PASS|PWD|PASSWD|PASSWORD|PASSPHRASE|SALT|PEPPER|COOKIE|SESSION|CREDS?|DSN|WEBHOOK|SEED|MNEMONIC|LICENSE|HMAC|SIGNATURE)(?:_|$)/;
const PASSWORD = /(?:^|_)(?:PASS|PWD|PASSWD|PASSWORD|PASSPHRASE)$/;
/** Digests and versions are as random as keys, and no secret. */
const PUBLIC =
  /(?:^|_)(?:SHA\d*|HASH|DIGEST|CHECKSUM|INTEGRITY|COMMIT|REVISION|VERSION|PUBLIC|URL|PATH|DIR|ID|UUID)(?:_|$)/;

/** Values of settings that are as random as only keys are, or that are passwords by name. */
export function findSettings(text: string): Span[] {
  const spans: Span[] = [];
  for (const match of text.matchAll(SETTING)) {
    const [whole, name, , value] = match as unknown as [string, string, string | undefined, string];
    if (!isSecretSetting(name, value)) continue;
    const end = match.index + whole.length;
    spans.push({ start: end - value.length, end, type: 'secret' });
  }
  return spans;
}

function isSecretSetting(name: string, value: string): boolean {
  if (isPlaceholder(value) || /^(?:\.|~|\/[a-z.])|:\/\/|[(){}[\];,]|^sha\d+-/.test(value)) return false;
  const bits = bitsPerCharacter(value);
  if (PASSWORD.test(name)) return bits >= 2.8 && !/[.]/.test(value);
  if (PUBLIC.test(name) || value.length < 16) return false;
  if (GUARDED.test(name)) return bits >= 3.2 && /\d/.test(value);
  const isMixed = /[a-z]/.test(value) && /[A-Z]/.test(value) && /\d/.test(value);
  return isMixed && value.length >= 24 && bits >= 4.2 && /^[\w+/=.~-]+$/.test(value);
}
