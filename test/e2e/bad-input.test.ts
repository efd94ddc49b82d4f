import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLiveRig, type LiveRig, longTalk, openTerminal, type Terminal } from '../helpers/live-rig.ts';
import { openRequest, type Reply, secureThrough } from '../helpers/tls-client.ts';
import type { ClientRequest } from '../helpers/transcripts.ts';

let rig: LiveRig;
/** A conversation with a plan in force, and one that never had any. */
let planned: Terminal;
let plain: Terminal;

beforeAll(async () => {
  rig = await createLiveRig();
  planned = openTerminal(rig);
  await longTalk(rig, planned, { topic: 'service' });
  plain = openTerminal(rig);
  await plain.say('hello');
});

afterAll(async () => {
  await rig.close();
});

/** A request behind the plan is at least this many times shorter; without it, memory text makes it longer. */
const TRIMMED = 1.1;

const lastSent = (): Buffer => rig.standin.requests.at(-1)?.bytes as Buffer;

/** `terminal`'s next request with `raw`, as it stands, in place of its prompt's text. */
function withRaw(terminal: Terminal, raw: string): ClientRequest {
  const request = terminal.next('@@');
  return { ...request, bytes: Buffer.from(request.bytes.toString('utf8').replace('"@@"', () => raw)) };
}

const post = (request: ClientRequest): Promise<Reply> => rig.send(request.bytes, request.headers);

/** What a broken request must not change: the plan is still in force, and nothing it sends is refused. */
async function staysPlanned(): Promise<void> {
  const request = planned.next('and now?');
  expect((await post(request)).status).toBe(200);
  expect(lastSent().length).toBeLessThan(request.bytes.length / TRIMMED);
}

/** Raw JSON in place of the prompt's text; the API refuses some of it, which is not for us to do. */
const ODDITIES: readonly (readonly [string, string])[] = [
  ['a lone surrogate', String.raw`"one \ud83d half"`],
  ['control characters', String.raw`"\u0000\u0001\u001f\u007f\u2028"`],
  ['numbers beyond 2^53', '"x","future_field":{"n":9007199254740993,"e":1.0e21,"z":-0.0,"inf":1e400}'],
  ['a field given twice', '"first","text":"second"'],
  ['an unknown block', '"x"},{"type":"hologram","beam":9007199254740993,"of":[{"deep":"\\ud83d"}]'],
  ['a text that is no string', '17'],
  ['an unknown role', '"x"}]},{"role":"oracle","content":[{"type":"text","text":"so be it"'],
];

describe('a request with', () => {
  it.each(ODDITIES)('%s goes as received where no plan is in force', async (_, raw) => {
    const request = withRaw(plain, raw);
    await post(request);
    expect(lastSent().equals(request.bytes)).toBe(true);
  });

  it.each(ODDITIES)('%s is carried as it is behind the plan in force', async (_, raw) => {
    const request = withRaw(planned, raw);
    await post(request);
    expect(lastSent().includes(raw)).toBe(true);
    expect(lastSent().length).toBeLessThan(request.bytes.length / TRIMMED);
    await staysPlanned();
  });

  it('unknown fields at the top keeps them, behind a plan and without one', async () => {
    const raw = '"future_option":{"n":9007199254740993,"e":1e400}';
    for (const [terminal, least] of [
      [plain, 1],
      [planned, TRIMMED],
    ] as const) {
      const { bytes, headers } = terminal.next('hm');
      const body = Buffer.from(bytes.toString('utf8').replace('{', `{${raw},`));
      expect((await rig.send(body, headers)).status).toBe(400);
      expect(lastSent().includes(`{${raw},`)).toBe(true);
      expect(lastSent().length).toBeLessThanOrEqual(body.length / least);
    }
    await staysPlanned();
  });

  it('bytes in a text that are no UTF-8 keeps them, behind a plan and without one', async () => {
    const bad = Buffer.from([0x22, 0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x22]);
    for (const terminal of [plain, planned]) {
      const { bytes, headers } = terminal.next('@@');
      const at = bytes.indexOf('"@@"');
      await rig.send(Buffer.concat([bytes.subarray(0, at), bad, bytes.subarray(at + 4)]), headers);
      expect(lastSent().includes(bad)).toBe(true);
    }
    await staysPlanned();
  });
});

const BROKEN: readonly (readonly [string, (whole: Buffer) => Buffer])[] = [
  ['no JSON', () => Buffer.from('this is no JSON {"messages":[')],
  ['JSON cut in the middle', (whole) => whole.subarray(0, whole.length >> 1)],
  ['something behind its end', (whole) => Buffer.concat([whole, Buffer.from(' {}')])],
  ['no object', () => Buffer.from('[1,2,3]')],
  ['messages that are no list', () => Buffer.from('{"model":"claude-opus-4-8","messages":{"0":"x"}}')],
  ['messages that are no objects', () => Buffer.from('{"model":"claude-opus-4-8","messages":[null,1,"x",[]]}')],
  ['nothing', () => Buffer.alloc(0)],
  ['bytes that are no UTF-8', (whole) => Buffer.concat([whole.subarray(0, 300), Buffer.from([0xff, 0xc0, 0x80])])],
  ['a nesting of 100,000', () => Buffer.from(`{"messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)],
  ['a BOM in front', (whole) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), whole])],
];

describe('a body that is', () => {
  it.each(BROKEN)('%s is forwarded unchanged and stored nowhere', async (_, broken) => {
    const marker = `unkept-${crypto.randomUUID()}`;
    for (const terminal of [plain, planned]) {
      const { bytes, headers } = withRaw(terminal, JSON.stringify(marker));
      const body = broken(bytes);
      await rig.send(body, headers);
      expect(lastSent().equals(body)).toBe(true);
    }
    expect(await rig.filesWith(marker)).toEqual([]);
    await staysPlanned();
  });
});

describe('an upload', () => {
  it('of 32 MB arrives whole: as received without a plan, behind the plan where one is in force', async () => {
    for (const [terminal, least] of [
      [plain, 0],
      [planned, 3_000],
    ] as const) {
      const empty = terminal.next('@@');
      const big = 'x'.repeat(32 * 1024 * 1024 - empty.bytes.length);
      const request = withRaw(terminal, JSON.stringify(big));
      expect(request.bytes.length).toBeGreaterThan(32 * 1024 * 1024 - 10);
      expect((await post(request)).body.toString('utf8')).toContain('too long');
      expect(lastSent().includes(big)).toBe(true);
      expect(request.bytes.length - lastSent().length).toBeGreaterThanOrEqual(least);
    }
    await staysPlanned();
  });

  it('that is cut off goes nowhere and is kept nowhere', async () => {
    const marker = `unkept-${crypto.randomUUID()}`;
    const seen = rig.standin.requests.length;
    for (const terminal of [plain, planned]) {
      const { bytes, headers } = terminal.next(marker);
      const secure = await secureThrough(rig.via, rig.ca);
      const length = ['content-length', String(bytes.length)];
      const request = openRequest(secure, { headers: [...Object.entries(headers).flat(), ...length] });
      request.on('error', () => {});
      await new Promise((resolve) => {
        request.write(bytes.subarray(0, bytes.length - 20), resolve);
      });
      secure.destroy();
      await once(secure, 'close');
    }
    await staysPlanned();
    expect(rig.standin.requests.length).toBe(seen + 1);
    expect(await rig.filesWith(marker)).toEqual([]);
  });
});
