import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAUDE_MISSING, findClaude } from '../helpers/claude.ts';
import type { Aside } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig } from '../helpers/claude-code-rig.ts';

const claude = findClaude();
const OPUS = ['--model', 'claude-opus-4-8', '--allowedTools', 'Agent'];
const ERRANDS = { 'general-purpose': 'Count the lanterns.', Explore: 'Count the buckets.' } as const;

const asides = Object.entries(ERRANDS).map(([subagent_type, prompt]): Aside => {
  const input = { description: 'An errand', prompt, subagent_type };
  return {
    when: `Send ${subagent_type}.`,
    answer: () => ({ kind: 'message', blocks: [{ type: 'tool_use', name: 'Agent', input }] }),
  };
});

describe.skipIf(claude === null)(`facts in Claude Code${claude === null ? `: ${CLAUDE_MISSING}` : ''}`, () => {
  let rig: ClientRig;

  beforeAll(async () => {
    const subscriptions = { 'general-purpose': { prefixes: ['Project.Convention.'], classes: [] } };
    const env = { COMET_CC_LLM: 'local', COMET_CC_FACTS_SUBSCRIPTIONS: JSON.stringify(subscriptions) };
    rig = await createClientRig({ claude: claude as string, asides, env });
    expect((await rig.home.run(['hooks', 'install'])).code).toBe(0);
    const client = rig.remembered(OPUS);
    await client.ask('By convention, tests live beside their source.');
    await client.ask('We use Redis for the cache. I prefer small commits.');
    expect(await client.end()).toBe(0);
    await rig.home.run(['flush']);
  });

  afterAll(async () => {
    await rig?.close();
  });

  /** What the API got of the subagent with this errand. */
  async function seenBy(type: keyof typeof ERRANDS): Promise<string> {
    const client = rig.remembered(OPUS);
    await client.ask(`Send ${type}.`);
    expect(await client.end()).toBe(0);
    const own = rig.standin.requests.filter(({ body, bytes }) => {
      const [first] = (body?.['messages'] ?? []) as unknown[];
      return JSON.stringify(first ?? null).includes(ERRANDS[type]) && !bytes.includes(`Send ${type}.`);
    });
    expect(own.length).toBeGreaterThan(0);
    return own.map(({ bytes }) => bytes.toString()).join('\n');
  }

  it('a subscribed subagent sees exactly its slice', async () => {
    const seen = await seenBy('general-purpose');
    expect(seen).toContain('## Facts');
    expect(seen).toContain('tests live beside their source');
    expect(seen).not.toContain('Redis');
    expect(seen).not.toContain('small commits');
  });

  it('one that is not subscribed sees nothing', async () => {
    const seen = await seenBy('Explore');
    for (const text of ['## Facts', 'tests live beside', 'Redis', 'small commits']) expect(seen).not.toContain(text);
  });

  it('nothing goes wrong unseen', () => {
    expect(rig.logged('error')).toEqual([]);
    expect(rig.standin.refused).toEqual([]);
  });
});
