import { type Mutex, systemClock, withTimeout } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import type { Log } from '../../common/log.ts';
import type { HomePaths } from '../../common/paths.ts';
import { runChild } from '../../common/run-process.ts';
import type { Redactor } from '../../redact/index.ts';
import type { Task } from '../model/task.ts';
import type { LanguageModel } from '../models/model.ts';
import type { ModelQuota } from '../models/quota.ts';
import { libraryPaths } from '../storage/paths.ts';
import { openTaskFiles } from './fs/task-files.ts';
import type { Activity } from './judge.ts';
import { interruptionPrompt, reviewPrompt } from './prompts.ts';
import { createSurfacing, type Surfacing } from './surfacing.ts';
import { withoutTakenBack } from './task-sources.ts';
import { createTasks, type Tasks } from './tasks.ts';

const REVIEW_MS = 180_000;
const JUDGE_MS = 20_000;
const NOTIFY_MS = 5_000;

interface Parts {
  readonly env: NodeJS.ProcessEnv;
  readonly config: Config;
  readonly paths: HomePaths;
  readonly getProject: (directory: string | null) => string;
  readonly redactor: Redactor;
  readonly model: LanguageModel | null;
  readonly quota: ModelQuota;
  readonly activity?: () => Activity;
  readonly randomHex: () => string;
  /** See `openTaskFiles`. */
  readonly exclusive: Mutex;
  /** See `withoutTakenBack`. */
  readonly isTakenBack: (nodeId: string, text: string) => boolean;
  /** Told before a task is removed for good. */
  readonly onRemove: (task: Task) => Promise<void>;
  readonly log: Log;
}

/** The tasks of the library; looks for due ones from `start` on. */
export async function openTasks(parts: Parts): Promise<{ readonly tasks: Tasks; readonly start: Surfacing['start'] }> {
  const { now } = systemClock;
  const { library, tasks: rule } = parts.config;
  const { env, paths, getProject, redactor, model, quota, randomHex, log } = parts;
  const { activity = () => ({ answering: 0, lastRequestMs: 0 }) } = parts;
  const opened = await openTaskFiles(libraryPaths(library.dir, paths), parts.exclusive);
  const files = {
    ...withoutTakenBack(opened, parts.isTakenBack),
    remove: async (name: string): Promise<void> => {
      const task = (await opened.load(true)).tasks.find((each) => each.name === name);
      if (task !== undefined) await parts.onRemove(task);
      await opened.remove(name);
    },
  };
  const ask = model?.ask;
  const late = (): Error => new Error('the model took too long');
  const surfacing = createSurfacing({
    ...{ files, now, rule, activity, log },
    notify: (text) => notifyDesktop(text, env),
    review:
      ask === undefined
        ? null
        : async (task, topic, signal) => {
            const decision = quota.decide();
            if (decision.kind !== 'allow') return `not made: ${decision.because}`;
            const answer = ask(reviewPrompt(task, topic, randomHex()), signal);
            return redactor.text(await withTimeout(answer, REVIEW_MS, late));
          },
    interrupts:
      ask === undefined
        ? null
        : async (task, moment, signal) => {
            if (quota.decide().kind !== 'allow') return null;
            const prompt = interruptionPrompt(task, { ...moment, nowMs: now() }, randomHex());
            return await withTimeout(ask(prompt, signal), JUDGE_MS, late);
          },
  });
  return { tasks: createTasks({ files, surfacing, now, getProject, redact: redactor.text }), start: surfacing.start };
}

const SCRIPT = ['on run argv', 'display notification (item 1 of argv) with title "comet-cc"', 'end run'];

/** By the desktop's own tool, where there is one. */
async function notifyDesktop(text: string, env: NodeJS.ProcessEnv): Promise<void> {
  const isMac = process.platform === 'darwin';
  if (!isMac && !(process.platform === 'linux' && (env['DISPLAY'] || env['WAYLAND_DISPLAY']))) return;
  const file = isMac ? 'osascript' : 'notify-send';
  const args = isMac ? SCRIPT.flatMap((line) => ['-e', line]) : ['--app-name=comet-cc', 'comet-cc'];
  await runChild({ file, args: [...args, text], input: '', env, timeoutMs: NOTIFY_MS, graceMs: 500 });
}
