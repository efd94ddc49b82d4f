import { lowestOrigin, type Origin } from '../../common/turn.ts';
import type { MemoryLine } from '../face.ts';
import { neutralLine } from './neutral.ts';
import type { MemoryNode } from './node.ts';
import { uniqueTokens } from './tokens.ts';

export const LINE_CHARS = 400;
/** What the summary may take where a raw line stands beside it. */
const SUMMARY_CHARS = 200;

export interface RawLine {
  readonly text: string;
  /** `end` of the turn it stands in. */
  readonly turn: string;
  readonly origin: Origin;
}

/** What a raw line may take at most to be shown whole. */
export const RAW_CHARS = 300;

/**
 * A node in one line: `- [mem_…] 2026-03-01 (user) summary — "raw line"`, at most 400 characters. The raw line is
 * shown whole or not at all, because its point are the exact values, and only where it adds a word.
 */
export function memoryLine(node: MemoryNode, raw: RawLine | null): MemoryLine {
  const quote = raw === null ? '' : neutralLine(raw.text, Number.MAX_SAFE_INTEGER);
  const useful = raw !== null && addsTo(node.summary, quote) && quote.length <= RAW_CHARS;
  const origin = useful ? lowestOrigin([node.origin, raw.origin]) : node.origin;
  const head = `- [${node.node_id}] ${node.created_at.slice(0, 10)} (${origin}) `;
  const room = LINE_CHARS - head.length;
  const tail = useful ? ` — "${quote}"` : '';
  const short = neutralLine(node.summary, Math.max(room - tail.length, 0));
  // A summary squeezed to a stump says less than the raw line costs.
  if (useful && room - tail.length < Math.min(SUMMARY_CHARS / 2, node.summary.length)) return memoryLine(node, null);
  return { nodeId: node.node_id, origin, text: `${head}${short}${tail}` };
}

function addsTo(summary: string, quote: string): boolean {
  const said = new Set(uniqueTokens(summary));
  return uniqueTokens(quote).some((token) => !said.has(token));
}
