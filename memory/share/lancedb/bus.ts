import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Connection, Table } from '@lancedb/lancedb';
import type { Field, Schema } from 'apache-arrow';
import { CometError, getReason } from '../../../common/errors.ts';
import { trimEnd } from '../../../common/text.ts';
import type { Bus } from '../bus.ts';
import { MACHINE_ID, MAX_PAYLOAD_CHARS, type Row } from '../row.ts';

/** Not imported: while it loads other modules, Node 20 may leave an import's names undefined; Arrow would load twice. */
const load = createRequire(import.meta.url);
const { connect, Session } = load('@lancedb/lancedb') as typeof import('@lancedb/lancedb');
const arrow = load('apache-arrow') as typeof import('apache-arrow');

/** Another for each log that is made: one that replaces a log may be in the same version, of as many rows. */
const LOG_ID = 'log';
/** Names every machine: some servers do not list folders that hold only folders, as the tables are. */
const REGISTRY = 'registry';
const MOST_TRIES = 5;
const PAGE = 200;
const COLUMNS = ['sequence', 'payload', 'signature'];
const MOST_BYTES = 4 * MAX_PAYLOAD_CHARS;
/** Each write adds a file. They are brought together after so many, in a large log after more: all of it is written. */
const FILES = { least: 8, most: 64, bytesEach: 1_000_000 } as const;
/** A batch of so many characters may stay a file of its own. */
const LARGE_CHARS = 200_000;
/** Others may read an older version for so long. */
const READERS_MS = 3_600_000;
/** Names of machines are read again after this time, even if their table is unchanged. */
const NAMES_MS = 3_600_000;
/** Of manifests, so that opening a log that did not change is one list; LanceDB itself would keep up to 7 GB. */
const CACHE_BYTES = 16_000_000n;
/** A step that fails is tried again later, so that none waits for minutes. */
const PATIENCE = { connect_timeout: '5s', timeout: '60s', client_max_retries: '2', client_retry_timeout: '20' };
const CLOUD = 'db://';
/** Names that the storage's own tools use. */
const CREDENTIALS = /^(?:AWS|GOOGLE|AZURE)_/;
/** What LanceDB calls otherwise than in lower case; the last two are names of Azure's own program. */
const NAMES: Readonly<Record<string, string>> = {
  AWS_ALLOW_HTTP: 'allow_http',
  AZURE_STORAGE_ACCOUNT: 'azure_storage_account_name',
  AZURE_STORAGE_KEY: 'azure_storage_account_key',
};

/**
 * A table for each machine, `machines/<id>.lance`, and one that names them all.
 * @param options.uri  a folder, `s3://bucket/prefix`, `gs://…`, `az://…` or `db://name`
 * @param options.env  holds endpoint and credentials. They are passed on, never stored
 * @param ownEnv  of the process, where the library for AWS looks for a profile and its files
 */
export async function openLanceBus({ uri, env }: { uri: string; env: NodeJS.ProcessEnv }, ownEnv = env): Promise<Bus> {
  for (const name of Object.keys(env)) if (name.startsWith('AWS_')) ownEnv[name] = env[name];
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    // LanceDB would make it: beside the disk or server that is not mounted.
    if (path.isAbsolute(uri) && !existsSync(uri))
      throw new CometError('share_failed', `${uri} is not there: mount what it is on, or make the folder`);
    return await work().catch((error: unknown) => {
      throw explained(uri, error);
    });
  };
  const connection = await guarded(() => connectTo(uri, env));
  /** LanceDB Cloud brings files together and removes old versions by itself, and refuses to be asked to. */
  const isTidied = uri.startsWith(CLOUD);
  let named: { readonly stamp: string; readonly atMs: number; readonly machines: readonly string[] } | null = null;

  async function withTable<T>(name: string, use: (table: Table) => Promise<T>, none: T): Promise<T> {
    const table = await openOrNull(connection, name);
    if (table === null) return none;
    try {
      return await use(table);
    } finally {
      table.close();
    }
  }

  /** Machines that join at once may overwrite each other's name where the server has no conditional writes. */
  async function register(machine: string): Promise<void> {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      if ((await registered()).includes(machine)) return;
      const table = await openOrNull(connection, REGISTRY);
      const schema = getSchema(new arrow.Field('machine', new arrow.Utf8(), true));
      if (table === null) (await connection.createTable(REGISTRY, [{ machine }], { schema })).close();
      else await table.add([{ machine }]);
    }
  }

  /** Where it is damaged, the logs that the storage lists. */
  const registered = async (): Promise<string[]> =>
    (await withTable(REGISTRY, getMachines, []).catch(orNone)) ?? (await connection.tableNames()).filter(isMachine);

  async function machines(): Promise<string[]> {
    const stamp = await withTable(REGISTRY, getStamp, null).catch(orNone);
    const isSame = stamp !== null && named?.stamp === stamp && Math.abs(Date.now() - named.atMs) < NAMES_MS;
    if (!isSame || named === null) named = { stamp: stamp ?? '', atMs: Date.now(), machines: await registered() };
    return [...named.machines];
  }

  return {
    machines: () => guarded(machines),
    append: (machine, rows) =>
      guarded(async () => {
        if (rows.length === 0) return;
        const table = await openOrNull(connection, machine);
        if (table === null) (await connection.createTable(machine, asRows(rows), { schema: logSchema() })).close();
        else {
          await table.add(asRows(rows));
          if (!isTidied && rows.reduce((sum, { payload }) => sum + payload.length, 0) < LARGE_CHARS) await tidy(table);
        }
        table?.close();
        await register(machine);
      }),
    read: (machine, from, limit) =>
      guarded(() =>
        withTable(machine, (table) => getRows(table, `sequence = 0 OR sequence >= ${from}`, limit + 1), []),
      ),
    stamp: (machine) => guarded(() => withTable(machine, getStamp, null).catch(orNone)),
    last: (machine) => guarded(() => withTable(machine, lastRow, null).catch(orNone)),
    erase: (machine, sequences) =>
      guarded(async () => {
        if (!(await withTable(machine, (table) => holdsAny(table, sequences), false))) return;
        await withTable(machine, (table) => rewrite(connection, machine, table, new Set(sequences)), undefined);
        // No other machine writes to this log; one that reads it meanwhile fails, and reads again.
        const now = { cleanupOlderThan: new Date(), deleteUnverified: true };
        if (!isTidied) await withTable(machine, (table) => table.optimize(now), undefined);
      }),
    drop: (machine) =>
      guarded(async () => {
        // A damaged one cannot be opened.
        if (await withTable(machine, async () => true, false).catch(() => true)) await connection.dropTable(machine);
        await withTable(REGISTRY, (table) => table.delete(`machine = '${machine}'`), null).catch(orNone);
      }),
    close: () => connection.close(),
  };
}

