import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '../../../../../memory/share/bus.ts';
import { explained, openLanceBus } from '../../../../../memory/share/lancedb/bus.ts';
import type { Row } from '../../../../../memory/share/row.ts';
import { busContract } from '../../../../contract/bus.ts';
import { createInMemoryBus } from '../../../../helpers/in-memory-bus.ts';
import { isStored, type S3Server, startS3Server } from '../../../../helpers/s3-server.ts';

let dir: string;
let server: S3Server;

beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'comet-test-'));
  server = await startS3Server(path.join(dir, 's3'));
});
afterAll(async () => {
  await server.close();
  await rm(dir, { recursive: true, force: true });
});

describe('in memory', () => {
  const places = new Map<string, ReturnType<typeof createInMemoryBus>>();
  busContract(async (place) => {
    const bus = places.get(place) ?? createInMemoryBus();
    places.set(place, bus);
    return bus;
  });
});

describe('in a folder', () => {
  const open = async (place: string): Promise<Bus> => {
    const uri = path.join(dir, 'folder', place);
    await mkdir(uri, { recursive: true });
    return openLanceBus({ uri, env: {} });
  };

  busContract(open, (place, text) => isStored(path.join(dir, 'folder', place), text));

  it('is not made again where the folder went away, as a disk that is not mounted', async () => {
    const uri = path.join(dir, 'folder', 'away');
    const bus = await open('away');
    await rm(uri, { recursive: true });
    await expect(bus.append('a'.repeat(32), [{ sequence: 0, payload: 'p', signature: 's' }])).rejects.toThrow(/mount/);
    await expect(openLanceBus({ uri, env: {} })).rejects.toMatchObject({ code: 'share_failed' });
    expect(existsSync(uri)).toBe(false);
  });
});

describe('a log with a damaged file', () => {
  it.each(['data', '_versions'])('in %s is called damaged, has no last row, and can be removed', async (part) => {
    const uri = path.join(dir, 'folder', `damaged-${part}`);
    await mkdir(uri, { recursive: true });
    const [machine, row] = ['a'.repeat(32), { sequence: 0, payload: 'p', signature: 's' }];
    const damages = [(file: string) => truncate(file, 20), (file: string) => writeFile(file, Buffer.alloc(2_000))];
    for (const damage of [...damages, ...(part === 'data' ? [rm] : [])]) {
      const bus = await openLanceBus({ uri, env: {} });
      await bus.append(machine, [row]);
      const folder = path.join(uri, 'machines', `${machine}.lance`, part);
      for (const file of await readdir(folder)) await damage(path.join(folder, file));
      bus.close();
      const again = await openLanceBus({ uri, env: {} });
      await expect(again.read(machine, 0, 9)).rejects.toThrow(/what is stored there is damaged/);
      expect(await again.last(machine)).toBeNull();
      await again.drop(machine);
      await again.append(machine, [row]);
      expect(await again.last(machine)).toEqual(row);
      await again.drop(machine);
      again.close();
    }
  });
});

it.each(['data', '_versions'])('a registry with damaged %s keeps no machine from its work', async (part) => {
  const uri = path.join(dir, 'folder', `registry-${part}`);
  await mkdir(uri, { recursive: true });
  const machines = Array.from({ length: 15 }, (_, nth) => (nth + 16).toString(16).repeat(16));
  const row = { sequence: 0, payload: 'p', signature: 's' };
  const bus = await openLanceBus({ uri, env: {} });
  for (const machine of machines.slice(1)) await bus.append(machine, [row]);
  bus.close();
  const folder = path.join(uri, 'machines', 'registry.lance', part);
  for (const file of await readdir(folder)) await truncate(path.join(folder, file), 20);
  const [first = '', ...others] = machines;
  const look = async (work: (bus: Bus) => Promise<unknown>): Promise<void> => {
    const again = await openLanceBus({ uri, env: {} });
    await work(again);
    again.close();
  };
  await look(async (again) => expect(await again.machines()).toEqual(others));
  await look((again) => again.append(first, [row]));
  await look(async (again) => expect(await again.machines()).toEqual(machines));
  await look((again) => again.drop(first));
  await look(async (again) => expect(await again.machines()).toEqual(others));
});

