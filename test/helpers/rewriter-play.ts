import { silentLog } from '../../common/log.ts';
import type { MessagesRequest } from '../../proxy/ports.ts';
import type { RewriterConfig, RewriterDeps, RunningRewriter } from '../../proxy/rewrite/index.ts';
import type { EpochPlan, PlanRecord } from '../../proxy/rewrite/plan.ts';
import { createJudge } from '../mock-anthropic/index.ts';
import { createFakeMemory, type FakeMemory } from './fake-memory.ts';
import { createMemoryPlanStore, openRewriter } from './open-rewriter.ts';
import { type ClientRequest, type ConversationPlan, growConversation, replyFrom } from './transcripts.ts';

export interface Played {
  readonly request: ClientRequest;
  readonly body: Buffer;
  readonly rewritten: boolean;
  /** The epoch it went out in. */
  readonly plan: EpochPlan | undefined;
}

export interface PlayOptions {
  readonly config: RewriterConfig;
  readonly memory?: FakeMemory;
  /** Before which requests the rewriter starts anew. */
  readonly restarts?: (index: number) => boolean;
  readonly deps?: Partial<Pick<RewriterDeps, 'ledger' | 'clock' | 'transcripts'>>;
  readonly onAnswered?: (played: Played, rewriter: RunningRewriter) => unknown;
}

export async function rewriterOn(
  memory: FakeMemory,
  records: PlanRecord[],
  config: RewriterConfig,
  deps: PlayOptions['deps'] = {},
): Promise<RunningRewriter> {
  let drawn = 0;
  const randomHex = (bytes: number): string => (drawn++).toString(16).padStart(bytes * 2, records.length.toString(16));
  const plans = createMemoryPlanStore(records);
  return openRewriter({ memory, plans, config, clock: { now: () => 0 }, randomHex, log: silentLog, ...deps });
}

export function messagesRequest(
  request: ClientRequest,
  path: 'messages' | 'count_tokens' = 'messages',
): MessagesRequest {
  return { requestId: `r${request.index}`, path, headers: request.headers, body: request.bytes, receivedAtMs: 0 };
}

export function newestPlan(records: readonly PlanRecord[]): EpochPlan | undefined {
  return records.findLast((record) => record.kind === 'plan')?.plan;
}

/** Plays a conversation through the rewriter against the rules of the API. */
export async function play(plan: ConversationPlan, options: PlayOptions) {
  const { config, memory = createFakeMemory(), restarts = () => false, deps, onAnswered = () => {} } = options;
  const records: PlanRecord[] = [];
  const judge = createJudge();
  let rewriter = await rewriterOn(memory, records, config, deps);
  const sent: Played[] = [];
  const steps = await growConversation(plan, async (request) => {
    if (restarts(request.index)) rewriter = await rewriterOn(memory, records, config, deps);
    const {
      body,
      rewritten,
      onResponse: seen,
    } = await rewriter.rewrite(messagesRequest(request), new AbortController().signal);
    const played = { request, body, rewritten, plan: newestPlan(records) };
    sent.push(played);
    const reply = replyFrom(judge.judge({ body, headers: request.headers, atMs: request.atMs }), request);
    const whole = { end: 'complete' } as const;
    if (reply.refusal === null) {
      const { content } = reply;
      const stopReason = content.some((block) => block['type'] === 'tool_use') ? 'tool_use' : 'end_turn';
      const usage = { input: 1, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 1 };
      seen({
        ...whole,
        status: 200,
        errorText: '',
        message: { model: plan.model, content, stopReason, usage },
      });
    } else seen({ ...whole, status: 400, errorText: JSON.stringify(reply.refusal), message: null });
    await onAnswered(played, rewriter);
    await new Promise(setImmediate); // turns are handed to memory off the path of the request
    return reply;
  });
  const refusals = steps.flatMap(({ reply }) => (reply.refusal === null ? [] : [reply.refusal.message]));
  return { memory, records, sent, refusals, rewriter };
}
