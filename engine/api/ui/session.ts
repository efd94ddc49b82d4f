import { createHmac, randomBytes } from 'node:crypto';
import { sha256 } from '../../../common/text.ts';
import { isSecret } from '../../../proxy/guard/index.ts';

const TOKEN_MS = 2 * 60_000;
const SESSION_MS = 30 * 86_400_000;
const MAX_TOKENS = 20;

export type UiSession = NonNullable<ReturnType<UiSessions['verify']>>;

export type UiSessions = ReturnType<typeof createUiSessions>;

/**
 * Tokens are held in memory and work once. A cookie is valid by its signature, so that it survives a restart of the
 * engine; removing the key ends every session.
 * @param key  of the signatures
 */
export function createUiSessions(key: string, now: () => number) {
  /** When each unused token expires, by its digest. */
  const tokens = new Map<string, number>();
  const sign = (text: string): string => createHmac('sha256', key).update(text).digest('hex');

  return {
    cookieSeconds: SESSION_MS / 1_000,
    /** A token that can be redeemed once, within two minutes. */
    issueToken(): string {
      const token = randomBytes(32).toString('hex');
      for (const [digest, untilMs] of tokens) if (untilMs <= now() || tokens.size >= MAX_TOKENS) tokens.delete(digest);
      tokens.set(sha256(token), now() + TOKEN_MS);
      return token;
    },
    /** The value of a new cookie; null for a token that is unknown, expired or used. */
    redeem(token: string): string | null {
      const digest = sha256(token);
      const untilMs = tokens.get(digest) ?? 0;
      tokens.delete(digest);
      if (untilMs <= now()) return null;
      const claim = `${now() + SESSION_MS}.${randomBytes(16).toString('hex')}`;
      return `${claim}.${sign(`session ${claim}`)}`;
    },
    /** Null for a foreign or expired cookie. A change must carry `csrf`, which no page of another origin can read. */
    verify(cookie: string) {
      const end = cookie.lastIndexOf('.');
      const claim = cookie.slice(0, Math.max(0, end));
      if (!isSecret(cookie.slice(end + 1), sign(`session ${claim}`))) return null;
      return Number(claim.split('.')[0]) > now() ? { csrf: sign(`csrf ${claim}`) } : null;
    },
  };
}
