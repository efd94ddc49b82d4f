import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import type { MemorySource, RecalledLine } from '../../../../proxy/ports.ts';
import { decideStep, EMPTY_PLAN, type StepInput } from '../../../../proxy/rewrite/build-plan.ts';
import { LateRecalls, lookUpMemory, lookupMs } from '../../../../proxy/rewrite/recall.ts';
import {
  ConversationCache,
  type ConversationView,
  parseConversation,
  readPromptText,
} from '../../../../proxy/wire/conversation.ts';
import { createFakeMemory } from '../../../helpers/fake-memory.ts';

const RULES = 'Contents of /home/dev/shop/CLAUDE.md:\n\n- Say "plum", not "prune".\n- Umlaute bleiben: für.';

function getView(body: object): ConversationView {
  const view = parseConversation(Buffer.from(JSON.stringify(body)), new ConversationCache());
  if (view === null) throw new Error('not understood');
  return view;
}

it('tells memory what the head of the request says, and nothing of later messages', async () => {
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: `<system-reminder>\n${RULES}\n</system-reminder>` },
        { type: 'text', text: 'Hello.' },
      ],
    },
    { role: 'assistant', content: [{ type: 'text', text: 'The harbor is closed.' }] },
    { role: 'user', content: [{ type: 'text', text: 'Which words do we use?' }] },
  ];
  const view = getView({ model: 'm', messages });
  let sends = (_: string): boolean => false;
  const memory: MemorySource = {
    ...createFakeMemory(),
    recall: async (request) => {
      if (request.sends !== undefined) sends = request.sends;
      return [];
    },
  };
  const step = { kind: 'epoch', because: 'first', from: null, cut: null, rounds: [] } as never;
  const config = { retrieval: 'system-message', memoryDeadlineMs: 10_000 } as never;
  await lookUpMemory(memory, new LateRecalls(), { view, sessionId: 's', step }, config, silentLog);
  const texts = [
    '- Say "plum", not "prune".',
    '- Umlaute bleiben: für.',
    'Hello.',
    'The harbor is closed.',
    'Say nothing.',
  ];
  expect(texts.map(sends)).toEqual([true, true, true, false, false]);
});

it.each([
  ['epoch', 150, 600],
  ['epoch', 20, 80],
  ['epoch', 2_000, 2_000],
  ['epoch', 0, 0],
  ['extend', 150, 150],
])('gives the lookups of an %s with a deadline of %d ms %d', (kind, memoryDeadlineMs, ms) => {
  expect(lookupMs({ kind } as never, { memoryDeadlineMs } as never)).toBe(ms);
});

const LINE = { nodeId: 'mem_1', text: '- [mem_1] the port is 8471', origin: 'user' as const };
const PROMPT = { role: 'user', content: 'Which port?' };
const CALL = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} };
const RESULT = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' }] };
const SEARCH = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
const LOOP = [PROMPT, { role: 'assistant', content: [CALL] }, RESULT];

