import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createStandin, type Standin } from '../../bin/standin/index.ts';
import type { MemoryNode } from '../../memory/core/nodes/node.ts';
import type { SessionView } from '../../memory/face/views.ts';
import { CLI, createTestHome, type TestHome } from '../helpers/cli.ts';
import { daemonUpstream } from '../helpers/live-conversation.ts';
import { type ConversationPlan, growConversation, seededPlan } from '../helpers/transcripts.ts';

// Each test starts several processes, which a busy machine takes its time for.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const HOOKS = ['session-start', 'user-prompt-submit', 'compact', 'session-end'] as const;
type Hook = (typeof HOOKS)[number];

const SAID = 'The parcel gateway listens on port 7411, and Ilse restarts it on Thursdays.';
const ASKED = 'On which port does the parcel gateway listen?';

let home: TestHome;
let standin: Standin;
let plan: ConversationPlan;
let pinned: MemoryNode;

const scriptOf = (hook: Hook): string => path.resolve('dist', 'hooks', `${hook}.js`);

function run(hook: Hook, input: unknown, env: NodeJS.ProcessEnv = home.env): { status: number | null; stdout: string } {
  const { status, stdout } = spawnSync(process.execPath, [scriptOf(hook), 'comet-cc'], {
    env,
    input: JSON.stringify(input),
    encoding: 'utf8',
  });
  return { status, stdout };
}

const told = (event: string, more: object = {}) => ({
  session_id: 'another-session',
  cwd: plan.cwd,
  hook_event_name: event,
  ...more,
});

/** A busy machine takes its time. */
const patient = (): NodeJS.ProcessEnv => ({ ...home.env, COMET_CC_HOOK_MS: '20000' });

const added = ({ stdout }: { stdout: string }): string =>
  stdout === ''
    ? ''
    : (JSON.parse(stdout) as { hookSpecificOutput: { additionalContext: string } }).hookSpecificOutput
        .additionalContext;

async function sessions(): Promise<readonly SessionView[]> {
  return (await home.json(['session', 'ls', '--json'])) as SessionView[];
}

beforeAll(async () => {
  standin = await createStandin();
  home = await createTestHome({ COMET_CC_UPSTREAM: standin.origin, COMET_CC_INJECT_RETRIEVAL: 'hook' });
  await home.json(['start', '--json']);
  const seeded = seededPlan(7, { turns: 3, models: ['claude-opus-4-8'], rounds: 0 });
  plan = { ...seeded, turns: seeded.turns.map((turn, at) => (at === 0 ? { ...turn, prompt: SAID } : turn)) };
  await growConversation(plan, await daemonUpstream(home));
});

afterAll(async () => {
  await home.close();
  await standin.close();
});

