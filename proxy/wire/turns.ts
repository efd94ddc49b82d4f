import type { ConversationView, MessageInfo } from './conversation.ts';

/**
 * Messages `[start, end)`: a prompt and everything up to the next one. A prompt that was sent with tool results starts a
 * turn; the results are of the turn before, whose calls they answer.
 */
export interface TurnSpan {
  readonly start: number;
  readonly end: number;
  /** Lineage hash up to the first message. */
  readonly key: string;
  /** Lineage hash up to the last message. */
  readonly endHash: string;
  /** Excludes what a cut keeps. */
  readonly tokens: number;
  /** Number of answers, and so of requests that carried the earlier turns. */
  readonly requests: number;
}

type Conversation = Pick<ConversationView, 'infos' | 'lineage'>;

/** Splits a conversation into turns. Prompts in a row are one; a `system` message belongs to the turn around it. */
export function splitTurns({ infos, lineage }: Conversation): TurnSpan[] {
  const starts: number[] = [];
  let speaker = '';
  infos.forEach((info, index) => {
    const isMerged = isMergedPrompt(infos, index);
    if (isMerged || (info.isPrompt && speaker !== 'prompt')) starts.push(index);
    if (info.role !== 'system') speaker = info.isPrompt || isMerged ? 'prompt' : info.role;
  });
  return starts.map((start, position) => {
    return toSpan({ infos, lineage }, start, starts[position + 1] ?? infos.length, lineage[start] as string);
  });
}

const SKILLS = new Set(['Skill', 'SlashCommand']);

/**
 * Whether this message holds tool results and a prompt. Text that is typed for the running turn is not a prompt, because
 * the turn continues its task. The text of a skill looks typed, so it is known by the call that it follows.
 */
export function isMergedPrompt(infos: readonly MessageInfo[], index: number): boolean {
  const typed = infos[index]?.role === 'user' ? infos[index]?.typed : null;
  if (typed?.kind !== 'prompt') return false;
  const calls = infos[index - 1]?.shape.blocks ?? [];
  return typed.isInterruption || !calls.some(({ name = '' }) => SKILLS.has(name));
}

function toSpan({ infos, lineage }: Conversation, start: number, end: number, key: string): TurnSpan {
  const own = infos.slice(start, end);
  const requests = own.filter((info) => info.role === 'assistant').length;
  return { start, end, key, endHash: lineage[end - 1] as string, tokens: sumDroppable(own), requests };
}

export function sumTokens(items: readonly { readonly tokens: number }[]): number {
  return items.reduce((total, { tokens }) => total + tokens, 0);
}

/** Tokens of these messages, excluding what a cut keeps. */
export const sumDroppable = (infos: readonly MessageInfo[]): number => sumTokens(infos) - sumPinnedTokens(infos);

export function sumPinnedTokens(infos: readonly MessageInfo[]): number {
  return infos.reduce((total, { pinnedTokens }) => total + pinnedTokens, 0);
}

/** Index of the prompt that this request sends for the first time; -1 in a tool loop. */
export function findFreshPrompt({ infos }: Pick<Conversation, 'infos'>): number {
  const newest = infos.findLastIndex(({ role }) => role !== 'system');
  return infos[newest]?.isPrompt === true || isMergedPrompt(infos, newest) ? newest : -1;
}

/**
 * Index of the newest user message, where this request sends for the first time what the user typed: a prompt, or
 * something for the running turn, in this message or in a system message behind it. -1 elsewhere.
 */
export function findTypedPrompt({ infos }: Pick<Conversation, 'infos'>): number {
  const fresh = findFreshPrompt({ infos });
  if (fresh >= 0) return fresh;
  const newest = infos.findLastIndex(({ role }) => role !== 'system');
  const isQueued = infos.slice(newest).some(({ typed }) => typed?.kind === 'queued');
  return infos[newest]?.role === 'user' && isQueued ? newest : -1;
}

/** End of the head: the first message and the `role: "system"` messages after it. */
export function findHeadEnd({ infos }: Pick<Conversation, 'infos'>): number {
  const end = infos.findIndex(({ role }, index) => index > 0 && role !== 'system');
  return end < 0 ? Math.max(1, infos.length) : end;
}

/**
 * Consecutive rounds of a turn that memory stores together and that a cut inside the turn drops together. The end of a
 * part depends only on what precedes it, so a turn keeps its parts as it grows.
 */
export interface PartSpan extends TurnSpan {
  readonly index: number;
}

const PART_ROUNDS = 8;
const PART_CALLS = 12;

/**
 * The tool rounds of a turn: calls and their results. The messages before the first round are the turn's instruction. The
 * newest round is included only when its calls are answered. A round ends where the prefix up to it is valid.
 */
export function splitRounds({ infos, lineage }: Conversation, turn: TurnSpan): TurnSpan[] {
  let start = turn.start;
  while (start < turn.end && infos[start]?.role !== 'assistant') start += 1;
  const rounds: TurnSpan[] = [];
  const open = new Set<string>();
  for (let index = start; index < turn.end; index += 1) {
    const info = infos[index] as MessageInfo;
    trackServerTools(info, open);
    const isLast = index + 1 === turn.end;
    const mayEnd = isLast ? info.role !== 'assistant' : infos[index + 1]?.role === 'assistant';
    if (!mayEnd || open.size > 0 || !answersTools(infos, index)) continue;
    rounds.push(toSpan({ infos, lineage }, start, index + 1, turn.key));
    start = index + 1;
  }
  return rounds;
}

/** Complete parts only; the newest round is never in a part. */
export function splitParts({ infos }: Pick<Conversation, 'infos'>, rounds: readonly TurnSpan[]): PartSpan[] {
  const parts: PartSpan[] = [];
  let [from, calls] = [0, 0];
  for (let at = 0; at < rounds.length - 1; at += 1) {
    const round = rounds[at] as TurnSpan;
    const blocks = infos.slice(round.start, round.end).flatMap(({ shape }) => shape.blocks);
    calls += blocks.filter(({ type }) => type === 'tool_use').length;
    if (at + 1 - from < PART_ROUNDS && calls < PART_CALLS) continue;
    const own = rounds.slice(from, at + 1);
    const requests = own.reduce((total, each) => total + each.requests, 0);
    parts.push({ ...round, index: parts.length, start: (own[0] as TurnSpan).start, tokens: sumTokens(own), requests });
    [from, calls] = [at + 1, 0];
  }
  return parts;
}

/** The request ends with tool results. */
export function isToolRound({ infos }: Pick<Conversation, 'infos'>): boolean {
  const newest = infos.findLast((info) => info.role !== 'system');
  return newest?.role === 'user' && findFreshPrompt({ infos }) < 0;
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
