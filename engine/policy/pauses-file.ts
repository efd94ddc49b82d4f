import path from 'node:path';
import { z } from 'zod';
import { ensureDir, readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import { NO_PAUSES, type Pauses, standing } from './pauses.ts';

const time = z.iso.datetime();
const pause = z.strictObject({ mode: z.enum(['private', 'off']), since: time, until: time.nullable() });
const pauses = z.strictObject({
  past: z.array(z.strictObject({ project: z.string().nullable(), since: time, until: time })).default([]),
  everywhere: pause.nullable(),
  projects: z.record(z.string(), pause),
});

/** @throws where the file does not say what it should */
export function parsePauses(text: string): Pauses {
  return pauses.parse(JSON.parse(text));
}

/** The daemon need not run: it reads the file when the next request comes. @throws as `parsePauses` */
export async function readPauses(file: string, nowMs: number): Promise<Pauses> {
  const text = await readFileIfPresent(file);
  return text === null ? NO_PAUSES : standing(parsePauses(text), nowMs);
}

export async function writePauses(file: string, wanted: Pauses): Promise<void> {
  await ensureDir(path.dirname(file));
  await writeFileAtomic(file, `${JSON.stringify(wanted, null, 2)}\n`);
}