describe("Claude Code's hooks", () => {
  it('compact: makes memory of what waits, at once', async () => {
    expect((await sessions())[0]?.node_ids).toEqual([]);
    expect(run('compact', told('PreCompact', { session_id: plan.sessionId }))).toEqual({ status: 0, stdout: '' });
    await expect.poll(async () => (await sessions())[0]?.node_ids.length, { timeout: 20_000 }).toBeGreaterThan(0);
    expect(await sessions()).toMatchObject([{ status: 'active' }]);
    await home.run(['flush']);
    const nodes = (await home.json(['memory', 'ls', '--json'])) as MemoryNode[];
    pinned = nodes.find(({ origin }) => origin === 'user' || origin === 'assistant') as MemoryNode;
    expect(await home.run(['memory', 'pin', pinned.node_id])).toMatchObject({ code: 0 });
  });

  it('session-start: hands over what is known, once, where the proxy does not', () => {
    const start = told('SessionStart', { source: 'startup' });
    const given = run('session-start', start, patient());
    expect(JSON.parse(given.stdout)).toMatchObject({ hookSpecificOutput: { hookEventName: 'SessionStart' } });
    expect(added(given)).toContain(`[${pinned.node_id}]`);
    expect(run('session-start', start)).toEqual({ status: 0, stdout: '' });
    const resumed = { ...start, session_id: 'resumed', source: 'resume' };
    expect(run('session-start', resumed)).toEqual({ status: 0, stdout: '' });
    const through = { ...home.env, HTTPS_PROXY: 'http://comet-cc:token@127.0.0.1:8443' };
    expect(run('session-start', { ...start, session_id: 'through' }, through)).toEqual({ status: 0, stdout: '' });
    const child = { ...home.env, COMET_CC_CHILD: '1' };
    expect(run('session-start', { ...start, session_id: 'child' }, child)).toEqual({ status: 0, stdout: '' });
  });

  it('user-prompt-submit: recalls in place of the proxy, each line once, and nothing of its own session', async () => {
    const asking = told('UserPromptSubmit', { prompt: ASKED });
    const ask = (more: object = {}): string => added(run('user-prompt-submit', { ...asking, ...more }, patient()));
    expect(ask({ session_id: 'told at its start' })).toBe('');
    await home.run(['memory', 'unpin', pinned.node_id]);
    await home.run(['memory', 'edit', pinned.node_id, '--set', 'importance=MED']);
    const recalled = ask();
    expect(recalled).toContain('comet-cc recalls');
    expect(recalled).toContain('7411');
    expect(ask()).toBe('');
    expect(ask({ session_id: plan.sessionId })).toBe('');
    const transcript = path.join(home.user, 'transcript.jsonl');
    const lines = ['Which of the two?', 'Shall I open the port of the parcel gateway?'].map((content, at) =>
      JSON.stringify({
        type: at === 0 ? 'user' : 'assistant',
        message: { content: at === 0 ? content : [{ type: 'text', text: content }] },
      }),
    );
    writeFileSync(transcript, `{"cut off\n${lines.join('\n')}\n`);
    const agreed = { session_id: 'agreeing', prompt: 'yes, do it' };
    expect(ask(agreed)).toBe('');
    expect(ask({ ...agreed, transcript_path: '/nowhere' })).toBe('');
    expect(ask({ ...agreed, transcript_path: transcript })).toContain('7411');
    const before = standin.requests.length;
    const next = seededPlan(8, { turns: 1, models: ['claude-opus-4-8'], rounds: 0 });
    const turns = next.turns.map((turn) => ({ ...turn, prompt: ASKED }));
    await growConversation({ ...next, cwd: plan.cwd, turns }, await daemonUpstream(home));
    expect(standin.requests.slice(before).some(({ bytes }) => bytes.includes('comet-cc recalls'))).toBe(false);
    await home.run(['pause', '--project', plan.cwd]);
    expect(ask({ session_id: 'paused' })).toBe('');
    await home.run(['resume']);
    await home.run(['memory', 'pin', pinned.node_id]);
  });

  it('from a plugin folder that lies anywhere: by PATH, by COMET_CC_BIN, and in silence where there is no program', async () => {
    const folder = path.join(home.user, 'copied');
    cpSync('hooks/plugin', folder, { recursive: true });
    const bin = path.join(home.user, 'bin');
    mkdirSync(bin);
    symlinkSync(CLI, path.join(bin, 'comet-cc'));
    const launched = (args: readonly string[], env: NodeJS.ProcessEnv, input = '') => {
      const launch = path.join(folder, 'launch.mjs');
      const { status, stdout, stderr } = spawnSync(process.execPath, [launch, ...args], {
        env,
        input,
        encoding: 'utf8',
      });
      return { status, stdout, stderr };
    };
    const nowhere = { ...home.env, PATH: path.join(home.user, 'empty') };
    const ways = [
      { ...nowhere, COMET_CC_HOOK_MS: '20000', PATH: bin },
      { ...nowhere, COMET_CC_HOOK_MS: '20000', COMET_CC_BIN: path.join(bin, 'comet-cc') },
    ];
    for (const [at, env] of ways.entries()) {
      const start = JSON.stringify(told('SessionStart', { source: 'startup', session_id: `launched-${at}` }));
      expect(added(launched(['hook', 'session-start'], env, start))).not.toBe('');
      expect(launched(['mcp'], env)).toEqual({ status: 0, stdout: '', stderr: '' });
    }
    const start = JSON.stringify(told('SessionStart', { source: 'startup', session_id: 'launched' }));
    expect(launched(['hook', 'session-start'], nowhere, start)).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(launched(['hook', 'nonsense'], ways[0] as NodeJS.ProcessEnv, start)).toEqual({
      status: 0,
      stdout: '',
      stderr: '',
    });
    expect(launched(['mcp'], nowhere)).toMatchObject({ status: 1, stderr: expect.stringContaining('not on PATH') });
  });

  it('session-end: closes the session', async () => {
    expect(run('session-end', told('SessionEnd', { session_id: plan.sessionId, reason: 'other' })).status).toBe(0);
    const closed = async (): Promise<unknown> =>
      (await sessions()).find(({ session_id }) => session_id === plan.sessionId)?.closed_at;
    await expect.poll(closed, { timeout: 20_000 }).toEqual(expect.any(String));
    expect(run('session-end', told('SessionEnd', { session_id: 'never-seen' }))).toEqual({ status: 0, stdout: '' });
  });

  it('give up on an engine that does not answer, in the time they are told', async () => {
    const dir = mkdtempSync(path.join(os.tmpdir(), 'cc-hook-'));
    const alone = { ...home.env, COMET_CC_HOME: dir };
    const { engine } = (await home.json(['status', '--json'])) as { engine: { pid: number } };
    process.kill(engine.pid, 'SIGSTOP');
    const waiting = spawn(process.execPath, [scriptOf('session-start')], { env: patient() });
    const ended = new Promise((resolve) => waiting.once('close', resolve));
    const start = told('SessionStart', { source: 'startup', session_id: 'waits' });
    waiting.stdin.end(JSON.stringify(start));
    let said = '';
    waiting.stdout.on('data', (chunk) => {
      said += String(chunk);
    });
    try {
      for (const hook of HOOKS) {
        const input = told('UserPromptSubmit', { prompt: 'What about it?', source: 'clear' });
        expect(run(hook, input, alone)).toEqual({ status: 0, stdout: '' });
        expect(run(hook, input)).toEqual({ status: 0, stdout: '' });
      }
    } finally {
      process.kill(engine.pid, 'SIGCONT');
      rmSync(dir, { recursive: true });
    }
    expect(await ended).toBe(0);
    expect(said).toContain(`[${pinned.node_id}]`);
  });
});
