import type { ConversationView } from '../wire/conversation.ts';
import type { TurnSpan } from '../wire/split-turns.ts';
import { type PartSpan, splitParts, splitRounds } from '../wire/tool-rounds.ts';
import { type CutContext, type CutReason, type CutRule, decideCut } from './cut.ts';

/** Rounds of the running turn that go from now on, those that went already included. */
export interface RoundsToCut {
  readonly because: CutReason;
  /** Messages `[start, end)`. */
  readonly start: number;
  readonly end: number;
  /** What stands for them, oldest first; the last one may stand for rounds that stay, too. */
  readonly parts: readonly PartSpan[];
}

export interface RoundCutInput {
  readonly view: ConversationView;
  readonly turn: TurnSpan;
  /** Where the rounds end that the plan in force drops of this turn; 0 where it drops none. */
  readonly absorbedEnd: number;
  readonly isDurable: (part: TurnSpan) => boolean;
  /** As a cut between turns would meet it; what is around the rounds is found here. */
  readonly context: CutContext;
  /** Tokens of the kept turns before this one. */
  readonly earlierTokens: number;
}

/** The oldest parts of a running turn, by the same rule as whole turns, with rounds in their place. */
export function decideRoundCut(input: RoundCutInput, rule: CutRule): RoundsToCut | null {
  const { view, turn, absorbedEnd, isDurable, context: scene } = input;
  const rounds = splitRounds(view, turn);
  const first = rounds[0];
  if (first === undefined) return null;
  const own = roundRule(rule);
  const units = [...rounds, asked(view, turn)];
  const parts = durableParts(splitParts(view, rounds), isDurable);
  const durableEnd = parts.at(-1)?.end ?? 0;
  const instructionTokens = tokensIn(view, turn.start, first.start);
  const cut = decideCut(
    {
      turns: units,
      absorbed: rounds.filter((round) => round.end <= absorbedEnd).length,
      isDurable: (round) => round.end <= durableEnd,
      context: { ...scene, aroundTokens: scene.aroundTokens + input.earlierTokens + instructionTokens },
    },
    own,
  );
  if (cut.kind === 'keep') return null;
  const end = rounds[cut.through - 1]?.end as number;
  return { because: cut.because, start: first.start, end, parts: parts.filter((part) => part.start < end) };
}

/** Parts of the running turn that a cut could need; empty while its rounds are far from worth one. */
export function selectParts(
  { view, turn, absorbedEnd, isDurable }: Omit<RoundCutInput, 'scene' | 'earlierTokens'>,
  rule: CutRule,
): PartSpan[] {
  const rounds = splitRounds(view, turn);
  const carried = rounds.filter((round) => round.end > absorbedEnd).reduce((sum, round) => sum + round.tokens, 0);
  if (carried < rule.triggerTokens * 0.75) return [];
  return splitParts(view, rounds).filter((part) => !isDurable(part));
}

function roundRule(rule: CutRule): CutRule {
  return { ...rule, keepTurns: rule.keepRounds, keepTokens: rule.keepRoundTokens, margin: rule.roundMargin };
}

/** A part behind one that nothing stands for cannot go. */
function durableParts(parts: readonly PartSpan[], isDurable: RoundCutInput['isDurable']): readonly PartSpan[] {
  const bare = parts.findIndex((part) => !isDurable(part));
  return bare < 0 ? parts : parts.slice(0, bare);
}

/** The answer that is asked for now, as the running one of `decideCut`. */
function asked({ infos }: ConversationView, turn: TurnSpan): TurnSpan {
  return { ...turn, start: infos.length, end: infos.length, tokens: 0, requests: 0 };
}

function tokensIn({ infos }: ConversationView, start: number, end: number): number {
  return infos.slice(start, end).reduce((sum, info) => sum + info.tokens, 0);
}
