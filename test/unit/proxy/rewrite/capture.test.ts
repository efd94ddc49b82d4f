import { createHash } from 'node:crypto';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { cutRule } from '../../../../engine/cut-config.ts';
import {
  captureAnsweredTurn,
  captureParts,
  captureSummarizedTurns,
  captureTurns,
  captureUnfinishedTurn,
} from '../../../../proxy/rewrite/capture.ts';
import type { RewriterConfig } from '../../../../proxy/rewrite/index.ts';
import { BRIDGE, type PlanRecord } from '../../../../proxy/rewrite/plan.ts';
import { openPlanStore } from '../../../../proxy/rewrite/plan-store.ts';
import { ConversationCache, parseConversation } from '../../../../proxy/wire/conversation.ts';
import { splitParts, splitRounds, splitTurns, type TurnSpan } from '../../../../proxy/wire/turns.ts';
import { playBilled } from '../../../helpers/metered-run.ts';
import { createMemoryPlanStore } from '../../../helpers/open-rewriter.ts';
import { seededPlan } from '../../../helpers/transcripts.ts';

const { inject, trim } = Config.parse({ trim: { mode: 'aggressive', triggerTokens: 600, keepTokens: 200 } });
const config: RewriterConfig = { ...inject, memoryDeadlineMs: 5_000, cut: cutRule(trim) };
/** Thinking is bound here: whatever is sent in place of what it was given for is refused. */
const talk = seededPlan(11, { turns: 10, bulk: 900, models: ['claude-opus-5-5'] });
const made: string[] = [];
afterAll(() => Promise.all(made.map((dir) => rm(dir, { recursive: true, force: true }))));

const decoded = (body: Buffer): string => body.toString('utf8');

describe('a conversation whose plans are lost', { timeout: 30_000 }, () => {
  it('is refused nothing when they are gone after a restart, wherever that happens', async () => {
    let healed = 0;
    for (let at = 1; at < 40; at += 3) {
      const { refusals, steps } = await playBilled(talk, {
        config,
        restarts: (index) => index === at,
        plans: () => createMemoryPlanStore(),
      });
      expect(refusals).toEqual([]);
      const first = steps[at];
      if (first !== undefined && decoded(first.request.bytes).includes('"signature"')) {
        expect(decoded(first.body)).not.toContain('"signature"');
        healed += 1;
      }
    }
    expect(healed).toBeGreaterThan(5);
  });

  it('is refused nothing either where the rewriter is late from then on', async () => {
    for (const at of [4, 12, 20]) {
      const { refusals } = await playBilled(talk, {
        config,
        restarts: (index) => index === at,
        plans: () => createMemoryPlanStore(),
        isLate: (index) => index >= at,
      });
      expect(refusals).toEqual([]);
    }
  });

  it('keeps its plan when the directory vanishes in the middle, and finds it again after a restart', async () => {
    const dir = path.join(await mkdtemp(path.join(os.tmpdir(), 'comet-plans-')), 'plans');
    made.push(path.dirname(dir));
    const { refusals, steps } = await playBilled(talk, {
      config,
      plans: () => openPlanStore(dir),
      before: async (index) => {
        if (index === 18) await rename(dir, `${dir}-gone`);
      },
      restarts: (index) => index === 26,
    });
    expect(refusals).toEqual([]);
    expect(decoded(steps[26]?.body as Buffer)).toContain(BRIDGE);
    const [before, after] = [steps[25], steps[26]].map((step) => JSON.parse(decoded(step?.body as Buffer)).messages);
    expect(JSON.stringify(after[2])).toBe(JSON.stringify(before[2])); // the same epoch goes on
  });
});

describe('a refusal', () => {
  it('drops the plan, is counted and explained, and the next request is accepted', async () => {
    const refusal = 'messages.7.content.0: the thinking block is bound to a different conversation';
    const { refusals, steps, ledger, rewriter } = await playBilled(talk, {
      config,
      refuses: (index) => (index === 20 ? refusal : null),
    });
    expect(refusals).toEqual([]);
    expect(decoded(steps[20]?.request.bytes as Buffer)).toContain('"signature"');
    expect(decoded(steps[20]?.body as Buffer)).not.toContain('"signature"');
    expect(ledger.totals(0).refused).toBe(1);
    const refused = rewriter.receipts().filter(({ status }) => status === 400);
    expect(refused).toHaveLength(1);
    expect(refused[0]).toMatchObject({ request_id: 'r20', refusal, economics: { billed: null } });
  });
});

