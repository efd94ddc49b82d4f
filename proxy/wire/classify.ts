import { createHash } from 'node:crypto';
import { type ConversationView, hasTools, type MessageInfo, parseSlice } from './conversation.ts';
import type { BodyScan } from './json-scanner.ts';

/**
 * - `main`: the conversation the user has
 * - `side`: on the main prefix, but not a turn of it (compaction, prompt suggestion): replays, never adds
 * - `other`: subagents, titles, probes, our own children, and whatever is in doubt
 */
export type RequestClass = 'main' | 'side' | 'other';

export interface Classified {
  readonly kind: RequestClass;
  readonly because: string;
}

/** Texts that open a request which Claude Code makes for itself on the main prefix. Seen in 2.1.x. */
const SIDE_PROMPTS = [
  'CRITICAL: Respond with TEXT ONLY',
  '[SUGGESTION MODE:',
  '<system-reminder>This is a side question from the user.',
  'The user stepped away and is coming back. Recap',
];

const HINTED: Readonly<Record<string, RequestClass>> = {
  main: 'main',
  compaction: 'side',
  subagent: 'other',
  workflow: 'other',
  auxiliary: 'side',
};

const HINT = 'x-claude-code-request-class';

/**
 * One message, no tools, no word of what it is for: it neither goes on with a conversation nor begins one, so nothing
 * of ours can be in it. Told without looking into the message.
 */
export function isStandalone({ messages, fields }: BodyScan, headers: Readonly<Record<string, string>>): boolean {
  return messages.length === 1 && !hasTools(fields.get('tools')) && headers[HINT] === undefined;
}

/** False where a look at the bytes shows that it does not stand alone: then it need not be scanned to know. */
export function mayBeStandalone(body: Buffer, headers: Readonly<Record<string, string>>): boolean {
  return headers[HINT] === undefined && !body.includes('"tools":[{');
}

/** Hint headers first, then what is known of older clients. */
export function classify(view: ConversationView, headers: Readonly<Record<string, string>>): Classified {
  if (headers['x-comet-cc-child'] !== undefined) return { kind: 'other', because: 'own child' };
  const hint = HINTED[headers[HINT] ?? ''];
  if (hint !== undefined) return { kind: hint, because: 'hint header' };
  if (headers['x-claude-code-agent-id'] !== undefined) return { kind: 'other', because: 'agent id' };
  if (view.system.isSubagent || view.userId.includes('parent_session_id'))
    return { kind: 'other', because: 'subagent' };
  if (view.maxTokens === 1) return { kind: 'other', because: 'quota probe' };
  if (!view.hasTools) return { kind: 'other', because: 'no tools' };
  if (opensAside(view)) return { kind: 'side', because: 'side prompt' };
  if (leavesNewestUncached(view)) return { kind: 'side', because: 'no cache write' };
  return { kind: 'main', because: 'main loop' };
}

/** It may ask in the message that answers the last tool call. Only what may hold a side prompt is decoded. */
function opensAside(view: ConversationView): boolean {
  const at = view.scan.messages[view.infos.findLastIndex((info) => info.role === 'user')];
  if (at === undefined) return false;
  const bytes = view.body.subarray(at.start, at.end);
  if (!SIDE_PROMPTS.some((text) => bytes.includes(text))) return false;
  const { content } = parseSlice(view.body, at) as { content?: unknown };
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as TextBlock[]);
  return blocks.some(
    ({ type, text }) => type === 'text' && SIDE_PROMPTS.some((opening) => text?.trimStart().startsWith(opening)),
  );
}

interface TextBlock {
  readonly type?: string;
  readonly text?: string;
}

/**
 * Claude Code marks the newest message of its main loop. A request that branches off the main prefix for a moment (a
 * question beside the conversation, a recap, a suggestion) marks the message before instead, because nothing will
 * follow it: seen in 2.1.197, whatever the question.
 */
function leavesNewestUncached({ infos }: ConversationView): boolean {
  const newest = infos.findLastIndex((info) => info.role !== 'system');
  const isMarked = (info: MessageInfo): boolean => info.shape.blocks.some((block) => block.ttls !== undefined);
  if (infos[newest]?.role !== 'user' || infos.slice(newest).some(isMarked)) return false;
  return infos.slice(0, newest).some(isMarked);
}

/**
 * Header, then either form of `metadata.user_id`. A request that names no session is told from others by where it runs
 * and by how its conversation began.
 */
export function findSessionId(view: Identity, headers: Readonly<Record<string, string>>): string {
  const header = headers['x-claude-code-session-id'];
  if (header !== undefined && header !== '') return header;
  const old = /_session_([0-9a-fA-F-]{36})$/.exec(view.userId)?.[1];
  return old ?? sessionInJson(view.userId) ?? nameless(view);
}

type Identity = Pick<ConversationView, 'userId' | 'lineage'> & { readonly system: { workingDirectory: string | null } };

function sessionInJson(userId: string): string | null {
  try {
    const { session_id: id } = (JSON.parse(userId) ?? {}) as { session_id?: unknown };
    return typeof id === 'string' && id !== '' ? id : null;
  } catch {
    return null; // a form of user_id that is not known
  }
}

function nameless({ userId, system, lineage }: Identity): string {
  const told = [userId, system.workingDirectory ?? '', lineage[0] ?? ''].join('\n');
  return `nameless-${createHash('sha256').update(told).digest('hex').slice(0, 24)}`;
}
