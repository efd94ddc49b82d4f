import { isQuestion, PROJECT_DIR, STORY, type StoryTurn } from '../../bin/demo/story.ts';
import type { CapturedMessage, CapturedTurn } from '../../common/turn.ts';
import type { Memory } from '../../memory/index.ts';
import type { StoryQuestion } from '../fixtures/story-questions.ts';
import { getTurn, message, toolRound } from './turns.ts';

const SESSION = 'story';
/** What the clock of a memory must show that is to live this day: later, and each turn seems long silent. */
export const STORY_MS = Date.UTC(2026, 10, 2, 8);
const TURN_MS = 60_000;
const FLUSH_MS = 20_000;
const STILL_ROUNDS = 20;
/** Lines of one recall that its budget of 600 tokens has room for at their longest. */
const LINES_SHOWN = 5;

/** The day of the story as Claude Code would send it; its questions, which nothing answers, are left out. */
export function storyTurns(): CapturedTurn[] {
  const turns = STORY.slice(0, 1).flatMap(({ turns: all }) =>
    all.filter((turn): turn is StoryTurn => !isQuestion(turn)),
  );
  let atMs = STORY_MS;
  return turns.map((turn, at) => {
    atMs += TURN_MS;
    return captured(turn, at, atMs);
  });
}

function captured(turn: StoryTurn, at: number, atMs: number): CapturedTurn {
  const rounds = turn.rounds.flatMap(({ text, tools }, round): CapturedMessage[] => [
    ...(text === undefined ? [] : [message('assistant', [{ type: 'text', text }])]),
    ...tools.flatMap((tool, nth) => toolRound(tool.name, tool.input, tool.result, `toolu_${at}_${round}_${nth}`)),
  ]);
  const answer = message('assistant', [{ type: 'text', text: turn.answer }]);
  return getTurn(turn.prompt, [...rounds, answer], { sessionId: SESSION, projectDir: PROJECT_DIR, atMs });
}

/** How the turns come: a turn at a time as they are lived, each read before the next, or all at once after a restart. */
export type Pace = 'lived' | 'at once';

export async function replayStory(memory: Memory, pace: Pace): Promise<void> {
  for (const turn of storyTurns()) {
    memory.capture.captureTurns([turn]);
    if (pace === 'lived') await quiet(memory);
  }
  if (!(await memory.maintenance.flush(FLUSH_MS))) throw new Error('memory did not come to rest');
}

/** Until the sensor has read what there is; unlike `flush` it compacts nothing. */
async function quiet(memory: Memory): Promise<void> {
  let still = 0;
  for (let round = 0; round < 10_000; round += 1) {
    await new Promise(setImmediate);
    still = memory.maintenance.status().queue.sensor === 0 ? still + 1 : 0;
    if (still === STILL_ROUNDS) return;
  }
  throw new Error('memory is still busy');
}

/** The lines that a new session of the project is shown for a prompt. */
export async function linesFor(memory: Memory, prompt: string): Promise<string[]> {
  const request = {
    sessionId: 'tomorrow',
    projectDir: PROJECT_DIR,
    prompt,
    recent: [],
    visibleTurns: new Set<string>(),
    shown: new Set<string>(),
  };
  const hits = await memory.recall.recall(request, new AbortController().signal);
  return hits.slice(0, LINES_SHOWN).map(({ line }) => line.text);
}

/** The questions whose lines lack the answer, each with what was shown instead. */
export async function missedBy(memory: Memory, questions: readonly StoryQuestion[]): Promise<string[]> {
  const missed: string[] = [];
  for (const [question, answer] of questions) {
    const lines = await linesFor(memory, question);
    if (!lines.some((line) => answer.test(line))) missed.push([question, ...lines].join('\n  '));
  }
  return missed;
}
