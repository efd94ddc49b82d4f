import { existsSync } from 'node:fs';
import { chmod, lstat, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { silentLog } from '../../../../common/log.ts';
import { homePaths } from '../../../../common/paths.ts';
import { createUi } from '../../../../engine/api/ui/index.ts';
import type { MemoryNode } from '../../../../memory/model/node.ts';
import { createStranger, freePort } from '../../../helpers/cli.ts';
import { engineServices } from '../../../helpers/engine-services.ts';
import { askUi, browserWith, followUi, signIn, type UiRequest } from '../../../helpers/ui-client.ts';

const HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)>';
let forgotten = 0;
const services = engineServices({
  library: {
    readIndex: async () => HOSTILE,
    forgetFacts: async () => {
      forgotten += 1;
      return [];
    },
    list: () => [] as readonly MemoryNode[],
  },
});

let root: string;
let page: string;
let now = Date.parse('2026-11-23T10:00:00Z');
const running: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'cc-ui-'));
  page = path.join(root, 'page');
  await mkdir(path.join(page, 'assets'), { recursive: true });
  await writeFile(path.join(page, 'index.html'), '<!doctype html><title>the page</title>');
  await writeFile(path.join(page, 'assets', 'main-1a2b.js'), 'export {};');
  await writeFile(path.join(root, 'secret.txt'), 'outside');
});

afterAll(async () => {
  for (const each of running) await each.close();
  await rm(root, { recursive: true, force: true });
});

let homes = 0;
function newHome(): string {
  homes += 1;
  return path.join(root, `home-${homes}`);
}

function engine(home: string, port: number, enabled: 'auto' | 'on' | 'off' = 'auto') {
  const config = Config.parse({ ui: { port, enabled } }).ui;
  const options = { config, paths: homePaths(home), services: () => services, log: silentLog, now: () => now, page };
  const ui = createUi(options);
  running.push(ui);
  return ui;
}

const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = net.connect(port, '127.0.0.1', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });

describe('the listener', () => {
  it('does not exist before comet-cc ui was used', async () => {
    const port = await freePort();
    const ui = engine(newHome(), port);
    await ui.begin();
    expect(await isOpen(port)).toBe(false);
    expect(ui.address()).toBeNull();
  });

  it('exists from the start where it was used before, or is switched on', async () => {
    const [home, port] = [newHome(), await freePort()];
    const first = engine(home, port);
    await first.open();
    await first.close();
    const second = engine(home, port);
    await second.begin();
    expect(second.address()).toBe(`http://127.0.0.1:${port}/`);
    const on = engine(newHome(), await freePort(), 'on');
    await on.begin();
    expect(on.address()).not.toBeNull();
  });

  it('never exists where it is switched off', async () => {
    const ui = engine(newHome(), await freePort(), 'off');
    await expect(ui.open()).rejects.toMatchObject({ code: 'not_allowed' });
    expect(ui.address()).toBeNull();
  });

  it('takes the next port where another program has the one that is wanted, and keeps it', async () => {
    const [home, port] = [newHome(), await freePort()];
    const stranger = await createStranger(port);
    const first = engine(home, port);
    const opened = await first.open();
    expect(opened).toMatchObject({ wanted_port: port });
    expect(opened.port).toBeGreaterThan(port);
    expect((await first.open()).port).toBe(opened.port);
    await first.close();
    await stranger.close();
    const second = engine(home, port);
    await second.begin();
    expect(second.address()).toBe(`http://127.0.0.1:${opened.port}/`);
  });

  it('returns to the port that is wanted once that is free, unless a page is open', async () => {
    const [home, port] = [newHome(), await freePort()];
    const stranger = await createStranger(port);
    const ui = engine(home, port);
    const early = await ui.open();
    await stranger.close();
    const browser = await signIn(early.url);
    const events = followUi(early.port, browser.cookie);
    await expect.poll(events.text).toBe(': \n\n');
    expect((await ui.open()).port).toBe(early.port);
    events.close();
    await expect.poll(async () => (await ui.open()).port).toBe(port);
    expect(await isOpen(early.port)).toBe(false);
    const [one, other] = await Promise.all([ui.open(), ui.open()]);
    expect([one.port, other.port]).toEqual([port, port]);
    expect((await signIn(one.url)).cookie).toContain(`comet-cc-${port}=`);
  });

  it('belongs to the user alone: key and port are private files, and a shared key is refused', async () => {
    const home = newHome();
    const ui = engine(home, await freePort());
    await ui.open();
    const paths = homePaths(home);
    for (const file of [paths.uiKeyFile, paths.uiPortFile]) expect((await lstat(file)).mode & 0o777).toBe(0o600);
    await ui.close();
    await chmod(paths.uiKeyFile, 0o644);
    await expect(engine(home, await freePort()).open()).rejects.toMatchObject({ code: 'unsafe_file' });
  });
});

