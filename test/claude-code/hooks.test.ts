import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MemoryNode } from '../../memory/model/node.ts';
import { CLAUDE_MISSING, findClaude } from '../helpers/claude.ts';
import type { Aside } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig, mainRequests, TOOLS } from '../helpers/claude-code-rig.ts';

const claude = findClaude();
const OPUS = ['--model', 'claude-opus-4-8'];
const DECIDED = 'We decided that the ferry scanner of Halvorsen always listens on port 7412.';
const TOLD = 'The parcel gateway of Halvorsen listens on port 7411.';
const SHOW = 'Show the proxy that your commands see.';
const COMMAND = 'echo "it is=$HTTPS_PROXY, trusting=$NODE_EXTRA_CA_CERTS."';

const asides: Aside[] = [
  {
    when: SHOW,
    answer: () => ({ kind: 'message', blocks: [{ type: 'tool_use', name: 'Bash', input: { command: COMMAND } }] }),
  },
];

describe.skipIf(claude === null)(`hooks in Claude Code${claude === null ? `: ${CLAUDE_MISSING}` : ''}`, () => {
  let rig: ClientRig;

  const bodies = (sessionId: string): string[] =>
    mainRequests(rig.standin, sessionId).map(({ bytes }) => bytes.toString());

  beforeAll(async () => {
    const env = { COMET_CC_LLM: 'local' };
    rig = await createClientRig({ claude: claude as string, asides, env });
    expect((await rig.home.run(['hooks', 'install'])).code).toBe(0);
    for (const said of [DECIDED, TOLD]) {
      const client = rig.remembered(OPUS);
      await client.ask(said);
      expect(await client.end()).toBe(0);
      await rig.home.run(['flush']);
    }
  });

  afterAll(async () => {
    await rig?.close();
  });

  it('a session that is alone is told at its start, and reports its prompts', async () => {
    const nodes = (await rig.home.json(['memory', 'ls', '--json'])) as MemoryNode[];
    const id = nodes.find(({ summary }) => summary.includes('7412'))?.node_id;
    const client = rig.alone(OPUS);
    const { sessionId } = await client.ask('On which port does the ferry scanner of Halvorsen listen?');
    await client.end();
    expect(bodies(sessionId)[0]).toContain(`[${id}]`);
  });

  it('Bash gets back the proxy and the CA that the user had', async () => {
    const client = rig.remembered([...TOOLS, ...OPUS]);
    const { sessionId } = await client.ask(SHOW);
    await client.end();
    const { HTTPS_PROXY: proxy, NODE_EXTRA_CA_CERTS: ca } = rig.home.env;
    expect(bodies(sessionId).at(-1)).toContain(`it is=${proxy}, trusting=${ca}.`);
  });

  it('nothing goes wrong unseen', () => {
    expect(rig.logged('error')).toEqual([]);
    expect(rig.standin.refused).toEqual([]);
  });
});