async function getMachines(table: Table): Promise<string[]> {
  const rows = (await table.query().select(['machine']).toArray()) as { machine: string }[];
  return [...new Set(rows.map(({ machine }) => machine))].filter(isMachine);
}

const isMachine = (name: string): boolean => MACHINE_ID.test(name);

async function getStamp(table: Table): Promise<string> {
  return `${(await table.schema()).metadata.get(LOG_ID) ?? ''} ${await table.version()} ${await table.countRows()}`;
}

const getSchema = (...fields: Field[]): Schema => new arrow.Schema(fields, new Map([[LOG_ID, randomUUID()]]));

function logSchema(): Schema {
  const texts = ['payload', 'signature'].map((name) => new arrow.Field(name, new arrow.Utf8(), true));
  return getSchema(new arrow.Field('sequence', new arrow.Float64(), true), ...texts);
}

/** Azure's connection string, which LanceDB does not read. With a signature, the address alone may name the account. */
function readAzure(text: string): Record<string, string> {
  const parts = text.split(';').map((part) => [part, part.indexOf('=')] as const);
  const said = new Map(parts.map(([part, at]) => [part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim()]));
  const get = (name: string): string => said.get(name) ?? '';
  const host = `${get('accountname')}.blob.${get('endpointsuffix') || 'core.windows.net'}`;
  const url = get('blobendpoint') || `${get('defaultendpointsprotocol') || 'https'}://${host}`;
  return {
    azure_storage_account_name: get('accountname') || (url.split('//')[1]?.split('.')[0] ?? ''),
    azure_storage_account_key: get('accountkey'),
    azure_storage_sas_token: get('sharedaccesssignature'),
    azure_storage_endpoint: trimEnd(url, '/'),
    allow_http: url.startsWith('http:') ? 'true' : '',
  };
}

function connectTo(uri: string, { AZURE_STORAGE_CONNECTION_STRING: azure = '', ...env }: NodeJS.ProcessEnv) {
  const credentials = Object.entries(env).filter(([name]) => CREDENTIALS.test(name));
  const named = credentials.map(([name, value = '']) => [NAMES[name] ?? name.toLowerCase(), value] as const);
  const all = [...named, ...(azure === '' ? [] : Object.entries(readAzure(azure)))];
  const given = Object.fromEntries(all.filter(([, value]) => value !== ''));
  if (!uri.startsWith(CLOUD)) {
    const session = new Session(CACHE_BYTES, CACHE_BYTES);
    return connect(`${trimEnd(uri, '/')}/machines`, { storageOptions: { ...PATIENCE, ...given }, session });
  }
  const { LANCEDB_API_KEY: apiKey, LANCEDB_REGION: region, LANCEDB_HOST: hostOverride } = env;
  if (apiKey === undefined) throw new CometError('share_failed', `${uri} needs an API key: set LANCEDB_API_KEY`);
  return connect(uri, { apiKey, ...(region && { region }), ...(hostOverride && { hostOverride }) });
}

async function openOrNull(connection: Connection, name: string): Promise<Table | null> {
  try {
    return await connection.openTable(name);
  } catch (error) {
    if (/was not found/.test(getReason(error))) return null;
    throw error;
  }
}