describe('signing in', () => {
  it('turns the link into a cookie that scripts cannot read, and leaves no token in the address', async () => {
    const { url, port } = await engine(newHome(), await freePort()).open();
    const reply = await askUi(port, { path: new URL(url).pathname + new URL(url).search });
    expect(reply).toMatchObject({ status: 302, headers: { location: '/', 'referrer-policy': 'no-referrer' } });
    const cookie = String(reply.headers['set-cookie']);
    for (const part of ['HttpOnly', 'SameSite=Strict', 'Path=/']) expect(cookie).toContain(part);
    expect(cookie).not.toContain('Domain');
  });

  it('refuses a stolen link after its first use', async () => {
    const { url, port } = await engine(newHome(), await freePort()).open();
    await signIn(url);
    const again = await askUi(port, { path: `/${new URL(url).search}` });
    expect(again.status).toBe(403);
    expect(again.headers['set-cookie']).toBeUndefined();
    expect(again.body).toContain('Run <code>comet-cc ui</code> again');
  });

  it('keeps the cookie of a browser that is signed in, so that its open pages stay signed in', async () => {
    const ui = engine(newHome(), await freePort());
    const [first, second] = [await ui.open(), await ui.open()];
    const browser = await signIn(first.url);
    for (const { url } of [first, second]) {
      const reply = await browser.get(`/${new URL(url).search}`);
      expect(reply).toMatchObject({ status: 302, headers: { location: '/' } });
      expect(reply.headers['set-cookie']).toBeUndefined();
    }
    // The second link is used, too.
    expect((await askUi(second.port, { path: `/${new URL(second.url).search}` })).status).toBe(403);
  });

  it.each([
    ['invented', () => '0'.repeat(64)],
    ['empty', () => ''],
  ])('refuses a token that is %s', async (_, token) => {
    const { port } = await engine(newHome(), await freePort()).open();
    expect((await askUi(port, { path: `/?token=${token()}` })).status).toBe(403);
  });

  it('refuses a link after two minutes and a cookie after 30 days', async () => {
    const ui = engine(newHome(), await freePort());
    const [early, late] = [await ui.open(), await ui.open()];
    const browser = await signIn(early.url);
    expect((await browser.get('/session')).status).toBe(200);
    now += 2 * 60_000;
    expect((await askUi(late.port, { path: `/${new URL(late.url).search}` })).status).toBe(403);
    now += 30 * 86_400_000;
    expect((await browser.get('/session')).status).toBe(401);
    expect((await browser.get('/')).status).toBe(403);
  });

  it('holds across a restart of the engine, and ends with the key', async () => {
    const [home, port] = [newHome(), await freePort()];
    const first = engine(home, port);
    const browser = await signIn((await first.open()).url);
    await first.close();
    const second = engine(home, port);
    await second.begin();
    expect((await browser.post('library/index', {})).status).toBe(200);
    await second.close();
    await rm(homePaths(home).uiKeyFile);
    const third = engine(home, port, 'on');
    await third.begin();
    expect((await browser.get('/session')).status).toBe(401);
  });

  it('does not accept the cookie of another home', async () => {
    const one = await signIn((await engine(newHome(), await freePort()).open()).url);
    const other = await engine(newHome(), await freePort()).open();
    const value = one.cookie.split('=')[1];
    const foreign = await askUi(other.port, {
      path: '/session',
      headers: { cookie: `comet-cc-${other.port}=${value}` },
    });
    expect(foreign.status).toBe(401);
  });
});

