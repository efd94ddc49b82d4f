import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writtenBy } from '../../memory/library.ts';
import { CLAUDE_MISSING, type ClaudeProcess, findClaude } from '../helpers/claude.ts';
import { type Aside, stepFiles } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig } from '../helpers/claude-code-rig.ts';
import type { Answer } from '../mock-anthropic/index.ts';

const claude = findClaude();
const OPUS = ['--model', 'claude-opus-4-8', '--allowedTools', 'Read Bash Agent'];
const DELEGATE = 'Have somebody count the boats.';
const ERRAND = 'Count every boat in the harbour of Halvorsen.';
const COUNTED = 'There are 7423 boats in the harbour.';
const DELEGATE_NOW = 'Have somebody count the cranes, and wait.';
const ERRAND_NOW = 'Count every crane in the harbour of Halvorsen.';
const COUNTED_NOW = 'There are 7424 cranes in the harbour.';
const SUMMARY = 'The modules were counted one by one, as a summary has it.';

const DELEGATED = 'Have somebody count';
const SAID = ['Step 1: count', 'Step 2: count', DELEGATED, DELEGATED, 'Step 3: count', 'Step 4: count'];
/** And the turn in which a task reported. */
const PAST_TURNS = SAID.length + 1;
const SEARCH = 'Look for the notebook tool.';
const CAPTURED_TURNS = 4;

const text = (said: string): Answer => ({ kind: 'message', blocks: [{ type: 'text', text: said }] });
const call = (name: string, input: Record<string, unknown>): Answer => ({
  kind: 'message',
  blocks: [{ type: 'tool_use', name, input }],
});
const delegate = (prompt: string, run_in_background: boolean): Answer =>
  call('Agent', { description: 'Count', prompt, subagent_type: 'general-purpose', run_in_background });
/** The subagent in the background answers when the turn that started it is over. */
let count = (): void => undefined;
const counting = new Promise<void>((resolve) => {
  count = resolve;
});
const asides: readonly Aside[] = [
  { when: 'CRITICAL: Respond with TEXT ONLY', answer: () => text(`<summary>\n${SUMMARY}\n</summary>`) },
  { when: COUNTED, answer: () => text('Somebody counted the boats.') },
  { when: COUNTED_NOW, answer: () => text('Somebody counted the cranes.') },
  { when: ERRAND, after: counting, answer: () => text(COUNTED) },
  { when: ERRAND_NOW, answer: () => text(COUNTED_NOW) },
  { when: DELEGATE, answer: () => delegate(ERRAND, true) },
  { when: DELEGATE_NOW, answer: () => delegate(ERRAND_NOW, false) },
  { when: SEARCH, answer: () => call('ToolSearch', { query: 'select:NotebookEdit' }) },
];

interface Report {
  readonly turns: number;
  readonly added: number;
  readonly known: number;
  readonly problems: readonly unknown[];
  readonly agents: number;
  readonly lines_skipped: { readonly summary: number };
}

/** What the user asked for, in order, in what is kept of a session. */
const prompts = (raw: unknown): string[] =>
  (raw as { role: string; content: unknown }[])
    .filter(({ role }) => role === 'user')
    .flatMap(({ content }) => JSON.stringify(content).match(/Step \d+: count|Have somebody count/g) ?? []);

