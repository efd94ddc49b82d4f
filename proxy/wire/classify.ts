import { messageText } from './prompt.ts';
import type { ConversationView } from './view.ts';

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
const SIDE_PROMPTS = ['CRITICAL: Respond with TEXT ONLY', '[SUGGESTION MODE:'];

const HINTED: Readonly<Record<string, RequestClass>> = {
  main: 'main',
  compaction: 'side',
  subagent: 'other',
  workflow: 'other',
  auxiliary: 'side',
};

/** Hint headers first, then what is known of older clients. `lastPrompt` is the text of the newest prompt. */
export function classify(
  view: ConversationView,
  headers: Readonly<Record<string, string>>,
  lastPrompt: string,
): Classified {
  if (headers['x-comet-cc-child'] !== undefined) return { kind: 'other', because: 'own child' };
  const hint = HINTED[headers['x-claude-code-request-class'] ?? ''];
  if (hint !== undefined) return { kind: hint, because: 'hint header' };
  if (headers['x-claude-code-agent-id'] !== undefined) return { kind: 'other', because: 'agent id' };
  if (view.system.isSubagent || view.userId.includes('parent_session_id'))
    return { kind: 'other', because: 'subagent' };
  if (view.maxTokens === 1) return { kind: 'other', because: 'quota probe' };
  if (!view.hasTools) return { kind: 'other', because: 'no tools' };
  const asked = lastPrompt || besideResults(view);
  if (SIDE_PROMPTS.some((text) => asked.startsWith(text))) return { kind: 'side', because: 'side prompt' };
  return { kind: 'main', because: 'main loop' };
}

/** `/compact` may ask in the message that answers the last tool call. Only what may hold a side prompt is decoded. */
function besideResults(view: ConversationView): string {
  const index = view.infos.findLastIndex((info) => info.role === 'user');
  const at = view.scan.messages[index];
  const bytes = at === undefined ? null : view.body.subarray(at.start, at.end);
  return bytes !== null && SIDE_PROMPTS.some((text) => bytes.includes(text)) ? messageText(view, index) : '';
}

/** Header, then either form of `metadata.user_id`; '' when the request names no session. */
export function sessionOf(view: Pick<ConversationView, 'userId'>, headers: Readonly<Record<string, string>>): string {
  const header = headers['x-claude-code-session-id'];
  if (header !== undefined && header !== '') return header;
  const old = /_session_([0-9a-fA-F-]{36})$/.exec(view.userId)?.[1];
  if (old !== undefined) return old;
  try {
    const parsed = JSON.parse(view.userId) as { session_id?: unknown };
    return typeof parsed.session_id === 'string' ? parsed.session_id : '';
  } catch {
    return ''; // a form of user_id that is not known: matching goes by content alone
  }
}
