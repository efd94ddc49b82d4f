import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkCerts, checkTrust } from '../../../bin/doctor/certs.ts';
import { checkIntegration, checkSessions } from '../../../bin/doctor/claude-code.ts';
import { checkSettings } from '../../../bin/doctor/settings.ts';
import { ensureCerts, removeCerts, trustRoot } from '../../../certs/index.ts';
import { type HomePaths, homePaths } from '../../../common/paths.ts';
import type { StatusReport } from '../../../engine/api/index.ts';
import { editSettings, hookCommands, installEntries, planSettings } from '../../../install/claude-code/index.ts';
import { editorSettingsFile } from '../../../install/index.ts';
import { createMemoryTrust } from '../../helpers/trust.ts';

const DAY_MS = 86_400_000;
const nowMs = Date.now();

let dir: string;
let paths: HomePaths;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-checks-'));
  paths = homePaths(path.join(dir, 'home'));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const ensure = (ms = nowMs) => ensureCerts(paths, { nowMs: ms, userExtraCaFile: null });
const at = (...names: string[]): string => path.join(paths.certsDir, ...names);

describe('the check of the certificates', () => {
  it('says that none are made, that all is well, and that a key can be read by others', async () => {
    expect(await checkCerts(paths, nowMs)).toMatchObject({ ok: false, fix: 'comet-cc install-ca' });
    await ensure();
    expect(await checkCerts(paths, nowMs)).toMatchObject({ ok: true, fix: '' });
    chmodSync(at('leaf.key'), 0o644);
    expect(await checkCerts(paths, nowMs)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('open mode'),
      fix: `remove ${paths.certsDir}, then comet-cc install-ca`,
    });
  });

  it('follows a rotation: nothing due, due, published, last day, expired', async () => {
    const { notAfterMs } = await ensure();
    const check = (ms: number) => checkCerts(paths, ms);
    expect(await check(notAfterMs - 31 * DAY_MS)).toMatchObject({ ok: true });
    expect(await check(notAfterMs - 29 * DAY_MS)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('no next root'),
      fix: 'comet-cc install-ca',
    });
    await ensure(notAfterMs - 29 * DAY_MS);
    expect(await check(notAfterMs - 29 * DAY_MS)).toMatchObject({
      ok: true,
      detail: expect.stringContaining('successor is in the bundle'),
    });
    expect(await check(notAfterMs - DAY_MS / 2)).toMatchObject({ ok: false, fix: 'comet-cc install-ca' });
    expect(await check(notAfterMs + 1)).toMatchObject({
      ok: false,
      fix: expect.stringMatching(/^comet-cc install-ca/),
    });
    await ensure(notAfterMs - DAY_MS / 2);
    expect(await check(notAfterMs - DAY_MS / 2)).toMatchObject({ ok: true });
  });

  it('tells a missing bundle from one without the root and one without the next root', async () => {
    const { notAfterMs } = await ensure();
    const late = notAfterMs - 20 * DAY_MS;
    await ensure(late);
    const whole = readFileSync(at('bundle.pem'), 'utf8');
    const spoil = async (text: string | null): Promise<string> => {
      rmSync(at('bundle.pem'), { force: true });
      if (text !== null) writeFileSync(at('bundle.pem'), text, { mode: 0o600 });
      const { ok, detail, fix } = await checkCerts(paths, late);
      expect([ok, fix]).toEqual([false, expect.stringContaining('comet-cc install-ca')]);
      return detail;
    };
    expect(await spoil(null)).toContain('is missing');
    expect(await spoil(readFileSync(at('next', 'root.pem'), 'utf8'))).toContain('does not hold the root');
    expect(await spoil(readFileSync(at('root.pem'), 'utf8'))).toContain('does not hold the next root');
    await ensure(late);
    expect(readFileSync(at('bundle.pem'), 'utf8')).toBe(whole);
    expect((await checkCerts(paths, late)).ok).toBe(true);
  });

  it('blames the clock when the leaf is not valid yet', async () => {
    await ensure();
    const [early, advice] = [
      nowMs - 30 * DAY_MS,
      /clock right; if it is right, .*comet-cc uninstall-ca, then .*install-ca$/,
    ];
    expect((await checkCerts(paths, early)).fix).toMatch(advice);
    await expect(ensure(early)).rejects.toThrow(advice);
    // What is advised where the clock was ahead when they were made.
    await removeCerts(paths);
    await ensure(early);
    expect((await checkCerts(paths, early)).ok).toBe(true);
  });
});

