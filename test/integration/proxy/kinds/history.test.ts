import { describe, expect, it } from 'vitest';
import { BRIDGE } from '../../../../proxy/rewrite/plan.ts';
import { canonicalizeMessage } from '../../../../proxy/wire/message.ts';
import { createTerminal } from '../../../fuzz/fake-client.ts';
import { createWireRig, type Exchange, earlyCuts, type Json } from '../../../fuzz/rewriter-rig.ts';
import { getText, isThinkingFree, left, oursIn, step, talkativeMemory, walk } from '../../../fuzz/story.ts';

const DAY_MS = 86_400_000;

interface Message {
  readonly role: string;
  readonly content: unknown;
}

/** As the prompt cache compares them. */
function sentMessages({ sent }: Exchange): string[] {
  const { messages } = JSON.parse(sent.toString()) as { messages: Message[] };
  return messages.map(canonicalizeMessage);
}

async function begun(turns: number, options: Parameters<typeof createWireRig>[0] = {}) {
  const rig = await createWireRig(options);
  const terminal = createTerminal(rig);
  return { rig, terminal, last: await walk(terminal, 1, turns) };
}

describe('what becomes of a history', () => {
  it('a retry gets the identical rewrite, even one of the request that began an epoch', async () => {
    const { rig, terminal } = await begun(5);
    for (let number = 6; number < 10; number += 1) {
      const [first] = await terminal.ask(step(number));
      if (first === undefined) throw new Error('nothing was asked');
      expect((await rig.send(first.request)).sent.equals(first.sent)).toBe(true);
    }
    expect(left(await terminal.again())).toBeGreaterThan(0);
  });

  it('a resume after days in a new engine uses its plan, and a cold cache cuts at once', async () => {
    const margin = earlyCuts({ margin: 9 });
    const { rig, terminal, last } = await begun(8, { config: { cut: margin } });
    expect(left(last)).toBe(0); // warm, and not paid for yet
    await rig.restart();
    expect((await terminal.again()).sent.equals(last.sent)).toBe(true);
    rig.clock.nowMs += 3 * DAY_MS;
    expect(left(await walk(terminal, 9, 9))).toBeGreaterThan(0);
  });

  it('a fork and a branch of it go on with the plan of their parent, under ids of their own, over a restart', async () => {
    const seldom = earlyCuts({ minDropShare: 0.6, keepTurns: 3 });
    const { rig, terminal, last } = await begun(9, { memory: talkativeMemory(), config: { cut: seldom } });
    const fork = terminal.fork('00000000-0000-4000-8000-000000000000'); // its file comes before its parent's
    const own = await walk(fork, 20, 20);
    const shared = oursIn(last);
    expect(shared.length).toBeGreaterThan(3);
    expect(oursIn(own)).toEqual(expect.arrayContaining([...shared]));
    await rig.restart();
    expect((await fork.again()).sent.equals(own.sent)).toBe(true);
    const branch = fork.fork('ffffffff-0000-4000-8000-000000000000');
    expect(oursIn(await walk(branch, 30, 30))).toEqual(expect.arrayContaining([...shared]));
    expect((await terminal.again()).sent.equals(last.sent)).toBe(true);
  });

  it('a fork keeps what it recalls in its own file, and adds nothing to its parent', async () => {
    const { rig, terminal } = await begun(3, { memory: talkativeMemory(), config: { cut: null } });
    const fork = terminal.fork('00000000-0000-4000-8000-000000000000');
    await walk(fork, 20, 22);
    const plans = rig.records.filter((record) => record.kind === 'plan');
    const of = (id: string) => plans.filter((record) => record.plan.sessionId === id).map((record) => record.plan.id);
    const grownBy = (ids: readonly string[]) =>
      rig.records.filter((record) => record.kind === 'injections' && ids.includes(record.planId)).length;
    expect(grownBy(of(fork.shape.sessionId))).toBe(3);
    expect(grownBy(of(terminal.shape.sessionId))).toBe(2);
  });

  it('a rewind brings the earlier plans back into force, one after the other', async () => {
    const { terminal } = await begun(14);
    const cuts = terminal.said.map(({ exchange }) => left(exchange));
    expect(new Set(cuts).size).toBeGreaterThan(2); // uncut, cut, cut again
    for (const turns of [4, 6]) {
      terminal.rewind(turns);
      const { entries } = terminal.shape;
      const then = terminal.said.find((one) => one.entries.length === entries.length + 1);
      if (then === undefined) throw new Error('no request ended there');
      const now = (await terminal.ask({ prompt: 'Take another way.', answer: 'Fine.' }))[0];
      expect(now?.refusal).toBeNull();
      expect(left(now as never)).toBeLessThanOrEqual(left(then.exchange));
      terminal.rewind(1);
    }
  });

  it('a refused plan is replaced by a new cut if the history exceeds the context window', async () => {
    const rig = await createWireRig();
    const terminal = createTerminal(rig, { model: 'claude-haiku-4-5' });
    const last = await walk(terminal, 1, 30, 10_000);
    expect(left(last)).toBeGreaterThan(0);
    const { judge } = rig.judge;
    const refusal = { status: 400, type: 'invalid_request_error', message: 'messages.2: not known' } as const;
    rig.judge.judge = () => ({ refusal });
    await terminal.ask(step(31));
    rig.judge.judge = judge;
    const again = await terminal.again();
    const { bytes: body, headers } = again.request;
    expect(judge({ body, headers, atMs: rig.clock.nowMs }).refusal?.message).toContain('prompt is too long');
    expect(again.refusal).toBeNull();
    expect(left(again)).toBeGreaterThan(0);
    expect(getText(again)).not.toEqual(getText(last));
  });

  it('what an abandoned branch was shown may be recalled again', async () => {
    const memory = talkativeMemory();
    const shown: string[][] = [];
    const { recall } = memory;
    memory.recall = (request, signal) => {
      shown.push([...request.shown]);
      return recall(request, signal);
    };
    const { terminal } = await begun(3, { memory });
    terminal.rewind(1);
    await terminal.ask({ prompt: 'Take another way.' });
    expect(shown.at(-1)).not.toContainEqual(expect.stringContaining('for Step 3'));
    expect(shown.at(-1)).toContainEqual(expect.stringContaining('for Step 2'));
  });

  it('what a cut leaves out of its preamble counts as shown no more', async () => {
    const memory = talkativeMemory();
    let shown: string[] = [];
    const { recall } = memory;
    memory.recall = (request, signal) => {
      shown = [...request.shown];
      return recall(request, signal);
    };
    const rig = await createWireRig({ memory, config: { preambleTokens: 60 } });
    const terminal = createTerminal(rig);
    let compared = 0;
    for (let number = 1; number <= 16; number += 1) {
      const { sent } = await walk(terminal, number, number);
      const text = sent.toString();
      for (const line of shown) expect(text).toContain(JSON.stringify(line).slice(1, -1));
      compared += shown.length;
    }
    expect(compared).toBeGreaterThan(16);
  });

  it('/compact begins a new lineage under the same id, memory kept, and nothing stale is refused', async () => {
    const { rig, terminal } = await begun(8);
    const captured = rig.memory.captured.size;
    const asked = await terminal.compact();
    expect(getText(asked)).toContain('Earlier turns of this conversation'); // it summarises what was sent
    const [first] = await terminal.ask(step(9));
    expect(first).toMatchObject({ refusal: null, rewritten: true });
    expect(isThinkingFree(first as never)).toBe(true);
    expect(getText(first as never)).not.toContain(BRIDGE);
    expect(left(await walk(terminal, 10, 16))).toBeGreaterThan(0); // and is cut again when it has grown
    expect(rig.memory.captured.size).toBeGreaterThan(captured);
    expect([...rig.memory.captured.values()].some(({ messages }) => JSON.stringify(messages).includes('Step 2:'))).toBe(
      true,
    );
  });

  it('an automatic compaction next to the last tool result is no turn', async () => {
    const { rig, terminal } = await begun(6);
    const { entries } = terminal.shape;
    terminal.become({ entries: entries.slice(0, -1) }); // the newest message is a tool result
    const before = rig.records.length;
    const asked = await terminal.aside('CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.', {
      'x-claude-code-request-class': 'compaction',
      'x-claude-code-compaction': 'auto',
    });
    expect(asked).toMatchObject({ refusal: null, rewritten: true });
    expect(rig.records.slice(before).filter(({ kind }) => kind !== 'served')).toEqual([]);
    await terminal.compact();
    expect((await walk(terminal, 7, 8)).refusal).toBeNull();
  });

  it('a summary asked for in place of the prompt or behind the results that a cut came with is cut as well', async () => {
    const { rig, terminal } = await begun(0);
    const long = { ...step(9), rounds: Array.from({ length: 14 }, (_, at) => step(at).rounds ?? []).flat() };
    let before = 0;
    const found = { prompt: 0, results: 0 };
    for (const turn of [...[1, 2, 3, 4, 5, 6, 7, 8].map((number) => step(number)), long]) {
      const exchanges = await terminal.ask(turn);
      const exchange = exchanges.findLast(
        (each, at) => left(each) > (at === 0 ? before : left(exchanges[at - 1] as Exchange)),
      );
      before = left(exchanges.at(-1) as Exchange);
      if (exchange === undefined) continue;
      const { messages, ...rest } = JSON.parse(exchange.request.bytes.toString()) as { messages: Message[] };
      const asked = { type: 'text', text: 'CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.' };
      const at = messages.findLastIndex(({ role }) => role === 'user');
      const results = ((messages[at]?.content ?? []) as Json[]).filter(({ type }) => type === 'tool_result');
      const body = { ...rest, messages: [...messages.slice(0, at), { role: 'user', content: [...results, asked] }] };
      const headers = { ...exchange.request.headers, 'x-claude-code-request-class': 'compaction' };
      const summary = await rig.send({ ...exchange.request, headers, bytes: Buffer.from(JSON.stringify(body)) });
      expect(summary.refusal).toBeNull();
      expect(left(summary)).toBe(left(exchange));
      const [sent, known] = [sentMessages(summary).slice(0, -1), sentMessages(exchange)];
      expect(sent).toEqual(known.slice(0, sent.length));
      found[results.length > 0 ? 'results' : 'prompt'] += 1;
    }
    expect(found.prompt).toBeGreaterThan(0);
    expect(found.results).toBeGreaterThan(0);
  });

  it('a fork that is compacted before its first turn is known all the same', async () => {
    const { terminal } = await begun(6);
    const fork = terminal.fork('bbbbbbbb-0000-4000-8000-000000000000');
    await fork.compact();
    expect(await walk(fork, 7, 8)).toMatchObject({ refusal: null, rewritten: true });
  });

  it('/clear starts a conversation under another id without the old one', async () => {
    const { rig, terminal } = await begun(8);
    terminal.become({ sessionId: 'cccccccc-0000-4000-8000-000000000000', entries: [] });
    const fresh = await walk(terminal, 51, 52);
    expect(left(fresh)).toBe(0);
    expect(getText(fresh)).not.toContain('Earlier turns');
    expect(rig.epochs(terminal.shape.sessionId)).toBe(1);
  });

  it('two terminals on one id keep to their own branches', async () => {
    const { terminal } = await begun(4);
    const other = terminal.fork(terminal.shape.sessionId);
    for (let number = 5; number < 12; number += 1) {
      const mine = await walk(terminal, number, number);
      const theirs = await walk(other, number + 100, number + 100);
      expect(getText(mine)).not.toContain(`Step ${number + 99}:`);
      expect((await terminal.again()).sent.equals(mine.sent)).toBe(true);
      expect((await other.again()).sent.equals(theirs.sent)).toBe(true);
    }
    expect(left(await terminal.again())).toBeGreaterThan(0);
    expect(left(await other.again())).toBeGreaterThan(0);
  });

  it('turns that went past us come back without a refusal: their thinking is bound to what we did not send', async () => {
    const { terminal } = await begun(8);
    for (const exchange of await terminal.ask(step(9), 'past')) expect(exchange.refusal).toBeNull();
    const back = await terminal.aside('[SUGGESTION MODE: say what comes next]');
    expect(back).toMatchObject({ refusal: null, rewritten: true });
    const [first] = await terminal.ask(step(10));
    expect(first).toMatchObject({ refusal: null, rewritten: true });
    expect(isThinkingFree(first as never)).toBe(true);
    expect(left(first as never)).toBeGreaterThan(0);
    expect(isThinkingFree(await walk(terminal, 11, 11))).toBe(false); // and thinks on
  });

  it('a redacted answer that went past us to the same prompt is told from that which did not', async () => {
    const { terminal } = await begun(3);
    const turn = { prompt: 'Say it.', closing: [{ type: 'redacted_thinking' }, { type: 'text', text: 'It.' }] };
    await terminal.ask(turn);
    terminal.rewind(1);
    await terminal.ask(turn, 'past');
    const [next] = await terminal.ask(step(4));
    expect(next?.refusal).toBeNull();
  });

  it('old tool results that the client clears are no refusal', async () => {
    const { terminal } = await begun(8);
    terminal.clearResults();
    expect(await walk(terminal, 9, 10)).toMatchObject({ refusal: null, rewritten: true });
  });
});
