import { createHash } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { homePaths } from '../../common/paths.ts';
import { type EngineClient, engineClient } from '../../engine/api/client.ts';
import { createTestHome, type TestHome } from '../helpers/cli.ts';
import { EARLIER_HOMES, type ExpectedHome, unpackHome } from '../helpers/earlier-homes.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe.each(EARLIER_HOMES)('the home %s', (name) => {
  let home: TestHome;
  let expected: ExpectedHome;
  let engine: EngineClient;

  beforeAll(async () => {
    home = await createTestHome();
    expected = unpackHome(name, home.home);
    await home.json(['start', '--json']);
    expect((await home.run(['flush'])).code).toBe(0);
    engine = engineClient(homePaths(home.home).engineSocket);
  });
  afterAll(() => home.close());

  it('lists every node with every field that lasts', async () => {
    const listed = (await home.json(['memory', 'ls', '--all', '--json'])) as { node_id: string }[];
    const nodes = listed.toSorted((a, b) => (a.node_id < b.node_id ? -1 : 1));
    expect(nodes).toMatchObject(expected.nodes);
  });

  it('shows the raw messages, children and aliases of every node', async () => {
    for (const [id, view] of Object.entries(expected.views)) {
      const { raw = [], children = [] } = await engine.call('nodes/show', { id, depth: 2 });
      const { aliases, replaced, replaces } = await engine.call('nodes/why', { id });
      const found = { raw: raw.map((message) => message.sha256), children: children.map((child) => child.node_id) };
      expect({ ...found, aliases, replaced, replaces }).toEqual(view);
      for (const alias of aliases)
        expect(await engine.call('nodes/show', { id: alias, depth: 0 })).toMatchObject({ node_id: id });
    }
  });

  it('restores every session to the byte, with its brief', async () => {
    const sessions = await engine.call('sessions/list', {});
    expect(sessions.map(({ session_id }) => session_id).sort()).toEqual(Object.keys(expected.sessions).sort());
    for (const session of sessions) {
      const { session_id: sessionId } = session;
      const restored = sha256(JSON.stringify(await engine.call('sessions/restore', { sessionId })));
      const brief = await engine.call('sessions/brief', { sessionId });
      expect({ ...session, brief, restored }).toMatchObject(expected.sessions[sessionId] as object);
    }
  });

  it('counts the same, and names the same damaged files', async () => {
    const status = (await home.json(['status', '--json'])) as { problems: { file: string }[]; tokens: object };
    const files = status.problems.map(({ file }) => path.relative(home.home, file)).sort();
    expect(files).toEqual(expected.problems.map(({ file }) => file).sort());
    expect(status.tokens).toEqual(expected.tokens);
    expect(await home.json(['memory', 'stats', '--json'])).toMatchObject(expected.stats);
  });

  it('keeps quarantine, snapshots and the last receipt', async () => {
    const quarantined = (await home.json(['memory', 'ls', '--quarantine', '--json'])) as { node_id: string }[];
    expect(quarantined.map(({ node_id }) => node_id).sort()).toEqual(expected.quarantine);
    const snapshots = (await home.json(['memory', 'rollback', '--json'])) as { id: string }[];
    expect(snapshots.map(({ id }) => id)).toEqual(expected.snapshots);
    if (expected.explained !== null) {
      expect(await home.json(['explain', 'last', '--json'])).toMatchObject(expected.explained);
    }
  });
});
