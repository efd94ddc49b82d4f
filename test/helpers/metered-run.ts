import { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { type CostLedger, openCostLedger } from '../../proxy/ledger/index.ts';
import type { LossRule } from '../../proxy/ledger/ledger.ts';
import { openReceipts, type Receipt, type Receipts } from '../../proxy/ledger/receipt.ts';
import type { LedgerStore } from '../../proxy/ledger/store.ts';
import type { Usage } from '../../proxy/ports.ts';
import type { RewriterConfig, RunningRewriter } from '../../proxy/rewrite/index.ts';
import type { PlanStore } from '../../proxy/rewrite/plan-store.ts';
import { createJudge } from '../mock-anthropic/index.ts';
import { createFakeMemory } from './fake-memory.ts';
import { createMemoryRecords } from './memory-records.ts';
import { createMemoryPlanStore, openRewriter } from './open-rewriter.ts';
import { type ClientRequest, type ConversationPlan, growConversation, replyFrom } from './transcripts.ts';

export interface BilledStep {
  readonly request: ClientRequest;
  readonly body: Buffer;
  /** Of the body sent, and of the body received had it been sent instead. */
  readonly usage: Usage;
  readonly direct: Usage;
  readonly costs: { readonly sent: number; readonly direct: number };
  readonly ledger: CostLedger;
}

export interface BilledPlay {
  readonly steps: readonly BilledStep[];
  /** By upstream; the play ends with the first. */
  readonly refusals: readonly string[];
  readonly ledger: CostLedger;
  readonly rewriter: RunningRewriter;
}

/** Plays a conversation through the rewriter, billed by the stand-in's rules beside the same one sent direct. */
export async function playBilled(
  plan: ConversationPlan,
  options: {
    readonly config: RewriterConfig;
    readonly store?: LedgerStore;
    readonly rule?: LossRule;
    readonly receipts?: Receipts;
    readonly atMs?: (request: ClientRequest) => number;
    /** Bill in place of the stand-in's. */
    readonly bill?: (usage: Usage, request: ClientRequest) => Usage;
    readonly restarts?: (index: number) => boolean;
    /** Asked at the start and at every restart; one for all by default. */
    readonly plans?: () => PlanStore;
    /** Runs before a request. */
    readonly before?: (index: number) => Promise<void>;
    /** Says what a request is refused with; the client then asks the same again. */
    readonly refuses?: (index: number) => string | null;
    /** Sends what a late rewriter gets instead. */
    readonly isLate?: (index: number) => boolean;
  },
): Promise<BilledPlay> {
  const rule = options.rule ?? Config.parse({}).ledger;
  const store = options.store ?? createMemoryRecords();
  const getAtMs = options.atMs ?? ((request: ClientRequest) => request.atMs);
  const [judge, directJudge] = [createJudge(), createJudge({ enforceThinking: false })];
  const memory = createFakeMemory();
  const onePlanStore = createMemoryPlanStore();
  const receiptStore = createMemoryRecords<Receipt>();
  const steps: BilledStep[] = [];
  const refusals: string[] = [];
  let nowMs = 0;
  let drawn = 0;
  const clock = { now: () => nowMs };
  const open = async () => {
    const ledger = await openCostLedger({ store, rule, clock, log: silentLog });
    const receipts =
      options.receipts ??
      (await openReceipts({ store: receiptStore, redact: (said) => said, most: 1_000, log: silentLog }));
    const randomHex = (bytes: number): string => (drawn++).toString(16).padStart(bytes * 2, '0');
    const rewriter = await openRewriter({
      memory,
      plans: options.plans?.() ?? onePlanStore,
      ledger,
      receipts,
      config: options.config,
      clock,
      randomHex,
      log: silentLog,
    });
    return { ledger, rewriter };
  };
  let { ledger, rewriter } = await open();
  await growConversation(plan, async (request) => {
    const atMs = getAtMs(request);
    nowMs = atMs;
    if (options.restarts?.(request.index)) ({ ledger, rewriter } = await open());
    const { headers, bytes: body } = request;
    await options.before?.(request.index);
    const message = { requestId: `r${request.index}`, path: 'messages', headers, body, receivedAtMs: atMs } as const;
    const ask = () =>
      options.isLate?.(request.index)
        ? rewriter.replay(message)
        : rewriter.rewrite(message, new AbortController().signal);
    const errorText = options.refuses?.(request.index) ?? '';
    if (errorText !== '') (await ask()).onResponse({ status: 400, end: 'complete', message: null, errorText });
    const outcome = await ask();
    const verdict = judge.judge({ body: outcome.body, headers, atMs });
    const direct = directJudge.judge({ body, headers, atMs });
    const reply = replyFrom(verdict, request);
    if (direct.refusal !== null) throw new Error(`refused without us: ${direct.refusal.message}`);
    if (verdict.refusal !== null || reply.refusal !== null) {
      refusals.push(`r${request.index}: ${verdict.refusal?.message}`);
      return reply;
    }
    const billed = { ...verdict.usage, output: 100 };
    const usage = options.bill?.(billed, request) ?? billed;
    const stopReason = reply.content.some((block) => block['type'] === 'tool_use') ? 'tool_use' : 'end_turn';
    const answer = { model: plan.model, content: reply.content, stopReason, usage };
    outcome.onResponse({ status: 200, end: 'complete', message: answer, errorText: '' });
    await new Promise(setImmediate);
    const costs = { sent: verdict.cost, direct: direct.cost };
    steps.push({ request, body: outcome.body, usage, direct: { ...direct.usage, output: 100 }, costs, ledger });
    return reply;
  });
  return { steps, refusals, ledger, rewriter };
}
