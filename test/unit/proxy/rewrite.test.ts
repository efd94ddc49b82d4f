import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../common/log.ts';
import { readTypedText } from '../../../common/turn.ts';
import type { Receipt } from '../../../proxy/ledger/receipt.ts';
import type { MemoryLine, MessagesRequest, PastPrompt } from '../../../proxy/ports.ts';
import { findTimes } from '../../../proxy/rewrite/capture.ts';
import type { RunningRewriter } from '../../../proxy/rewrite/index.ts';
import { BRIDGE, type PlanRecord } from '../../../proxy/rewrite/plan.ts';
import { ConversationCache, parseConversation } from '../../../proxy/wire/conversation.ts';
import { applyEdits, scanBody } from '../../../proxy/wire/json.ts';
import { isThinking } from '../../../proxy/wire/message.ts';
import { splitTurns } from '../../../proxy/wire/turns.ts';
import { earlyConfig } from '../../fuzz/rewriter-rig.ts';
import { createFakeMemory } from '../../helpers/fake-memory.ts';
import { createMemoryPlanStore, openRewriter } from '../../helpers/open-rewriter.ts';
import { isTrueOf } from '../../helpers/receipt-proof.ts';
import { messagesRequest, newestPlan, type Played, play, rewriterOn } from '../../helpers/rewriter-play.ts';
import {
  type ClientRequest,
  type ConversationPlan,
  conversationPlans,
  growConversation,
  replyFrom,
  seededPlan,
} from '../../helpers/transcripts.ts';
import { createJudge } from '../../mock-anthropic/index.ts';

type Json = Record<string, unknown>;

const config = earlyConfig({ keepRounds: 1_000 });

const proven = ({ request, body }: Played, rewriter: RunningRewriter): void =>
  expect(isTrueOf(rewriter.receipts()[0], request.bytes, body)).toBe(true);

const played = (plan: ConversationPlan, restarts: (index: number) => boolean = () => false) =>
  play(plan, { config, restarts, onAnswered: proven });

const isOurs = (block: unknown): boolean => String((block as Json)['text']).startsWith('<comet-cc-memory');

function getBlocks(message: Json): unknown[] {
  const { content } = message;
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (content as unknown[]);
}

/** What counts for the prompt cache and for signatures: everything but breakpoints and the string form. */
function bound(message: Json): string {
  return JSON.stringify([message['role'], getBlocks(message)], (key, value) =>
    key === 'cache_control' ? undefined : value,
  );
}

function elements(body: Buffer): { parsed: Json[]; system: unknown } {
  const parsed = JSON.parse(body.toString()) as { messages: Json[]; system: unknown };
  return { parsed: parsed.messages, system: parsed.system };
}

/** The attribution differs in each request; the API takes it out before all else. */
function withoutAttribution(system: unknown): unknown {
  return (system as unknown[]).slice(1);
}

/** Index of the first kept message in the request received, and of its counterpart in the one sent. */
function getCut({ request, body }: Played): { received: number; sent: number } {
  const out = elements(body).parsed;
  const bridge = out.findIndex((message) => JSON.stringify(message) === BRIDGE);
  if (bridge < 0) return { received: 0, sent: 0 };
  const inBody = request.body['messages'] as Json[];
  const keptOfOurs = out.slice(bridge + 1).filter((message) => !isInjectedSystem(message));
  return { received: inBody.length - keptOfOurs.length, sent: bridge + 1 };
}

function isInjectedSystem(message: Json): boolean {
  return message['role'] === 'system' && String(message['content']).startsWith('comet-cc recalls');
}

/** Every kept message is the message received, but for our blocks and stripped thinking. */
function expectKeptAsReceived(one: Played): void {
  const cut = getCut(one);
  const received = (one.request.body['messages'] as Json[]).slice(cut.received);
  const sent = elements(one.body)
    .parsed.slice(cut.sent)
    .filter((message) => !isInjectedSystem(message));
  expect(sent.length).toBe(received.length);
  received.forEach((message, index) => {
    const theirs = sent[index] as Json;
    const without = getBlocks(theirs).filter((block) => !isOurs(block));
    const same = JSON.stringify(without) === JSON.stringify(getBlocks(message));
    const sameButThinking =
      JSON.stringify(without.filter((block) => (block as Json)['text'] !== '(no text)')) ===
      JSON.stringify(getBlocks(message).filter((block) => !isThinking(block)));
    expect(same || sameButThinking).toBe(true);
    if (message['role'] === 'user') expect(same).toBe(true);
    if (same && !getBlocks(theirs).some(isOurs))
      expect(one.body.includes(rawMessage(one, cut.received + index))).toBe(true);
  });
}

