import type { TurnPart, TurnText } from '../../model/turn.ts';

/** Short labels for turns, `t1` the oldest; models copy them reliably, unlike hashes. */
export function labelTurns(turns: readonly TurnText[], also: ReadonlyMap<string, readonly string[]> = new Map()) {
  const of = new Map(turns.map((turn, index) => [turn.turnId, `t${index + 1}`]));
  const named = new Map<string, readonly string[]>([
    ...also,
    ...[...of].map(([turnId, label]) => [label, [turnId]] as const),
  ]);
  return {
    of,
    /** Distinct turn ids; unknown labels are ignored. */
    getTurnIds: (labels: readonly string[]): string[] => [
      ...new Set(labels.flatMap((label) => named.get(bareLabel(label)) ?? [])),
    ],
  };
}

/** Normalizes a label as a model wrote it. */
export const bareLabel = (label: string): string => label.replace(/[[\]\s]/g, '').toLowerCase();

export interface TranscriptOptions {
  readonly labels: ReadonlyMap<string, string>;
  /** Limit for the whole transcript; tool traffic is shortened first. */
  readonly maxChars: number;
  /** Limit for each call of a tool and each result, but for those that hold words of the user or a conclusion. */
  readonly maxToolChars?: number;
}

/** Their calls and results hold an answer of the user, a plan, or the report of a subagent. */
const TELLING_TOOLS = new Set(['AskUserQuestion', 'ExitPlanMode', 'Task', 'Agent']);

/** Indents all conversation text, so that none of it can pass for a label. */
export function renderTranscript(whole: readonly TurnText[], options: TranscriptOptions): string {
  const { labels, maxChars, maxToolChars } = options;
  const turns = whole.map((turn) => ({ ...turn, parts: turn.parts.flatMap(byOutside) }));
  const sizesOfTexts = turns.flatMap((turn) => [turn.user.length, ...sizes(turn.parts.filter(isSaid))]);
  const sizesOfTools = turns.flatMap((turn) => sizes(turn.parts.filter((part) => !isSaid(part))));
  const said = fairShare(sizesOfTexts, maxChars);
  const tools = fairShare(sizesOfTools, Math.max(0, maxChars - sum(sizesOfTexts)));
  const getLimit = (part?: TurnPart): number =>
    part === undefined || isSaid(part) ? said : Math.min(tools, getOwnLimit(part, maxToolChars));
  return turns.map((turn) => renderTurn(turn, labels.get(turn.turnId) ?? '?', getLimit)).join('\n\n');
}

/** @param getLimit  of a part, or of what the user typed */
function renderTurn(turn: TurnText, label: string, getLimit: (part?: TurnPart) => number): string {
  const lines = [`[${label}] ${new Date(turn.atMs).toISOString().slice(0, 16)}Z`];
  if (turn.user !== '') lines.push(`user:${indented(elide(turn.user, getLimit()))}`);
  for (const part of turn.parts) {
    const text = isReport(part) ? part.text.slice(part.text.indexOf('<summary>')) : part.text;
    lines.push(`${heading(part)}:${indented(elide(text, getLimit(part)))}`);
  }
  if (turn.unfinished === true) lines.push('(interrupted: the answer is incomplete)');
  return lines.join('\n');
}

/** An answer that repeats in part what came from outside, in pieces. */
function byOutside(part: TurnPart): TurnPart[] {
  const { passages = [], ...whole } = part;
  if (!passages.some(({ origin }) => origin === 'external')) return [part];
  return passages.map(({ origin, text }) => ({ ...whole, origin, text }));
}

/** The notice of a subagent in the background: the client's own words, which are longer than most reports, precede it. */
const isReport = ({ kind, tool, text }: TurnPart): boolean =>
  kind === 'tool_result' && tool === '' && /<summary>Agent [^<]{0,400}<\/summary>/.test(text);

/** How much of a part a transcript shows at most. */
export function getOwnLimit(part: TurnPart, maxToolChars = Number.POSITIVE_INFINITY): number {
  return isSaid(part) || TELLING_TOOLS.has(part.tool) || isReport(part) ? Number.POSITIVE_INFINITY : maxToolChars;
}

/** About as many characters of a turn as a transcript without another limit shows. */
export function countShown({ user, parts }: TurnText, maxToolChars?: number): number {
  return sum([user.length, ...parts.map((part) => Math.min(part.text.length, getOwnLimit(part, maxToolChars)))]);
}

function heading(part: TurnPart): string {
  const outside = part.origin === 'external' ? ' (outside the project)' : '';
  const tool = part.tool.replace(/[^\w-]/g, '');
  if (part.kind === 'assistant') return `assistant${outside}`;
  return part.kind === 'tool_use' ? `tool call ${tool}` : `tool result ${tool}${outside}`;
}

const indented = (text: string): string => `\n${text}`.replaceAll(/\r\n?|\n|\u2028|\u2029/g, '\n  ');

/** Keeps head and tail of a long text. */
export function elide(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = Math.ceil(maxChars * 0.7);
  const tail = Math.max(0, Math.floor(maxChars) - head);
  const missing = text.length - head - tail;
  return `${text.slice(0, head)}\n[… ${missing} characters left out …]\n${tail === 0 ? '' : text.slice(-tail)}`;
}

/** The per-text limit at which all texts fit `budget`; short texts leave their share to long ones. */
function fairShare(lengths: readonly number[], budget: number): number {
  if (sum(lengths) <= budget) return Number.POSITIVE_INFINITY;
  const sorted = lengths.toSorted((a, b) => a - b);
  let left = budget;
  for (const [index, length] of sorted.entries()) {
    const share = left / (sorted.length - index);
    if (length > share) return Math.floor(share);
    left -= length;
  }
  return Number.POSITIVE_INFINITY;
}

const isSaid = (part: TurnPart): boolean => part.kind === 'assistant';

const sizes = (parts: readonly TurnPart[]): number[] => parts.map((part) => part.text.length);

const sum = (lengths: readonly number[]): number => lengths.reduce((total, length) => total + length, 0);
