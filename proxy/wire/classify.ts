import { createHash } from 'node:crypto';
import { type ConversationView, hasTools, type MessageInfo, parseSlice } from './conversation.ts';
import type { BodyScan } from './json-scanner.ts';

/**
 * - `main`: the user's conversation
 * - `side`: on the main prefix, but not a turn of it (compaction, prompt suggestion): plans are replayed, never extended
 * - `other`: subagents, titles, probes, comet-cc's own children, and unknown requests
 */
export type RequestClass = 'main' | 'side' | 'other';

export interface Classified {
  readonly kind: RequestClass;
  readonly because: string;
}

/** First words of requests that Claude Code makes for itself on the main prefix, in 2.1.x. */
const SIDE_PROMPTS = [
  'CRITICAL: Respond with TEXT ONLY',
  '[SUGGESTION MODE:',
  '<system-reminder>This is a side question from the user.',
  'The user stepped away and is coming back. Recap',
];

const HINT_CLASSES: Readonly<Record<string, RequestClass>> = {
  main: 'main',
  compaction: 'side',
  subagent: 'other',
  workflow: 'other',
  auxiliary: 'side',
};

const HINT = 'x-claude-code-request-class';

/**
 * One message, no tools, no hint: it neither continues nor starts a conversation, so no plan can apply. Decided without
 * parsing the message.
 */
export function isStandalone({ messages, fields }: BodyScan, headers: Readonly<Record<string, string>>): boolean {
  return messages.length === 1 && !hasTools(fields.get('tools')) && headers[HINT] === undefined;
}

/** A cheap check that avoids scanning most bodies. */
export function mayBeStandalone(body: Buffer, headers: Readonly<Record<string, string>>): boolean {
  return headers[HINT] === undefined && !body.includes('"tools":[{');
}

/** Uses the hint header, and for older clients what is known of their requests. */
export function classify(view: ConversationView, headers: Readonly<Record<string, string>>): Classified {
  if (headers['x-comet-cc-child'] !== undefined) return { kind: 'other', because: 'own child' };
  const hint = HINT_CLASSES[headers[HINT] ?? ''];
  if (hint !== undefined) return { kind: hint, because: 'hint header' };
  if (headers['x-claude-code-agent-id'] !== undefined) return { kind: 'other', because: 'agent id' };
  if (view.system.isSubagent || view.userId.includes('parent_session_id'))
    return { kind: 'other', because: 'subagent' };
  if (view.maxTokens === 1) return { kind: 'other', because: 'quota probe' };
  if (!view.hasTools) return { kind: 'other', because: 'no tools' };
  if (startsSidePrompt(view)) return { kind: 'side', because: 'side prompt' };
  if (leavesNewestUncached(view)) return { kind: 'side', because: 'no cache write' };
  return { kind: 'main', because: 'main loop' };
}

/** A side prompt may be in the message that answers the last tool call. Decodes only candidates. */
function startsSidePrompt(view: ConversationView): boolean {
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
 * In its main loop, Claude Code sets a cache breakpoint on the newest message. A request that branches off the main
 * prefix (side question, recap, suggestion) sets it on the message before, because nothing follows. Seen in 2.1.197.
 */
function leavesNewestUncached({ infos }: ConversationView): boolean {
  const newest = infos.findLastIndex((info) => info.role !== 'system');
  const isMarked = (info: MessageInfo): boolean => info.shape.blocks.some((block) => block.ttls !== undefined);
  if (infos[newest]?.role !== 'user' || infos.slice(newest).some(isMarked)) return false;
  return infos.slice(0, newest).some(isMarked);
}

/**
 * The session id from the header or from either form of `metadata.user_id`. Without one, working directory and first
 * message identify the session.
 */
export function findSessionId(view: Identity, headers: Readonly<Record<string, string>>): string {
  const header = headers['x-claude-code-session-id'];
  if (header !== undefined && header !== '') return header;
  const old = /_session_([0-9a-fA-F-]{36})$/.exec(view.userId)?.[1];
  return old ?? parseSessionId(view.userId) ?? hashIdentity(view);
}

type Identity = Pick<ConversationView, 'userId' | 'lineage'> & { readonly system: { workingDirectory: string | null } };

function parseSessionId(userId: string): string | null {
  try {
    const { session_id: id } = (JSON.parse(userId) ?? {}) as { session_id?: unknown };
    return typeof id === 'string' && id !== '' ? id : null;
  } catch {
    return null; // an unknown form of user_id
  }
}

function hashIdentity({ userId, system, lineage }: Identity): string {
  const identity = [userId, system.workingDirectory ?? '', lineage[0] ?? ''].join('\n');
  return `nameless-${createHash('sha256').update(identity).digest('hex').slice(0, 24)}`;
}
