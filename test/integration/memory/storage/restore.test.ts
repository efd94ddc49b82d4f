import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { silentLog } from '../../../../common/log.ts';
import { cutRule } from '../../../../engine/cut-config.ts';
import type { Memory } from '../../../../memory/index.ts';
import type { RunningRewriter } from '../../../../proxy/rewrite/index.ts';
import { scanBody, scanObject } from '../../../../proxy/wire/json.ts';
import { createDisk, openRig } from '../../../helpers/memory-rig.ts';
import { createMemoryPlanStore, openRewriter } from '../../../helpers/open-rewriter.ts';
import {
  type ClientRequest,
  type ConversationPlan,
  conversationPlans,
  growConversation,
  type Reply,
  replyFrom,
} from '../../../helpers/transcripts.ts';
import { talk } from '../../../helpers/turns.ts';
import { createJudge } from '../../../mock-anthropic/index.ts';

const { inject, trim } = Config.parse({ trim: { mode: 'aggressive', triggerTokens: 400, keepTokens: 100 } });

const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

/** Digests of the `content` values in a body, in order. */
function getDigests(body: Buffer): string[] {
  return (scanBody(body)?.messages ?? []).map((at) => {
    const content = scanObject(body, at.start)?.values.get('content') ?? at;
    return sha256(body.subarray(content.start, content.end));
  });
}

/** For each message of the transcript the forms it was sent in; the answer that ends it came last. */
type Sent = Set<string>[];

interface Said {
  readonly sent: Sent;
  readonly replies: readonly Reply[];
  readonly cuts: number;
}

/** @param past  answers of the conversation that this one was forked from, up to turn `from` */
async function say(
  rewriter: RunningRewriter,
  plan: ConversationPlan,
  from = 0,
  past: readonly Reply[] = [],
): Promise<Said> {
  const judge = createJudge({ enforceThinking: false });
  const sent: Sent = [];
  const replies: Reply[] = [];
  let cuts = 0;
  const note = (at: number, digest: string): void => {
    sent[at] = (sent[at] ?? new Set()).add(digest);
  };
  await growConversation(plan, async (request: ClientRequest) => {
    const isPast = request.turn < from;
    const verdict = judge.judge({ body: request.bytes, headers: request.headers, atMs: request.atMs });
    const reply = (isPast ? past[request.index] : undefined) ?? replyFrom(verdict, request);
    replies.push(reply);
    if (reply.refusal !== null) throw new Error(reply.refusal.message);
    const digests = getDigests(request.bytes);
    for (const [at, digest] of digests.entries()) note(at, digest);
    sent.length = digests.length;
    note(digests.length, sha256(JSON.stringify(reply.content)));
    if (isPast) return reply;
    const { headers, bytes: body, atMs: receivedAtMs } = request;
    const message = { requestId: 'r', path: 'messages', headers, body, receivedAtMs } as const;
    const outcome = await rewriter.rewrite(message, new AbortController().signal);
    if (outcome.body.includes('are kept in memory')) cuts += 1;
    const stopReason = reply.content.some((block) => block['type'] === 'tool_use') ? 'tool_use' : 'end_turn';
    const usage = { input: 1, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 1 };
    const answer = { model: plan.model, content: reply.content, stopReason, usage };
    outcome.onResponse({ status: 200, end: 'complete', message: answer, errorText: '' });
    await new Promise(setImmediate);
    return reply;
  });
  return { sent, replies, cuts };
}

async function expectRestored(memory: Memory, sessionId: string, sent: Sent): Promise<void> {
  const restored = await memory.library.restoreSession(sessionId);
  expect(restored.map(({ seq }) => seq)).toEqual(sent.map((_, at) => at));
  restored.forEach((message, at) => {
    expect(sent[at]).toContain(message.sha256);
    expect(sha256(JSON.stringify(message.content)) === message.sha256 || message.redacted === undefined).toBe(true);
  });
}