describe('the check of the system stores', () => {
  it('is content where none was asked, and where one holds what it should', async () => {
    const store = createMemoryTrust();
    expect(await checkTrust(paths, [store], nowMs)).toMatchObject({ ok: true });
    const { rootFile } = await ensure();
    expect(await checkTrust(paths, [store], nowMs)).toMatchObject({ ok: true });
    await trustRoot(paths, store, rootFile);
    expect(await checkTrust(paths, [store], nowMs)).toMatchObject({
      ok: true,
      detail: 'the root is trusted by the memory store',
    });
  });

  it('finds an older root that is still trusted, and one that is no longer', async () => {
    const store = createMemoryTrust();
    await trustRoot(paths, store, (await ensure()).rootFile);
    await removeCerts(paths);
    const { rootFile } = await ensure();
    const fix = 'comet-cc install-ca --system, or comet-cc uninstall-ca';
    const older = 'the memory store holds 1 older of our roots';
    expect(await checkTrust(paths, [store], nowMs)).toMatchObject({ ok: false, detail: older, fix });
    await trustRoot(paths, store, rootFile);
    expect(await checkTrust(paths, [store], nowMs)).toMatchObject({ ok: true });
    store.held.clear();
    const gone = 'the memory store no longer holds the root';
    expect(await checkTrust(paths, [store], nowMs)).toMatchObject({ ok: false, detail: gone, fix });
  });
});

