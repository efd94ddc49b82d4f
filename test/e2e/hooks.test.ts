import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SessionView } from '../../memory/index.ts';
import type { MemoryNode } from '../../memory/model/node.ts';
import { CLI, createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { daemonUpstream } from '../helpers/live-conversation.ts';
import { type ConversationPlan, growConversation, seededPlan } from '../helpers/transcripts.ts';
import { createStandin, type Standin } from '../mock-anthropic/index.ts';

const HOOKS = ['session-start', 'user-prompt-submit', 'compact', 'session-end', 'subagents'] as const;
type Hook = (typeof HOOKS)[number];

const SAID = 'The parcel gateway listens on port 7411, and Ilse restarts it on Thursdays.';
const ASKED = 'On which port does the parcel gateway listen?';

let home: TestHome;
let standin: Standin;
let plan: ConversationPlan;
let pinned: MemoryNode;

const getScript = (hook: Hook): string => path.resolve('dist', 'hooks', `${hook}.js`);

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
}

async function run(hook: Hook, input: unknown, env: NodeJS.ProcessEnv = home.env): Promise<Ended> {
  const child = spawn(process.execPath, [getScript(hook), 'comet-cc'], { env });
  child.stdin.end(JSON.stringify(input));
  const [stdout, [status]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { status: status as number | null, stdout };
}

const told = (event: string, more: object = {}) => ({
  session_id: 'another-session',
  cwd: plan.cwd,
  hook_event_name: event,
  ...more,
});

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
  home = await createHomeWithCerts({
    COMET_CC_UPSTREAM: standin.origin,
    // No topic shift makes memory of the turns before the hook does.
    COMET_CC_COMPACTION_MIN_L1_BUFFER: '9',
  });
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
    // Turns reach memory behind the answers.
    await expect.poll(async () => (await sessions())[0]).toMatchObject({ turns: plan.turns.length, node_ids: [] });
    expect(await run('compact', told('PreCompact', { session_id: plan.sessionId }))).toEqual({ status: 0, stdout: '' });
    await expect.poll(async () => (await sessions())[0]?.node_ids.length).toBeGreaterThan(0);
    expect(await sessions()).toMatchObject([{ status: 'active' }]);
    await home.run(['flush']);
    const nodes = (await home.json(['memory', 'ls', '--json'])) as MemoryNode[];
    pinned = nodes.find(({ origin }) => origin === 'user' || origin === 'assistant') as MemoryNode;
    expect(await home.run(['memory', 'pin', pinned.node_id])).toMatchObject({ code: 0 });
  });

  it('session-start: hands over what is known, once, where the proxy does not', async () => {
    const start = told('SessionStart', { source: 'startup' });
    // As where it is installed twice.
    const both = await Promise.all([run('session-start', start), run('session-start', start)]);
    const [given, again] = both.toSorted((one, other) => other.stdout.length - one.stdout.length) as [Ended, Ended];
    expect(JSON.parse(given.stdout)).toMatchObject({
      systemMessage: expect.stringContaining('this session bypasses comet-cc'),
      hookSpecificOutput: { hookEventName: 'SessionStart' },
    });
    expect(added(given)).toContain(`[${pinned.node_id}]`);
    expect(again).toEqual({ status: 0, stdout: '' });
    const resumed = { ...start, session_id: 'resumed', source: 'resume' };
    expect(await run('session-start', resumed)).toEqual({ status: 0, stdout: '' });
    const through = { ...home.env, HTTPS_PROXY: 'http://comet-cc:token@127.0.0.1:8443' };
    const passing = await run('session-start', { ...start, session_id: 'through' }, through);
    expect(JSON.parse(passing.stdout)).toEqual({ systemMessage: 'memory on · 1 memory of this project' });
    const run1 = { ...through, COMET_CC_TOLD: '1' };
    expect(await run('session-start', { ...start, session_id: 'run' }, run1)).toEqual({ status: 0, stdout: '' });
    const child = { ...home.env, COMET_CC_CHILD: '1' };
    expect(await run('session-start', { ...start, session_id: 'child' }, child)).toEqual({ status: 0, stdout: '' });
  });

  it('user-prompt-submit: reports the prompt and adds nothing', async () => {
    const asking = told('UserPromptSubmit', { prompt: ASKED });
    expect(await run('user-prompt-submit', asking)).toEqual({ status: 0, stdout: '' });
  });

  it('a slash command of the plugin lets Claude run its own command alone, without being asked', () => {
    const folder = 'hooks/plugin/commands';
    for (const name of readdirSync(folder)) {
      const text = readFileSync(path.join(folder, name), 'utf8');
      const [, launch = '', own = '', more] =
        /^allowed-tools: Bash\((node "[^"]+") run ([^:)]+)(:\*)?\)$/m.exec(text) ?? [];
      const [, command = ''] = /^!`(.+)`$/m.exec(text) ?? [];
      expect(command, name).toMatch(/^node "[^"]+" run \S/);
      // With more behind it, it ends at a flag, which no subcommand or program can follow.
      if (more === undefined) expect(command).toBe(`${launch} run ${own}`);
      else
        expect([
          own.split(' ').some((word) => word.startsWith('--')),
          command.startsWith(`${launch} run ${own} `),
        ]).toEqual([true, true]);
    }
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
      { ...nowhere, PATH: bin },
      { ...nowhere, COMET_CC_BIN: path.join(bin, 'comet-cc') },
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
    expect((await run('session-end', told('SessionEnd', { session_id: plan.sessionId, reason: 'other' }))).status).toBe(
      0,
    );
    const closed = async (): Promise<unknown> =>
      (await sessions()).find(({ session_id }) => session_id === plan.sessionId)?.closed_at;
    await expect.poll(closed).toEqual(expect.any(String));
    expect(await run('session-end', told('SessionEnd', { session_id: 'never-seen' }))).toEqual({
      status: 0,
      stdout: '',
    });
  });

  it('give up on an engine that does not answer, in the time they are told', async () => {
    const dir = mkdtempSync(path.join(os.tmpdir(), 'cc-hook-'));
    const alone = { ...home.env, COMET_CC_HOME: dir };
    const { engine } = (await home.json(['status', '--json'])) as { engine: { pid: number } };
    process.kill(engine.pid, 'SIGSTOP');
    const waiting = run('session-start', told('SessionStart', { source: 'startup', session_id: 'waits' }));
    try {
      const input = told('UserPromptSubmit', { prompt: 'What about it?', source: 'clear' });
      const hasty = { ...home.env, COMET_CC_HOOK_MS: undefined };
      // At once: in half a minute the guard would put another engine in its place.
      const ended = await Promise.all(HOOKS.flatMap((hook) => [run(hook, input, alone), run(hook, input, hasty)]));
      expect(ended).toEqual(Array(2 * HOOKS.length).fill({ status: 0, stdout: '' }));
    } finally {
      process.kill(engine.pid, 'SIGCONT');
      rmSync(dir, { recursive: true });
    }
    expect(added(await waiting)).toContain(`[${pinned.node_id}]`);
  });
});
