import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MemoryNode } from '../../memory/model/node.ts';
import { CLAUDE_MISSING, findClaude } from '../helpers/claude.ts';
import type { Aside } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig } from '../helpers/claude-code-rig.ts';
import type { Answer } from '../mock-anthropic/index.ts';

const claude = findClaude();
const text = (said: string): Answer => ({ kind: 'message', blocks: [{ type: 'text', text: said }] });
const call = (name: string, input: Record<string, unknown>): Answer => ({
  kind: 'message',
  blocks: [{ type: 'tool_use', name, input }],
});

/** What each subagent looks at, what that shows, and what Claude concludes from its report. */
const AGENTS = [
  { name: 'ferries', looks: 'cat ferries.txt', shown: 'f7421', says: 'So the ferries were late for want of a locale.' },
  { name: 'tugs', looks: 'cat tugs.txt', shown: 't7422', says: 'So the winch of the tugs needs grease in March.' },
  { name: 'yachts', looks: 'hostname; cat yachts.txt', shown: 'y7423', says: 'So the yachts move to the north.' },
] as const;
const BACKGROUND = 'tugs';

/** A subagent in the background reports when the turn that started it is over. */
const gates = new Map<string, () => void>();
const asides = AGENTS.flatMap(({ name, looks, shown, says }): Aside[] => {
  const report = `Both <piers> & all ${name} were looked at.`;
  const over = new Promise<void>((resolve) => gates.set(name, resolve));
  const waits = name === BACKGROUND ? {} : { run_in_background: false };
  const agent = { description: 'Look', prompt: `Look after the ${name}.`, subagent_type: 'general-purpose', ...waits };
  return [
    { when: `all ${name} were`, answer: () => text(says) },
    { when: shown, ...(name === BACKGROUND ? { after: over } : {}), answer: () => text(report) },
    { when: agent.prompt, answer: () => call('Bash', { command: looks, description: 'Look' }) },
    { when: `Ask about the ${name}.`, answer: () => call('Agent', agent) },
  ];
});

const missing = claude === null ? `: ${CLAUDE_MISSING}` : '';
/** A command in the background, which ends when the turn that started it is over; Claude then reads what it printed. */
const DOCK = { shown: 'd7424', says: 'Root cause: the dock has 42 planks of oak, and its bolts were made for pine.' };
const LOOKS = 'while [ ! -f over.txt ]; do sleep 0.1; done; cat dock.txt';
const findOutput = (bytes: Buffer): string => /.*<output-file>([^<]+)/s.exec(bytes.toString())?.[1] ?? '';
asides.push(
  { when: DOCK.shown, answer: () => text(DOCK.says) },
  { when: 'Look at the dock.', answer: () => call('Bash', { command: LOOKS, run_in_background: true }) },
  { when: '<output-file>', answer: ({ bytes }) => call('Read', { file_path: findOutput(bytes) }) },
);

describe.skipIf(claude === null)(`what Claude concludes in the background${missing}`, () => {
  let rig: ClientRig;
  let nodes: readonly MemoryNode[];

  beforeAll(async () => {
    const env = { COMET_CC_LLM: 'local', COMET_CC_TRIM_MODE: 'off' };
    const shown = [...AGENTS, { name: 'dock', ...DOCK }];
    const files = Object.fromEntries(shown.map(({ name, shown }) => [`${name}.txt`, shown]));
    rig = await createClientRig({ claude: claude as string, asides, env, files });
    const client = rig.remembered(['--model', 'claude-opus-4-8', '--allowedTools', 'Bash Agent']);
    for (const { name } of AGENTS) {
      await client.ask(`Ask about the ${name}.`);
      if (name !== BACKGROUND) continue;
      gates.get(name)?.();
      await client.next();
    }
    await client.ask('Look at the dock.');
    writeFileSync(path.join(rig.project, 'over.txt'), '');
    await client.next();
    expect(await client.end()).toBe(0);
    await rig.home.flush();
    nodes = await rig.nodes();
  });

  afterAll(async () => {
    await rig?.close();
  });

  const getOrigin = (said: string) => nodes.find((node) => JSON.stringify(node).includes(said))?.origin;

  it('is its own where a subagent stayed in the project, and external otherwise', () => {
    expect(rig.standin.refused).toEqual([]);
    expect(AGENTS.map(({ name, says }) => [name, getOrigin(says)])).toEqual([
      ['ferries', 'assistant'],
      ['tugs', 'assistant'],
      ['yachts', 'external'],
    ]);
  });

  it('is its own where a command only read the project', () => {
    expect(getOrigin(DOCK.says)).toBe('assistant');
  });
});
