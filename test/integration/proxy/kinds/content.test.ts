import { describe, expect, it } from 'vitest';
import { BETAS } from '../../../fuzz/body.ts';
import { compare } from '../../../fuzz/compare.ts';
import {
  createTerminal,
  type Said,
  type Terminal,
  type TerminalOptions,
  type Turn,
} from '../../../fuzz/fake-client.ts';
import { createWireRig, type Exchange, earlyCuts, type Json } from '../../../fuzz/rewriter-rig.ts';
import { getText, isThinkingFree, left, talkativeMemory, walk } from '../../../fuzz/story.ts';
import type { AnswerBlock } from '../../../mock-anthropic/index.ts';

const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
const DOCUMENT = {
  type: 'document',
  source: { type: 'text', media_type: 'text/plain', data: 'Ports: 8471.' },
  citations: { enabled: true },
};
const CITED: AnswerBlock = {
  type: 'text',
  text: 'The port is 8471.',
  citations: [
    { type: 'char_location', cited_text: 'Ports: 8471.', document_index: 0, start_char_index: 0, end_char_index: 12 },
  ],
};
const SEARCH: AnswerBlock[] = [
  { type: 'thinking', thinking: 'The web may know.' },
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'ports' } },
  {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [
      { type: 'web_search_result', url: 'https://example.org', title: 'Ports', encrypted_content: 'RW5jcnlwdGVk' },
    ],
  },
  { type: 'text', text: 'Port 8471, says the web.' },
];

async function begun(turns: number, options: TerminalOptions = {}) {
  const rig = await createWireRig({ memory: talkativeMemory() });
  const terminal = createTerminal(rig, options);
  if (turns > 0) await walk(terminal, 1, turns);
  return { rig, terminal };
}

/** Walks on until a cut has taken what came first, and looks at every message on the way. */
async function walkOn(terminal: Terminal, from: number): Promise<Exchange> {
  const last = await walk(terminal, from, from + 8);
  expect(left(last)).toBeGreaterThan(0);
  for (const { exchange } of terminal.said) compare(exchange); // throws where a kept message is not the one received
  return last;
}

const holds = (exchange: Exchange, block: unknown): boolean => getText(exchange).includes(JSON.stringify(block));
const getBlocks = (exchange: Exchange): readonly Json[] => {
  const { messages } = JSON.parse(getText(exchange)) as { messages: { content: unknown }[] };
  return messages.flatMap(({ content }) => (Array.isArray(content) ? (content as Json[]) : []));
};

describe('what a conversation holds', () => {
  it.each<[string, Turn, unknown]>([
    ['images', { prompt: 'What is in this?', before: [IMAGE] }, IMAGE],
    [
      'images that a tool returned',
      { prompt: 'Look.', rounds: [{ calls: [{ name: 'Read', input: {}, result: [IMAGE] }] }] },
      [IMAGE],
    ],
    ['documents', { prompt: 'Which port?', before: [DOCUMENT] }, DOCUMENT],
    ['citations', { prompt: 'Which port?', before: [DOCUMENT], closing: [CITED] }, CITED],
    ['what a server tool found', { prompt: 'Search for it.', closing: SEARCH }, SEARCH[2]],
  ])('%s stay as they came while they are kept, and go whole with their turn', async (_, turn, block) => {
    const { terminal } = await begun(3);
    for (const { refusal } of await terminal.ask(turn)) expect(refusal).toBeNull();
    const next = await walk(terminal, 4, 4);
    expect(holds(next, block)).toBe(true);
    expect(holds(await walkOn(terminal, 5), block)).toBe(false);
  });

  it('a turn that a server tool paused is sent back unchanged and continues', async () => {
    const { rig, terminal } = await begun(8);
    const prompt = { role: 'user' as const, blocks: [{ type: 'text', text: 'Search for it.' }], notes: [] };
    terminal.become({ entries: [...terminal.shape.entries, prompt] });
    const paused = SEARCH.slice(0, 2);
    const before = rig.memory.captured.size;
    const first = await terminal.resume(paused, 'pause_turn');
    expect(first).toMatchObject({ refusal: null, rewritten: true });
    terminal.become({ entries: [...terminal.shape.entries, { role: 'assistant', blocks: first.content }] });
    const second = await terminal.resume(SEARCH.slice(2), 'end_turn');
    expect(second).toMatchObject({ refusal: null, rewritten: true });
    expect(getBlocks(second).at(-1)).toMatchObject({ type: 'server_tool_use', id: 'srvtoolu_1' });
    expect(second.sent.subarray(0, 200).equals(first.sent.subarray(0, 200))).toBe(true);
    expect(rig.memory.captured.size).toBe(before + 1); // once, when it had ended
  });

  it('a paused turn whose rest is a message of its own keeps its plan and its thinking', async () => {
    const rig = await createWireRig({ memory: talkativeMemory(), config: { cut: null } });
    const terminal = createTerminal(rig);
    await walk(terminal, 1, 2);
    const add = (role: 'user' | 'assistant', blocks: readonly Json[]): void =>
      terminal.become({ entries: [...terminal.shape.entries, { role, blocks, notes: [] }] });
    add('user', [{ type: 'text', text: 'Search for it.' }]);
    add('assistant', (await terminal.resume(SEARCH.slice(0, 2), 'pause_turn')).content);
    const found: AnswerBlock[] = [SEARCH[2] as AnswerBlock, { type: 'thinking', thinking: 'There.' }];
    add('assistant', (await terminal.resume([...found, SEARCH[3] as AnswerBlock], 'end_turn')).content);
    const epochs = rig.epochs(terminal.shape.sessionId);
    const [next] = await terminal.ask({ prompt: 'And now?' });
    expect(next?.refusal).toBeNull();
    expect(rig.epochs(terminal.shape.sessionId)).toBe(epochs);
    expect(isThinkingFree(next as Exchange)).toBe(false);
  });

  it('a container and its uploads are not touched', async () => {
    const fields = { container: 'container_01' };
    const headers = { 'anthropic-beta': `${BETAS},files-api-2025-04-14` };
    const { terminal } = await begun(0, { form: { fields }, headers });
    const upload = { type: 'container_upload', file_id: 'file_1' };
    await terminal.ask({ prompt: 'Run it there.', before: [upload] });
    const last = await walkOn(terminal, 1);
    expect(JSON.parse(getText(last))).toMatchObject(fields);
    expect(holds(last, upload)).toBe(true); // the first message is never cut
  });

  it.each([
    ['an empty string', { system: '' }, 1],
    ['a string', { system: 'You help.' }, 2],
  ])('a system prompt that is %s becomes a list that upstream takes', async (_, fields, blocks) => {
    const { terminal } = await begun(1, { form: { fields } });
    const { refusal, sent } = (terminal.said[0] as Said).exchange as Exchange;
    expect(refusal).toBeNull();
    expect(JSON.parse(sent.toString()).system).toHaveLength(blocks);
  });

  it("the client's context management is forwarded unchanged", async () => {
    const context_management = {
      edits: [
        { type: 'clear_thinking_20251015', keep: { type: 'thinking_turns', value: 1 } },
        { type: 'clear_tool_uses_20250919', trigger: { type: 'input_tokens', value: 30_000 } },
      ],
    };
    const { terminal } = await begun(0, { form: { fields: { context_management } } });
    expect(JSON.parse(getText(await walkOn(terminal, 1)))).toMatchObject({ context_management });
  });

  it('thinking that the client leaves out is the same conversation, with the same plan', async () => {
    const { rig, terminal } = await begun(8);
    const epochs = rig.epochs(terminal.shape.sessionId);
    const before = left(await terminal.again());
    terminal.stripThinking();
    const [first] = await terminal.ask({ prompt: 'And now?' });
    expect(first).toMatchObject({ refusal: null, rewritten: true });
    expect(isThinkingFree(first as Exchange)).toBe(true);
    expect(left(first as Exchange)).toBeGreaterThanOrEqual(before);
    expect(rig.epochs(terminal.shape.sessionId) - epochs).toBeLessThanOrEqual(1);
  });
});

