import { rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { ensureDir, inspectPrivateFile, readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import { parseJson } from '../../common/text.ts';
import type { ShareState, StateFile } from './parts.ts';
import { MACHINE_ID, Row } from './row.ts';

const Head = z.object({ sequence: z.int(), digest: z.string() });
const State = z.object({
  ...{ url: z.string(), scope: z.enum(['me', 'team']), machine: z.string().regex(MACHINE_ID), name: z.string() },
  keys: z.object({ publicKey: z.string(), privateKey: z.string() }),
  ...{ salt: z.string().nullable(), next: z.int(), confirmed: Head.nullable(), outbox: z.array(Row) },
  known: z.record(
    z.string(),
    z.object({
      ...{ owner: z.string(), version: z.int(), digest: z.string(), source: z.string(), sequences: z.array(z.int()) },
      after: z.string().optional(),
    }),
  ),
  peers: z.record(z.string(), z.object({ machine: z.string(), card: z.any(), name: z.string(), head: Head })),
  turns: z.record(z.string(), z.object({ sequence: z.int(), nodeId: z.string() })).default({}),
  raw: z.boolean().default(false),
  ...{ erasing: z.array(z.int()), refused: z.record(z.string(), z.string()) },
  ...{ pushed: z.string().nullable(), pulled: z.string().nullable() },
});

/** JSON, mode 0600: it holds the machine's private key. */
export function createStateFile(file: string): StateFile {
  return {
    async load() {
      const text = await readPrivate(file);
      if (text === null) return null;
      const state = State.safeParse(parseJson(text));
      if (state.success) return state.data as ShareState;
      throw new CometError('share_failed', `${file} cannot be read; comet-cc share leave, then join again`);
    },
    async save(state) {
      await ensureDir(path.dirname(file));
      await writeFileAtomic(file, JSON.stringify(state));
    },
    remove: () => rm(file, { force: true }),
  };
}

/** The first line of a file of the user's; null where there is none. @throws CometError `unsafe_file` */
export async function readPassphrase(file: string): Promise<string | null> {
  const text = await readPrivate(file);
  return text?.split(/\r?\n/)[0] || null;
}

async function readPrivate(file: string): Promise<string | null> {
  const problem = inspectPrivateFile(file);
  if (problem === 'missing') return null;
  if (problem !== null) throw new CometError('unsafe_file', `${file} is not private (${problem}); chmod 600 it`);
  return readFileIfPresent(file);
}
