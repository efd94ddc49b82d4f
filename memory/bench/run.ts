import type { CapturedTurn } from '../../common/turn.ts';
import type { Recall } from '../recall/recall-service.ts';
import type { RecallHit } from '../recall/types.ts';
import { contentTokens } from '../text/keywords.ts';
import { tokenize } from '../text/tokenizer.ts';
import { getLetters } from '../text/typed-text.ts';
import { bestSnippet, createBm25 } from './bm25.ts';
import type { Question } from './questions.ts';
import type { PastTurn } from './turns.ts';

/** An empty memory that the turns are told to again, and what it would put beside a prompt. */
export interface Replayed {
  capture(turns: readonly CapturedTurn[]): void;
  /** Resolves when the captured turns can be recalled. */
  settle(): Promise<void>;
  readonly recall: Recall['recall'];
  inject(hits: readonly RecallHit[]): string;
}

/** One method's answer to a question. */
export type Answer = Awaited<ReturnType<typeof recallAnswer>>;

export interface Outcome {
  readonly question: Question;
  readonly recall: Answer;
  readonly bm25: Answer;
}

export const SHOWN = 5;
/** Of each of the first turns by BM25: about as much as one recall may inject. */
const SNIPPETS = 3;
export const SNIPPET_CHARS = 800;
/** Turns that are told at once. */
const BATCH = 50;

/**
 * Tells the turns to an empty memory in their order and asks each question when the turns before it were said, beside
 * BM25 over the same turns.
 * @param turns  of one project, oldest first
 */
export async function askQuestions(
  turns: readonly PastTurn[],
  questions: readonly Question[],
  memory: Replayed,
  onProgress: (turns: number) => void,
): Promise<Outcome[]> {
  const bm25 = createBm25();
  const outcomes: Outcome[] = [];
  let turnCount = 0;
  for (const question of questions.toSorted((one, other) => one.before - other.before)) {
    while (turnCount < question.before) {
      const next = turns.slice(turnCount, Math.min(question.before, turnCount + BATCH));
      memory.capture(next.map(({ turn }) => turn));
      for (const { text } of next) bm25.add(text);
      await memory.settle();
      turnCount += next.length;
      onProgress(turnCount);
    }
    const best = bm25.rank(question.text).slice(0, SHOWN);
    const snippets = best.map((at) => bestSnippet(turns[at]?.text ?? '', question.text, SNIPPET_CHARS));
    outcomes.push({
      question,
      recall: await recallAnswer(turns, question, memory),
      bm25: {
        rank: best.findIndex((at) => question.right.includes(at)) + 1,
        holds: holdsAnswer(snippets.slice(0, SNIPPETS).join('\n'), question),
        first: snippets[0] ?? '',
        firstTurn: turns[best[0] ?? -1]?.turn.turnId ?? '',
      },
    });
  }
  return outcomes;
}

async function recallAnswer(turns: readonly PastTurn[], question: Question, memory: Replayed) {
  const right = new Set(question.right.map((at) => turns[at]?.turn.turnId));
  const projectDir = turns[question.right[0] ?? 0]?.turn.projectDir ?? null;
  const nothing = { recent: [], visibleTurns: new Set<string>(), shown: new Set<string>() };
  const { signal } = new AbortController();
  const hits = await memory.recall({ sessionId: 'bench', projectDir, prompt: question.text, ...nothing }, signal);
  const isRight = ({ raw, node }: RecallHit): boolean =>
    raw === null ? node.turns.some((turnId) => right.has(turnId)) : right.has(raw.turn);
  const [first] = hits;
  return {
    /** Rank of the first right turn among the first `SHOWN`, from 1; 0 for none. */
    rank: hits.slice(0, SHOWN).findIndex(isRight) + 1,
    holds: holdsAnswer(memory.inject(hits), question),
    /** What stands first, '' for nothing. */
    first: first?.raw?.text ?? first?.line.text ?? '',
    firstTurn: first?.raw?.turn ?? first?.node.turns[0] ?? '',
  };
}

/** The answer, and of the words of the question enough that it is about it. */
function holdsAnswer(text: string, { text: asked, answer }: Question): boolean {
  const words = contentTokens(asked);
  const tokens = new Set(tokenize(text));
  const shared = words.filter((word) => tokens.has(word)).length;
  return getLetters(text).includes(getLetters(answer)) && shared * 3 >= words.length;
}
