import { type Bill, billOf, epochsOf } from './direct-cost.ts';
import type { Stage } from './harness.ts';
import type { Channel, Found } from './scripted-replies.ts';
import { isQuestion, type StorySession } from './story.ts';
import { checkReceipts, checkRestored } from './verify-receipts.ts';

/** What `--json` prints. */
export interface Outcome {
  readonly ok: boolean;
  readonly problems: readonly string[];
  readonly sessions: number;
  readonly turns: number;
  readonly requests: number;
  readonly refused: number;
  readonly tokens: { readonly received: number; readonly sent: number; readonly saved: number };
  readonly cache: {
    readonly read: number;
    readonly written: number;
    readonly direct: { readonly read: number; readonly written: number };
  };
  /** In tokens of uncached input. */
  readonly cost: { readonly direct: number; readonly through: number; readonly saved: number };
  /** What the engine's own ledger says of the same requests. */
  readonly ledger: { readonly received: number; readonly sent: number; readonly saved_usd: number };
  /** Receipts whose edits turn what the client sent into what the mock upstream received. */
  readonly receipts: { readonly checked: number; readonly true: number };
  /** Messages that `memory restore` gives back as the client had sent them. */
  readonly restored: { readonly messages: number; readonly equal: number };
  readonly nodes: number;
  readonly epochs: number;
  readonly cuts: number;
  readonly questions: readonly Answered[];
  readonly duration_ms: number;
  /** Null unless it was kept. */
  readonly home: string | null;
}

export interface Answered {
  readonly question: string;
  /** What came back to the client. */
  readonly answer: string;
  readonly answered: boolean;
  readonly node_id: string | null;
  /** Of that node; null where there is none by that id. */
  readonly summary: string | null;
  readonly channel: Channel | null;
  readonly line: string | null;
  /** Whether the answer stood in what Claude Code itself sent with the question. */
  readonly in_client_request: boolean;
}

export interface Evidence {
  readonly direct: Bill;
  readonly found: ReadonlyMap<string, Found>;
  /** The client's own body by the prompt it asked. */
  readonly asked: ReadonlyMap<string, Buffer>;
  readonly answers: ReadonlyMap<string, string>;
  /** Every body as the client sent it. */
  readonly bodies: readonly Buffer[];
  readonly story: readonly StorySession[];
  readonly keep: boolean;
  readonly startedMs: number;
}

export async function outcomeOf(stage: Stage, evidence: Evidence): Promise<Outcome> {
  const { direct, story } = evidence;
  const through = billOf(stage.standin.requests);
  const { epochs, cuts } = epochsOf(stage.standin.requests);
  const nodes = await stage.engine.call('nodes/list', { all: true });
  const { tokens, savings } = await stage.engine.call('status', {});
  const receipts = checkReceipts(await stage.engine.call('receipts/list', {}), evidence.bodies, stage.standin.requests);
  const restored = await checkRestored(stage, story, evidence.bodies);
  const questions = story
    .flatMap((session) => session.turns.filter(isQuestion))
    .map((question): Answered => {
      const found = evidence.found.get(question.prompt) ?? null;
      const answer = evidence.answers.get(question.prompt) ?? '';
      return {
        question: question.prompt,
        answer,
        answered: question.right.test(answer),
        node_id: found?.nodeId ?? null,
        summary: nodes.find((node) => node.node_id === found?.nodeId)?.summary ?? null,
        channel: found?.channel ?? null,
        line: found?.line ?? null,
        in_client_request: question.right.test(evidence.asked.get(question.prompt)?.toString('utf8') ?? ''),
      };
    });
  const problems = [
    ...(through.refused > 0 ? [`${through.refused} requests were refused`] : []),
    ...(cuts === 0 ? ['nothing was cut'] : []),
    ...(receipts.true < receipts.checked ? [`${receipts.checked - receipts.true} receipts are wrong`] : []),
    ...(restored.equal < restored.messages ? [`${restored.messages - restored.equal} messages are not as sent`] : []),
    ...questions.filter(({ answered }) => !answered).map(({ question }) => `nothing answered "${question}"`),
    ...questions
      .filter(({ node_id, summary }) => node_id !== null && summary === null)
      .map(({ node_id }) => `there is no memory ${node_id}`),
  ];
  return {
    ok: problems.length === 0,
    problems,
    sessions: story.length,
    turns: story.reduce((sum, session) => sum + session.turns.length, 0),
    requests: through.requests,
    refused: through.refused,
    tokens: { received: direct.tokens, sent: through.tokens, saved: direct.tokens - through.tokens },
    cache: {
      read: through.cacheRead,
      written: through.cacheWrite,
      direct: { read: direct.cacheRead, written: direct.cacheWrite },
    },
    cost: {
      direct: Math.round(direct.cost),
      through: Math.round(through.cost),
      saved: Math.round(direct.cost - through.cost),
    },
    ledger: { received: tokens.original, sent: tokens.sent, saved_usd: savings.total.net_saved_usd },
    receipts,
    restored,
    // As many as memory ls shows: what tools did in a turn stands below its node.
    nodes: nodes.filter(({ parent_node_id }) => parent_node_id === null).length,
    epochs,
    cuts,
    questions,
    duration_ms: Date.now() - evidence.startedMs,
    home: evidence.keep ? stage.paths.home : null,
  };
}