describe('restore', () => {
  it('gives every message as it was sent, for a fork with what came before it, after a restart too', async () => {
    let cuts = 0;
    let forks = 0;
    const plans = conversationPlans({ turns: 7, rounds: 2, bulk: 600 });
    await fc.assert(
      fc.asyncProperty(plans, plans, fc.integer({ min: 1, max: 6 }), async (plan, other, at) => {
        const disk = createDisk();
        const memory = await openRig(disk, { llm: 'local', model: null });
        let drawn = 0;
        const rewriter = await openRewriter({
          memory: { ...memory.capture, ...memory.recall },
          plans: createMemoryPlanStore(),
          config: { ...inject, memoryDeadlineMs: 5_000, cut: cutRule(trim) },
          clock: { now: () => disk.nowMs },
          randomHex: (bytes) => (drawn++).toString(16).padStart(bytes * 2, '0'),
          log: silentLog,
        });
        const sessionId = crypto.randomUUID();
        const parent = { ...plan, sessionId };
        const first = await say(rewriter, parent);
        const later = other.turns.map((turn) => ({ ...turn, prompt: `Instead: ${turn.prompt}` }));
        // Ids of tool calls are made of the first eight characters.
        const forkId = `${sessionId.slice(0, 8)}${crypto.randomUUID().slice(8)}`;
        const fork = { ...parent, sessionId: forkId, turns: [...plan.turns.slice(0, at), ...later] };
        const second = await say(rewriter, fork, at, first.replies);
        cuts += first.cuts + second.cuts;
        forks += 1;
        await memory.maintenance.flush(10_000);
        await expectRestored(memory, sessionId, first.sent);
        await expectRestored(memory, fork.sessionId, second.sent);
        await memory.maintenance.close();
        const again = await openRig(disk, { llm: 'local', model: null });
        await expectRestored(again, fork.sessionId, second.sent);
        await again.maintenance.close();
      }),
      { numRuns: 12, seed: 20261122, endOnFailure: true },
    );
    expect(forks).toBeGreaterThan(0);
    expect(cuts).toBeGreaterThan(forks);
  });

  it('marks what was redacted', async () => {
    const memory = await openRig(createDisk(), { llm: 'local', model: null });
    const content = JSON.stringify('the key is sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa and no other');
    const messages = [
      { role: 'user' as const, content, sha256: sha256(content) },
      { role: 'assistant' as const, content: '"Noted."', sha256: sha256('"Noted."') },
    ];
    const turn = { key: 'a', turnId: 'b', before: '', sessionId: 's', projectDir: '/p', model: 'm', atMs: 1, messages };
    memory.capture.captureTurns([turn]);
    await memory.maintenance.flush(10_000);
    const restored = await memory.library.restoreSession('s');
    expect(restored[0]).toMatchObject({ redacted: true, content: expect.stringContaining('[REDACTED:') });
    expect(restored[0]?.sha256).not.toBe(sha256(content));
    expect(restored[1]).toEqual({ seq: 1, role: 'assistant', content: 'Noted.', sha256: sha256('"Noted."') });
    await memory.maintenance.close();
  });

  it('continues before a turn of the parent session that was not kept', async () => {
    const memory = await openRig(createDisk(), { llm: 'local', model: null });
    const first = talk('Ship on Tuesday.', 'Noted.');
    const third = { ...talk('Use port 7413.', 'Noted.'), before: 'said while memory was paused' };
    const own = { ...talk('Ask Ines about the key.', 'Noted.', { sessionId: 'fork' }), before: third.turnId };
    memory.capture.captureTurns([{ ...first, before: '' }, third, own]);
    await memory.maintenance.flush(10_000);
    const prompts = (await memory.library.restoreSession('fork')).filter(({ role }) => role === 'user');
    expect(prompts.map(({ content }) => content)).toEqual([
      'Ship on Tuesday.',
      'Use port 7413.',
      'Ask Ines about the key.',
    ]);
    await memory.maintenance.close();
  });
});
