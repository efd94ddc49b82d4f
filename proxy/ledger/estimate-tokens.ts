import { createHash } from 'node:crypto';
import { isRecord } from '../../common/text.ts';

type Json = Readonly<Record<string, unknown>>;

/** An element of the prompt: one message, one system block, or the tools. */
export interface TokenEstimate {
  /** Independent of the content's form and of cache breakpoints. */
  readonly digest: string;
  /** An estimate; the bill corrects it. */
  readonly tokens: number;
  /** Blocks that count for the cache's lookback. */
  readonly blocks: number;
  /** TTL of the last breakpoint; null without one. */
  readonly ttl: string | null;
  readonly hasImage: boolean;
}

/** Roughly a screenshot; the bytes of an image do not indicate its tokens. */
const IMAGE_TOKENS = 1_500;

export function estimateMessage(message: unknown): TokenEstimate {
  const { role, content } = toRecord(message);
  return estimateBlocks(String(role ?? ''), typeof content === 'string' ? [{ type: 'text', text: content }] : content);
}

export function estimateBlocks(role: string, content: unknown): TokenEstimate {
  const blocks = Array.isArray(content) ? content.map(toRecord) : [];
  return {
    digest: createHash('sha256').update(role).update(JSON.stringify(blocks, withoutBreakpoints)).digest('base64'),
    tokens: blocks.reduce((sum, block) => sum + estimateBlock(block), 0),
    blocks: blocks.length,
    ttl:
      blocks
        .flatMap((block) => [...nestedBlocks(block).map(readTtl), readTtl(block)])
        .findLast((ttl) => ttl !== null) ?? null,
    hasImage: blocks.some((block) => [block, ...nestedBlocks(block)].some(({ type }) => type === 'image')),
  };
}

/** A quarter of the bytes that the model reads, without signatures and JSON syntax. */
function estimateBlock(block: Json): number {
  switch (block['type']) {
    case 'text':
      return quarterOfBytes(block['text']);
    case 'thinking':
      return quarterOfBytes(block['thinking']);
    case 'redacted_thinking':
      return 0;
    case 'image':
    case 'document':
      return IMAGE_TOKENS;
    case 'tool_result':
      if (!Array.isArray(block['content'])) return quarterOfBytes(block['content']);
      return nestedBlocks(block).reduce((sum, part) => sum + estimateBlock(part), 0);
    default:
      return quarterOfBytes(JSON.stringify(block, withoutBreakpoints));
  }
}

function quarterOfBytes(text: unknown): number {
  return typeof text === 'string' ? Math.ceil(Buffer.byteLength(text) / 4) : 0;
}

function nestedBlocks(block: Json): Json[] {
  return block['type'] === 'tool_result' && Array.isArray(block['content']) ? block['content'].map(toRecord) : [];
}

export function readTtl(holder: Json): string | null {
  const control = holder['cache_control'];
  if (!isRecord(control)) return null;
  const { ttl } = control;
  return typeof ttl === 'string' ? ttl : '5m';
}

function withoutBreakpoints(key: string, value: unknown): unknown {
  return key === 'cache_control' ? undefined : value;
}

function toRecord(value: unknown): Json {
  return isRecord(value) ? value : {};
}