describe('a recall that misses its deadline', () => {
  async function lateRecalls(view: ConversationView, find: () => readonly RecalledLine[]): Promise<LateRecalls> {
    const late = new LateRecalls();
    const work = new Promise(setImmediate).then(find);
    const anchor = view.lineage[0] as string;
    await expect(late.run('s', anchor, work, AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
    await work.catch(() => {});
    return late;
  }

  it('waits for the next request of its conversation, until the next prompt', async () => {
    const view = getView({ model: 'm', messages: LOOP });
    const late = await lateRecalls(view, () => [{ line: LINE, score: 1 }]);
    expect(late.ready('s', view).map(({ text }) => text)).toEqual([LINE.text]);
    expect(late.ready('s', getView({ model: 'm', messages: [{ ...PROMPT, content: 'Else?' }] }))).toEqual([]);
    expect(late.ready('other', view)).toEqual([]);
    expect(late.counts()).toMatchObject({ asked: 1, in_time: 0, late_waiting: 1, late_lost: 0 });
    await late.run('s', 'next', Promise.resolve([]), new AbortController().signal);
    expect(late.counts()).toMatchObject({ asked: 2, in_time: 1, late_waiting: 0, late_lost: 1 });
    expect(late.ready('s', view)).toEqual([]);
  });

  it('is counted where it finds nothing, and where it fails', async () => {
    const view = getView({ model: 'm', messages: LOOP });
    expect((await lateRecalls(view, () => [])).counts()).toMatchObject({ late_empty: 1, late_waiting: 0 });
    const failed = await lateRecalls(view, () => {
      throw new Error('no index');
    });
    expect(failed.counts()).toMatchObject({ late_lost: 1, late_waiting: 0 });
  });

  it('is told from another lookup that does, in the counts and in the log', async () => {
    const view = getView({ model: 'm', messages: [PROMPT] });
    const memory = {
      ...createFakeMemory(),
      sessionContext: () => new Promise<never>(() => {}),
      recall: async () => [],
    };
    const step = { kind: 'epoch', because: 'first', from: null, cut: null, rounds: [] } as never;
    const config = { retrieval: 'system-message', memoryDeadlineMs: 50 } as never;
    const [late, said] = [new LateRecalls(), [] as unknown[]];
    const log = { ...silentLog, warn: (_: string, fields?: object) => void said.push(fields) };
    await lookUpMemory(memory, late, { view, sessionId: 's', step }, config, log);
    expect(late.counts()).toMatchObject({ asked: 1, in_time: 1, failed: 0, others_missed: 1 });
    expect(said).toEqual([expect.objectContaining({ lookup: 'context' })]);
  });

  it('keeps a bounded number', async () => {
    const late = new LateRecalls();
    for (let at = 0; at < 150; at += 1) {
      await late.run(`s${at}`, 'a', new Promise(() => {}), AbortSignal.abort(new Error('late'))).catch(() => {});
    }
    expect(late.counts()).toMatchObject({ asked: 150, late_lost: 50 });
  });

  it.each([
    ['tool results', { messages: LOOP }, 'extend'],
    ['manual thinking', { messages: LOOP, thinking: { type: 'enabled', budget_tokens: 1024 } }, 'replay'],
    ['a model that drops the thinking before such a text', { model: 'claude-haiku-4-5', messages: LOOP }, 'replay'],
    ['an open server tool', { messages: [PROMPT, { role: 'assistant', content: [SEARCH, CALL] }, RESULT] }, 'replay'],
    ['an answer', { messages: [PROMPT, { role: 'assistant', content: 'It is' }] }, 'replay'],
  ])('goes out after %s: %j %s', (_, body, kind) => {
    const view = getView({ model: 'claude-opus-5-5', ...body });
    const plan = { ...EMPTY_PLAN, id: 'p', sessionId: 's', createdAtMs: 0 };
    const use = { atMs: 0, model: view.model, effort: view.effort };
    const input = { view, match: { plan, servedAt: 0, signatures: [], uses: [use] }, rule: null, hasLateLines: true };
    expect(decideStep(input as unknown as StepInput).kind).toBe(kind);
    expect(decideStep({ ...input, hasLateLines: false } as unknown as StepInput).kind).toBe('replay');
  });

  const INTERRUPTION = '[Request interrupted by user for tool use]';
  const ADDED = 'The user sent a new message while you were working:\nNo, use the other port.';

  it.each([
    ['interrupts a call', [INTERRUPTION, 'No, use the other port.'], 'extend'],
    ['types a prompt after an API error', ['No, use the other port.'], 'extend'],
    ['adds something meanwhile', [`<system-reminder>\n${ADDED}\n</system-reminder>`], 'extend'],
    ['says nothing', [INTERRUPTION], 'replay'],
    ['says nothing, but the client does', ['<system-reminder>\nUse the other tools.\n</system-reminder>'], 'replay'],
  ])('is asked for what the user typed beside tool results: %s', (_, texts, kind) => {
    const content = [...(RESULT.content as object[]), ...texts.map((text) => ({ type: 'text', text }))];
    const call = { role: 'assistant', content: [CALL] };
    const note = { role: 'system', content: ADDED };
    const asNote = kind === 'extend' ? [[RESULT, note]] : [];
    for (const messages of [[{ role: 'user', content }], ...asNote]) {
      const view = getView({ model: 'claude-opus-5-5', messages: [PROMPT, call, ...messages] });
      expect(readPromptText(view, 2)).toBe(kind === 'extend' ? 'No, use the other port.' : '');
      const plan = { ...EMPTY_PLAN, id: 'p', sessionId: 's', createdAtMs: 0 };
      const match = { plan, servedAt: 0, signatures: [], uses: [{ atMs: 0, model: view.model, effort: view.effort }] };
      expect(decideStep({ view, match, rule: null, hasLateLines: false } as unknown as StepInput).kind).toBe(kind);
    }
  });
});
