import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { homePaths } from '../../common/paths.ts';
import type { OperationResults } from '../../engine/api/index.ts';
import { freePort } from '../helpers/cli.ts';
import { createLiveRig, type LiveRig, longTalk, openTerminal, type Terminal } from '../helpers/live-rig.ts';
import { followUi, signIn } from '../helpers/ui-client.ts';

let rig: LiveRig;
let terminal: Terminal;
let browser: Awaited<ReturnType<typeof signIn>>;
let opened: { readonly url: string; readonly port: number; readonly wanted_port: number };

beforeAll(async () => {
  rig = await createLiveRig({ COMET_CC_UI_PORT: String(await freePort()) });
  terminal = openTerminal(rig);
  await longTalk(rig, terminal, { topic: 'the <script>alert(1)</script> broker' });
  await rig.flush();
  opened = (await rig.home.json(['ui', '--json'])) as typeof opened;
  browser = await signIn(opened.url);
});

afterAll(() => rig.close());

async function ask<K extends keyof OperationResults>(operation: K, input: unknown): Promise<OperationResults[K]> {
  const reply = await browser.post(operation, input);
  if (reply.status !== 200) throw new Error(`${operation}: ${reply.status} ${reply.body}`);
  return (JSON.parse(reply.body) as { result: OperationResults[K] }).result;
}

it('prints a link that signs one browser in', async () => {
  expect(opened.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[0-9a-f]{64}$/);
  expect(opened.port).toBe(opened.wanted_port);
  expect((await browser.get('/session')).status).toBe(200);
  const printed = await rig.home.run(['ui', '--no-open']);
  expect(printed.stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[0-9a-f]{64}\n$/);
});

it('serves the built page with its assets', async () => {
  const page = await browser.get('/');
  const [, script = ''] = /src="(\/assets\/[^"]+\.js)"/.exec(page.body) ?? [];
  expect(await browser.get(script)).toMatchObject({ status: 200 });
});

it('leaves no token in the log', async () => {
  const { logsDir } = homePaths(rig.home.home);
  expect(await readFile(`${logsDir}/engine.log`, 'utf8')).not.toContain(new URL(opened.url).searchParams.get('token'));
});

it('shows the live session: what came, what was sent, what it cost', async () => {
  const { sessions, nodes } = await ask('ui/overview', {});
  expect(nodes).toBeGreaterThan(0);
  const session = sessions.find(({ session_id }) => session_id === terminal.sessionId);
  expect(session).toMatchObject({ streaming: false, requests: expect.any(Number), epoch: expect.any(Number) });
  expect(session?.sent_tokens).toBeLessThan(session?.received_tokens ?? 0);
  expect(session?.untouched_usd).toBeGreaterThan(0);
  expect(session?.phases.map(({ name }) => name)).toEqual(expect.arrayContaining(['parse', 'upstream', 'answer']));
});

it('adds up what was saved by day, session and project', async () => {
  const { days, sessions, projects } = await ask('ui/savings', {});
  expect(days).toHaveLength(1);
  expect(sessions).toHaveLength(1);
  expect(projects).toHaveLength(1);
  for (const row of [days[0], sessions[0], projects[0]]) {
    expect(row).toMatchObject({ original: days[0]?.original, sent: days[0]?.sent });
    expect(row?.net_saved_usd).toBeCloseTo((row?.untouched_usd ?? 0) - (row?.sent_usd ?? 0) - (row?.own_usd ?? 0), 4);
  }
});

it('shows the session verbatim, with the line that stands for each trimmed turn', async () => {
  const session = await ask('ui/session', { sessionId: terminal.sessionId });
  expect(session.total).toBe(session.messages.length);
  expect(session.messages[0]).toMatchObject({ seq: 0, role: 'user', kind: 'text' });
  expect(session.messages[0]?.text).toContain('the <script>alert(1)</script> broker 0 listens on port 4711');
  const trimmed = session.messages.filter(({ trimmed_by }) => trimmed_by !== undefined);
  expect(trimmed.length).toBeGreaterThan(0);
  for (const { trimmed_by } of trimmed) expect(session.lines[trimmed_by as number]?.text).not.toBe('');
  expect(session.messages.at(-1)?.trimmed_by).toBeUndefined();
  const page = await ask('ui/session', { sessionId: terminal.sessionId, from: 2, limit: 3 });
  expect(page.messages).toEqual(session.messages.slice(2, 5));
  expect(page.total).toBe(session.total);
});

