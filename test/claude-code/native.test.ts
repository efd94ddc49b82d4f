import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SessionView } from '../../memory/index.ts';
import { CLAUDE_MISSING, type ClaudeProcess, findClaude } from '../helpers/claude.ts';
import type { Aside } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig } from '../helpers/claude-code-rig.ts';
import { CLI } from '../helpers/cli.ts';
import { type Answer, roundOf, type ServedRequest } from '../mock-anthropic/index.ts';

const claude = findClaude();
const OPUS = ['--model', 'claude-opus-4-8'];

const SUMMARISES: Aside = {
  when: 'CRITICAL: Respond with TEXT ONLY',
  answer: () => ({ kind: 'message', blocks: [{ type: 'text', text: '<summary>All is done.</summary>' }] }),
};

/** Loads a deferred tool, calls it, and says what came back. */
function usesTool(when: string, tool: string, input: Record<string, unknown>): Aside {
  const steps = (request: ServedRequest): Answer => {
    const round = roundOf(request.body ?? {});
    if (round === 0) return calls('ToolSearch', { query: `select:${tool}` });
    if (round === 1) return calls(tool, input);
    return { kind: 'message', blocks: [{ type: 'text', text: `It says: ${lastResult(request)}` }] };
  };
  return { when, answer: steps };
}

function calls(name: string, input: Record<string, unknown>): Answer {
  return { kind: 'message', blocks: [{ type: 'tool_use', name, input }] };
}

function lastResult({ body }: ServedRequest): string {
  const messages = (body?.['messages'] ?? []) as { role: string; content: unknown }[];
  return JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content);
}

/** The prompt stands in front of every round; an aside only sees the newest message. */
function throughout(aside: Aside): Aside[] {
  return [aside, { when: 'tool_result', answer: aside.answer }];
}