function rawMessage({ request }: Played, index: number): Buffer {
  const at = scanBody(request.bytes)?.messages[index] as { start: number; end: number };
  return request.bytes.subarray(at.start, at.end);
}

function expectNewestPromptPresent({ request, body }: Played): void {
  const messages = request.body['messages'] as Json[];
  const prompt = messages.findLast(
    (message) =>
      message['role'] === 'user' && getBlocks(message).every((block) => (block as Json)['type'] !== 'tool_result'),
  ) as Json;
  const found = elements(body).parsed.some((message) => {
    const theirs = getBlocks(message).filter((block) => !isOurs(block));
    return bound({ role: message['role'], content: theirs }) === bound(prompt);
  });
  expect(found).toBe(true);
}

/** An epoch starts at a prompt or with a cut, and within it each request begins with all that the one before sent. */
function expectPrefixesKept(sent: readonly Played[]): void {
  for (const [index, one] of sent.entries()) {
    const before = sent[index - 1];
    if (before === undefined || before.plan?.id !== one.plan?.id) {
      expect(one.request.fresh || one.plan?.cut?.through !== before?.plan?.cut?.through).toBe(true);
      continue;
    }
    const [was, is] = [elements(before.body), elements(one.body)];
    expect(is.parsed.slice(0, was.parsed.length).map(bound)).toEqual(was.parsed.map(bound));
    expect(withoutAttribution(is.system)).toEqual(withoutAttribution(was.system));
  }
}

/** Recalls that end only when the prompt was answered. */
function createLateMemory() {
  const memory = createFakeMemory();
  const { recall } = memory;
  let release = (): void => {};
  memory.recall = async (request, signal) => {
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    return recall(request, signal);
  };
  return { memory, release: () => release() };
}

