import path from 'node:path';
import { z } from 'zod';
import { ensureDir, readFileIfPresent, replaceFile, writePrivateFile } from '../../common/files.ts';
import { parseJson } from '../../common/text.ts';

const time = z.iso.datetime();
/** `until` null: until `resume`. */
const Pause = z.strictObject({ mode: z.enum(['private', 'off']), since: time, until: time.nullable() }).readonly();
const Pauses = z
  .strictObject({
    /** Ended pauses: turns from them are never imported. `project` null: everywhere. */
    past: z.array(z.strictObject({ project: z.string().nullable(), since: time, until: time }).readonly()).default([]),
    everywhere: Pause.nullable(),
    /** By project key, see `memory/storage/fs/project-files.ts`. */
    projects: z.record(z.string(), Pause),
  })
  .readonly();
export type Pause = z.infer<typeof Pause>;
export type Pauses = z.infer<typeof Pauses>;

export const NO_PAUSES: Pauses = { past: [], everywhere: null, projects: {} };

/** What a file that cannot be read stands for. */
export const allPaused = (since: string): Pauses => ({ ...NO_PAUSES, everywhere: { mode: 'off', since, until: null } });

/** Moves the pauses that are over to `past`. @param isOver  `project` null: of the pause everywhere */
function endPauses(
  { past, everywhere, projects }: Pauses,
  nowMs: number,
  isOver: (pause: Pause, project: string | null) => boolean,
): Pauses {
  const own = Object.entries(projects);
  const over = [[null, everywhere] as const, ...own].flatMap(([project, pause]) =>
    pause !== null && isOver(pause, project) ? [ended(project, pause, nowMs)] : [],
  );
  return {
    past: [...past, ...over],
    everywhere: everywhere === null || isOver(everywhere, null) ? null : everywhere,
    projects: Object.fromEntries(own.filter(([project, pause]) => !isOver(pause, project))),
  };
}

/** The pauses that still hold; those that ended are moved to `past`. */
export const activePauses = (requested: Pauses, nowMs: number): Pauses =>
  endPauses(requested, nowMs, ({ until }) => until !== null && Date.parse(until) <= nowMs);

export function wasPaused(pauses: Pauses, project: string, fromMs: number, toMs: number): boolean {
  const own = [pauses.everywhere, pauses.projects[project]].flatMap((one) => (one ? [one] : []));
  const over = pauses.past.filter((one) => one.project === null || one.project === project);
  return [...own, ...over].some(
    ({ since, until }) => Date.parse(since) <= toMs && (until === null || Date.parse(until) >= fromMs),
  );
}

function ended(project: string | null, { since, until }: Pause, nowMs: number): Pauses['past'][number] {
  const endMs = Math.min(nowMs, until === null ? nowMs : Date.parse(until));
  return { project, since, until: new Date(endMs).toISOString() };
}

/** `project` null: everywhere. A pause that it replaces ends when it begins. */
export function paused(before: Pauses, project: string | null, pause: Pause): Pauses {
  const from = endPauses(before, Date.parse(pause.since), (_, name) => name === project);
  return project === null
    ? { ...from, everywhere: pause }
    : { ...from, projects: { ...from.projects, [project]: pause } };
}

/** `project` null: ends every pause. */
export const resumed = (from: Pauses, project: string | null, nowMs: number): Pauses =>
  endPauses(from, nowMs, (_, name) => project === null || name === project);

export const parsePauses = (text: string): Pauses => Pauses.parse(JSON.parse(text));

export type PauseSwitch = ReturnType<typeof createPauseSwitch>;

/** Sets and ends pauses by project key (null: everywhere), also without the daemon, which reads the file each time. */
export function createPauseSwitch(file: string, now: () => number) {
  /** A damaged file pauses everything; a change repairs it, and only resuming lifts that. */
  async function change(damaged: Pauses, getChange: (before: Pauses) => Pauses): Promise<Pauses> {
    await ensureDir(path.dirname(file));
    for (;;) {
      const text = await readFileIfPresent(file).catch(() => undefined);
      const held = text === null ? NO_PAUSES : (Pauses.safeParse(parseJson(text ?? '')).data ?? damaged);
      const wanted = getChange(activePauses(held, now()));
      if (text === undefined) await writePauses(file, wanted);
      // Another command may have set a pause meanwhile.
      if (text === undefined || (await replaceFile(file, text, render(wanted)))) return wanted;
    }
  }
  return {
    pause(mode: Pause['mode'], project: string | null, untilMs: number | null = null): Promise<Pauses> {
      const until = untilMs === null ? null : new Date(untilMs).toISOString();
      const since = new Date(now()).toISOString();
      return change(allPaused(since), (before) => paused(before, project, { mode, since, until }));
    },
    resume: (project: string | null): Promise<Pauses> => change(NO_PAUSES, (before) => resumed(before, project, now())),
  };
}

const render = (pauses: Pauses): string => `${JSON.stringify(pauses, null, 2)}\n`;

export const writePauses = (file: string, wanted: Pauses): Promise<void> => writePrivateFile(file, render(wanted));
