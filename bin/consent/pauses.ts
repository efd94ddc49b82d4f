import { z } from 'zod';
import { readFileIfPresent, writeFileAtomic } from '../../common/files.ts';

const pause = z.strictObject({
  mode: z.enum(['private', 'off']),
  since: z.iso.datetime(),
  /** Null: until `resume`. */
  until: z.iso.datetime().nullable(),
});
const pauses = z.strictObject({
  everywhere: pause.nullable(),
  /** By project key, see `memory/core/project.ts`. */
  projects: z.record(z.string(), pause),
});

export type Pause = z.infer<typeof pause>;
export type Pauses = z.infer<typeof pauses>;

export const NO_PAUSES: Pauses = { everywhere: null, projects: {} };

/** @throws where the file does not say what it should */
export function parsePauses(text: string): Pauses {
  return pauses.parse(JSON.parse(text));
}

/** What is asked for by `pause` and still holds. */
export function standing({ everywhere, projects }: Pauses, nowMs: number): Pauses {
  const holds = ({ until }: Pause): boolean => until === null || Date.parse(until) > nowMs;
  return {
    everywhere: everywhere !== null && holds(everywhere) ? everywhere : null,
    projects: Object.fromEntries(Object.entries(projects).filter(([, one]) => holds(one))),
  };
}

/** `project` null: everywhere. */
export function paused(from: Pauses, project: string | null, asked: Pause): Pauses {
  if (project === null) return { ...from, everywhere: asked };
  return { ...from, projects: { ...from.projects, [project]: asked } };
}

/** `project` null: every pause there is. */
export function resumed(from: Pauses, project: string | null): Pauses {
  if (project === null) return NO_PAUSES;
  const { [project]: _, ...projects } = from.projects;
  return { ...from, projects };
}

/** The daemon need not run: it reads the file when the next request comes. @throws as `parsePauses` */
export async function readPauses(file: string, nowMs: number): Promise<Pauses> {
  const text = await readFileIfPresent(file);
  return text === null ? NO_PAUSES : standing(parsePauses(text), nowMs);
}

export async function writePauses(file: string, wanted: Pauses): Promise<void> {
  await writeFileAtomic(file, `${JSON.stringify(wanted, null, 2)}\n`);
}
