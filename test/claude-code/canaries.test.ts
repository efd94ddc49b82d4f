import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { wellKnownSecrets } from '../../bench/redact/secrets.ts';
import { type Canary, canariesBelow, canariesIn, lanceRows, watchCommandLines } from '../helpers/canaries.ts';
import { CLAUDE_MISSING, findClaude } from '../helpers/claude.ts';
import { type Aside, stepFiles } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig, mainRequests, TOOLS } from '../helpers/claude-code-rig.ts';
import { openMcp } from '../helpers/mcp-client.ts';
import type { Answer, AnswerBlock, ServedRequest } from '../mock-anthropic/index.ts';

const claude = findClaude();
const OPUS = ['--model', 'claude-opus-5-5'];
const STEPS = 8;
const PRINT = 'Please print the settings of the deployment.';
const REPEAT = 'Please say the credentials again.';
const QUESTION = 'Which credentials did the module of step 2 have?';
const PRIVATE = ['zebra-quux falcon of Tuesday', 'the merger with Oldenburg Glassworks'];

/** Where each canary is planted. */
const PLACES = { prompt: 8, file: 8, output: 6, answer: 2, upstream: 2, environment: 4 } as const;
const planted = wellKnownSecrets(30, 30).map(({ rule, secret, text }, at) => ({
  name: `${at} ${rule}`,
  secret,
  text,
}));
const canaries: readonly Canary[] = [...planted, ...PRIVATE.map((secret) => ({ name: `private: ${secret}`, secret }))];

const unplanted = [...planted];
const take = (count: number): Planted => unplanted.splice(0, count);
const [prompts, files, outputs, answers, upstream, environment] = Object.values(PLACES).map(take) as Planted[];
type Planted = typeof planted;

const text = (said: string): Answer => ({ kind: 'message', blocks: [{ type: 'text', text: said }] });
const uses = (block: AnswerBlock): Answer => ({ kind: 'message', blocks: [block] });
const asides: Aside[] = [
  { when: PRINT, answer: () => uses({ type: 'tool_use', name: 'Bash', input: { command: 'cat deployment.txt' } }) },
  {
    when: REPEAT,
    answer: () =>
      text(`They are: ${answers?.map((each) => each.text).join(' and ')}, and you spoke of the ${PRIVATE[0]}.`),
  },
];

const prompt = (step: number): string => {
  const secret = `Keep this in mind for module ${step}: ${prompts?.[step - 1]?.text}`;
  const hidden =
    step === 3 ? ` <Private note="x">${PRIVATE[0]}</ PRIVATE>` : step === 5 ? ` <private>${PRIVATE[1]}` : '';
  return `Step ${step}: count the settings of module ${step}. ${secret}${hidden}`;
};

const projectFiles = (): Record<string, string> => {
  const steps = Object.entries(stepFiles(STEPS)).map(([name, content], at) => [
    name,
    `${content}\n// ${files?.[at]?.text}\n`,
  ]);
  return { ...Object.fromEntries(steps), 'deployment.txt': `${outputs?.map((each) => each.text).join('\n')}\n` };
};

