import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLiveRig, type LiveRig, openTerminal } from '../helpers/live-rig.ts';

/** The guard kills an engine that does not answer for 30 s. */
const MOST_MS = 15_000;

let rig: LiveRig;

beforeAll(async () => {
  rig = await createLiveRig();
});

afterAll(async () => {
  await rig.close();
});

it('120 KB of hex from an MCP server cost no request, and the engine neither now nor at its next start', async () => {
  const terminal = openTerminal(rig);
  await terminal.say('Which port has the ledger?');
  const before = await rig.status();
  const hex = randomBytes(60_000).toString('hex');
  const history = [
    { role: 'user', content: 'Fetch the dump of the ledger.' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_dump', name: 'mcp__web__get', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_dump', content: hex }] },
    { role: 'assistant', content: [{ type: 'text', text: 'The dump is fetched.' }] },
  ];
  for (const prompt of ['What does it say?', 'And who wrote it?']) {
    const { bytes, headers } = terminal.next(prompt);
    const body = JSON.parse(bytes.toString('utf8')) as { messages: unknown[] };
    body.messages.splice(-1, 0, ...history);
    const began = performance.now();
    const { status } = await rig.send(Buffer.from(JSON.stringify(body)), headers);
    expect({ prompt, status }).toEqual({ prompt, status: 200 });
    expect(performance.now() - began).toBeLessThan(MOST_MS);
  }
  await rig.flush();
  const after = await rig.status();
  expect(after.engine).toMatchObject({ pid: before.engine.pid, restarts: 0 });
  expect(after.requests).toMatchObject({ total: before.requests.total + 2, failed_open: 0 });
  expect(await rig.filesWith(hex.slice(0, 200))).not.toEqual([]);
  await rig.home.json(['restart', '--json']);
  await rig.flush();
  expect((await rig.status()).engine).toMatchObject({ restarts: 0 });
});