describe('a plan that the rules refuse', () => {
  it('never reaches upstream, on time or late', async () => {
    for (const late of [false, true]) {
      const records: PlanRecord[] = [];
      const spoilt = (): PlanRecord[] =>
        records.map((record) =>
          record.kind === 'plan' && record.plan.cut !== null
            ? { ...record, plan: { ...record.plan, cut: { ...record.plan.cut, preamble: '' } } }
            : record,
        );
      let starts = 0;
      const { refusals, steps } = await playBilled(talk, {
        config,
        plans: () => createMemoryPlanStore(starts++ === 0 ? records : spoilt()),
        restarts: (index) => index === 25,
        isLate: (index) => late && index === 25,
      });
      expect(records.some((record) => record.kind === 'plan' && record.plan.cut !== null)).toBe(true);
      expect(refusals).toEqual([]);
      expect(decoded(steps[25]?.body as Buffer)).not.toContain('"text":""');
    }
  });
});

const said = (role: string, content: unknown) => ({ role, content });
const text = (words: string) => [{ type: 'text', text: words }];

function getView(messages: readonly unknown[]) {
  const view = parseConversation(Buffer.from(JSON.stringify({ model: 'm', messages })), new ConversationCache());
  if (view === null) throw new Error('not understood');
  return view;
}

/** The newest turn of a conversation, answered. */
function captured(...messages: unknown[]) {
  const view = getView(messages);
  const answer = { content: text('So be it.'), stopReason: 'end_turn', usage: {} } as never;
  return captureAnsweredTurn(view, splitTurns(view).at(-1) as TurnSpan, answer, { sessionId: 's', atMs: 1 });
}

it("a turn carries the private words that the user marked in earlier turns, and no other role's", () => {
  const turn = captured(
    said('user', text('We merge. < PRIVATE why>The buyer is Oldenburg.</private>')),
    said('assistant', text('Is it <private>not so</private>?')),
    said('user', 'It is. <private>In May.'),
    said('assistant', text('Noted.')),
    said('user', text('And <private>now?</private>')),
  );
  expect(turn.earlierPrivate?.map((words) => words.trim())).toEqual(['The buyer is Oldenburg.', 'In May.']);
  expect(captured(said('user', 'private class A {}'), said('assistant', 'ok'), said('user', 'b'))).not.toHaveProperty(
    'earlierPrivate',
  );
});

it('each of many turns brings along what those before it have, also those that are not among them', () => {
  const words = ['one', 'two', 'three', 'four'].flatMap((word) => [
    said('user', text(`<private>${word}</private>`)),
    said('assistant', text('Noted.')),
  ]);
  const view = getView(words);
  const [, second, , fourth] = splitTurns(view) as [TurnSpan, TurnSpan, TurnSpan, TurnSpan];
  const turns = captureTurns(view, [second, fourth], { sessionId: 's', atMs: 1 });
  expect(turns.map(({ earlierPrivate = [] }) => earlierPrivate.map((word) => word.trim()))).toEqual([
    ['one'],
    ['one', 'two', 'three'],
  ]);
  expect(captureTurns(view, splitTurns(view).slice(0, 1), { sessionId: 's', atMs: 1 })[0]).not.toHaveProperty(
    'earlierPrivate',
  );
});