describe.skipIf(claude === null || !existsSync('/proc/self/cmdline'))(
  `30 planted secrets and a real conversation${claude === null ? `: ${CLAUDE_MISSING}` : ''}`,
  () => {
    let rig: ClientRig;
    const commandLines = watchCommandLines();
    const printed: string[] = [];
    let failing: 'main' | 'structured' | null = null;

    /** What the network says when it refuses may quote what it was sent. */
    const deliver = (answer: Answer, request: ServedRequest): Answer => {
      if (failing === null || request.class !== failing) return answer;
      const quoted = upstream?.[failing === 'main' ? 0 : 1]?.text;
      return { kind: 'error', status: 400, type: 'invalid_request_error', message: `refused: ${quoted}` };
    };

    const hear = async (args: readonly string[]): Promise<string> => {
      const { stdout, stderr } = await rig.home.run(args);
      printed.push(stdout, stderr);
      return stdout;
    };

    beforeAll(async () => {
      const [header, bearer, stripe, database] = environment as Planted;
      rig = await createClientRig({
        claude: claude as string,
        asides,
        deliver,
        files: projectFiles(),
        env: {
          ANTHROPIC_CUSTOM_HEADERS: `X-Canary: ${header?.secret}`,
          ANTHROPIC_API_KEY: bearer?.secret ?? '',
          STRIPE_SECRET_KEY: stripe?.secret ?? '',
          DATABASE_URL: `postgres://me:${database?.secret}@db.example/main`,
          COMET_CC_LOG_LEVEL: 'debug',
        },
      });
    });

    afterAll(async () => {
      commandLines.stop();
      await rig?.close();
    });

    it('goes through steps, tools, a cut, a second session, and errors that quote', async () => {
      expect(unplanted).toEqual([]);
      const client = rig.remembered([...TOOLS, ...OPUS]);
      for (let step = 1; step <= STEPS; step += 1) {
        await rig.settled();
        expect(await client.ask(prompt(step))).toMatchObject({ isError: false });
        if (step === 4) expect(await client.ask(PRINT)).toMatchObject({ isError: false });
        if (step === 6) expect(await client.ask(REPEAT)).toMatchObject({ isError: false });
      }
      expect(await client.end()).toBe(0);
      await hear(['flush']);
      const second = rig.remembered([...TOOLS, ...OPUS]);
      expect(await second.ask(QUESTION)).toMatchObject({ isError: false });
      failing = 'main';
      const refused = await second.ask('And which ones did module 7 have?');
      expect(refused.isError).toBe(true);
      failing = 'structured';
      expect(await second.ask('Step 8: count them again. It is another topic altogether.')).toMatchObject({});
      await second.end();
      await hear(['flush']);
      failing = null;
    });

    it('sent every secret upstream, as it was given', () => {
      const sent = rig.standin.requests.map(({ bytes }) => bytes.toString()).join('\n');
      const headers = JSON.stringify(rig.standin.requests.map((request) => request.headers));
      const said = [...(prompts ?? []), ...(files ?? []), ...(outputs ?? []), ...(answers ?? [])];
      const missing = said.filter(({ secret }) => !sent.includes(JSON.stringify(secret).slice(1, -1)));
      expect(missing.map(({ name }) => name)).toEqual([]);
      for (const secret of PRIVATE) expect(sent).toContain(secret);
      expect(headers).toContain(environment?.[0]?.secret);
      expect(headers).toContain(environment?.[1]?.secret);
    });

    it('shows none in what was put into conversations, or to a model of memory', () => {
      const ours = mainRequests(rig.standin).flatMap(({ body }) => stringsIn(body).filter(isOurs));
      expect(ours.length).toBeGreaterThan(5);
      expect(ours.flatMap((said) => canariesIn(said, canaries))).toEqual([]);
      const asked = rig.standin.requests.filter((request) => request.class === 'structured');
      expect(asked.length).toBeGreaterThan(1);
      expect(asked.flatMap(({ bytes }) => canariesIn(bytes.toString(), canaries))).toEqual([]);
      expect(asked.some(({ bytes }) => bytes.includes('[REDACTED:'))).toBe(true);
    });

    it('says none in any command', async () => {
      const sessions = JSON.parse(await hear(['session', 'ls', '--json'])) as { session_id: string }[];
      expect(sessions.length).toBeGreaterThan(0);
      for (const { session_id } of sessions) await hear(['memory', 'restore', session_id, '--json']);
      const nodes = await rig.nodes();
      expect(nodes.length).toBeGreaterThan(3);
      for (const { node_id } of nodes.slice(0, 5)) await hear(['memory', 'show', node_id, '--depth', '2', '--json']);
      for (const command of [
        ['status', '--json'],
        ['doctor', '--json'],
        ['logs'],
        ['logs', '--json'],
        ['memory', 'stats', '--json'],
        ['memory', 'about', '--project', rig.project, '--json'],
        ['memory', 'why', String(nodes[0]?.node_id), '--json'],
        ['memory', 'export', '--format', 'jsonl'],
        ['session', 'show', String(sessions[0]?.session_id), '--json'],
        ['session', 'brief', String(sessions[0]?.session_id)],
        ['dream', '--dry-run', '--json'],
        ['memory', 'ls', '--all', '--json'],
        ['memory', 'export'],
        ['memory', 'search', 'settings of module', '--json'],
        ['explain', '--list', '--json'],
        ['explain', 'last'],
      ]) {
        await hear(command);
      }
      expect(printed.join('').length).toBeGreaterThan(10_000);
      expect(printed.flatMap((said) => canariesIn(said, canaries))).toEqual([]);
      expect(printed.join('')).toContain('[REDACTED:');
    });

    it('says none through MCP, in a hook, or when the engine crashes', async () => {
      const mcp = await openMcp(rig.home, { cwd: rig.project });
      const told = [
        await mcp.call('get_memory_index'),
        await mcp.call('retrieve_memory', { summary_query: QUESTION, limit: 20 }),
        await mcp.call('remember', { text: `Keep this: ${prompts?.[0]?.text}` }),
        await mcp.read('memory://nodes'),
      ];
      for (const { node_id } of await rig.nodes()) told.push(await mcp.call('read_memory_node', { node_id, depth: 2 }));
      await mcp.close();
      const cwd = rig.project;
      for (const hook of ['session-start', 'user-prompt-submit', 'compact', 'session-end', 'subagents']) {
        const given = { session_id: hook, cwd, source: 'clear', hook_event_name: 'Any', prompt: prompts?.[1]?.text };
        const { stdout, stderr } = spawnSync(process.execPath, [path.resolve(`dist/hooks/${hook}.js`)], {
          env: rig.home.env,
          input: JSON.stringify(given),
          encoding: 'utf8',
        });
        told.push(stdout, stderr);
      }
      expect(told.join('').length).toBeGreaterThan(10_000);
      expect(told.flatMap((said) => canariesIn(said, canaries))).toEqual([]);
      expect(told.join('')).toContain('[REDACTED:');
      // What it was about to say then stands in the logs, which are looked at below.
      process.kill((await rig.status()).engine.pid, 'SIGABRT');
      await hear(['start', '--json']);
    });

    it('keeps none below its home: files, logs, rows of the index', async () => {
      expect((await rig.home.run(['stop', '--now'])).code).toBe(0);
      const rows = await lanceRows(path.join(rig.home.home, 'index'));
      expect(rows.length).toBeGreaterThan(5);
      expect(rows.some((row) => row.includes('REDACTED'))).toBe(true);
      expect(rows.flatMap((row) => canariesIn(row, canaries))).toEqual([]);
      expect(canariesBelow(rig.home.home, canaries)).toEqual([]);
    });

    it('has none on a command line of any process', () => {
      commandLines.stop();
      const children = [...commandLines.seen].filter((line) => line.includes('--json-schema'));
      expect(children.length).toBeGreaterThan(0);
      expect([...commandLines.seen].flatMap((line) => canariesIn(line, canaries))).toEqual([]);
    });
  },
);

/** Every string below a value. */
function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(stringsIn);
}

function isOurs(said: string): boolean {
  return said.includes('<comet-cc-memory') || said.startsWith('comet-cc');
}
