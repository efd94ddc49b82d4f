import { createHash } from 'node:crypto';
import { isRecord } from '../../common/text.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const THINKING = new Set(['thinking', 'redacted_thinking']);

/**
 * The form that identifies a message. A string equals one text block and `cache_control` is ignored, because both change
 * once a message is history. Thinking is ignored, because Claude Code strips it from the whole session when upstream
 * refuses a signature. Keys are sorted.
 */
export function canonicalizeMessage(message: unknown): string {
  const { role, content, ...rest } = message as { [key: string]: Json };
  return JSON.stringify(sortKeys({ ...rest, role: role ?? null, content: canonicalContent(content) }));
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

function sortKeys(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortKeys(value[key] as Json)]),
  );
}

/** Hex digest of the canonical form. */
export function hashMessage(message: unknown): string {
  return createHash('sha256').update(canonicalizeMessage(message)).digest('hex');
}

/** `H_i = sha256(H_{i-1} ‖ hash_i)`, hex; `before` is '' for the first message. */
export function extendLineage(before: string, hash: string): string {
  return createHash('sha256').update(before).update(hash).digest('hex');
}