describe('on an S3 server', () => {
  busContract(
    (place) => openLanceBus({ uri: `${server.uri}/s3-${place}`, env: server.env }),
    (place, text) => server.holds(text, `s3-${place}`),
  );

  it('says what to check where credentials are refused, and names no secret', async () => {
    const env = { ...server.env, AWS_ACCESS_KEY_ID: 'REVOKED', AWS_SECRET_ACCESS_KEY: 'old-secret-value' };
    const failed = openLanceBus({ uri: `${server.uri}/x`, env });
    await expect(failed).rejects.toMatchObject({ code: 'share_failed' });
    await expect(failed).rejects.toThrow(/credentials are not accepted/);
    await expect(failed).rejects.not.toThrow(/old-secret-value/);
  });

  it('logs in as the profile that the shell names, also where the process began without it', async () => {
    const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, ...address } = server.env;
    const [file, before] = [path.join(dir, 'credentials'), { ...process.env }];
    await writeFile(file, `[work]\naws_access_key_id=${id}\naws_secret_access_key=${secret}\n`);
    const env = { ...address, AWS_SHARED_CREDENTIALS_FILE: file, AWS_PROFILE: 'work' };
    const bus = await openLanceBus({ uri: `${server.uri}/profile`, env }, process.env);
    expect(await bus.machines()).toEqual([]);
    bus.close();
    for (const name of Object.keys(env)) if (!(name in before)) delete process.env[name];
  });

  it('names the region where it cannot be found, and no path of the library', () => {
    const said = "lance error: Failed to resolve region for bucket 'x', /usr/a/index-1/src/aws.rs:237:13  Caused by: y";
    const { message } = explained('s3://x', new Error(said));
    expect(message).toMatch(/^s3:\/\/x cannot be used: set AWS_REGION .* \(lance error: .* for bucket 'x'\)$/);
  });

  it('says that the bucket is missing', async () => {
    const opening = openLanceBus({ uri: 's3://no-such-bucket/x', env: server.env });
    await expect(opening).rejects.toThrow(/bucket does not exist/);
  });
});

describe('LanceDB Cloud', () => {
  const [DESKTOP, KEY] = ['a'.repeat(32), 'sk_secret'];
  const getRow = (sequence: number): Row => ({ sequence, payload: `payload ${sequence}`, signature: 'x' });
  let cloud: Awaited<ReturnType<typeof startCloud>>;
  beforeAll(async () => {
    cloud = await startCloud(KEY);
  });
  afterAll(() => cloud.close());
  const open = (key = KEY): Promise<Bus> =>
    openLanceBus({ uri: 'db://memory', env: { LANCEDB_API_KEY: key, LANCEDB_HOST: cloud.url } });

  it('needs a key', async () => {
    await expect(openLanceBus({ uri: 'db://memory', env: {} })).rejects.toThrow(/set LANCEDB_API_KEY/);
    const failed = (await open('sk_old')).machines();
    await expect(failed).rejects.toThrow(/credentials are not accepted/);
    await expect(failed).rejects.not.toThrow(/sk_old/);
  });

  it('gets and gives rows by its own protocol, and is asked for nothing that it refuses', async () => {
    const bus = await open();
    expect(await bus.machines()).toEqual([]);
    cloud.expect(DESKTOP, [getRow(0), getRow(1)]);
    cloud.expect('registry', [{ machine: DESKTOP }]);
    await bus.append(DESKTOP, [getRow(0), getRow(1)]);
    expect(await bus.machines()).toEqual([DESKTOP]);
    const stamp = await bus.stamp(DESKTOP);
    for (let at = 2; at < 12; at += 1) {
      cloud.expect(DESKTOP, [getRow(at)]);
      await bus.append(DESKTOP, [getRow(at)]);
    }
    expect(await bus.stamp(DESKTOP)).not.toBe(stamp);
    expect(await bus.last(DESKTOP)).toEqual(getRow(11));
    expect(await bus.read(DESKTOP, 9, 2)).toEqual([getRow(0), getRow(9), getRow(10)]);
    cloud.expect(DESKTOP, [getRow(0), ...Array.from({ length: 10 }, (_, at) => getRow(at + 2))]);
    await bus.erase(DESKTOP, [1]);
    expect(await bus.read(DESKTOP, 1, 1)).toEqual([getRow(0), getRow(2)]);
    await bus.drop(DESKTOP);
    expect(await bus.last(DESKTOP)).toBeNull();
    bus.close();
  });
});

/**
 * Answers what the client of LanceDB Cloud asks. Rows come compressed, which arrow cannot read here: the test says what
 * the next write to a table holds.
 */