describe('a prompt that was sent with tool results', () => {
  const call = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'npm test' } };
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'It was "rejected", [so].' };
  const typed = [...text('[Request interrupted by user for tool use]'), ...text('No, use pnpm.')];
  const context = { sessionId: 's', atMs: 1 };
  const talked = [said('user', text('Run it.')), said('assistant', [call]), said('user', [result, ...typed])];
  const done = said('assistant', text('Done.'));

  it('is a turn of its own, and the results are of the turn whose calls they answer', () => {
    const view = getView([...talked, done, said('user', text('Thanks.'))]);
    const [first, second] = captureTurns(view, splitTurns(view).slice(0, 2), context);
    expect(first?.messages.map(({ content }) => JSON.parse(content) as unknown)).toEqual([
      text('Run it.'),
      [call],
      [result],
    ]);
    expect(second?.messages.map(({ content }) => JSON.parse(content) as unknown)).toEqual([typed, text('Done.')]);
    expect(second).toMatchObject({ merged: true, before: first?.turnId, key: view.lineage[2] });
    expect(first).toMatchObject({ key: view.lineage[0], formerId: view.lineage[3] });
    expect(first).not.toHaveProperty('merged');
    expect(second).not.toHaveProperty('formerId');
    expect(second?.turnId).toBe(view.lineage[3]);
  });

  it('is joined with the results to the bytes that were received, however they were written', () => {
    const blocks = [result, ...typed].map((block) => JSON.stringify(block));
    for (const separator of [',', ' , ', '\n,\t']) {
      const content = `[ ${blocks.join(separator)} ]`;
      const [prompt, answer] = talked.slice(0, 2).map((message) => JSON.stringify(message));
      const body = `{"model":"m","messages":[${prompt},${answer},{"role":"user","content":${content}},${JSON.stringify(done)}]}`;
      const view = parseConversation(Buffer.from(body), new ConversationCache()) as ReturnType<typeof getView>;
      const [first, second] = captureTurns(view, splitTurns(view), context);
      const [results, rest] = [first?.messages.at(-1), second?.messages[0]];
      expect(`${results?.content.slice(0, -1)},${rest?.content.slice(1)}`).toBe(content);
      expect(rest?.sha256).toBe(createHash('sha256').update(content).digest('hex'));
    }
  });

  it('has the same id whether it is captured with its answer or from a later request', () => {
    const turn = captured(...talked);
    const view = getView([...talked, said('assistant', text('So be it.'))]);
    const [, later] = captureTurns(view, splitTurns(view), context);
    expect({ ...turn, messages: [] }).toEqual({ ...later, messages: [] });
    expect(turn.messages).toEqual(later?.messages);
  });

  it('stands apart from the turn before it also where a summary is asked for in the same message', () => {
    const asked = { type: 'text', text: 'CRITICAL: Respond with TEXT ONLY. Summarize.' };
    const view = getView([...talked.slice(0, 2), said('user', [result, ...typed, asked])]);
    const turns = captureSummarizedTurns(view, context);
    const known = getView([...talked, done]);
    const [first, second] = captureTurns(known, splitTurns(known), context);
    expect(turns[0]).toEqual({ ...first, formerId: view.lineage[2] });
    expect(turns[1]).toMatchObject({ merged: true, before: first?.turnId, turnId: known.lineage[2] });
    expect(JSON.parse(turns[1]?.messages[0]?.content ?? '')).toEqual(JSON.parse(second?.messages[0]?.content ?? ''));
  });
});

describe('a request for a summary', () => {
  const asked = { type: 'text', text: 'CRITICAL: Respond with TEXT ONLY. Summarize.' };
  const call = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} };
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: '3 passed' };
  const first = [said('user', text('Add a test.')), said('assistant', text('Added.'))];
  const running = [said('user', text('Run it.')), said('assistant', [call])];
  const context = { sessionId: 's', atMs: 1 };
  const getTurn = (...messages: unknown[]) => captureSummarizedTurns(getView(messages), context);
  const contents = ([turn]: ReturnType<typeof getTurn>) =>
    turn?.messages.map(({ content }) => JSON.parse(content) as unknown);

  it('captures the running turn as the next request would have had it, without the text that asks', () => {
    const turns = getTurn(...first, ...running, said('user', [result, asked]));
    expect(contents(turns)).toEqual([text('Run it.'), [call], [result]]);
    const whole = getView([...first, ...running, said('user', [result])]);
    expect(turns.map(({ turnId }) => turnId)).toEqual([whole.lineage.at(-1)]);
    expect(getTurn(...first, ...running, said('user', [result]), said('user', [asked]))).toEqual(turns);
  });

  it('captures no answered turn, and is recognized by its text only', () => {
    expect(getTurn(...first, said('user', [asked]))).toEqual([]);
    expect(getTurn(...first, ...running, said('user', [result]))).toEqual([]);
  });
});