describe('the rewriter', () => {
  it('is refused nothing, keeps what it does not cut, and never moves a prefix within an epoch', async () => {
    let cuts = 0;
    let injections = 0;
    await fc.assert(
      fc.asyncProperty(conversationPlans({ bulk: 400 }), fc.nat(20), async (plan, restartAt) => {
        const { sent, refusals, records } = await played(plan, (index) => index > 0 && index % 20 === restartAt);
        expect(refusals).toEqual([]);
        for (const one of sent) {
          expectNewestPromptPresent(one);
          expectKeptAsReceived(one);
        }
        expectPrefixesKept(sent);
        const made = records.flatMap((record) => (record.kind === 'plan' && record.plan.cut ? [record.plan.cut] : []));
        for (const { preamble, nodeIds } of made) {
          expect(nodeIds.filter((id) => !preamble.includes(`- [${id}] decided (user): keep it`))).toEqual([]);
          expect(nodeIds.filter((id) => !preamble.includes(`value-of-${id}`))).toEqual([]);
        }
        cuts += made.length;
        injections += records.filter((record) => record.kind === 'injections').length;
      }),
      { numRuns: 60, seed: 20261121 },
    );
    expect(cuts).toBeGreaterThan(13);
    expect(injections).toBeGreaterThan(13);
  }, 60_000);

  it('sends a late recall with the next request of its prompt, where that moves no prefix', async () => {
    let delivered = 0;
    await fc.assert(
      fc.asyncProperty(conversationPlans({ bulk: 400, turns: 3 }), async (plan) => {
        const { memory, release } = createLateMemory();
        const onAnswered = (one: Played, rewriter: RunningRewriter): void => {
          release();
          proven(one, rewriter);
        };
        const late = { ...config, memoryDeadlineMs: 1 };
        const { sent, refusals, rewriter } = await play(plan, { config: late, memory, onAnswered });
        expect(refusals).toEqual([]);
        for (const one of sent) expectKeptAsReceived(one);
        expectPrefixesKept(sent);
        const counts = rewriter.recalls();
        expect(counts).toMatchObject({ asked: 3, in_time: 0, failed: 0 });
        expect(counts.late_delivered + counts.late_empty + counts.late_lost + counts.late_waiting).toBe(3);
        const said = new Set(sent.flatMap(({ body }) => body.toString().match(/said [0-9a-f]{8}/g) ?? []));
        expect(said.size).toBeLessThanOrEqual(counts.late_delivered);
        expect(said.size > 0).toBe(counts.late_delivered > 0);
        delivered += counts.late_delivered;
      }),
      { numRuns: 60, seed: 20261123 },
    );
    expect(delivered).toBeGreaterThan(20);
  }, 60_000);

  it('sends the same bytes for a retry, for count_tokens, and after a restart', async () => {
    const { sent, memory, records, rewriter } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
    const last = sent.at(-1) as Played;
    expect(getCut(last).sent).toBeGreaterThan(0);
    const signal = new AbortController().signal;
    const restarted = await rewriterOn(memory, records, config);
    for (const again of [rewriter, restarted]) {
      expect((await again.rewrite(messagesRequest(last.request), signal)).body.equals(last.body)).toBe(true);
      expect((await again.rewrite(messagesRequest(last.request, 'count_tokens'), signal)).body.equals(last.body)).toBe(
        true,
      );
      expect(again.replay(messagesRequest(last.request)).body.equals(last.body)).toBe(true);
    }
    expect(newestPlan(records)).toBeDefined();
  });

  it('writes a receipt for each rewritten request that turns the body received into the one sent', async () => {
    const { sent, rewriter } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
    const receipts = [...rewriter.receipts()].reverse();
    const rewritten = sent.filter((one) => one.rewritten).slice(-receipts.length);
    expect(receipts.length).toBeGreaterThan(10);
    for (const [index, receipt] of receipts.entries()) {
      const { request, body } = rewritten[index] as Played;
      const edits = receipt.edits.map(({ start, end, text }) => ({ start, end, bytes: Buffer.from(text) }));
      expect(applyEdits(request.bytes, edits).equals(body)).toBe(true);
      expect(receipt.received.bytes).toBe(request.bytes.length);
      expect(receipt.sent.sha256).toBe(createHash('sha256').update(body).digest('hex'));
    }
    const last = receipts.at(-1) as Receipt;
    const [gone] = last.dropped;
    expect(gone).toMatchObject({ messages: (gone?.to ?? 0) - (gone?.from ?? 0) + 1 });
    const channels = last.added.map((addition) => addition.channel);
    expect(channels).toContain('preamble');
    expect(channels).toContain('system');
    expect(last.added.length).toBe(last.added.filter((addition) => body(addition)).length);
    function body({ text }: { text: string }): boolean {
      return (sent.at(-1) as Played).body.includes(JSON.stringify(text).slice(1, -1));
    }
  });

  it('brings the earlier plan back when the conversation is rewound to before the cut', async () => {
    const { sent, rewriter } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
    const firstCut = sent.findIndex((one) => getCut(one).sent > 0);
    const before = sent[firstCut - 1] as Played;
    const again = await rewriter.rewrite(messagesRequest(before.request), new AbortController().signal);
    expect(again.body.equals(before.body)).toBe(true);
  });

  it('gives a fork under another session id the plan of its parent', async () => {
    const { sent, rewriter } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
    const last = sent.at(-1) as Played;
    const headers = { ...last.request.headers, 'x-claude-code-session-id': 'another' };
    const fork = await rewriter.rewrite({ ...messagesRequest(last.request), headers }, new AbortController().signal);
    expect(fork.body.equals(last.body)).toBe(true);
  });

  it('does not give another session that starts with the same prompt the plan of the first', async () => {
    const { sent, rewriter, memory } = await played(seededPlan(3, { turns: 1, rounds: 0 }));
    const first = sent[0] as Played;
    memory.sessionContext = async () => ({ brief: [], lines: [] });
    memory.recall = async () => [];
    const headers = { ...first.request.headers, 'x-claude-code-session-id': 'another' };
    const other = await rewriter.rewrite({ ...messagesRequest(first.request), headers }, new AbortController().signal);
    expect(first.rewritten).toBe(true);
    expect(other.body).toBe(first.request.bytes);
  });

  it('names a memory once in the system block of a first prompt, as it was recalled', async () => {
    const { sent, memory } = await played(seededPlan(3, { turns: 1, rounds: 0 }));
    const { lines } = await memory.sessionContext('s', null);
    const node = lines[0] as MemoryLine;
    memory.recall = async () => [{ line: { ...node, text: `${node.text}, "8471, as ever"` }, score: 1 }];
    const rewriter = await rewriterOn(memory, [], config);
    const first = await rewriter.rewrite(messagesRequest((sent[0] as Played).request), new AbortController().signal);
    const text = first.body.toString();
    expect(text.split(node.nodeId)).toHaveLength(2);
    expect(text).toContain('8471, as ever');
  });

  it('strips all thinking once where a session has lost its plans, and cuts at once', async () => {
    const { sent, memory } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
    const sessionId = (sent[0] as Played).request.headers['x-claude-code-session-id'] as string;
    const foreign: PlanRecord = {
      kind: 'plan',
      served: 'f'.repeat(64),
      use: { atMs: 0, model: 'm', effort: '' },
      plan: {
        id: 'old',
        sessionId,
        createdAtMs: 0,
        epoch: 0,
        cut: null,
        rounds: [],
        strippedThrough: null,
        systemBlock: 'ours',
        systemNodeIds: [],
        injections: [],
        broken: false,
      },
    };
    const rewriter = await rewriterOn(memory, [foreign], config);
    const last = sent.findLast((one) => one.request.fresh) as Played;
    const { body } = await rewriter.rewrite(messagesRequest(last.request), new AbortController().signal);
    expect(body.includes('"signature"')).toBe(false);
    expect(body.includes(BRIDGE)).toBe(true);
    expect(createJudge().judge({ body, headers: last.request.headers, atMs: 0 }).refusal).toBeNull();
  });

  describe('a session that was begun without the product', () => {
    const HOUR_MS = 3_600_000;
    const NOW_MS = 100 * HOUR_MS;

    /** The first request that a rewriter sees of it. */
    async function resume(lastAnswerMs: number | null | Promise<never>, prompts: readonly PastPrompt[] = []) {
      const { sent } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
      const { request } = sent.findLast((one) => one.request.fresh) as Played;
      const memory = createFakeMemory();
      const transcripts = { lastAnswerMs: async () => lastAnswerMs, prompts: async () => prompts };
      const deps = { clock: { now: () => NOW_MS }, transcripts };
      const rewriter = await rewriterOn(memory, [], config, deps);
      const rewrite = () => rewriter.rewrite(messagesRequest(request), new AbortController().signal);
      const first = await rewrite();
      const judge = createJudge();
      const { refusal } = judge.judge({ body: first.body, headers: request.headers, atMs: NOW_MS });
      const turns = [...memory.captured.values()];
      return { request, first, rewrite, refusal, turns, memory, isCut: first.body.includes(BRIDGE) };
    }

    it('is cut with its first request when the prompt cache has expired, and stays so', async () => {
      const { request, first, rewrite, refusal, turns, isCut } = await resume(NOW_MS - 2 * HOUR_MS);
      expect(isCut).toBe(true);
      expect(first.body.length).toBeLessThan(request.bytes.length * 0.7);
      expect(first.body.includes('"signature"')).toBe(false);
      expect(refusal).toBeNull();
      expect(new Set(turns.map(({ atMs }) => atMs))).toEqual(new Set([NOW_MS - 2 * HOUR_MS]));
      expect((await rewrite()).body).toEqual(first.body);
    });

    it('dates its turns by the prompts of the transcript', async () => {
      const { turns } = await resume(NOW_MS - 2 * HOUR_MS);
      const typed = turns.map(({ messages }) => {
        const blocks = getBlocks({ content: JSON.parse(messages[0]?.content ?? '') });
        return readTypedText(blocks.flatMap((block) => String((block as Json)['text'] ?? '')));
      });
      expect(typed.length).toBeGreaterThan(4);
      const prompts = typed.map((text, at) => ({ text, atMs: 1_000 * at }));
      const first = { text: 'taken back', atMs: 500 };
      // Cut, and sent whole.
      for (const lastAnswerMs of [NOW_MS - 2 * HOUR_MS, NOW_MS - 60_000]) {
        const { memory } = await resume(lastAnswerMs, [first, ...prompts.slice(1)]);
        const times = () => [...memory.captured.values()].slice(0, 4).map(({ atMs }) => atMs);
        await expect.poll(times).toEqual([500, 1_000, 2_000, 3_000]);
      }
    });

    it('dates a turn that begins with an attached file by the prompt behind it', () => {
      const file = '<system-reminder>\nCalled the Read tool with the following input: {}\n</system-reminder>';
      const said = [
        ['user', 'Hello.'],
        ['assistant', 'Hi.'],
        ['user', file],
        ['user', 'See @a.md.'],
        ['assistant', 'Ok.'],
      ];
      const messages = said.map(([role, content]) => ({ role, content }));
      const view = parseConversation(Buffer.from(JSON.stringify({ messages })), new ConversationCache());
      if (view === null) throw new Error('not parsed');
      const prompts = ['Hello.', 'See @a.md.'].map((text, at) => ({ text, atMs: at + 1 }));
      expect([...findTimes(view, splitTurns(view), prompts).values()]).toEqual([1, 2]);
    });

    it.each([
      ['while the prompt cache may have it', NOW_MS - 60_000],
      ['where no transcript says when it ended', null],
      ['where the transcript cannot be read in time', new Promise<never>(() => {})],
    ])('is sent whole %s', async (_, lastAnswerMs) => {
      const { first, isCut } = await resume(lastAnswerMs);
      expect(isCut).toBe(false);
      expect(first.body.includes('"signature"')).toBe(true);
    });
  });

  it('drops a plan that upstream refused, and continues without thinking', async () => {
    const { sent, rewriter } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
    const last = sent.findLast((one) => one.request.fresh) as Played;
    const signal = new AbortController().signal;
    const outcome = await rewriter.rewrite(messagesRequest(last.request), signal);
    const errorText = 'messages.5.content.0: the thinking block is bound to a different conversation';
    outcome.onResponse({ status: 400, end: 'complete', message: null, errorText });
    const next = await rewriter.rewrite(messagesRequest(last.request), signal);
    expect(next.body.includes('"signature"')).toBe(false);
    expect(next.body.includes(BRIDGE)).toBe(outcome.body.includes(BRIDGE));
  });

  /** What the product's rules refuse and a later API may accept. */
  const oddities: [string, (body: Json) => Json][] = [
    ['a message key', (body) => changeLast(body, (message) => ({ ...message, annotations: [] }))],
    ['a ttl', (body) => ({ ...body, cache_control: { type: 'ephemeral', ttl: '24h' } })],
    ['a system block', (body) => addToLast(body, [{ role: 'system', content: [{ type: 'notice', text: 'x' }] }])],
    ['a blank text', (body) => addToLast(body, [{ role: 'user', content: [{ type: 'text', text: ' ' }] }])],
  ];

  const changeLast = (body: Json, change: (message: Json) => Json): Json => {
    const messages = body['messages'] as Json[];
    return { ...body, messages: [...messages.slice(0, -1), change(messages.at(-1) as Json)] };
  };
  const addToLast = (body: Json, more: Json[]): Json => ({
    ...body,
    messages: [...(body['messages'] as Json[]), ...more],
  });

  it('replays its plan byte for byte when the rewriter failed or was late', async () => {
    const { sent, rewriter } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
    const last = sent.findLast((one) => one.request.fresh) as Played;
    expect(last.body.includes(BRIDGE)).toBe(true);
    expect(rewriter.replay(messagesRequest(last.request)).body).toEqual(last.body);
  });

  it.each(oddities)('checks and heals its rewrites of a request with %s that it does not know', async (_, change) => {
    const { sent, memory, records } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
    const last = sent.findLast((one) => one.request.fresh) as Played;
    const request = { ...messagesRequest(last.request), body: Buffer.from(JSON.stringify(change(last.request.body))) };
    const signal = new AbortController().signal;
    const spoilt = records.map((record) =>
      record.kind === 'plan' && record.plan.cut !== null
        ? { ...record, plan: { ...record.plan, cut: { ...record.plan.cut, preamble: '' } } }
        : record,
    );
    expect(last.body.includes(BRIDGE)).toBe(true);
    const checked = await (await rewriterOn(memory, spoilt, config)).rewrite(request, signal);
    expect(checked.body.includes('"text":""')).toBe(false);

    const rewriter = await rewriterOn(memory, [...records], config);
    const refused = await rewriter.rewrite(request, signal);
    expect(refused.body.includes(BRIDGE)).toBe(true);
    const errorText = JSON.stringify({ error: { message: 'messages.2: what comes here is not known' } });
    refused.onResponse({ status: 400, end: 'complete', message: null, errorText });
    const next = await rewriter.rewrite(request, signal);
    expect(next.body.includes(BRIDGE)).toBe(false);
    expect(next.body.includes('comet-cc')).toBe(false);
  });

  it.each([
    'messages.4.content.0.image.source.base64: image exceeds 5 MB maximum',
    "messages.1.role: Input should be 'user' or 'assistant'",
    'prompt is too long: 210000 tokens > 200000 maximum',
  ])('keeps its plan where the request received would be refused as well: %s', async (message) => {
    const { sent, rewriter } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
    const last = sent.findLast((one) => one.request.fresh) as Played;
    const odd = addToLast(last.request.body, [{ role: 'tool', content: 'x' }]);
    const request = { ...messagesRequest(last.request), body: Buffer.from(JSON.stringify(odd)) };
    const signal = new AbortController().signal;
    const refused = await rewriter.rewrite(request, signal);
    const errorText = JSON.stringify({ error: { message } });
    refused.onResponse({ status: 400, end: 'complete', message: null, errorText });
    expect((await rewriter.rewrite(request, signal)).body).toEqual(refused.body);
    expect(refused.body.includes(BRIDGE)).toBe(true);
  });

  it('leaves subagents, titles, probes, our own children and what it cannot read as they came', async () => {
    const memory = createFakeMemory();
    const rewriter = await rewriterOn(memory, [], config);
    const [step] = await growConversation(seededPlan(5, { turns: 1 }), (request) =>
      replyFrom(createJudge().judge({ body: request.bytes, headers: request.headers, atMs: 0 }), request),
    );
    const { request } = step as { request: ClientRequest };
    const base = messagesRequest(request);
    const json = (change: Json): Buffer => Buffer.from(JSON.stringify({ ...request.body, ...change }));
    const cases: MessagesRequest[] = [
      { ...base, headers: { ...base.headers, 'x-claude-code-agent-id': 'a1' } },
      { ...base, headers: { ...base.headers, 'x-claude-code-request-class': 'subagent' } },
      { ...base, headers: { ...base.headers, 'x-claude-code-request-class': 'auxiliary' } },
      { ...base, headers: { ...base.headers, 'x-comet-cc-child': '1' } },
      { ...base, body: json({ tools: [] }) },
      { ...base, body: json({ max_tokens: 1 }) },
      { ...base, body: Buffer.from('not json') },
      { ...base, body: json({ messages: [] }) },
      { ...base, body: request.bytes.subarray(0, -5) },
    ];
    for (const one of cases) {
      const outcome = await rewriter.rewrite(one, new AbortController().signal);
      expect(outcome.body).toBe(one.body);
    }
    expect(memory.captured.size).toBe(0);
  });

  it('gives the first prompt and a cut more time for memory, and other requests none', async () => {
    const { sent, memory } = await played(seededPlan(3, { turns: 10, bulk: 400 }));
    const records: PlanRecord[] = [];
    const rewriter = await rewriterOn(memory, records, { ...config, memoryDeadlineMs: 150 });
    const countPlans = (): number => records.filter(({ kind }) => kind === 'plan').length;
    for (const { request } of sent) {
      const before = countPlans();
      let moreMs = 0;
      const extendDeadline = (ms: number): void => {
        moreMs += ms;
      };
      await rewriter.rewrite({ ...messagesRequest(request), extendDeadline }, new AbortController().signal);
      expect(moreMs).toBe(countPlans() > before ? 450 : 0);
    }
    expect(countPlans()).toBeGreaterThan(1);
    expect(countPlans()).toBeLessThan(sent.length / 2);
  });

  it('replays without anything new when memory fails or hangs', async () => {
    const { sent, records } = await played(seededPlan(3, { turns: 6, bulk: 400 }));
    const memory = createFakeMemory();
    memory.recall = () => Promise.reject(new Error('index gone'));
    memory.sessionContext = () => new Promise(() => {});
    const rewriter = await openRewriter({
      memory,
      plans: createMemoryPlanStore(records.slice(0, -1)),
      config: { ...config, memoryDeadlineMs: 1 },
      clock: { now: () => 0 },
      randomHex: () => 'ab',
      log: silentLog,
    });
    const last = sent.findLast((one) => one.request.fresh) as Played;
    const outcome = await rewriter.rewrite(messagesRequest(last.request), new AbortController().signal);
    expect(
      createJudge({ enforceThinking: false }).judge({ body: outcome.body, headers: last.request.headers, atMs: 0 })
        .refusal,
    ).toBeNull();
  });
});

