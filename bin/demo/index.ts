import os from 'node:os';
import { CometError } from '../../common/errors.ts';
import { onSignals } from '../../engine/lifecycle/index.ts';
import type { Term } from '../terminal/term.ts';
import type { SentRequest } from './client.ts';
import { getOutcome, type Outcome, printOutcome, showTurn } from './report.ts';
import { type RecalledLine, storyBrain } from './response.ts';
import { createStoryClock, openStage, playStory, type Stage, type StageOptions } from './run.ts';
import { STORY } from './story.ts';

type DemoOptions = Pick<StageOptions, 'env' | 'term' | 'keep'> & { readonly json: boolean };

/**
 * Plays the story through guard, engine, TLS and store against the mock upstream, and reports the outcome.
 * @throws CometError `demo_failed` when something was refused, nothing was cut or a question stayed unanswered
 */
export async function runDemo(options: DemoOptions): Promise<void> {
  const { term, json, keep } = options;
  const startedMs = Date.now();
  const say = (what: string): void => {
    if (!json) term.progress(what === '' ? '' : `comet-cc demo: ${what}…`);
  };
  const clock = createStoryClock();
  const found = new Map<string, RecalledLine>();
  const sent: (SentRequest & { readonly atMs: number })[] = [];
  const brain = storyBrain(STORY, (question, at) => at !== null && found.set(question.prompt, at));
  const opening = openStage({ ...options, brain, clock });
  const signals = closeOnSignal(opening, term);
  try {
    say('making certificates, starting guard and engine');
    const stage = await opening;
    let outcome: Outcome;
    try {
      const played = await playStory(stage, STORY, {
        clock,
        onRequest: (request) => sent.push({ ...request, atMs: clock.now() }),
        onTurn: (turn) => json || showTurn(term, turn),
      });
      say('waiting for memory');
      outcome = await getOutcome(stage, { ...played, sent, found, keep, startedMs });
    } finally {
      say('cleaning up');
      await stage.close();
      say('');
    }
    if (json) term.json(outcome);
    else printOutcome(outcome, term);
    if (!outcome.ok) throw new CometError('demo_failed', `the demo did not go well: ${outcome.problems.join('; ')}`);
  } catch (error) {
    // What fails then fails because everything is being closed; the process ends as soon as that is done.
    if (signals.received()) await new Promise<never>(() => {});
    throw error;
  } finally {
    say('');
    signals.stop();
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Ctrl-C leaves nothing behind, whenever and however often it comes. */
function closeOnSignal(opening: Promise<Stage>, term: Term): { received(): boolean; stop(): void } {
  let leaving = false;
  const leave = async (code: number): Promise<void> => {
    if (leaving) return;
    leaving = true;
    term.say('comet-cc: interrupted, cleaning up');
    try {
      await (await opening).close();
    } finally {
      process.exit(code);
    }
  };
  const stop = onSignals(SIGNALS, (signal) => void leave(128 + os.constants.signals[signal]));
  return { received: () => leaving, stop: () => void (leaving || stop()) };
}