it('shows a request as what was left out and what came in its place, and says what is not kept', async () => {
  const { requests } = await ask('ui/session', { sessionId: terminal.sessionId });
  const request = await ask('ui/request', { requestId: requests[0]?.request_id });
  const change = request.changes.find(({ removed, added }) => removed !== '' && added !== '');
  expect(change?.removed).toContain('listens on port 4712');
  expect(change?.added).toContain('4712');
  expect(request.not_kept.length).toBeGreaterThan(0);
  expect(request.prompt).toContain('listens on port 4718');
  const kept = request.changes.filter(({ kind }) => kind === 'kept');
  // The first message always stays.
  expect(kept[0]?.removed).toContain('broker 0 listens on port 4711');
  expect(kept.at(-1)?.removed).toContain('listens on port 4718');
});

it('searches with the ranking of recall, and lists without a query', async () => {
  const all = await ask('ui/search', { query: '', limit: 100 });
  expect(all.total).toBeGreaterThan(0);
  const found = await ask('ui/search', { query: 'which port does broker 3 listen on', limit: 5 });
  expect(found.hits[0]?.lanes).not.toEqual({});
  expect(found.hits[0]?.why).not.toBe('');
  const searched = await ask('nodes/search', { query: 'which port does broker 3 listen on', top: 5 });
  expect(found.hits.map(({ node_id }) => node_id)).toEqual(searched.map(({ node }) => node.node_id));
  expect((await ask('ui/search', { query: '', kind: 'note', limit: 5 })).hits).toEqual([]);
  expect((await ask('ui/search', { query: '', project: all.projects[0], limit: 100 })).total).toBe(all.total);
});

it('gives the graph as places in a list', async () => {
  const { nodes, links, left_out } = await ask('ui/graph', {});
  expect(nodes.some(({ kind }) => kind === 'memory')).toBe(true);
  for (const [from, to] of links) expect([nodes[from], nodes[to]]).not.toContain(undefined);
  expect(left_out).toBe(0);
});

it('edits, pins and forgets, and undoes each once', async () => {
  const { hits } = await ask('ui/search', { query: '', limit: 100 });
  const before = hits[0] as (typeof hits)[number];
  const now = async () => (await ask('ui/search', { query: '', limit: 100 })).hits;
  const byId = async () => (await now()).find(({ node_id }) => node_id === before.node_id);

  const edit = await ask('ui/edit', { id: before.node_id, set: { title: 'Edited <b>here</b>' } });
  expect(await byId()).toMatchObject({ title: 'Edited <b>here</b>' });
  const history = await ask('ui/history', { kind: 'memory', name: before.node_id });
  expect(history.now).toContain('Edited <b>here</b>');
  expect(history.versions).toEqual([expect.objectContaining({ reason: 'edit' })]);
  expect(history.versions[0]?.text).not.toContain('Edited <b>here</b>');
  await ask('ui/undo', { undo: edit.undo });
  expect(await byId()).toEqual(before);
  expect((await browser.post('ui/undo', { undo: edit.undo })).status).toBe(404);

  const pin = await ask('ui/pin', { ids: [before.node_id], pinned: true });
  expect(await byId()).toMatchObject({ pinned: true });
  await ask('ui/undo', { undo: pin.undo });
  expect(await byId()).toMatchObject({ pinned: false });

  const refused = await browser.post('ui/quarantine', { ids: [before.node_id], quarantined: true });
  expect(refused.status).toBe(422);
  expect(JSON.parse(refused.body)).toMatchObject({
    error: { code: 'node_invalid', message: expect.stringContaining('forget it instead') },
  });
  expect(await byId()).toEqual(before);
});

it('takes nothing back over a later change, and brings back no memory that was removed', async () => {
  const [edited, removed] = (await ask('ui/search', { query: '', limit: 100 })).hits.map(({ node_id }) => node_id);
  const pin = (id = '') => ask('ui/pin', { ids: [id], pinned: true });
  const first = await pin(edited);
  await rig.home.run(['memory', 'edit', edited as string, '--set', 'summary=Changed in a terminal']);
  const changed = await browser.post('ui/undo', { undo: first.undo });
  expect(changed).toMatchObject({ status: 422, body: expect.stringContaining('was changed since') });
  expect(await ask('nodes/show', { id: edited, depth: 0 })).toMatchObject({
    ...{ summary: 'Changed in a terminal', pinned_from: expect.any(String) },
  });
  const second = await pin(removed);
  await rig.home.run(['memory', 'rm', removed as string, '--yes']);
  expect((await browser.post('ui/undo', { undo: second.undo })).status).toBe(404);
  expect((await browser.post('nodes/show', { id: removed, depth: 0 })).status).toBe(404);
});