describe('access', () => {
  let browser: Awaited<ReturnType<typeof signIn>>;
  beforeAll(async () => {
    browser = await signIn((await engine(newHome(), await freePort()).open()).url);
  });

  const json = { 'content-type': 'application/json' };
  it.each([
    ['another name', 403, { host: 'evil.example' }],
    ['another name on our port', 403, { host: 'evil.example:PORT' }],
    ['a name that begins as ours', 403, { host: '127.0.0.1.evil.example:PORT' }],
    ['our name without the port', 403, { host: '127.0.0.1' }],
    ['a page of another origin', 403, { origin: 'https://evil.example' }],
    ['a page of another port', 403, { origin: 'http://127.0.0.1:3000' }],
    ['a page without an origin', 403, { origin: 'null' }],
    ['our other name as the origin', 403, { origin: 'http://localhost:PORT' }],
    ['a cross-site request', 403, { 'sec-fetch-site': 'cross-site' }],
    ['a page of another port of this machine', 403, { 'sec-fetch-site': 'same-site' }],
    ['no CSRF header', 403, { 'x-comet-csrf': '' }],
    ['another CSRF header', 403, { 'x-comet-csrf': '0'.repeat(64) }],
    ['no cookie', 401, { cookie: '' }],
    ['a cookie that was changed', 401, { cookie: 'COOKIE0' }],
    ['a form', 415, { 'content-type': 'application/x-www-form-urlencoded' }],
    ['plain text', 415, { 'content-type': 'text/plain' }],
  ] as const)('refuses %s and does nothing', async (_, status, given) => {
    const fill = (value: string): string =>
      value.replace('PORT', String(browser.port)).replace('COOKIE', browser.cookie);
    const over = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, fill(value)]));
    const before = forgotten;
    const reply = await browser.post('facts/forget', { names: ['a'] }, over);
    expect(reply.status).toBe(status);
    expect(reply.headers['content-type']).toContain('application/json');
    expect(forgotten).toBe(before);
  });

  it('runs what the page sends, by either name', async () => {
    const before = forgotten;
    expect((await browser.post('facts/forget', { names: ['a'] })).status).toBe(200);
    const name = `localhost:${browser.port}`;
    const over = { host: name, origin: `http://${name}` };
    expect((await browser.post('facts/forget', { names: ['a'] }, over)).status).toBe(200);
    expect(forgotten).toBe(before + 2);
  });

  it('runs only operations of the page', async () => {
    for (const operation of ['flush', 'hooks/prompt', 'memory/import', 'memory/export', 'nodes/seal', 'ui/open', 'x']) {
      expect((await browser.post(operation, {})).status, operation).toBe(403);
    }
  });

  it('changes nothing by other methods, and answers no preflight', async () => {
    const request: UiRequest = { path: '/v1/facts/forget', headers: { cookie: browser.cookie, ...json } };
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const reply = await askUi(browser.port, { ...request, method });
      expect(reply.status, method).toBe(405);
      expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
    expect((await askUi(browser.port, request)).status).toBe(404);
  });

  it('refuses a body over 1 MB', async () => {
    expect((await browser.post('topics/read', { name: 'x'.repeat(1_100_000) })).status).toBe(413);
  });

  it('gives nothing to a browser without a cookie, neither page nor code', async () => {
    for (const path of ['/', '/assets/main-1a2b.js', '/session', '/v1/status', '/memory', '/index.html']) {
      const reply = await askUi(browser.port, { path });
      expect([401, 403], path).toContain(reply.status);
      expect(reply.body).not.toContain('the page');
      expect(reply.body).not.toContain('export');
    }
  });

  it('sends a strict policy with every answer', async () => {
    const replies = [
      await browser.get('/'),
      await browser.get('/session'),
      await browser.get('/nowhere.txt'),
      await browser.post('x', {}),
      await askUi(browser.port, { path: '/?token=1' }),
      await askUi(browser.port, { headers: { host: 'evil.example' } }),
    ];
    for (const { headers } of replies) {
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
      expect(headers['content-security-policy']).not.toContain('unsafe');
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
    }
  });

  it('returns hostile text as JSON only', async () => {
    const reply = await browser.post('library/index', {});
    expect(JSON.parse(reply.body)).toEqual({ result: { text: HOSTILE } });
    expect(reply.headers).toMatchObject({ 'content-type': 'application/json', 'x-content-type-options': 'nosniff' });
  });

  it('says what is not valid, and when the store is opening', async () => {
    expect((await browser.post('topics/read', {})).status).toBe(400);
    expect((await browser.post('status', {})).status).toBe(200);
  });
});