async function tidy(table: Table): Promise<void> {
  const { totalBytes, fragmentStats } = await table.stats();
  if (fragmentStats.numFragments < Math.min(FILES.most, Math.max(FILES.least, totalBytes / FILES.bytesEach))) return;
  await table.optimize({ cleanupOlderThan: new Date(Date.now() - READERS_MS) });
}

async function lastRow(table: Table): Promise<Row | null> {
  const newest = table.query().select(COLUMNS).orderBy({ columnName: 'sequence', ascending: false }).limit(1);
  return asRows(await newest.toArray())[0] ?? null;
}

async function getRows(table: Table, which: string, limit: number): Promise<Row[]> {
  // A row of a size that no machine writes is not loaded.
  const rows = table.query().where(`(${which}) AND octet_length(payload) <= ${MOST_BYTES}`).select(COLUMNS);
  return asRows(await rows.orderBy({ columnName: 'sequence' }).limit(limit).toArray());
}

const asRows = (rows: readonly Row[]): Row[] =>
  rows.map(({ sequence, payload, signature }) => ({ sequence, payload, signature }));

/**
 * A deleted row stays in its file, so the log is written again, without these rows; what stops it in between leaves a
 * log that is shorter than confirmed, which its machine publishes again.
 */
async function rewrite(connection: Connection, machine: string, old: Table, removedSequences: ReadonlySet<number>) {
  await old.checkout(await old.version());
  let fresh: Table | null = null;
  for (let from = 0; ; ) {
    const page = await getRows(old, `sequence >= ${from}`, PAGE);
    const rest = asRows(page.filter(({ sequence }) => !removedSequences.has(sequence)));
    if (rest.length > 0 && fresh === null)
      fresh = await connection.createTable(machine, rest, { mode: 'overwrite', schema: logSchema() });
    else if (rest.length > 0) await fresh?.add(rest);
    if (page.length < PAGE) break;
    from = (page.at(-1)?.sequence ?? from) + 1;
  }
  if (fresh === null) await connection.dropTable(machine);
  else fresh.close();
}

async function holdsAny(table: Table, sequences: readonly number[]): Promise<boolean> {
  const [least, most] = [Math.min(...sequences), Math.max(...sequences)];
  const rows = await table.query().where(`sequence >= ${least} AND sequence <= ${most}`).select(['sequence']).toArray();
  const wanted = new Set(sequences);
  return rows.some(({ sequence }: { readonly sequence: number }) => wanted.has(sequence));
}

/** Says what to check; LanceDB's own message follows, in one line and without what a signed address holds. */
export function explained(uri: string, error: unknown): CometError {
  if (error instanceof CometError) return error;
  const [first = ''] = getReason(error).split(/\n|\sCaused by:/);
  const plain = first.replace(/\?\S*/g, '').replace(/, \S+\.rs:\d+(?::\d+)?/g, '');
  const reason = plain.slice(0, 300).trimEnd();
  return new CometError('share_failed', `${uri} cannot be used: ${getCause(error, uri)} (${reason})`, { cause: error });
}

const DAMAGED = 'what is stored there is damaged';

function getCause(error: unknown, uri = ''): string {
  const cause = CAUSES.find(([sign]) => sign.test(getReason(error)))?.[1] ?? 'check the address';
  return cause === LOG_IN ? (LOG_INS[uri.slice(0, 5)] ?? LOG_IN) : cause;
}

function orNone(error: unknown): null {
  if (getCause(error) === DAMAGED) return null;
  throw error;
}

const LOG_IN = 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or log in to the cloud';
const LOG_INS: Readonly<Record<string, string>> = {
  'az://':
    'set AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_ACCOUNT and _KEY, or AZURE_USE_AZURE_CLI=true after az login',
  'gs://': 'set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login',
};

// `in 401.6ms` is how long a request took.
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/RequestTimeTooSkewed/, 'the clock of this machine is off by more than the storage allows; set it'],
  [/credential|metadata|169\.254|Azure account name|service account/i, LOG_IN],
  [
    /\b40[13]\b(?!\.\d)|denied|forbidden|signature/i,
    'the credentials are not accepted, or may not read and write there',
  ],
  [/NoSuchBucket|ContainerNotFound|bucket[^\n]{0,200} not (?:found|exist)/i, 'the bucket does not exist; create it'],
  [/\b507\b(?!\.\d)|quota|no space|storage full/i, 'the storage is full'],
  [/read-only file system/i, 'the folder is read-only'],
  [/resolve region/i, 'set AWS_REGION to the region of the bucket, which could not be looked up'],
  [/connect|timed? ?out|dns|resolve|sending request/i, 'the storage does not answer; check address and network'],
  [/not found:[^\n]{1,300}\.lance|invalid range|whole buffer|lance file|too small|protobuf|panic in/i, DAMAGED],
  [/(?:column|named) sequence/i, DAMAGED],
];
