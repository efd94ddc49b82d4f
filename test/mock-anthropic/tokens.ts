import { canonical, type Json } from './json.ts';

const BYTES_PER_TOKEN = 4;
// About what a screenshot costs; the bytes of the picture say nothing about its tokens.
const IMAGE_TOKENS = 1_500;

/** Deterministic estimate: a quarter of the bytes, rounded up; 0 for ''. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** Tokens of one content block, system block or tool. Signatures and cache_control cost nothing. */
export function blockTokens(block: Json): number {
  switch (block.type) {
    case 'text':
      return estimateTokens(string(block.text));
    case 'thinking':
      return estimateTokens(string(block.thinking));
    case 'redacted_thinking':
      return 0;
    case 'image':
    case 'document':
      return IMAGE_TOKENS;
    case 'tool_result':
      return resultTokens(block);
    default:
      return estimateTokens(canonical(block));
  }
}

function resultTokens(block: Json): number {
  if (!Array.isArray(block.content)) return estimateTokens(string(block.content));
  return block.content.reduce<number>((sum, part: Json) => sum + blockTokens(part), 0);
}

function string(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
