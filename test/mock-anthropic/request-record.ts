import type { PromptUsage } from './cache.ts';
import { getBlocks, isObject, type Json } from './json.ts';
import type { Refusal } from './refusal.ts';

export type RequestClass =
  | 'main'
  | 'subagent'
  | 'compaction'
  | 'title'
  | 'quota'
  | 'structured'
  | 'auxiliary'
  | 'other';

/** One request as it came, and what became of it. The last group is filled while it is answered. */
export interface ServedRequest {
  readonly index: number;
  /** Virtual time of the start. */
  readonly atMs: number;
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly kind: 'messages' | 'count_tokens' | 'other';
  readonly rawHeaders: readonly string[];
  /** Lower-case names, repeated ones joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as received: empty when over the limit, what had come when the client left. */
  readonly bytes: Buffer;
  /** Null when it is no JSON object. */
  readonly body: Json | null;
  readonly model: string;
  readonly sessionId: string;
  /** A guess, from what Claude Code 2.1.197 sends. */
  readonly class: RequestClass;

  status: number;
  /** Why the rules refused it; null when they did not (an error from the brain is no refusal). */
  refusal: Refusal | null;
  usage: (PromptUsage & { readonly output: number }) | null;
  /** Prompt cost in tokens of uncached input. */
  cost: number;
  /** Content blocks sent back, sealed. */
  answer: readonly Json[];
  end: 'pending' | 'complete' | 'cut' | 'aborted';
}

export function getSession(headers: Readonly<Record<string, string>>, body: Json | null): string {
  const named = headers['x-claude-code-session-id'];
  if (named) return named;
  const user = isObject(body?.metadata) ? body.metadata.user_id : undefined;
  if (typeof user !== 'string') return '';
  return /session_id"\s*:\s*"([^"]+)"|_session_([0-9a-f-]+)/.exec(user)?.slice(1).find(Boolean) ?? '';
}

export function getClass(headers: Readonly<Record<string, string>>, body: Json | null): RequestClass {
  if (!body) return 'other';
  const system = getBlocks(body.system).map((block) => String(block.text ?? ''));
  const prompt = newestPrompt(body);
  if (headers['x-claude-code-agent-id'] || system[0]?.includes('cc_is_subagent=true')) return 'subagent';
  if (body.max_tokens === 1 && prompt === 'quota') return 'quota';
  if (toolNames(body).includes('StructuredOutput')) return 'structured';
  if (lastTexts(body).some((text) => text.startsWith('CRITICAL: Respond with TEXT ONLY'))) return 'compaction';
  if (system.some((text) => /You are naming a coding session|sentence-case title/.test(text))) return 'title';
  return toolNames(body).length > 0 ? 'main' : 'auxiliary';
}

/** Texts of the last user message, those beside tool results too: `/compact` asks there. */
function lastTexts(body: Json): readonly string[] {
  const messages = Array.isArray(body.messages) ? body.messages.filter(isObject) : [];
  const last = messages.findLast((message) => message.role === 'user');
  return getBlocks(last?.content).map((block) => String(block.text ?? ''));
}

/** Text of the newest user message that is no tool result, reminders left out; '' when there is none. */
export function newestPrompt(body: Json): string {
  const messages = Array.isArray(body.messages) ? body.messages.filter(isObject) : [];
  const message = messages.findLast((entry) => entry.role === 'user' && getTexts(entry).length > 0);
  return message ? (getTexts(message).at(-1) ?? '') : '';
}

/** A message's own texts: no reminders, nothing that a memory proxy put there, and none beside tool results. */
export function getTexts(message: Json): readonly string[] {
  const blocks = getBlocks(message.content);
  if (blocks.some((block) => block.type === 'tool_result')) return [];
  return blocks
    .filter((block) => block.type === 'text')
    .map((block) =>
      String(block.text)
        .replace(/<system-reminder>[\s\S]*?<\/system-reminder>/g, '')
        .trim(),
    )
    .filter((text) => text !== '' && !text.startsWith('<comet-cc-memory'));
}

export function toolNames(body: Json): readonly string[] {
  return Array.isArray(body.tools) ? body.tools.filter(isObject).map((tool) => String(tool.name)) : [];
}