async function startCloud(key: string) {
  const arrow = createRequire(import.meta.url)('apache-arrow') as typeof import('apache-arrow');
  type Stored = Record<string, string | number>;
  const tables = new Map<string, { version: number; rows: readonly Stored[] }>();
  const expected = new Map<string, readonly Stored[]>();
  const text = { type: { type: 'string' }, nullable: true };
  const typed: Readonly<Record<string, object>> = { sequence: { type: { type: 'double' }, nullable: true } };
  const answers: Readonly<Record<string, (name: string, query: URLSearchParams, asked: string) => object | number>> = {
    describe(name) {
      const { version, rows } = tables.get(name) as NonNullable<ReturnType<typeof tables.get>>;
      const fields = Object.keys(rows[0] ?? {}).map((field) => ({ name: field, ...(typed[field] ?? text) }));
      return { table: name, version, schema: { fields, metadata: {} } };
    },
    create(name, query) {
      if (query.get('mode') !== 'overwrite' && tables.has(name)) throw new Error('exists');
      tables.set(name, { version: (tables.get(name)?.version ?? 0) + 1, rows: expected.get(name) ?? [] });
      return { version: 1 };
    },
    insert(name) {
      const { version, rows } = tables.get(name) ?? { version: 0, rows: [] };
      tables.set(name, { version: version + 1, rows: [...rows, ...(expected.get(name) ?? [])] });
      return { version: version + 1 };
    },
    drop: (name) => ({ dropped: tables.delete(name) }),
    delete: () => ({ version: 1, num_deleted_rows: 1 }),
    count_rows: (name) => tables.get(name)?.rows.length ?? 0,
    query(name, _, asked) {
      const { columns, filter = '', k, order_by: [order] = [] } = JSON.parse(asked);
      const [least, most] = [/sequence >= (\d+)/, /sequence <= (\d+)/].map((form) => form.exec(filter)?.[1]);
      const isWanted = ({ sequence = 0 }: Stored): boolean =>
        (Number(sequence) >= Number(least ?? 0) && Number(sequence) <= Number(most ?? 1e9)) ||
        (filter.includes('sequence = 0') && sequence === 0);
      const rows = (tables.get(name)?.rows ?? []).filter(isWanted);
      if (order?.ascending === false) rows.reverse();
      const picked = rows
        .slice(0, k)
        .map((row) => Object.fromEntries(columns.map((each: string) => [each, row[each]])));
      return arrow.tableToIPC(arrow.tableFromJSON(picked), 'file');
    },
  };
  const listener = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://cloud');
    const [, , , name = '', operation = ''] = pathname.split('/');
    const answer = answers[operation];
    const isKnown = ['create', 'drop'].includes(operation) || tables.has(name);
    const code = request.headers['x-api-key'] !== key ? 401 : !isKnown ? 404 : answer === undefined ? 400 : 200;
    const found = code === 200 ? answer?.(name, searchParams, Buffer.concat(chunks).toString()) : { error: 'refused' };
    const isRows = found instanceof Uint8Array;
    response.writeHead(code, { 'content-type': isRows ? 'application/vnd.apache.arrow.file' : 'application/json' });
    response.end(isRows ? found : JSON.stringify(found));
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    expect: (name: string, rows: readonly object[]) => void expected.set(name, rows as readonly Stored[]),
    async close() {
      listener.closeAllConnections();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

describe("Azure's connection string", () => {
  const key = Buffer.alloc(32, 7).toString('base64');

  it.each([
    [
      'key',
      (at: string) => `DefaultEndpointsProtocol=http;AccountName=shop;AccountKey=${key};BlobEndpoint=${at}/shop/`,
    ],
    ['signature', (at: string) => `BlobEndpoint=${at}/shop;SharedAccessSignature=sv=2024&sig=a%2Fb%3D`],
  ])('signs requests to its own address with its %s, which no error names', async (kind, said) => {
    const asked: string[] = [];
    const server = http.createServer(({ url, headers }, response) => {
      asked.push(`${headers.authorization ?? ''} ${url}`);
      response.writeHead(403, { 'content-type': 'application/xml' });
      response.end('<?xml version="1.0"?><Error><Code>AuthenticationFailed</Code></Error>');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { AZURE_STORAGE_KEY: '', AZURE_STORAGE_CONNECTION_STRING: said(address) };
    const failed = await openLanceBus({ uri: 'az://box/team', env }, {})
      .then((bus) => bus.machines())
      .catch((error: unknown) => String(error));
    await new Promise((resolve) => server.close(resolve));
    expect(failed).toContain('credentials are not accepted');
    for (const secret of [key, 'sig=']) expect(failed).not.toContain(secret);
    expect(asked[0]).toMatch(
      kind === 'key' ? /^SharedKey shop:\S+ \/shop\/box\?/ : /^ \/shop\/box\?.*&sv=2024&sig=a%2Fb%3D/,
    );
  });

  it('without an address leads to the one of the account in its cloud', async () => {
    const env = {
      AZURE_STORAGE_CONNECTION_STRING: `DefaultEndpointsProtocol=http;AccountName=x;AccountKey=${key};EndpointSuffix=localhost:1`,
    };
    const bus = openLanceBus({ uri: 'az://box/team', env }, {}).then((opened) => opened.machines());
    await expect(bus).rejects.toThrow(/the storage does not answer.*http:\/\/x\.blob\.localhost:1\/box/);
  });
});
