import type { ConversationView } from '../wire/conversation.ts';
import type { TurnSpan } from '../wire/split-turns.ts';
import { type PartSpan, splitParts, splitRounds } from '../wire/tool-rounds.ts';
import { type CutContext, type CutReason, type CutRule, decideCut } from './cut.ts';

/** Tool rounds of the running turn to drop, including those already dropped. */
export interface RoundsToCut {
  readonly because: CutReason;
  /** Messages `[start, end)`. */
  readonly start: number;
  readonly end: number;
  /** Parts that replace them, oldest first; the last part may cover rounds that stay, too. */
  readonly parts: readonly PartSpan[];
}

export interface RoundCutInput {
  readonly view: ConversationView;
  readonly turn: TurnSpan;
  /** End of the rounds of this turn that the current plan drops; 0 when it drops none. */
  readonly absorbedEnd: number;
  readonly isDurable: (part: TurnSpan) => boolean;
  /** The context of a cut between turns; `decideRoundCut` adds what surrounds the rounds. */
  readonly context: CutContext;
  /** Tokens of the kept turns before this one. */
  readonly earlierTokens: number;
}

/** Applies the rule for whole turns to the tool rounds of the running turn. */
export function decideRoundCut(input: RoundCutInput, rule: CutRule): RoundsToCut | null {
  const { view, turn, absorbedEnd, isDurable, context: scene } = input;
  const rounds = splitRounds(view, turn);
  const first = rounds[0];
  if (first === undefined) return null;
  const units = [...rounds, emptyRound(view, turn)];
  const parts = takeDurableParts(splitParts(view, rounds), isDurable);
  const durableEnd = parts.at(-1)?.end ?? 0;
  const instructionTokens = sumTokens(view, turn.start, first.start);
  const cut = decideCut(
    {
      turns: units,
      absorbed: rounds.filter((round) => round.end <= absorbedEnd).length,
      isDurable: (round) => round.end <= durableEnd,
      // The state of rounds always stands in their preamble.
      countHeld: (held) => ({ turns: held.length, extraTokens: 0 }),
      context: { ...scene, aroundTokens: scene.aroundTokens + input.earlierTokens + instructionTokens },
    },
    toRoundRule(rule),
  );
  if (cut.kind === 'keep') return null;
  const end = rounds[cut.through - 1]?.end as number;
  return { because: cut.because, start: first.start, end, parts: parts.filter((part) => part.start < end) };
}

/** Parts of the running turn that a cut could need; empty while the rounds are far from the trigger. */
export function selectParts(
  { view, turn, absorbedEnd, isDurable }: Omit<RoundCutInput, 'scene' | 'earlierTokens'>,
  rule: CutRule,
): PartSpan[] {
  const rounds = splitRounds(view, turn);
  const carried = rounds.filter((round) => round.end > absorbedEnd).reduce((sum, round) => sum + round.tokens, 0);
  if (carried < rule.triggerTokens * 0.75) return [];
  return splitParts(view, rounds).filter((part) => !isDurable(part));
}

function toRoundRule(rule: CutRule): CutRule {
  return { ...rule, keepTurns: rule.keepRounds, keepTokens: rule.keepRoundTokens, margin: rule.roundMargin };
}

/** A part can be dropped only when all parts before it are durable. */
function takeDurableParts(parts: readonly PartSpan[], isDurable: RoundCutInput['isDurable']): readonly PartSpan[] {
  const end = parts.findIndex((part) => !isDurable(part));
  return end < 0 ? parts : parts.slice(0, end);
}

/** The requested answer: `decideCut` treats the last unit as the running one. */
function emptyRound({ infos }: ConversationView, turn: TurnSpan): TurnSpan {
  return { ...turn, start: infos.length, end: infos.length, tokens: 0, requests: 0 };
}

function sumTokens({ infos }: ConversationView, start: number, end: number): number {
  return infos.slice(start, end).reduce((sum, info) => sum + info.tokens, 0);
}