it('marks a turn that a schedule prompted as untyped, also when it is captured from the history of a later request', async () => {
  const memory = createFakeMemory();
  const rewriter = await rewriterOn(memory, [], config);
  const say = (role: string, text: string): Json => ({ role, content: [{ type: 'text', text }] });
  const messages = [say('user', 'Hello.'), say('assistant', 'Hi.'), say('user', 'Check the queue.')];
  const ask = async (list: readonly Json[], origin: string): Promise<void> => {
    const system = [{ type: 'text', text: `x-anthropic-billing-header: cc_entrypoint=cli; cc_turn_origin=${origin};` }];
    const body = Buffer.from(JSON.stringify({ model: 'claude-opus-5-5', tools: [{}], system, messages: list }));
    const request = { requestId: origin, path: 'messages' as const, headers: {}, body, receivedAtMs: 0 };
    await rewriter.rewrite(request, AbortSignal.timeout(5_000));
  };
  await ask(messages, 'scheduled');
  await ask([...messages, say('assistant', 'It is empty.'), say('user', 'Good.')], 'human');
  await setImmediate();
  const untyped = [...memory.captured.values()].map(({ untyped: is, messages: [first] }) => [first?.content, is]);
  expect(untyped).toEqual([
    [expect.stringContaining('Hello.'), undefined],
    [expect.stringContaining('Check the queue.'), true],
  ]);
});

