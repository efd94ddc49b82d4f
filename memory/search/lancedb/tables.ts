import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { type Connection, connect, Session } from '@lancedb/lancedb';
import type { Kind } from './schema.ts';
import { createRowTable, openRowTable, type RowTable, type TablePlace } from './table.ts';

/** A table for each kind of row of each project: statistics of words are a project's own, and so is the cost. */
export interface Tables {
  /** Keys of the projects that have rows. */
  keys(): readonly string[];
  /** Null where the project has no row of this kind. */
  find(key: string, kind: Kind): Promise<RowTable | null>;
  findOrCreate(key: string, kind: Kind): Promise<RowTable>;
  opened(): readonly RowTable[];
  /** Replaces a table by a copy without what was deleted. @param settled  resolves when no search reads the old one */
  rewrite(key: string, kind: Kind, settled: () => Promise<unknown>): Promise<void>;
  drop(key: string): Promise<void>;
  /** Opens everything again when it is next used: native memory grows with every commit. */
  reopen(): Promise<void>;
  close(): void;
}

interface TablesOptions {
  readonly dir: string;
  readonly dimensions: number;
  readonly rowsForVectorIndex: number | undefined;
}

/** LanceDB's own limits are six gigabytes and one. */
const INDEX_CACHE_BYTES = 32n * 1024n * 1024n;
const METADATA_CACHE_BYTES = 4n * 1024n * 1024n;
const NAME = /^(turn|node|fact)-([0-9a-f]{16})-(\d+)$/;

export function keyOf(project: string): string {
  return createHash('sha256').update(project).digest('hex').slice(0, 16);
}

export async function openTables({ dir, ...shape }: TablesOptions): Promise<Tables> {
  let connection = await connected(dir);
  const generations = new Map<string, number>();
  const tables = new Map<string, Promise<RowTable>>();
  const ready = new Map<string, RowTable>();
  await list();

  /** Two generations of a table are left by a rewrite that did not end: the older one is whole. */
  async function list(): Promise<void> {
    const found = (await connection.tableNames({ limit: 100_000 })).flatMap((name) => {
      const [, kind, key, generation] = NAME.exec(name) ?? [];
      return generation === undefined ? [] : [{ id: `${kind}-${key}`, generation: Number(generation) }];
    });
    for (const { id, generation } of found.sort((one, other) => one.generation - other.generation)) {
      if (generations.has(id)) await connection.dropTable(`${id}-${generation}`);
      else generations.set(id, generation);
    }
  }

  const placeOf = (kind: Kind): TablePlace => ({ connection, kind, ...shape });

  async function open(id: string, opening: Promise<RowTable>): Promise<RowTable> {
    tables.set(id, opening);
    try {
      const table = await opening;
      ready.set(id, table);
      return table;
    } catch (error) {
      tables.delete(id);
      throw error;
    }
  }

  async function find(key: string, kind: Kind): Promise<RowTable | null> {
    const id = `${kind}-${key}`;
    const generation = generations.get(id);
    if (generation === undefined) return null;
    return tables.get(id) ?? open(id, openRowTable(placeOf(kind), `${id}-${generation}`));
  }

  return {
    keys: () => [...new Set([...generations.keys()].map((id) => id.split('-')[1] as string))],
    find,
    async findOrCreate(key, kind) {
      const known = await find(key, kind);
      if (known !== null) return known;
      const id = `${kind}-${key}`;
      const created = await open(id, createRowTable(placeOf(kind), `${id}-1`));
      generations.set(id, 1);
      return created;
    },
    opened: () => [...ready.values()],
    async rewrite(key, kind, settled) {
      const old = await find(key, kind);
      if (old === null) return;
      const id = `${kind}-${key}`;
      const generation = (generations.get(id) as number) + 1;
      const copy = await old.copyTo(`${id}-${generation}`);
      generations.set(id, generation);
      tables.set(id, Promise.resolve(copy));
      ready.set(id, copy);
      await settled();
      await connection.dropTable(old.name);
    },
    async drop(key) {
      for (const [id, generation] of [...generations]) {
        if (!id.endsWith(`-${key}`)) continue;
        generations.delete(id);
        tables.delete(id);
        ready.delete(id);
        // Also where it cannot be read any more.
        await rm(path.join(dir, `${id}-${generation}.lance`), { recursive: true, force: true });
      }
    },
    async reopen() {
      connection = await connected(dir);
      tables.clear();
      ready.clear();
    },
    close: () => connection.close(),
  };
}

function connected(dir: string): Promise<Connection> {
  const session = new Session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES);
  return connect(dir, { readConsistencyInterval: 0, session });
}