it('forgets with a way back that keeps the verbatim turns, and for good', async () => {
  const { hits } = await ask('ui/search', { query: '', limit: 100 });
  const id = hits.at(-1)?.node_id as string;
  const whole = await ask('nodes/show', { id, depth: 2 });
  const shown = async () => (await ask('ui/search', { query: '', limit: 100 })).hits;
  const drawn = async () => (await ask('ui/graph', {})).nodes.some((node) => node.id === id);

  const forget = await ask('ui/forget', { ids: [id] });
  expect((await shown()).find(({ node_id }) => node_id === id)).toBeUndefined();
  expect(await drawn()).toBe(false);
  await ask('ui/undo', { undo: forget.undo });
  expect(await shown()).toEqual(hits);
  expect(await ask('nodes/show', { id, depth: 2 })).toEqual(whole);
  expect((await browser.post('ui/undo', { undo: forget.undo })).status).toBe(404);

  await ask('ui/forget', { ids: [id] });
  await ask('ui/forget', { ids: [id], final: true });
  expect((await browser.post('nodes/show', { id, depth: 0 })).status).toBe(404);
  const session = await ask('ui/session', { sessionId: terminal.sessionId });
  const [prompt] = (whole.raw ?? []).flatMap(({ role, content }) => (role === 'user' ? JSON.stringify(content) : []));
  expect(prompt).toMatch(/broker \d listens/);
  const [said = ''] = /broker \d listens on port \d+/.exec(prompt as string) ?? [];
  expect(JSON.stringify(session.messages)).not.toContain(said);
});

it('reports requests, memories, tasks and pauses as they change', async () => {
  const events = followUi(browser.port, browser.cookie);
  await expect.poll(events.text).toBe(': \n\n');
  await terminal.say('We decided that the cache is emptied at noon.');
  await expect.poll(events.text).toContain('{"topic":"request"}');
  await rig.flush();
  await expect.poll(events.text).toContain('{"topic":"memory"}');
  await rig.home.json(['task', 'add', 'Empty the cache', '--json']);
  await expect.poll(events.text).toContain('{"topic":"tasks"}');
  const { libraryDir } = homePaths(rig.home.home);
  const count = (): number => events.text().split('{"topic":"library"}').length;
  await rig.flush();
  const told = count();
  await mkdir(path.join(libraryDir, 'topics'), { recursive: true });
  await writeFile(path.join(libraryDir, 'topics', 'by-hand.md'), '# By hand\n\n- the cache is emptied at noon\n');
  await expect.poll(count).toBeGreaterThan(told);
  events.close();
});

it('is linked from commands, but not where Claude Code reads', async () => {
  const origin = `http://127.0.0.1:${opened.port}/#`;
  const { hits } = await ask('ui/search', { query: '', limit: 1 });
  const id = hits[0]?.node_id as string;
  const links = [
    [['status'], `${origin}/now`],
    [['explain'], `${origin}/session/${terminal.sessionId}`],
    [['memory', 'show', id], `${origin}/node/${id}`],
  ] as const;
  for (const [args, link] of links) {
    expect((await rig.home.run(args)).stdout).toContain(`\npage      ${link}\n`);
    expect((await rig.home.run(args, { env: { CLAUDECODE: '1' } })).stdout).not.toContain(origin);
  }
  expect((await rig.home.run(['status', '--json'])).stdout).not.toContain(origin);
});

it('pauses and resumes as the commands do', async () => {
  await ask('ui/pause', { mode: 'off' });
  expect(await rig.home.json(['status', '--json'])).toMatchObject({ paused: { everywhere: { mode: 'off' } } });
  await ask('ui/resume', {});
  expect(await rig.home.json(['status', '--json'])).toMatchObject({ paused: { everywhere: null } });
});

it('shows the checks of doctor, the log and the daemon', async () => {
  const health = await ask('ui/health', {});
  expect(health.checks.find(({ name }) => name === 'engine')).toMatchObject({ state: 'ok' });
  expect(health.daemon).toMatchObject({ state: 'healthy', restarts: 0 });
  expect(health.log.at(-1)).toMatchObject({ level: expect.any(String), message: expect.any(String) });
});

it('finds the page again after the engine was killed', async () => {
  const { engine } = await rig.status();
  process.kill(engine.pid, 'SIGKILL');
  await expect.poll(async () => (await browser.get('/session').catch(() => null))?.status, { interval: 50 }).toBe(200);
  expect((await rig.status()).engine.pid).not.toBe(engine.pid);
  expect((await ask('ui/overview', {})).sessions[0]?.session_id).toBe(terminal.sessionId);
});