describe('a switch in mid-session', () => {
  it.each([
    ['claude-opus-5-5', 'claude-sonnet-5-5'],
    ['claude-opus-5-5', 'claude-haiku-4-5-20251001'],
    ['claude-sonnet-4-6', 'claude-opus-5-5'],
    ['claude-haiku-4-5-20251001', 'claude-sonnet-4-6'],
  ])('from %s to %s and back is refused nothing, and what is kept stays', async (one, other) => {
    const { terminal } = await begun(6, { model: one });
    terminal.become({ model: other });
    await walk(terminal, 7, 9);
    terminal.become({ model: one });
    await walkOn(terminal, 10);
  });

  it.each([
    ['2.1.197', 'of the effort keeps the plan, and a cut does not wait for a cache that is gone'],
    ['2.1.332', 'of the effort by a message keeps the plan and the cache, so a cut waits'],
  ] as const)('(%s) %s', async (version, _) => {
    const patient = earlyCuts({ margin: 9 });
    const rig = await createWireRig({ config: { cut: patient } });
    const terminal = createTerminal(rig, { version });
    expect(left(await walk(terminal, 1, 8))).toBe(0);
    terminal.become({ effort: 'low' });
    expect(left(await walk(terminal, 9, 9)) > 0).toBe(version === '2.1.197');
  });

  it('of the model for a prompt leaves the cache of the other, so a cut waits after it until that has expired', async () => {
    const patient = earlyCuts({ margin: 99, triggerTokens: 2_700 });
    const play = async (pauseMinutes: number): Promise<readonly boolean[]> => {
      const rig = await createWireRig({ config: { cut: patient } });
      const terminal = createTerminal(rig, { model: 'claude-opus-5-5', ttl: '1h' });
      const cuts = [left(await walk(terminal, 1, 8)) > 0];
      terminal.become({ model: 'claude-sonnet-5-5' });
      cuts.push(left(await walk(terminal, 9, 9)) > 0);
      rig.clock.nowMs += pauseMinutes * 60_000;
      terminal.become({ model: 'claude-opus-5-5' });
      return [...cuts, left(await walk(terminal, 10, 10)) > 0];
    };
    expect(await play(0)).toEqual([false, false, false]);
    expect(await play(61)).toEqual([false, false, true]);
  });

  it('of the model to one that takes no system messages puts what was recalled into the prompt instead', async () => {
    const { terminal } = await begun(2);
    expect(getText(await terminal.again())).toContain('"role":"system","content":"comet-cc recalls');
    terminal.become({ model: 'claude-sonnet-4-6' });
    const last = await walk(terminal, 3, 3);
    expect(getText(last)).not.toContain('"role":"system"');
    expect(getText(last)).toContain('Recalled by comet-cc for the prompt above');
  });
});
