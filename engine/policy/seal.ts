import { createHmac, randomBytes } from 'node:crypto';
import { sha256 } from '../../common/text.ts';
import type { Origin } from '../../common/turn.ts';

const START = '[comet-cc: origin ';
const LINE = /^\[comet-cc: origin (user|assistant|tool|external), seal ([0-9a-f]{32})\]\s*$/;

/** What a client names a text by that it wants sealed. */
export const sealDigest = (text: string): string => sha256(text.trim());

export type Seals = ReturnType<typeof createSeals>;

/**
 * Marks what our own programs print of memory with its origin, so that capture knows it again. The key is this process's
 * own: no name of a command or MCP server shows whose a text is.
 */
export function createSeals(key: Buffer = randomBytes(32)) {
  const getMac = (digest: string, origin: string): string =>
    createHmac('sha256', key).update(`${origin}\n${digest}`).digest('hex').slice(0, 32);
  return {
    /** The last line of the text. */
    lineFor: (digest: string, origin: Origin): string => `${START}${origin}, seal ${getMac(digest, origin)}]`,
    /** Null where the text lacks a seal, or was changed after it was sealed. */
    getOrigin(text: string): Origin | null {
      const at = text.lastIndexOf(START);
      const [, origin, mac] = (at < 0 ? null : LINE.exec(text.slice(at, at + 100))) ?? [];
      return mac !== undefined && mac === getMac(sealDigest(text.slice(0, at)), origin as string)
        ? (origin as Origin)
        : null;
    },
  };
}