describe('an unfinished turn', () => {
  const runAll = (_: Played, rewriter: RunningRewriter): void => rewriter.captureUnfinished(() => true);

  it('is captured after any request, and the complete turn lists its id', async () => {
    const run = async (plan: ConversationPlan): Promise<void> => {
      const { memory, refusals, sent } = await play(plan, { config, onAnswered: runAll });
      expect(refusals).toEqual([]);
      const turns = [...memory.captured.values()];
      const unfinishedTurns = turns.filter(({ unfinished }) => unfinished === true);
      const rounds = plan.turns.reduce((sum, turn) => sum + turn.rounds.length, 0);
      expect(unfinishedTurns).toHaveLength(rounds);
      expect(sent).toHaveLength(rounds + plan.turns.length);
      const whole = turns.filter(({ unfinished, part }) => unfinished !== true && part === undefined);
      for (const { key, turnId, messages } of unfinishedTurns) {
        expect(messages.at(-1)?.role).toBe('assistant');
        for (const turn of whole.filter((each) => each.key === key)) expect(turn.unfinishedIds).toContain(turnId);
      }
      expect(new Set(whole.map(({ key }) => key)).size).toBe(plan.turns.length);
    };
    await fc.assert(fc.asyncProperty(conversationPlans({ models: ['claude-opus-4-8'] }), run), { numRuns: 20 });
  });

  it('is visible to a recall for what was typed after it, in the same message or behind an answer of the client', async () => {
    const memory = createFakeMemory();
    const visible: ReadonlySet<string>[] = [];
    const { recall } = memory;
    memory.recall = (request, signal) => {
      visible.push(request.visibleTurns);
      return recall(request, signal);
    };
    const rewriter = await rewriterOn(memory, [], config);
    const say = (role: string, ...texts: string[]) => ({
      role,
      content: texts.map((text) => ({ type: 'text', text })),
    });
    const ask = (...messages: ReturnType<typeof say>[]) => {
      const body = Buffer.from(JSON.stringify({ model: 'claude-opus-5-5', tools: [{}], system: [], messages }));
      const request = { requestId: 'r', path: 'messages' as const, headers: {}, body, receivedAtMs: 0 };
      return rewriter.rewrite(request, AbortSignal.timeout(5_000));
    };
    const first = say('user', 'Where is the key?');
    await ask(first);
    rewriter.captureUnfinished(() => true);
    const [turnId] = memory.captured.keys();
    await ask(say('user', 'Where is the key?\n', 'And the door?'));
    expect(visible.at(-1)).toContain(turnId);
    await ask(first, say('assistant', 'No response requested.'), say('user', 'And the door?'));
    expect(visible.at(-1)).toContain(turnId);
  });

  it('stays withheld where an image alone began it, though its message has another form later', async () => {
    const memory = createFakeMemory();
    const marks = new Set<string>();
    let captures = false;
    const policy = {
      of: () => ({ captures, adds: false }),
      withhold: (key: string, _: string, mark: string) => void marks.add(key).add(mark),
      hasWithheld: (_: string, mark: string) => marks.has(mark),
    };
    const deps = { plans: createMemoryPlanStore(), randomHex: () => 'ab', memory, config, clock: { now: () => 0 } };
    const rewriter = await openRewriter({ ...deps, policy });
    const ask = (...messages: readonly object[]) => {
      const body = Buffer.from(JSON.stringify({ model: 'claude-opus-5-5', tools: [{}], system: [], messages }));
      const request = { requestId: 'r', path: 'messages' as const, headers: {}, body, receivedAtMs: 0 };
      return rewriter.rewrite(request, AbortSignal.timeout(5_000));
    };
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
    const reminder = { type: 'text', text: '<system-reminder>\nThe date changed.\n</system-reminder>' };
    await ask({ role: 'user', content: [{ ...image, cache_control: { type: 'ephemeral' } }] });
    captures = true;
    await ask({ role: 'user', content: [reminder, image] });
    rewriter.captureUnfinished(() => true);
    expect(memory.captured.size).toBe(0);
    marks.clear();
    await ask({ role: 'user', content: [reminder, image] });
    // A pause that begins later does not concern it.
    captures = false;
    rewriter.captureUnfinished(() => true);
    expect(memory.captured.size).toBe(1);
  });

  it('is not captured where capture is off, and not once it is answered', async () => {
    const memory = createFakeMemory();
    const off = { of: () => ({ captures: false, adds: false }), withhold: () => undefined, hasWithheld: () => true };
    const clock = { now: () => 0 };
    const deps = { plans: createMemoryPlanStore(), randomHex: () => 'ab', memory, config, clock };
    const rewriter = await openRewriter({ ...deps, policy: off });
    const { sent } = await played(seededPlan(5, { turns: 2 }));
    await rewriter.rewrite(messagesRequest((sent[0] as Played).request), AbortSignal.timeout(5_000));
    rewriter.captureUnfinished(() => true);
    expect(memory.captured.size).toBe(0);
    const { memory: told, rewriter: other } = await play(seededPlan(5, { turns: 2 }), { config });
    const before = [...told.captured.keys()];
    other.captureUnfinished(() => true);
    expect([...told.captured.keys()]).toEqual(before);
  });
});