describe('the check of the settings', () => {
  const WANTED = { HTTPS_PROXY: 'http://comet-cc:SECRET@127.0.0.1:8443', NODE_EXTRA_CA_CERTS: '/h/certs/bundle.pem' };
  const env = (): NodeJS.ProcessEnv => ({ HOME: dir, CLAUDE_CONFIG_DIR: dir });
  const file = (): string => path.join(dir, 'settings.json');
  const check = (wanted: typeof WANTED | null = WANTED) => checkSettings(paths, env(), wanted);

  it('follows an edit: in force, changed by hand, no JSON any more, made again', async () => {
    expect(await check()).toMatchObject({ ok: true });
    await editSettings(paths, await planSettings(file(), WANTED));
    expect(await check()).toMatchObject({ ok: true, detail: expect.stringContaining('points to comet-cc') });
    writeFileSync(file(), JSON.stringify({ env: { ...WANTED, HTTPS_PROXY: 'http://corp:1' } }));
    const changed = await check();
    expect(changed).toMatchObject({ ok: false, fix: expect.stringContaining('comet-cc install-ca --settings') });
    expect(changed.detail).toContain('HTTPS_PROXY');
    expect(changed.detail).not.toMatch(/SECRET|corp/);
    writeFileSync(file(), '{');
    expect(await check()).toMatchObject({ ok: false, detail: expect.stringContaining('not plain JSON') });
    writeFileSync(file(), '{}');
    await editSettings(paths, await planSettings(file(), WANTED));
    expect(await check()).toMatchObject({ ok: true });
    expect(await check(null)).toMatchObject({ ok: false });
  });

  it('names what leads Claude Code past the API, in the environment or the settings', async () => {
    const find = async (over: NodeJS.ProcessEnv) => await checkSettings(paths, { ...env(), ...over }, WANTED);
    const past = (name: string) => ({ ok: false, detail: expect.stringContaining(`${name} leads Claude Code past`) });
    expect(await find({ ANTHROPIC_BASE_URL: 'https://api.anthropic.com/' })).toMatchObject({ ok: true });
    expect(await find({ ANTHROPIC_BASE_URL: '', CLAUDE_CODE_USE_BEDROCK: '0' })).toMatchObject({ ok: true });
    expect(await find({ ANTHROPIC_BASE_URL: 'https://gw.example' })).toMatchObject(past('ANTHROPIC_BASE_URL'));
    expect(await find({ CLAUDE_CODE_USE_VERTEX: '1' })).toMatchObject(past('CLAUDE_CODE_USE_VERTEX'));
    writeFileSync(file(), JSON.stringify({ env: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:4000' } }));
    expect(await find({})).toMatchObject(past('ANTHROPIC_BASE_URL'));
  });

  it('names a file that Claude Code ignores, also where nothing was set up', async () => {
    writeFileSync(file(), ' \n');
    expect(await check()).toMatchObject({ ok: true });
    writeFileSync(file(), '{ "model": ');
    expect(await check()).toMatchObject({
      ok: false,
      detail: `${file()} is not plain JSON, so Claude Code ignores it`,
    });
    rmSync(file());
    mkdirSync(file());
    expect(await check()).toMatchObject({ ok: false, detail: expect.stringContaining(`${file()} is a folder`) });
    rmSync(file(), { recursive: true });
    execFileSync('mkfifo', [file()]);
    expect(await check()).toMatchObject({ ok: false, detail: expect.stringContaining(`${file()} is a pipe`) });
  });

  it("leaves the user's own proxy in peace, and says that it wins", async () => {
    writeFileSync(file(), '{"env":{"HTTPS_PROXY":"http://corp:1"}}');
    expect(await check()).toMatchObject({ ok: true, detail: expect.stringContaining('HTTPS_PROXY') });
  });

  it('names a token or port of a home that is lost, which refuses each session', async () => {
    writeFileSync(file(), JSON.stringify({ env: { ...WANTED, HTTPS_PROXY: 'http://comet-cc:OLD@127.0.0.1:8443' } }));
    const found = await check();
    expect(found).toMatchObject({ ok: false, detail: expect.stringContaining('HTTPS_PROXY of comet-cc') });
    expect(found.detail).not.toContain('OLD');
  });

  it('finds an editor that leads its Claude Code elsewhere', async () => {
    const editor = editorSettingsFile('vscode', process.platform, env());
    mkdirSync(path.dirname(editor), { recursive: true });
    const withValue = (value: string): void =>
      writeFileSync(
        editor,
        `{ // mine\n "url": "http://x/*y*/", "claudeCode.environmentVariables": [{"name":"HTTPS_PROXY","value":"${value}"},],\n}`,
      );
    withValue('http://corp:1');
    expect(await check()).toMatchObject({ ok: false, detail: expect.stringContaining(editor) });
    withValue(WANTED.HTTPS_PROXY);
    expect(await check()).toMatchObject({ ok: true });
  });

  it.each([
    ['linux', '/u/.config/Code/User/settings.json'],
    ['darwin', '/u/Library/Application Support/Code/User/settings.json'],
    ['win32', '/roaming/Code/User/settings.json'],
  ] as const)('knows where editors keep theirs on %s', (platform, expected) => {
    expect(editorSettingsFile('vscode', platform, { HOME: '/u', APPDATA: '/roaming' })).toBe(expected);
  });
});

describe('the checks of Claude Code', () => {
  const env = (): NodeJS.ProcessEnv => ({ HOME: dir, CLAUDE_CONFIG_DIR: dir });
  const ids = ['5f3a0000-0000-4000-8000-000000000001', '5f3a0000-0000-4000-8000-000000000002'] as const;
  const report = (sessions: readonly string[]) =>
    ({ engine: { state: 'healthy' }, sessions }) as unknown as StatusReport;

  it('name a recent session that goes past comet-cc by its title, and how to continue it', async () => {
    const [seen, past] = ids;
    const check = (sessions: readonly string[], isExpected = true) =>
      checkSessions(env(), report(sessions), nowMs, isExpected);
    expect(await check([])).toMatchObject({ state: 'ok', detail: expect.stringContaining('no session') });
    const folder = path.join(dir, 'projects', '-code-shop');
    mkdirSync(folder, { recursive: true });
    const prompt = {
      type: 'user',
      message: { content: [{ type: 'text', text: '<reminder>' }, { text: 'Set up staging' }] },
    };
    const getFile = (id: string): string => path.join(folder, `${id}.jsonl`);
    for (const id of ids) writeFileSync(getFile(id), `${JSON.stringify(prompt)}\n{"torn`);
    expect(await check(ids)).toMatchObject({ state: 'ok', detail: '2 recent sessions, all through comet-cc' });
    expect(await check([seen])).toMatchObject({
      state: 'problem',
      detail: '1 of 2 recent sessions did not use comet-cc: "Set up staging"',
      fix: expect.stringContaining(`comet-cc run claude --resume ${past}`),
    });
    expect(await check([seen], false)).toMatchObject({
      state: 'ok',
      detail: expect.stringContaining(`"Set up staging"; comet-cc run claude --resume ${past}`),
    });
    writeFileSync(getFile(past), `${JSON.stringify({ type: 'ai-title', aiTitle: 'Staging \u001b[2Jports' })}\n`);
    expect((await check([seen])).detail).toContain('"Staging [2Jports"');
    expect(await checkSessions(env(), null, nowMs, true)).toMatchObject({ ok: true, state: 'unknown' });
    for (const id of ids) utimesSync(getFile(id), nowMs / 1_000 - 3_600, nowMs / 1_000 - 3_600);
    expect(await check([])).toMatchObject({ state: 'ok' });
  });

  it('say whether hooks and status line are set up', async () => {
    const commands = hookCommands('node', '/opt/comet-cc/dist/hooks', (text) => text);
    const check = () => checkIntegration(paths, env(), commands);
    expect((await check()).map(({ id, state }) => [id, state])).toEqual([
      ['hooks', 'ok'],
      ['statusline', 'ok'],
    ]);
    const file = path.join(dir, 'settings.json');
    await installEntries(paths, 'hooks', file, commands);
    expect((await check())[0]).toMatchObject({ state: 'ok', detail: `in ${file}` });
    const moved = hookCommands('node', '/elsewhere/dist/hooks', (text) => text);
    expect((await checkIntegration(paths, env(), moved))[0]).toMatchObject({
      state: 'problem',
      fix: 'comet-cc hooks install',
    });
  });
});
