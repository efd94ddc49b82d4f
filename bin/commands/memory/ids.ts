import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from '../../../common/errors.ts';
import { writeFileAtomic } from '../../../common/files.ts';
import { isRecord, parseJson } from '../../../common/text.ts';
import type { EngineClient } from '../../../engine/api/index.ts';
import type { Context } from '../../context.ts';

/** What a list shows: its row numbers are names until the next list of that kind. */
export type Kind = 'memory' | 'todo' | 'decision' | 'task' | 'fact';

export const ID = 'its last six characters, an unambiguous prefix, a row number of the last list, or last';
type Listed = { readonly id: string } | { readonly node_id: string };
const ROW = /^\d{1,3}$/;
/** Shells whose last lists are known. */
const SHELLS = 8;

/**
 * Ids as the engine takes them: `last` is the newest memory of the current project, or of all where it has none.
 * @throws CometError `not_found`
 */
export async function memoryIds(context: Context, client: EngineClient, inputs: readonly string[]): Promise<string[]> {
  const named = await rowIds(context, 'memory', inputs);
  return Promise.all(named.map((name) => (name === 'last' ? newestId(client) : name)));
}

async function newestId(client: EngineClient): Promise<string> {
  const [own] = await client.call('nodes/list', { projectDir: process.cwd(), limit: 1 });
  const [any] = own === undefined ? await client.call('nodes/list', { limit: 1 }) : [own];
  if (any === undefined) throw new CometError('not_found', 'nothing is remembered yet');
  return any.node_id;
}

/** Row numbers of the last list of this shell as ids, the rest as it is. @throws CometError `not_found`, `usage` */
export async function rowIds(context: Context, kind: Kind, inputs: readonly string[]): Promise<string[]> {
  if (inputs.includes('')) throw new CometError('usage', 'expected an id (got "")');
  if (!inputs.some((name) => ROW.test(name))) return [...inputs];
  const rows = (await readRows(context)).find(([key]) => key === getKey(kind))?.[1] ?? [];
  return inputs.map((name) => {
    const id = ROW.test(name) ? rows[Number(name) - 1] : name;
    if (id !== undefined) return id;
    throw new CometError('not_found', `the last list of this shell has no row ${name}; list again, or use an id`);
  });
}

/** Makes the rows of a list names in this shell. A home that cannot be written to has none. */
export async function saveRows(context: Context, kind: Kind, listed: readonly Listed[]): Promise<void> {
  const others = (await readRows(context)).filter(([key]) => key !== getKey(kind));
  const ids = listed.slice(0, 999).map((row) => ('id' in row ? row.id : row.node_id));
  const rows = Object.fromEntries([[getKey(kind), ids], ...others].slice(0, SHELLS));
  const file = rowsFile(context);
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 }).catch(() => undefined);
  await writeFileAtomic(file, JSON.stringify(rows)).catch(() => undefined);
}

async function readRows(context: Context): Promise<[string, readonly string[]][]> {
  const rows = parseJson(await readFile(rowsFile(context), 'utf8').catch(() => '{}'));
  return isRecord(rows) ? (Object.entries(rows) as [string, string[]][]) : [];
}

const rowsFile = ({ paths }: Context): string => path.join(paths.runDir, 'rows.json');

const getKey = (kind: Kind): string => `${kind} ${process.ppid}`;
