import { createHash } from 'node:crypto';
import { isRecord } from '../../common/text.ts';

type Json = Readonly<Record<string, unknown>>;

/** One message, system block or the tools: a place of the prompt where the prompt cache may begin or end. */
export interface TokenEstimate {
  /** The same for the same content, whatever its form and wherever its breakpoints stand. */
  readonly digest: string;
  /** Estimate; what upstream billed corrects it. */
  readonly tokens: number;
  /** Positions it takes in the cache's lookback. */
  readonly blocks: number;
  /** TTL of its last breakpoint; null without one. */
  readonly ttl: string | null;
  readonly hasImage: boolean;
}

/** About what a screenshot costs; the bytes of a picture say nothing of its tokens. */
const IMAGE_TOKENS = 1_500;

export function estimateMessage(message: unknown): TokenEstimate {
  const { role, content } = record(message);
  return estimateBlocks(String(role ?? ''), typeof content === 'string' ? [{ type: 'text', text: content }] : content);
}

/** Tools or system blocks; a single string counts as one text. */
export function estimateBlocks(role: string, content: unknown): TokenEstimate {
  const blocks = Array.isArray(content) ? content.map(record) : [];
  return {
    digest: createHash('sha256').update(role).update(JSON.stringify(blocks, withoutBreakpoints)).digest('base64'),
    tokens: blocks.reduce((sum, block) => sum + blockTokens(block), 0),
    blocks: blocks.length,
    ttl: blocks.flatMap((block) => [...inner(block).map(ttlOf), ttlOf(block)]).findLast((ttl) => ttl !== null) ?? null,
    hasImage: blocks.some((block) => [block, ...inner(block)].some(({ type }) => type === 'image')),
  };
}

/** A quarter of the bytes that the model reads: neither signatures nor the JSON around texts. */
function blockTokens(block: Json): number {
  switch (block['type']) {
    case 'text':
      return quarter(block['text']);
    case 'thinking':
      return quarter(block['thinking']);
    case 'redacted_thinking':
      return 0;
    case 'image':
    case 'document':
      return IMAGE_TOKENS;
    case 'tool_result':
      if (!Array.isArray(block['content'])) return quarter(block['content']);
      return inner(block).reduce((sum, part) => sum + blockTokens(part), 0);
    default:
      return quarter(JSON.stringify(block, withoutBreakpoints));
  }
}

function quarter(text: unknown): number {
  return typeof text === 'string' ? Math.ceil(Buffer.byteLength(text) / 4) : 0;
}

function inner(block: Json): Json[] {
  return block['type'] === 'tool_result' && Array.isArray(block['content']) ? block['content'].map(record) : [];
}

export function ttlOf(holder: Json): string | null {
  const control = holder['cache_control'];
  if (!isRecord(control)) return null;
  const { ttl } = control;
  return typeof ttl === 'string' ? ttl : '5m';
}

function withoutBreakpoints(key: string, value: unknown): unknown {
  return key === 'cache_control' ? undefined : value;
}

function record(value: unknown): Json {
  return isRecord(value) ? value : {};
}