describe.skipIf(claude === null)(`what Claude Code is given${claude === null ? `: ${CLAUDE_MISSING}` : ''}`, () => {
  let rig: ClientRig;
  let asked: Aside[] = [];

  const client = (...args: string[]): string =>
    execFileSync(claude as string, args, { env: rig.home.env, cwd: rig.project, encoding: 'utf8' });

  /** What a slash command of the plugin puts into the prompt. */
  const shows = async (session: ClaudeProcess, command: string): Promise<string> => {
    const from = rig.standin.requests.length;
    await session.ask(`/comet-cc:${command}`);
    const asked = rig.standin.requests.slice(from).find(({ class: kind }) => kind === 'main');
    return asked === undefined ? '' : lastResult(asked);
  };

  beforeAll(async () => {
    const aside: Aside = { when: '', answer: (request) => chosen(request) };
    const chosen = (request: ServedRequest): Answer => {
      const said = lastResult(request);
      const found = asked.find(({ when }) => said.includes(when));
      return found?.answer(request) ?? { kind: 'message', blocks: [{ type: 'text', text: 'Noted.' }] };
    };
    rig = await createClientRig({ claude: claude as string, asides: [aside], env: { COMET_CC_LLM: 'local' } });
    const bin = path.join(rig.home.user, 'bin');
    mkdirSync(bin);
    symlinkSync(CLI, path.join(bin, 'comet-cc'));
    rig.home.env['PATH'] = `${bin}:${rig.home.env['PATH']}`;
  });

  afterAll(async () => {
    await rig?.close();
  });

  it('claude mcp add comet-cc -- comet-cc mcp: the model calls the tools of memory', async () => {
    client('mcp', 'add', 'comet-cc', '--', 'comet-cc', 'mcp');
    const note = 'The parcel gateway listens on port 7411.';
    asked = throughout(usesTool('Note the port', 'mcp__comet-cc__remember', { text: note }));
    const first = rig.remembered([...OPUS, '--allowedTools', 'mcp__comet-cc']);
    expect((await first.ask('Note the port of the gateway')).text).toContain('Noted as mem_');
    await first.end();
    asked = throughout(
      usesTool('Which port', 'mcp__comet-cc__retrieve_memory', { summary_query: 'port of the parcel gateway' }),
    );
    const second = rig.remembered([...OPUS, '--allowedTools', 'mcp__comet-cc']);
    const { text } = await second.ask('Which port was it?');
    expect(text).toContain('comet-cc-memory fence=');
    expect(text).toContain(note);
    expect(text).toContain('read_memory_node(node_id, 2)');
    expect(await second.end()).toBe(0);
    client('mcp', 'remove', 'comet-cc');
  });

  it('hooks install: compactions make memory, and the end of a session closes it', async () => {
    expect((await rig.home.run(['hooks', 'install'])).code).toBe(0);
    asked = [SUMMARISES];
    const session = rig.remembered(OPUS);
    const { sessionId } = await session.ask('The invoices are rounded to the nearest cent.');
    await session.ask('Only the total of each is rounded.');
    await session.ask('/compact');
    expect(await session.end()).toBe(0);
    const closed = async (): Promise<string | null | undefined> =>
      ((await rig.home.json(['session', 'ls', '--json'])) as SessionView[]).find((one) => one.session_id === sessionId)
        ?.closed_at;
    await expect.poll(closed).toEqual(expect.any(String));
    for (const told of ['the client compacts', 'a new lineage begins']) {
      expect(rig.logged('info').filter((line) => line.includes(sessionId) && line.includes(told))).toHaveLength(1);
    }
  });

  it('a session past the proxy starts with what others left, and one through it is told once', async () => {
    const pinned = (await rig.home.json(['memory', 'ls', '--json'])) as { node_id: string; summary: string }[];
    const invoices = pinned.find(({ summary }) => summary.includes('invoices'));
    expect(await rig.home.run(['memory', 'pin', invoices?.node_id ?? ''])).toMatchObject({ code: 0 });
    const past = rig.alone(OPUS);
    const { sessionId } = await past.ask('Good morning.');
    await past.end();
    const through = rig.remembered(OPUS);
    const { sessionId: other } = await through.ask('Good morning.');
    await through.end();
    const told = (id: string): number => {
      const sent = rig.standin.requests.find((one) => one.sessionId === id && one.class === 'main');
      return (sent?.bytes.toString() ?? '').split(`[${invoices?.node_id}]`).length - 1;
    };
    expect(told(sessionId)).toBe(1);
    expect(told(other)).toBe(1);
    expect((await rig.home.run(['hooks', 'uninstall'])).code).toBe(0);
  });

  it.each(['--plugin-dir', 'plugin install'])(
    '%s: hooks, skill and tools of the plugin, from a folder that it was copied to',
    async (way) => {
      const market = path.join(rig.home.user, `market-${way.slice(2, 8)}`);
      cpSync('hooks', market, { recursive: true });
      const plugin = path.join(market, 'plugin');
      if (way === 'plugin install') {
        client('plugin', 'marketplace', 'add', market);
        client('plugin', 'install', 'comet-cc@comet-cc');
      }
      const tool = 'mcp__plugin_comet-cc_memory__get_memory_index';
      asked = throughout(usesTool('What is there', tool, {}));
      const args = [...OPUS, '--allowedTools', 'mcp__plugin_comet-cc_memory'];
      const session = rig.remembered(way === '--plugin-dir' ? [...args, way, plugin] : args);
      const answer = await session.ask('What is there of this project?');
      expect(answer.text).toContain('memories of');
      expect(answer.text).toContain('7411');
      const todo = 'Tobias renews the key of the carrier.';
      expect((await rig.home.run(['todo', 'add', todo, '--project', rig.project])).code).toBe(0);
      for (const [command, shown] of [
        ['status', `on for ${rig.project}`],
        ['why', 'memory'],
        ['todo', todo],
        ['forget-last', 'and 1 turn of 1 session'],
      ] as const) {
        expect((await shows(session, command)).replaceAll('~', rig.home.user)).toContain(shown);
      }
      await session.ask('/compact');
      expect(await session.end()).toBe(0);
      const bodies = rig.standin.requests
        .filter((request) => request.sessionId === answer.sessionId)
        .map(({ bytes }) => bytes.toString());
      for (const shown of ['comet-cc:recall', 'Show the user these lines of comet-cc'])
        expect(bodies.some((body) => body.includes(shown))).toBe(true);
      expect(bodies.filter((body) => body.includes('(Bash completed with no output)'))).toEqual([]);
      const paused = async () => ((await rig.home.status()) as { paused: { projects: object } }).paused.projects;
      const other = rig.remembered(way === '--plugin-dir' ? [...args, way, plugin] : args);
      expect(await shows(other, 'pause --for 2h')).toContain('memory is paused in');
      expect(Object.keys(await paused())).toHaveLength(1);
      await other.end();
      expect((await rig.home.run(['resume', '--project', rig.project])).code).toBe(0);
      expect(await paused()).toEqual({});
      const told = (line: string): boolean => line.includes(answer.sessionId) && line.includes('the client compacts');
      expect(rig.logged('info').some(told)).toBe(true);
    },
  );

  it.each(['hooks', 'hooks/plugin'])('finds nothing wrong with %s', (folder) => {
    expect(client('plugin', 'validate', path.resolve(folder))).toContain('Validation passed');
  });

  it('reports no fault of its own, and nothing was refused', () => {
    expect(rig.logged('error')).toEqual([]);
    expect(rig.standin.refused).toEqual([]);
    expect(rig.strangers).toEqual([]);
  });
});
