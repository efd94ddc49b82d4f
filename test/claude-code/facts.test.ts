import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAUDE_MISSING, type ClaudeProcess, findClaude } from '../helpers/claude.ts';
import type { Aside } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig } from '../helpers/claude-code-rig.ts';

const claude = findClaude();
const OPUS = ['--model', 'claude-opus-4-8', '--allowedTools', 'Agent'];
const ERRANDS = {
  'general-purpose': 'Count the lanterns.',
  Explore: 'Count the buckets.',
  keeper: 'Count the anchors.',
  stranger: 'Count the ropes.',
} as const;
const agentFile = (name: string, memory: string): string =>
  `---\nname: ${name}\ndescription: counts things\n${memory}\n---\n\nYou are the ${name} of this harbor and count what lies on its piers.\n`;
const FILES = {
  '.claude/agents/keeper.md': agentFile('keeper', 'memory:\n  prefixes: [Project.Decision.]'),
  '.claude/agents/stranger.md': agentFile('stranger', 'color: blue'),
};

const asides = Object.entries(ERRANDS).map(([subagent_type, prompt]): Aside => {
  const input = { description: 'An errand', prompt, subagent_type, run_in_background: false };
  return {
    when: `Send ${subagent_type}.`,
    answer: () => ({ kind: 'message', blocks: [{ type: 'tool_use', name: 'Agent', input }] }),
  };
});

describe.skipIf(claude === null)(`facts in Claude Code${claude === null ? `: ${CLAUDE_MISSING}` : ''}`, () => {
  let rig: ClientRig;
  /** One for the errands before hooks are installed, which a client reads at its start, and one for those after it. */
  let client: ClaudeProcess;

  beforeAll(async () => {
    const subscriptions = { 'general-purpose': { prefixes: ['Project.Convention.'], classes: [] } };
    const env = { COMET_CC_LLM: 'local', COMET_CC_FACTS_SUBSCRIPTIONS: JSON.stringify(subscriptions) };
    rig = await createClientRig({ claude: claude as string, asides, env, files: FILES });
    const told = rig.remembered(OPUS);
    await told.ask('By convention, tests live beside their source.');
    await told.ask('We use Redis for the cache. I prefer small commits.');
    expect(await told.end()).toBe(0);
    await rig.home.run(['flush']);
    client = rig.remembered(OPUS);
  });

  afterAll(async () => {
    await client?.end();
    await rig?.close();
  });

  const explained = async (): Promise<string> => {
    const receipts = await rig.receipts();
    const { request_id = '' } = receipts.find((one) => one.class === 'other' && (one.facts ?? one.added[0])) ?? {};
    return (await rig.home.run(['explain', request_id])).stdout;
  };

  /** What the API got of the subagent with this errand. */
  async function seenBy(type: keyof typeof ERRANDS): Promise<string> {
    const before = rig.standin.requests.length;
    await client.ask(`Send ${type}.`);
    const own = rig.standin.requests.slice(before).filter(({ body, bytes }) => {
      const [first] = (body?.['messages'] ?? []) as unknown[];
      return JSON.stringify(first ?? null).includes(ERRANDS[type]) && !bytes.includes(`Send ${type}.`);
    });
    expect(own.length).toBeGreaterThan(0);
    return own.map(({ bytes }) => bytes.toString()).join('\n');
  }

  it('without hooks, an agent definition of the project subscribes after consent', async () => {
    const secrets = ['tests live beside', 'small commits'];
    expect(await seenBy('keeper')).not.toContain('Redis');
    expect((await rig.home.run(['facts', 'allow', rig.project, '--yes'])).code).toBe(0);
    const seen = await seenBy('keeper');
    expect(seen).toContain('- Project.Decision: \\"Redis for the cache\\"');
    for (const text of secrets) expect(seen).not.toContain(text);
    expect(await explained()).toMatch(/facts that keeper is subscribed to \(.*keeper\.md\)[\s\S]*Redis for the cache/);
    expect(await seenBy('stranger')).not.toContain('## Facts');
    expect(await client.end()).toBe(0);
    expect((await rig.home.run(['hooks', 'install'])).code).toBe(0);
    client = rig.remembered(OPUS);
  });

  it('a subscribed subagent sees exactly its slice, and explain says why', async () => {
    const seen = await seenBy('general-purpose');
    expect(seen).toContain('## Facts');
    expect(seen).toContain('tests live beside their source');
    expect(seen).not.toContain('Redis');
    expect(seen).not.toContain('small commits');
    expect(await explained()).toMatch(
      /general-purpose is subscribed to \(facts\.subscriptions\)[\s\S]*tests live beside/,
    );
  });

  it('with hooks, a definition gives its slice once', async () => {
    const [first = ''] = (await seenBy('keeper')).split('\n');
    expect(first.split('Redis for the cache')).toHaveLength(2);
  });

  it('one that is not subscribed sees nothing, and explain says so', async () => {
    const seen = await seenBy('Explore');
    for (const text of ['## Facts', 'tests live beside', 'Redis', 'small commits']) expect(seen).not.toContain(text);
    expect(await explained()).toContain('none: nothing subscribes Explore');
  });

  it('nothing goes wrong unseen', () => {
    expect(rig.logged('error')).toEqual([]);
    expect(rig.standin.refused).toEqual([]);
  });
});