describe('an unfinished turn', () => {
  const context = { sessionId: 's', atMs: 1 };
  const call = (at: number) => said('assistant', [{ type: 'tool_use', id: `toolu_${at}`, name: 'Bash', input: {} }]);
  const result = (at: number) =>
    said('user', [{ type: 'tool_result', tool_use_id: `toolu_${at}`, content: `${at} passed` }]);
  const rounds = Array.from({ length: 9 }, (_, at) => [call(at), result(at)]).flat();
  const before = [said('user', text('Add a test.')), said('assistant', text('Added.'))];
  const whole = [...before, said('user', text('Run them.')), ...rounds, said('assistant', text('All pass.'))];
  const request = { requestId: 'r', receivedAtMs: 1, path: 'messages', headers: {} } as const;
  const capture = (messages: readonly unknown[], answer: unknown = null) =>
    captureUnfinishedTurn({
      context: { view: getView(messages), sessionId: 's', kind: 'main', request },
      answer,
      sinceMs: 1,
    } as never);

  it('has an id that the complete turn lists, wherever it ended', () => {
    const view = getView([...whole, said('user', text('Thanks.'))]);
    const span = splitTurns(view)[1] as TurnSpan;
    const [turn] = captureTurns(view, [span], context);
    const parts = captureParts(getView(whole.slice(0, -1)), splitParts(view, splitRounds(view, span)), context);
    expect(parts).toHaveLength(1);
    const ids = [turn, ...parts].map((each) => each?.turnId);
    for (let end = before.length + 1; end < whole.length; end += 2) {
      const [unfinished] = capture(whole.slice(0, end));
      expect(unfinished?.messages).toEqual(turn?.messages.slice(0, end - before.length));
      expect(unfinished?.key).toBe(turn?.key);
      expect(turn?.unfinishedIds).toContain(unfinished?.turnId);
      expect(ids).not.toContain(unfinished?.turnId);
    }
    expect(turn?.unfinishedIds).not.toContain(capture(before.slice(0, 1))[0]?.turnId);
  });

  it('has an id that the turn lists in which Claude Code put it together with what was typed next', () => {
    const interrupted = text('[Request interrupted by user]\n');
    const [next, last] = [text('Run one of them.'), text('Stop.')];
    const ids = (messages: readonly unknown[]) => {
      const view = getView([...messages, said('assistant', text('Passed.')), said('user', text('Thanks.'))]);
      const turns = captureTurns(view, splitTurns(view).slice(1, -1), context);
      return turns.map(({ unfinishedIds }) => unfinishedIds);
    };
    const asked = [...before, said('user', text('Run them.'))];
    const [unanswered] = capture(asked);
    for (const more of [next, [...interrupted, ...next]]) {
      const [merged] = ids([...before, said('user', [...text('Run them.\n'), ...more])]);
      expect(merged).toContain(unanswered?.turnId);
    }
    const results = [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '1 passed' }];
    const looped = [...asked, call(1)];
    const [first, second] = [results, [...results, ...interrupted, ...next]].map(
      (content) => capture([...looped, said('user', content)])[0]?.turnId,
    );
    const [ran, merged] = ids([
      ...looped,
      said('user', [...results, ...interrupted, ...text('Run one of them.\n'), ...last]),
    ]);
    expect(ran).toContain(first);
    expect(ran).not.toContain(second);
    expect(merged).toContain(second);
    expect(merged).not.toContain(first);
  });

  it('is one whose answer the user stopped, as the next prompt says', () => {
    const isUnfinished = (next: readonly unknown[], answer = said('assistant', text('I begin with'))) => {
      const view = getView([...before, said('user', text('Run them.')), answer, said('user', next)]);
      return captureTurns(view, splitTurns(view).slice(1, 2), context)[0]?.unfinished;
    };
    const mark = '[Request interrupted by user]\n';
    expect(isUnfinished([...text(mark), ...text('Run one of them.')])).toBe(true);
    expect(isUnfinished(text('Run one of them.'))).toBeUndefined();
    const results = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'Rejected.' };
    const refused = [results, ...text('[Request interrupted by user for tool use]'), ...text('Run one of them.')];
    expect(isUnfinished(refused, call(1))).toBe(true);
  });

  it('has the part of the answer that has arrived', () => {
    const [unfinished] = capture(whole.slice(0, before.length + 1), { content: text('All p') });
    expect(unfinished?.messages.map(({ role, content }) => [role, JSON.parse(content)])).toEqual([
      ['user', text('Run them.')],
      ['assistant', text('All p')],
    ]);
  });
});
