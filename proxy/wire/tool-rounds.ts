import type { ConversationView, MessageInfo } from './conversation.ts';
import type { TurnSpan } from './split-turns.ts';

/**
 * Consecutive rounds of a turn that memory stores together and that a cut inside the turn drops together. The end of a
 * part depends only on what precedes it, so a turn keeps its parts as it grows.
 */
export interface PartSpan extends TurnSpan {
  /** Counts the parts of a turn from 0. */
  readonly index: number;
}

const PART_ROUNDS = 8;
const PART_CALLS = 12;

type Conversation = Pick<ConversationView, 'infos' | 'lineage'>;

/**
 * The tool rounds of a turn: calls and their results. The messages before the first round are the turn's instruction. The
 * newest round is included only when its calls are answered. A round ends where the prefix up to it is valid.
 */
export function splitRounds({ infos, lineage }: Conversation, turn: TurnSpan): TurnSpan[] {
  const first = infos.findIndex((info, index) => index >= turn.start && info.role === 'assistant');
  if (first < 0 || first >= turn.end) return [];
  const rounds: TurnSpan[] = [];
  const open = new Set<string>();
  let start = first;
  for (let index = first; index < turn.end; index += 1) {
    const info = infos[index] as MessageInfo;
    trackServerTools(info, open);
    const next = infos[index + 1];
    const isLast = index + 1 === turn.end;
    const mayEnd = isLast ? info.role !== 'assistant' : next?.role === 'assistant';
    if (!mayEnd || open.size > 0 || !answersTools(infos, index)) continue;
    const own = infos.slice(start, index + 1);
    rounds.push({
      start,
      end: index + 1,
      key: turn.key,
      endHash: lineage[index] as string,
      tokens: own.reduce((total, each) => total + each.tokens, 0),
      requests: own.filter((each) => each.role === 'assistant').length,
    });
    start = index + 1;
  }
  return rounds;
}

/** Complete parts only; the newest round is never in a part. */
export function splitParts({ infos }: Pick<Conversation, 'infos'>, rounds: readonly TurnSpan[]): PartSpan[] {
  const parts: PartSpan[] = [];
  let from = 0;
  let calls = 0;
  for (let at = 0; at < rounds.length - 1; at += 1) {
    const round = rounds[at] as TurnSpan;
    calls += countCalls(infos.slice(round.start, round.end));
    if (at + 1 - from < PART_ROUNDS && calls < PART_CALLS) continue;
    const own = rounds.slice(from, at + 1);
    parts.push({
      index: parts.length,
      start: (own[0] as TurnSpan).start,
      end: round.end,
      key: round.key,
      endHash: round.endHash,
      tokens: own.reduce((total, each) => total + each.tokens, 0),
      requests: own.reduce((total, each) => total + each.requests, 0),
    });
    from = at + 1;
    calls = 0;
  }
  return parts;
}

/** The request ends with tool results. */
export function isToolRound({ infos }: Pick<Conversation, 'infos'>): boolean {
  const newest = infos.findLast((info) => info.role !== 'system');
  return newest?.role === 'user' && !newest.isPrompt;
}

function answersTools(infos: readonly MessageInfo[], index: number): boolean {
  let at = index;
  while (infos[at]?.role === 'system') at -= 1;
  return infos[at]?.role === 'user' && infos[at]?.isPrompt === false;
}

/** A server tool may answer in a later message; until then the round is open. */
function trackServerTools({ shape }: MessageInfo, open: Set<string>): void {
  for (const block of shape.blocks) {
    if (block.type === 'server_tool_use' || block.type === 'mcp_tool_use') open.add(block.id ?? '');
    else if (block.type.endsWith('_tool_result')) open.delete(block.toolUseId ?? '');
  }
}

function countCalls(infos: readonly MessageInfo[]): number {
  return infos.reduce((sum, { shape }) => sum + shape.blocks.filter(({ type }) => type === 'tool_use').length, 0);
}
