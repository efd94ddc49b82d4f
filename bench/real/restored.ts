import type { PastConversation, PastMessage } from '../../proxy/transcript/index.ts';
import { canonicalizeMessage } from '../../proxy/wire/message.ts';

export interface Restored {
  /** Messages of the session's requests, without its last turn. */
  readonly messages: number;
  readonly missing: number;
}

interface RestoredMessage {
  readonly role: string;
  readonly content: unknown;
}

const REDACTED = /\[REDACTED:[^\]]{1,80}\]/;

/** How many messages of a session the product does not give back as they were, redacted spans aside. */
export async function countRestored(
  conversation: PastConversation,
  restore: (sessionId: string) => Promise<readonly RestoredMessage[]>,
): Promise<Restored> {
  const found = (await restore(conversation.sessionId).catch(() => [])).map(getCanonical);
  const exact = new Set(found);
  const redacted = found.filter((text) => REDACTED.test(text));
  const expected = [...new Set(sentMessages(conversation).map((message) => canonicalizeMessage(message)))];
  const isRestored = (text: string): boolean => exact.has(text) || redacted.some((one) => matches(one, text));
  return { messages: expected.length, missing: expected.filter((text) => !isRestored(text)).length };
}

/** What the requests sent up to the last prompt: that turn may have no answer. */
function sentMessages({ requests }: PastConversation): PastMessage[] {
  const newest = requests.at(-1)?.messages ?? [];
  const isPrompt = ({ role, content }: PastMessage): boolean =>
    role === 'user' && content.every(({ type }) => type !== 'tool_result');
  const last = new Set(newest.slice(newest.findLastIndex(isPrompt)));
  const all = new Set(requests.filter(({ kind }) => kind === 'main').flatMap(({ messages }) => messages));
  return [...all].filter((message) => !last.has(message));
}

function getCanonical({ role, content }: RestoredMessage): string {
  return canonicalizeMessage({ role, content });
}

/** Whether `text` is `redacted` with something in place of each mark. */
function matches(redacted: string, text: string): boolean {
  let at = 0;
  const pieces = redacted.split(new RegExp(REDACTED, 'g'));
  for (const piece of pieces) {
    const next = text.indexOf(piece, at);
    if (next < 0 || (at === 0 && next > 0)) return false;
    at = next + piece.length;
  }
  return text.endsWith(pieces.at(-1) ?? '');
}
