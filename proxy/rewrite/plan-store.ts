import { createHash } from 'node:crypto';
import { open, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ensureDir, syncDir } from '../../common/files.ts';
import type { EpochPlan, PlanRecord } from './plan.ts';

/** Keeps epoch plans over restarts: without them the whole history would go upstream again, and be refused. */
export interface PlanStore {
  /** Every record kept, in order of writing within a session, the session written last at the end. */
  load(): AsyncIterable<readonly PlanRecord[]>;
  /** All that is kept of a session. What cannot be read, here or by `load`, is left out and named. */
  read(sessionId: string): Promise<readonly PlanRecord[]>;
  /**
   * With `durable`, resolves once the record is on disk (fsynced). Records of a session keep their order. Where a
   * session's records have vanished, `whole` says what else there was of it.
   */
  append(sessionId: string, record: PlanRecord, durable: boolean, whole?: () => readonly PlanRecord[]): Promise<void>;
  /** What could not be read, and what cannot be written now. */
  problems(): readonly PlanProblem[];
  close(): Promise<void>;
}

interface PlanProblem {
  readonly file: string;
  readonly message: string;
}

const READ_AT_ONCE = 32;

/** One line of JSON for each record, a file for each session. A torn last line is the record that was in flight. */
export function openPlanStore(dir: string): PlanStore {
  const last = new Map<string, Promise<void>>();
  const unreadable: PlanProblem[] = [];
  const known = new Set<string>();
  let unwritable: PlanProblem | null = null;

  const write = async (name: string, lines: Lines, durable: boolean): Promise<void> => {
    await ensureDir(dir);
    const file = await open(path.join(dir, name), 'a', 0o600);
    try {
      const isNew = (await file.stat()).size === 0;
      const hasVanished = known.has(name) && isNew;
      await file.appendFile(hasVanished ? lines.whole() + lines.line : lines.line);
      known.add(name);
      if (durable) await file.datasync();
      if (durable && isNew) await syncDir(dir);
    } finally {
      await file.close();
    }
  };

  const unused = (file: string, error: unknown): void => {
    const message = `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'}); its sessions start afresh`;
    unreadable.push({ file, message });
  };

  const linesOf = async (name: string): Promise<PlanRecord[]> => {
    const file = path.join(dir, name);
    try {
      return (await readFile(file, 'utf8')).split('\n').flatMap(parseLine);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') unused(file, error);
      return [];
    }
  };

  return {
    async *load() {
      const names = await namesIn(dir).catch((error: Error): string[] => {
        unused(dir, error.cause ?? error);
        return [];
      });
      for (const name of names) known.add(name);
      for (let at = 0; at < names.length; at += READ_AT_ONCE) {
        yield* await Promise.all(names.slice(at, at + READ_AT_ONCE).map(linesOf));
      }
    },
    async read(sessionId) {
      const name = fileName(sessionId);
      await last.get(name);
      return linesOf(name);
    },
    async append(sessionId, record, durable, whole = () => []) {
      const name = fileName(sessionId);
      const lines = { line: lineOf(record), whole: () => whole().map(lineOf).join('') };
      const written = (last.get(name) ?? Promise.resolve()).then(() => write(name, lines, durable));
      const settled = written.then(
        () => {
          unwritable = null;
        },
        (error: Error) => {
          unwritable = { file: dir, message: `plans cannot be written, so nothing new is trimmed: ${error.message}` };
        }, // the caller is told; the next record still gets its turn
      );
      last.set(name, settled);
      void settled.then(() => last.get(name) === settled && last.delete(name));
      await written;
    },
    problems: () => (unwritable === null ? [...unreadable] : [...unreadable, unwritable]),
    async close() {
      await Promise.all(last.values());
    },
  };
}

/** The file written last at the end. */
async function namesIn(dir: string): Promise<string[]> {
  await ensureDir(dir);
  const names = (await readdir(dir)).filter((name) => name.endsWith('.jsonl')).sort();
  const files = names.map(async (name) => ({ name, atMs: (await stat(path.join(dir, name))).mtimeMs }));
  return (await Promise.all(files)).sort((a, b) => a.atMs - b.atMs).map(({ name }) => name);
}

interface Lines {
  readonly line: string;
  readonly whole: () => string;
}

/** Leading newline: a torn line before it stays alone. */
function lineOf(record: PlanRecord): string {
  return `\n${JSON.stringify(record)}`;
}

/** Keeps nothing beyond the process; for tests and conversations that must leave no trace. */
export function createMemoryPlanStore(records: PlanRecord[] = []): PlanStore {
  return {
    async *load() {
      yield [...records];
    },
    async read(sessionId) {
      const own = records.filter((record) => record.kind === 'plan' && record.plan.sessionId === sessionId);
      const ids = new Set(own.map((record) => (record as { plan: EpochPlan }).plan.id));
      return records.filter((record) => ids.has(record.kind === 'plan' ? record.plan.id : record.planId));
    },
    append: async (_sessionId, record) => void records.push(record),
    problems: () => [],
    close: async () => {},
  };
}

function fileName(sessionId: string): string {
  const safe = /^[A-Za-z0-9-]{1,64}$/.test(sessionId);
  const name = safe ? sessionId : createHash('sha256').update(sessionId).digest('hex').slice(0, 32);
  return `${name}.jsonl`;
}

const text = z.string();
const nothing = z.null();
const Injections = z.array(z.looseObject({ anchor: text, channel: z.enum(['system', 'block']), text }));
const Cut = z.looseObject({ through: text, preamble: text, nodeIds: z.array(text) });
const Plan = z.looseObject({
  id: text,
  sessionId: text,
  epoch: z.number(),
  cut: Cut.or(nothing),
  strippedThrough: text.or(nothing),
  systemBlock: text.or(nothing),
  injections: Injections,
});
const Sound: Readonly<Record<string, z.ZodType>> = {
  plan: z.looseObject({ plan: Plan, served: text }),
  injections: z.looseObject({ planId: text, injections: Injections, served: text }),
};
const Other = z.looseObject({ kind: text, planId: text });

/** Lines that a crash tore (the record was not in use yet) or that somebody damaged are no records. */
function parseLine(line: string): PlanRecord[] {
  if (line.trim() === '') return [];
  try {
    const record = JSON.parse(line) as PlanRecord | null;
    const schema = Sound[record?.kind ?? ''] ?? Other;
    return schema.safeParse(record).success ? [record as PlanRecord] : [];
  } catch {
    return [];
  }
}
