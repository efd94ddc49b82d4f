import { createHash } from 'node:crypto';
import { open, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { createKeyedMutex } from '../../common/async.ts';
import { ensureDir, syncDir } from '../../common/files.ts';
import type { PlanRecord } from './plan.ts';

/** Persists epoch plans. Without them a restart would send the whole history upstream, which would be refused. */
export interface PlanStore {
  /** Every record, in order within a session; the session written last comes last. */
  load(): AsyncIterable<readonly PlanRecord[]>;
  /** The records of one session. Like `load`, it skips unreadable records and reports them as problems. */
  read(sessionId: string): Promise<readonly PlanRecord[]>;
  /**
   * Records of a session keep their order.
   *
   * @param durable  resolve once the record is on disk (fsynced)
   * @param whole    the session's other records, written again when its file was deleted
   */
  append(sessionId: string, record: PlanRecord, durable: boolean, whole?: () => readonly PlanRecord[]): Promise<void>;
  problems(): readonly PlanProblem[];
  close(): Promise<void>;
}

interface PlanProblem {
  readonly file: string;
  readonly message: string;
}

const CONCURRENT_READS = 32;

/** One JSON line per record, one file per session. */
export function openPlanStore(dir: string): PlanStore {
  const lock = createKeyedMutex();
  const writing = new Set<Promise<void>>();
  const unreadable: PlanProblem[] = [];
  const knownFiles = new Set<string>();
  let unwritable: PlanProblem | null = null;

  const write = async (name: string, lines: Lines, durable: boolean): Promise<void> => {
    await ensureDir(dir);
    const file = await open(path.join(dir, name), 'a', 0o600);
    try {
      const isNew = (await file.stat()).size === 0;
      const wasDeleted = knownFiles.has(name) && isNew;
      await file.appendFile(wasDeleted ? lines.whole() + lines.line : lines.line);
      knownFiles.add(name);
      if (durable) await file.datasync();
      if (durable && isNew) await syncDir(dir);
    } finally {
      await file.close();
    }
  };

  const reportUnreadable = (file: string, error: unknown): void => {
    const message = `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'}); its sessions start without plans`;
    unreadable.push({ file, message });
  };

  const readRecords = async (name: string): Promise<PlanRecord[]> => {
    const file = path.join(dir, name);
    try {
      return (await readFile(file, 'utf8')).split('\n').flatMap(parseLine);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') reportUnreadable(file, error);
      return [];
    }
  };

  return {
    async *load() {
      const names = await listFiles(dir).catch((error: Error): string[] => {
        reportUnreadable(dir, error.cause ?? error);
        return [];
      });
      for (const name of names) knownFiles.add(name);
      for (let at = 0; at < names.length; at += CONCURRENT_READS) {
        yield* await Promise.all(names.slice(at, at + CONCURRENT_READS).map(readRecords));
      }
    },
    read(sessionId) {
      const name = fileName(sessionId);
      return lock(name, () => readRecords(name));
    },
    async append(sessionId, record, durable, whole = () => []) {
      const name = fileName(sessionId);
      const lines = { line: formatLine(record), whole: () => whole().map(formatLine).join('') };
      const task = lock(name, async () => {
        try {
          await write(name, lines, durable);
          unwritable = null;
        } catch (error) {
          const { message } = error as Error;
          unwritable = { file: dir, message: `plans cannot be written, so nothing new is trimmed: ${message}` };
          throw error;
        }
      });
      writing.add(task);
      await task.finally(() => writing.delete(task));
    },
    problems: () => (unwritable === null ? [...unreadable] : [...unreadable, unwritable]),
    async close() {
      await Promise.allSettled(writing);
    },
  };
}

/** Oldest first. */
async function listFiles(dir: string): Promise<string[]> {
  await ensureDir(dir);
  const names = (await readdir(dir)).filter((name) => name.endsWith('.jsonl')).sort();
  const files = names.map(async (name) => ({ name, atMs: (await stat(path.join(dir, name))).mtimeMs }));
  return (await Promise.all(files)).sort((a, b) => a.atMs - b.atMs).map(({ name }) => name);
}

interface Lines {
  readonly line: string;
  readonly whole: () => string;
}

/** The leading newline separates the record from a torn line before it. */
function formatLine(record: PlanRecord): string {
  return `\n${JSON.stringify(record)}`;
}

function fileName(sessionId: string): string {
  const safe = /^[A-Za-z0-9-]{1,64}$/.test(sessionId);
  const name = safe ? sessionId : createHash('sha256').update(sessionId).digest('hex').slice(0, 32);
  return `${name}.jsonl`;
}

const text = z.string();
const Injections = z.array(z.looseObject({ anchor: text, channel: z.enum(['system', 'block']), text }));
const Cut = z.looseObject({ through: text, preamble: text, nodeIds: z.array(text) });
const Plan = z.looseObject({
  id: text,
  sessionId: text,
  epoch: z.number(),
  cut: Cut.nullable(),
  strippedThrough: text.nullable(),
  systemBlock: text.nullable(),
  injections: Injections,
});
const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  plan: z.looseObject({ plan: Plan, served: text }),
  injections: z.looseObject({ planId: text, injections: Injections, served: text }),
};
const OTHER = z.looseObject({ kind: text, planId: text });

/** Skips damaged lines. A line torn by a crash holds a record that was not in use yet. */
function parseLine(line: string): PlanRecord[] {
  if (line.trim() === '') return [];
  try {
    const record = JSON.parse(line) as PlanRecord | null;
    const schema = SCHEMAS[record?.kind ?? ''] ?? OTHER;
    return schema.safeParse(record).success ? [record as PlanRecord] : [];
  } catch {
    return [];
  }
}