describe.skipIf(claude === null)(
  `import of what Claude Code wrote${claude === null ? `: ${CLAUDE_MISSING}` : ''}`,
  () => {
    let rig: ClientRig;
    /** Never went through comet-cc. */
    let past = '';
    /** Did, and was captured. */
    let captured = '';

    const step = async (client: ClaudeProcess, number: number): Promise<string> => {
      const { isError, sessionId } = await client.ask(`Step ${number}: count the settings of module ${number}.`);
      expect(isError).toBe(false);
      return sessionId;
    };
    const steps = async (client: ClaudeProcess, numbers: readonly number[]): Promise<string> => {
      let id = '';
      for (const number of numbers) id = await step(client, number);
      return id;
    };
    const imported = async (...more: string[]): Promise<Report> =>
      (await rig.home.json(['memory', 'import', 'claude', '--json', ...more])) as Report;
    const restored = (id: string): Promise<unknown> => rig.home.json(['memory', 'restore', id, '--json']);
    const flushed = async (): Promise<void> => void (await rig.home.run(['flush']));
    /** Turns that nodes of a session stand for. */
    const covered = async (id: string): Promise<string[]> =>
      (await rig.nodes())
        .filter((node) => node.session_id === id && node.depth_level === 1)
        .flatMap(({ turns }) => turns);

    beforeAll(async () => {
      const env = { COMET_CC_LLM: 'local' };
      rig = await createClientRig({ claude: claude as string, asides, files: stepFiles(9), env });
      const alone = rig.alone(OPUS);
      past = await steps(alone, [1, 2]);
      expect((await alone.ask(DELEGATE)).text).toBe('Noted.');
      count();
      expect((await alone.next()).text).toBe('Somebody counted the boats.');
      expect((await alone.ask(DELEGATE_NOW)).text).toBe('Somebody counted the cranes.');
      await alone.ask('/compact');
      await step(alone, 3);
      await alone.end();
      const resumed = rig.alone([...OPUS, '--resume', past]);
      expect(await step(resumed, 4)).toBe(past);
      await resumed.end();
      const through = rig.remembered(OPUS);
      captured = await steps(through, [5, 6]);
      expect((await through.ask(SEARCH)).isError).toBe(false);
      await through.ask('/compact');
      await step(through, 7);
      await through.end();
      await flushed();
    });

    afterAll(async () => {
      await rig?.close();
    });

    it('imports what a dry run counted, each turn once, although the engine is killed in the middle', async () => {
      const before = await covered(captured);
      const dry = await imported('--dry-run');
      expect(dry).toMatchObject({
        ...{ turns: PAST_TURNS + CAPTURED_TURNS, added: PAST_TURNS, known: CAPTURED_TURNS, agents: 2, problems: [] },
        lines_skipped: { side: 0, summary: 2 },
      });
      expect(await covered(past)).toEqual([]);
      const first = rig.home.run(['memory', 'import', 'claude', '--json']);
      const { engine } = await rig.status();
      await expect.poll(async () => (await covered(past)).length).toBeGreaterThan(0);
      process.kill(engine.pid, 'SIGKILL');
      await first;
      await expect.poll(async () => (await rig.status()).engine).toMatchObject({ state: 'healthy', restarts: 1 });
      expect((await imported()).problems).toEqual([]);
      expect(await imported('--again')).toMatchObject({
        ...{
          turns: PAST_TURNS + CAPTURED_TURNS,
          added: 0,
          known: PAST_TURNS + CAPTURED_TURNS,
          agents: 0,
          problems: [],
        },
      });
      await flushed();
      expect(await covered(captured)).toEqual(before);
      expect(new Set(await covered(past)).size).toBe(SAID.length);
      expect(await covered(past)).toHaveLength(SAID.length);
    });

    it('keeps turns verbatim, and nothing of summaries or of what a subagent was asked', async () => {
      const raw = await restored(past);
      expect(prompts(raw)).toEqual(SAID);
      const all = JSON.stringify(raw);
      expect(all).toContain('export const setting1x59 = 1059;');
      for (const counted of [COUNTED, COUNTED_NOW]) expect(all).toContain(counted);
      expect(all).not.toContain(SUMMARY);
      expect(JSON.stringify(await rig.nodes())).not.toContain('Caveat: The messages below');
      expect(prompts(await restored(captured))).toEqual(['Step 5: count', 'Step 6: count', 'Step 7: count']);
    });

    it('puts what a subagent did below the turn that started it, and takes none of it for words of the conversation', async () => {
      const nodes = await rig.nodes();
      for (const [prompt, errand, counted] of [
        [DELEGATE, ERRAND, COUNTED],
        [DELEGATE_NOW, ERRAND_NOW, COUNTED_NOW],
      ] as const) {
        const agent = nodes.find(({ summary }) => summary.includes(errand));
        expect(agent).toMatchObject({ kind: 'tool', depth_level: 2, session_id: past, origin: 'external' });
        expect(agent?.summary).toContain(counted);
        const parent = nodes.find(({ node_id }) => node_id === agent?.parent_node_id);
        expect(JSON.stringify(parent)).toContain(prompt);
        const { raw } = (await rig.home.json(['memory', 'show', agent?.node_id ?? '', '--depth', '2', '--json'])) as {
          raw: unknown;
        };
        expect(JSON.stringify(raw)).not.toContain('system-reminder');
      }
      expect(JSON.stringify(await restored(past))).toContain('Somebody counted the boats.');
      expect(JSON.stringify(nodes)).not.toContain('task-notification');
    });

    it('recognizes a past session that continues through the proxy', async () => {
      const client = rig.remembered([...OPUS, '--resume', past]);
      expect(await steps(client, [8, 9])).toBe(past);
      await client.end();
      await flushed();
      expect(await imported()).toMatchObject({ added: 0, problems: [] });
      expect(prompts(await restored(past))).toEqual([...SAID, 'Step 8: count', 'Step 9: count']);
      const turns = await covered(past);
      expect(turns.length).toBe(new Set(turns).size);
      expect(turns.length).toBe(SAID.length + 2);
      expect(rig.logged('error')).toEqual([]);
      expect(rig.strangers).toEqual([]);
    });
  },
);

describe.skipIf(claude === null)(`import with the model${claude === null ? `: ${CLAUDE_MISSING}` : ''}`, () => {
  it('stops at the budget, reports it, and imports the rest the next time', async () => {
    const rig = await createClientRig({ claude: claude as string });
    try {
      const alone = rig.alone(OPUS);
      for (const dock of [1, 2, 3, 4, 5]) await alone.ask(`We keep the ferry of dock ${dock} at pier ${dock + 40}.`);
      await alone.end();
      const importing = async (budget: string): Promise<string> => {
        const { code, stdout } = await rig.home.run([
          'memory',
          'import',
          'claude',
          '--llm',
          'claude',
          '--budget',
          budget,
        ]);
        expect(code).toBe(0);
        return stdout;
      };
      const writers = async (): Promise<(readonly [string, number])[]> =>
        (await rig.nodes()).map((node) => [writtenBy(node), node.turns.length] as const).toSorted();
      // Two batches, the newest first: what a call is reckoned to take fits once.
      const first = await importing('4000');
      expect(first).toContain('1 batch written by the model; 1 written without a model (budget, limits or an error)');
      const local = (await writers()).filter(([by]) => by === 'local');
      expect(local.reduce((sum, [, turns]) => sum + turns, 0)).toBe(4);
      const second = await importing('200000');
      expect(second).toContain('0 turns added');
      expect(second).toContain('1 batch written by the model\n');
      expect((await writers()).every(([by]) => by === 'claude')).toBe(true);
      expect(rig.logged('error')).toEqual([]);
    } finally {
      await rig.close();
    }
  });
});
