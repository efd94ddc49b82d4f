import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { getHome, homePaths } from '../../common/paths.ts';
import { getEngine } from '../../engine/api/index.ts';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { daemonUpstream } from '../helpers/live-conversation.ts';
import { type ConversationPlan, growConversation, seededPlan } from '../helpers/transcripts.ts';
import { type AnswerBlock, createStandin, type Standin } from '../mock-anthropic/index.ts';

let standin: Standin;
let home: TestHome;
let plan: ConversationPlan;
let answer: readonly AnswerBlock[] = [{ type: 'text', text: 'It is done.' }];

beforeAll(async () => {
  standin = await createStandin({ brain: () => ({ kind: 'message', blocks: answer }) });
  home = await createHomeWithCerts({ COMET_CC_UPSTREAM: standin.origin });
  await home.json(['start', '--json']);
  plan = seededPlan(7, { turns: 3, models: ['claude-opus-4-8'], rounds: 0 });
  await growConversation(plan, await daemonUpstream(home));
});

afterAll(async () => {
  await home.close();
  await standin.close();
});

describe('a session at the command line', () => {
  it('continues, stays closed over a restart, and is shown by a prefix of its id', async () => {
    const start = plan.sessionId.slice(0, 8);
    const folder = path.join(home.user, '.claude', 'projects', 'shop');
    mkdirSync(folder, { recursive: true });
    const title = { type: 'ai-title', aiTitle: 'Staging \u001b[2Jports', sessionId: plan.sessionId };
    writeFileSync(path.join(folder, `${plan.sessionId}.jsonl`), `${JSON.stringify(title)}\n`);
    await expect
      .poll(async () => ((await home.json(['session', 'ls', '--json'])) as { turns: number }[])[0]?.turns)
      .toBe(3);
    expect(await home.json(['session', 'show', start, '--json'])).toMatchObject({ status: 'active', closed_at: null });
    const closed = await home.run(['session', 'close', start]);
    expect(closed).toMatchObject({ code: 0, stdout: expect.stringContaining(`closed ${plan.sessionId}: 3 turns`) });
    await home.json(['restart', '--json']);
    expect(await home.json(['session', 'ls', '--json'])).toMatchObject([{ status: 'closed', turns: 3 }]);
    const shown = await home.json(['session', 'show', '--json']);
    expect(shown).toMatchObject({
      session_id: plan.sessionId,
      closed_at: expect.any(String),
      brief: expect.any(String),
    });
    const { stdout } = await home.run(['session', 'show', start]);
    expect(stdout).toMatch(/^title +Staging \[2Jports$/m);
    for (const args of ['session ls', 'memory show last', 'explain --list --json']) {
      expect((await home.run(args.split(' '))).stdout).toContain('Staging [2Jports');
    }
    for (const { text } of (shown as { nodes: { text: string }[] }).nodes) {
      expect(stdout).toContain(text.replace(/^.*?\(O:[^)]*\) /, '').slice(0, 60));
    }
    for (const verb of ['show', 'close']) expect((await home.run(['session', verb, 'zz'])).code).toBe(4);
  });

  it('its memories are listed and searched by the start of its id; the project tells what it knows', async () => {
    const start = plan.sessionId.slice(0, 8);
    const nodes = (await home.json(['memory', 'ls', '--session', start, '--json'])) as unknown[];
    expect(nodes.length).toBeGreaterThan(0);
    const hits = await home.json(['memory', 'search', 'what was said', '--session', start, '--json']);
    expect(hits).toEqual(expect.any(Array));
    const about = await home.json(['memory', 'about', '--project', plan.cwd, '--json']);
    expect(about).toMatchObject({ counts: { sessions: 1, turns: 3 }, tags: expect.any(Array) });
    const told = await home.run(['memory', 'about', '--project', plan.cwd]);
    expect(told).toMatchObject({ code: 0, stdout: expect.stringContaining('1 session, 3 turns') });
    const nothing = await home.run(['memory', 'about']);
    expect(nothing).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('no memories of') });
  });
});

describe('a session that ends in a tool loop', () => {
  it.each([
    ['its end', 100],
    ['a restart', 200],
  ] as const)('keeps the unfinished turn, after %s', async (name, seed) => {
    const left = loopPlan(seed);
    const upstream = await daemonUpstream(home);
    const asked = growConversation(left, async (request) => {
      ({ answer } = request);
      await upstream(request);
      throw new Error('the client has ended');
    });
    await expect(asked).rejects.toThrow('the client has ended');
    if (name === 'a restart') await home.json(['restart', '--json']);
    else {
      const input = JSON.stringify({ session_id: left.sessionId, cwd: left.cwd, hook_event_name: 'SessionEnd' });
      spawnSync(process.execPath, [path.resolve('dist/hooks/session-end.js'), 'comet-cc'], { input, env: home.env });
    }
    const turns = async (): Promise<unknown> =>
      ((await home.json(['session', 'ls', '--json'])) as { session_id: string; turns: number }[]).find(
        ({ session_id }) => session_id === left.sessionId,
      )?.turns;
    await expect.poll(turns).toBe(1);
    const messages = (await home.json(['memory', 'restore', left.sessionId, '--json'])) as unknown[];
    expect(messages.at(-1)).toMatchObject({ role: 'assistant' });
    expect(JSON.stringify(messages.at(-1))).toContain('"tool_use"');
  });
});

/** A conversation that begins with a tool round. */
function loopPlan(from: number): ConversationPlan {
  const plan = seededPlan(from, { turns: 1, models: ['claude-opus-4-8'], rounds: 2 });
  return plan.turns[0]?.rounds.length ? plan : loopPlan(from + 1);
}

describe('completion', () => {
  it('knows in bash what the program knows', async () => {
    const { stdout, code } = await home.run(['completion', 'bash']);
    expect(code).toBe(0);
    const asked = `COMP_WORDS=(comet-cc session ''); COMP_CWORD=2; _comet_cc; printf '%s ' "\${COMPREPLY[@]}"`;
    const bash = spawnSync('bash', ['--norc', '--noprofile'], { input: `${stdout}\n${asked}\n`, encoding: 'utf8' });
    expect(bash).toMatchObject({ status: 0, stderr: '', stdout: expect.stringContaining('ls diff show brief close') });
    for (const shell of ['zsh', 'fish']) expect((await home.run(['completion', shell])).stdout).toContain('about');
    expect((await home.run(['completion', 'tcsh'])).code).toBe(2);
  });
});

it('the first session of an engine is summarized when its command ends right after the answer', async () => {
  await home.json(['restart', '--json']);
  const short = seededPlan(9, { turns: 1, models: ['claude-opus-4-8'], rounds: 0 });
  answer = [{ type: 'text', text: 'A session of its own.' }];
  const sinceMs = Date.now();
  await growConversation(short, await daemonUpstream(home));
  const engine = getEngine(homePaths(getHome(home.env)));
  const finish = (others: string[]) =>
    engine.call('sessions/finish', { projectDir: short.cwd, sinceMs, others }, { timeoutMs: 30_000 });
  // Another terminal runs it.
  expect(await finish([short.sessionId])).toBeNull();
  expect(await finish([])).toMatchObject({ session_id: short.sessionId, kept: 1 });
});

it('the newest session is a conversation, though a note is newer', async () => {
  const newest = async () => (await home.json(['session', 'show', '--json'])) as { session_id: string };
  const before = await newest();
  await home.json(['todo', 'add', 'renew the key of Tobias', '--json']);
  expect((await newest()).session_id).toBe(before.session_id);
});