describe('events', () => {
  const counted = { total: 0, rewritten: 0, passed_through: 0, failed_open: 0 };
  let answering = 0;

  it('say what to read again, and nothing while nothing changes', async () => {
    const ui = engine(newHome(), await freePort());
    const browser = await signIn((await ui.open()).url);
    expect((await askUi(browser.port, { path: '/events' })).status).toBe(401);
    const one = followUi(browser.port, browser.cookie);
    const other = followUi(browser.port, browser.cookie);
    await expect.poll(() => [one.text(), other.text()]).toEqual([': \n\n', ': \n\n']);
    counted.total += 1;
    const request = 'event: change\ndata: {"topic":"request"}\n\n';
    await expect.poll(() => [one.text(), other.text()]).toEqual([`: \n\n${request}`, `: \n\n${request}`]);
    one.close();
    ui.touch();
    await expect.poll(other.text).toContain('{"topic":"tasks"}');
    expect(other.text()).toContain('{"topic":"library"}');
    expect(one.text()).not.toContain('tasks');
    const told = (): number => other.text().split('{"topic":"request"}').length;
    answering = 1;
    const before = told();
    await expect.poll(told).toBeGreaterThan(before + 1);
    answering = 0;
    await ui.close();
  });

  beforeAll(() => {
    Object.assign(services, {
      requests: () => counted,
      activity: () => ({ answering, lastRequestMs: 0 }),
      tasks: { ...services.tasks, due: () => [] },
    });
  });
});

describe('the page', () => {
  it('is served from its folder alone', async () => {
    const browser = await signIn((await engine(newHome(), await freePort()).open()).url);
    expect(await browser.get('/')).toMatchObject({ status: 200, body: expect.stringContaining('the page') });
    expect((await browser.get('/memory')).body).toContain('the page');
    const asset = await browser.get('/assets/main-1a2b.js');
    expect(asset.headers['content-type']).toContain('javascript');
    expect(asset.headers['cache-control']).toContain('immutable');
    for (const path of [
      '/assets/../../secret.txt',
      '/assets/%2e%2e/%2e%2e/secret.txt',
      '/../secret.txt',
      '/assets/none.js',
    ]) {
      const reply = await browser.get(path);
      expect(reply.body, path).not.toContain('outside');
      expect(reply.status, path).not.toBe(200);
    }
    expect(existsSync(path.join(root, 'secret.txt'))).toBe(true);
  });

  it('lets a cookie of the same home in that was kept by another tab', async () => {
    const browser = await signIn((await engine(newHome(), await freePort()).open()).url);
    expect((await browserWith(browser.port, browser.cookie)).csrf).toBe(browser.csrf);
  });
});