describe('a client that states its working directory in an unknown place', () => {
  const ask = async (rewriter: RunningRewriter, version: string, system: string, times: number): Promise<void> => {
    for (let at = 0; at < times; at += 1) {
      const messages = [{ role: 'user', content: `Question ${at}.` }];
      const body = Buffer.from(
        JSON.stringify({ model: 'claude-opus-5-5', max_tokens: 9, tools: [{}], system, messages }),
      );
      const headers = { 'user-agent': `claude-cli/${version} (external, cli)` };
      const request = { requestId: `${version} ${at}`, path: 'messages' as const, headers, body, receivedAtMs: 0 };
      await rewriter.rewrite(request, AbortSignal.timeout(5_000));
    }
  };

  it('is reported after five requests, unless another request of that version states one', async () => {
    const rewriter = await rewriterOn(createFakeMemory(), [], config);
    await ask(rewriter, '2.1.332', ' - Primary working directory: /home/dev/shop', 1);
    await ask(rewriter, '2.1.332', 'You are terse.', 9);
    await ask(rewriter, '2.9.0', 'You are terse.', 4);
    expect(rewriter.problems()).toEqual([]);
    await ask(rewriter, '2.9.0', 'You are terse.', 1);
    expect(rewriter.problems()).toEqual([
      { file: 'client', message: 'claude-cli/2.9.0 states no working directory, so its memories belong to no project' },
    ]);
    await ask(rewriter, '2.9.0', ' - Primary working directory: /home/dev/shop', 1);
    expect(rewriter.problems()).toEqual([]);
  });
});
