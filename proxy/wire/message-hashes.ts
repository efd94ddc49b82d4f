import { createHash } from 'node:crypto';
import { isRecord } from '../../common/text.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const THINKING = new Set(['thinking', 'redacted_thinking']);

/**
 * What of a message makes it the same message: a string is one text block, `cache_control` does not count (both
 * change once a message is history), keys are sorted, and thinking does not count, because Claude Code strips it
 * from a whole session when upstream refuses a signature, and the conversation stays the same conversation.
 */
export function canonicalizeMessage(message: unknown): string {
  const { role, content, ...rest } = message as { [key: string]: Json };
  return JSON.stringify(sorted({ ...rest, role: role ?? null, content: canonicalContent(content) }));
}

function canonicalContent(content: Json | undefined): Json {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) return content ?? null;
  return content.filter((block) => !isThinking(block)).map(canonicalBlock);
}

function canonicalBlock(block: Json): Json {
  if (!isRecord(block)) return block;
  const { cache_control: _, ...rest } = block;
  if (rest['type'] === 'tool_result' && rest['content'] !== undefined) {
    rest['content'] = canonicalContent(rest['content']);
  }
  return rest;
}

/** True for `thinking` and `redacted_thinking` blocks. */
export function isThinking(block: unknown): boolean {
  return isRecord(block) && THINKING.has(String(block['type']));
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key] as Json)]),
  );
}

/** Hex digest of a message's canonical form. */
export function hashMessage(message: unknown): string {
  return createHash('sha256').update(canonicalizeMessage(message)).digest('hex');
}

/** `H_i = sha256(H_{i-1} ‖ hash_i)`, hex; `before` is '' for the first message. */
export function extendLineage(before: string, hash: string): string {
  return createHash('sha256').update(before).update(hash).digest('hex');
}
