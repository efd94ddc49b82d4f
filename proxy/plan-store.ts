import { createHash } from 'node:crypto';
import { open, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { ensureDir } from '../common/files.ts';
import type { PlanRecord } from './wire/plan.ts';

/** Keeps epoch plans over restarts: without them the whole history would go upstream again, and be refused. */
export interface PlanStore {
  /** Every record kept, in order of writing within a session. */
  load(): Promise<readonly PlanRecord[]>;
  /** With `durable`, resolves once the record is on disk (fsynced). Records of a session keep their order. */
  append(sessionId: string, record: PlanRecord, durable: boolean): Promise<void>;
  close(): Promise<void>;
}

/** One line of JSON for each record, a file for each session. A torn last line is the record that was in flight. */
export async function openPlanStore(dir: string): Promise<PlanStore> {
  await ensureDir(dir);
  const last = new Map<string, Promise<void>>();

  const write = async (name: string, line: string, durable: boolean): Promise<void> => {
    const file = await open(path.join(dir, name), 'a', 0o600);
    try {
      await file.appendFile(line);
      if (durable) await file.datasync();
    } finally {
      await file.close();
    }
  };

  return {
    async load() {
      const names = (await readdir(dir)).filter((name) => name.endsWith('.jsonl')).sort();
      const texts = await Promise.all(names.map((name) => readFile(path.join(dir, name), 'utf8')));
      return texts.flatMap((text) => text.split('\n').flatMap(parseLine));
    },
    async append(sessionId, record, durable) {
      const name = fileName(sessionId);
      const line = `\n${JSON.stringify(record)}`; // leading newline: a torn line before it stays alone
      const written = (last.get(name) ?? Promise.resolve()).then(() => write(name, line, durable));
      const settled = written.catch(() => {}); // the caller is told; the next record still gets its turn
      last.set(name, settled);
      void settled.then(() => last.get(name) === settled && last.delete(name));
      await written;
    },
    async close() {
      await Promise.all(last.values());
    },
  };
}

/** Keeps nothing beyond the process; for tests and conversations that must leave no trace. */
export function createMemoryPlanStore(records: PlanRecord[] = []): PlanStore {
  return {
    load: async () => [...records],
    append: async (_sessionId, record) => void records.push(record),
    close: async () => {},
  };
}

function fileName(sessionId: string): string {
  const safe = /^[A-Za-z0-9-]{1,64}$/.test(sessionId);
  const name = safe ? sessionId : createHash('sha256').update(sessionId).digest('hex').slice(0, 32);
  return `${name}.jsonl`;
}

function parseLine(line: string): PlanRecord[] {
  if (line.trim() === '') return [];
  try {
    return [JSON.parse(line) as PlanRecord];
  } catch {
    return []; // torn by a crash: the record was never used, or its use was not yet forwarded
  }
}
