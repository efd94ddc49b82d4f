import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { openJournal } from '../../memory/storage/fs/turn-log.ts';
import { startFaultRig } from '../helpers/fault-rig.ts';
import { createLiveRig, openTerminal } from '../helpers/live-rig.ts';
import { removeRigCerts, startRig } from '../helpers/proxy-rig.ts';
import { ask, askOn, CLIENT, openRequest, secureThrough } from '../helpers/tls-client.ts';
import type { Answer } from '../mock-anthropic/index.ts';

afterEach(() => {
  vi.useRealTimers();
});
afterAll(removeRigCerts);

describe('an answer', () => {
  it('with unknown events and split characters arrives byte for byte', async () => {
    const events =
      'event: omen\nid: 7\ndata: {"näher":"€🜁"}\n\n: a comment\nevent: message_stop\ndata: {"type":"message_stop"}\n\n';
    const bytes = Buffer.from(events.repeat(3));
    let cuts: readonly number[] = [];
    const rig = await startRig({ answer: (_, response) => void inParts(response, bytes, cuts) });
    try {
      const secure = await secureThrough(rig.via, rig.ca);
      await fc.assert(
        fc.asyncProperty(fc.uniqueArray(fc.nat(bytes.length), { maxLength: 8 }), async (some) => {
          cuts = some.toSorted((a, b) => a - b);
          const { body } = await askOn(secure, { headers: CLIENT, body: '{}' });
          expect(body.equals(bytes)).toBe(true);
        }),
        { numRuns: 60, seed: 36 },
      );
      secure.destroy();
    } finally {
      await rig.close();
    }
  });

  it('may be silent for ten minutes, before its head and in its middle', async () => {
    let arrive: (response: ServerResponse) => void = () => {};
    const arrived = new Promise<ServerResponse>((resolve) => {
      arrive = resolve;
    });
    const rig = await startRig({ answer: (_, response) => arrive(response) });
    const secure = await secureThrough(rig.via, rig.ca);
    vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'Date', 'performance'] });
    try {
      const request = openRequest(secure, { headers: CLIENT });
      request.end('{}');
      const response = await arrived;
      await vi.advanceTimersByTimeAsync(11 * 60_000);
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.write('first, ');
      const [answer] = (await once(request, 'response')) as [IncomingMessage];
      await once(answer, 'readable');
      await vi.advanceTimersByTimeAsync(11 * 60_000);
      response.end('last');
      let text = '';
      for await (const chunk of answer) text += chunk;
      expect(text).toBe('first, last');
    } finally {
      vi.useRealTimers();
      secure.destroy();
      await rig.close();
    }
  });

  it('of 401 and its retry with a fresh token pass verbatim, and no token is stored', async () => {
    const tokens = ['old', 'new'].map((name) => `Bearer sk-ant-oat01-${name}-${randomBytes(24).toString('hex')}`);
    const refusal = '{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired"}}';
    const rig = await startFaultRig({ COMET_CC_LOG_LEVEL: 'debug' }, (request, response, body) => {
      if (request.headers.authorization === tokens[1]) return void response.end(body);
      response.writeHead(401, { 'content-type': 'application/json', 'x-should-retry': 'false' }).end(refusal);
    });
    try {
      const send = (authorization: string) =>
        ask(rig.via, rig.ours, { headers: [...CLIENT, 'authorization', authorization], body: '{"model":"x"}' });
      const refused = await send(tokens[0] as string);
      expect({ status: refused.status, body: refused.body.toString() }).toEqual({ status: 401, body: refusal });
      expect(refused.rawHeaders).toContain('x-should-retry');
      expect((await send(tokens[1] as string)).body.toString()).toBe('{"model":"x"}');
      await rig.home.run(['stop', '--now']);
      for (const token of tokens) {
        const { status, stdout } = spawnSync('grep', ['-rlF', token.slice('Bearer '.length), rig.home.home]);
        expect({ status, found: String(stdout) }).toEqual({ status: 1, found: '' });
      }
    } finally {
      await rig.close();
    }
  });
});

describe('a request', () => {
  it('that the client repeats until it is answered is one turn', async () => {
    const tries: Answer[] = [
      { kind: 'error', status: 529, type: 'overloaded_error', message: 'Overloaded' },
      { kind: 'message', blocks: [{ type: 'text', text: 'This comes to no end' }], delivery: { cutAfterDeltas: 1 } },
    ];
    const whole: Answer = { kind: 'message', blocks: [{ type: 'text', text: 'Noted.' }] };
    const rig = await createLiveRig({}, () => tries.shift() ?? whole);
    try {
      const terminal = openTerminal(rig);
      const { bytes, headers } = terminal.next('the port is 4711');
      expect((await rig.send(bytes, headers)).status).toBe(529);
      await expect(rig.send(bytes, { ...headers, 'x-stainless-retry-count': '1' })).rejects.toThrow();
      terminal.take('the port is 4711', await rig.send(bytes, { ...headers, 'x-stainless-retry-count': '2' }));
      await terminal.say('thank you');
      await rig.flush();
      await rig.home.run(['stop', '--now']);
      const journal = await openJournal({ dir: path.join(rig.home.home, 'journal'), report: () => {} });
      const turns = await journal.read(terminal.sessionId);
      await journal.close();
      expect(turns.map(({ messages }) => messages.length)).toEqual([2, 2]);
      expect(JSON.stringify(turns[0]?.messages)).toContain('Noted.');
      expect(await rig.filesWith('This comes to no end')).toEqual([]);
      for (const sent of rig.standin.requests.slice(0, 3)) expect(sent.bytes.equals(Buffer.from(bytes))).toBe(true);
    } finally {
      await rig.close();
    }
  });

  it('from our own claude -p loses its mark, is not rewritten, and is no turn', async () => {
    const rig = await createLiveRig();
    try {
      const terminal = openTerminal(rig);
      const { bytes, headers } = terminal.next('a question of the compacter');
      await rig.send(bytes, { ...headers, 'x-comet-cc-child': '1' });
      const [got] = rig.standin.requests;
      expect(got?.bytes.equals(Buffer.from(bytes))).toBe(true);
      expect(JSON.stringify(got?.headers)).not.toContain('x-comet-cc-child');
      await rig.flush();
      expect(await rig.filesWith('a question of the compacter')).toEqual([]);
    } finally {
      await rig.close();
    }
  });
});

/** One write for each part, each in a packet of its own where the machine lets it. */
async function inParts(response: ServerResponse, bytes: Buffer, cuts: readonly number[]): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const ends = [...cuts, bytes.length];
  for (const [at, end] of ends.entries()) {
    response.write(bytes.subarray(ends[at - 1] ?? 0, end));
    await new Promise(setImmediate);
  }
  response.end();
}
