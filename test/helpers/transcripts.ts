import { findModelTraits } from '../../proxy/wire/models.ts';
import type { AnswerBlock, Judge, Verdict } from '../mock-anthropic/index.ts';
import type { Refusal } from '../mock-anthropic/refusal.ts';
import type { ConversationPlan, Json, PlannedRound, PlannedTurn } from './transcript-plans.ts';

export { type ConversationPlan, conversationPlans, type Json, seededPlan } from './transcript-plans.ts';

/*
 * Claude-Code-like conversations.
 *
 *   const judge = createJudge();                              // bin/standin/index.ts: the rules and the bill, no sockets
 *   const plan = seededPlan(7, { turns: 12 });                // or fc.asyncProperty(conversationPlans(), ...)
 *   const steps = await growConversation(plan, straightTo(judge));
 *
 * With something in between, e.g. a rewriter, hand `growConversation` your own upstream:
 *
 *   const upstream: Upstream = async (request) => {
 *     const { body } = await rewriter.rewrite(...request.bytes, request.headers...);
 *     return replyFrom(judge.judge({ body, headers: request.headers, atMs: request.atMs }), request);
 *   };
 *
 * `reply.content` is what the client holds from then on, signatures included. The conversation stops at a refusal.
 */

/** One request as Claude Code would send it, and what the model is planned to answer. */
export interface ClientRequest {
  readonly index: number;
  readonly turn: number;
  readonly round: number;
  /** The newest user message is a prompt, not tool results. */
  readonly fresh: boolean;
  readonly body: Json;
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly atMs: number;
  readonly answer: readonly AnswerBlock[];
}

export type Reply = { readonly refusal: Refusal } | { readonly refusal: null; readonly content: readonly Json[] };

export type Upstream = (request: ClientRequest) => Reply | Promise<Reply>;

export interface Step {
  readonly request: ClientRequest;
  readonly reply: Reply;
}

/** Plays the client's side to the end of the plan, or to the first refusal. Time goes on 20 s a request. */
export async function growConversation(plan: ConversationPlan, upstream: Upstream): Promise<readonly Step[]> {
  const steps: Step[] = [];
  const history: Json[] = [];
  for (const [turn, planned] of plan.turns.entries()) {
    history.push(...promptMessages(plan, planned, turn));
    for (let round = 0; round <= planned.rounds.length; round += 1) {
      const tools = planned.rounds[round];
      const answer = tools ? roundBlocks(plan, tools, `${turn}x${round}`) : closingBlocks(plan, planned);
      const request = makeRequest(plan, history, { index: steps.length, turn, round, answer });
      const reply = await upstream(request);
      steps.push({ request, reply });
      if (reply.refusal) return steps;
      history.push({ role: 'assistant', content: reply.content });
      if (tools) history.push(...resultMessages(plan, tools, `${turn}x${round}`));
    }
  }
  return steps;
}

/** An upstream without anything in between. */
export function straightTo(judge: Judge): Upstream {
  return (request) =>
    replyFrom(judge.judge({ body: request.bytes, headers: request.headers, atMs: request.atMs }), request);
}

export function replyFrom(verdict: Verdict, request: ClientRequest): Reply {
  if (verdict.refusal) return { refusal: verdict.refusal };
  return { refusal: null, content: verdict.seal(request.answer) };
}

const START_MS = Date.UTC(2026, 10, 1);
const STEP_MS = 20_000;
const BETAS =
  'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,prompt-caching-scope-2026-01-05,mid-conversation-system-2026-04-07,effort-2025-11-24';
const PIXEL = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' };

/** The request for a transcript whose newest message is the prompt. */
export function makeRequest(
  plan: ConversationPlan,
  history: readonly Json[],
  at: {
    readonly index: number;
    readonly turn: number;
    readonly round: number;
    readonly answer: readonly AnswerBlock[];
  },
): ClientRequest {
  const manual = findModelTraits(plan.model).thinking === 'manual';
  const body: Json = {
    model: plan.model,
    messages: asSent(plan, history),
    system: systemBlocks(plan, at.index),
    tools: TOOLS,
    metadata: { user_id: JSON.stringify({ device_id: 'd'.repeat(64), account_uuid: '', session_id: plan.sessionId }) },
    max_tokens: 64_000,
    thinking: getThinking(plan, manual),
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    ...(!manual && { output_config: { effort: 'high' } }),
    stream: true,
  };
  return {
    ...at,
    fresh: at.round === 0,
    body,
    bytes: Buffer.from(JSON.stringify(body)),
    headers: {
      'anthropic-beta': BETAS,
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
      'user-agent': 'claude-cli/2.1.197 (external, cli)',
      'x-app': 'cli',
      'x-claude-code-session-id': plan.sessionId,
    },
    atMs: START_MS + at.index * STEP_MS,
  };
}

function getThinking(plan: ConversationPlan, manual: boolean): Json {
  if (plan.thinking === 'off') return { type: 'disabled' };
  return manual ? { budget_tokens: 31_999, type: 'enabled' } : { type: 'adaptive' };
}

/** One text alone is a string once it is history; the newest user message is blocks, the last with the breakpoint. */
function asSent(plan: ConversationPlan, history: readonly Json[]): readonly Json[] {
  const newest = history.findLastIndex((message) => message.role === 'user');
  return history.map((message, index) => {
    const blocks = message.content as readonly Json[];
    if (message.role !== 'user') return message;
    if (index !== newest)
      return blocks.length === 1 && blocks[0]?.type === 'text' ? { ...message, content: blocks[0].text } : message;
    return {
      ...message,
      content: blocks.map((block, at) =>
        at === blocks.length - 1 ? { ...block, cache_control: control(plan) } : block,
      ),
    };
  });
}

function control(plan: ConversationPlan): Json {
  return plan.ttl === '1h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' };
}

function systemBlocks(plan: ConversationPlan, index: number): readonly Json[] {
  // The attribution changes from request to request; the API takes it out before all else.
  const attribution = `x-anthropic-billing-header: cc_version=2.1.197.476; cc_entrypoint=cli; cch=${String(index).padStart(5, '0')};`;
  const environment = `# Environment\nYou have been invoked in the following environment:\n - Primary working directory: ${plan.cwd}\n - Is a git repository: true\n - Platform: linux\n`;
  return [
    { type: 'text', text: attribution },
    { type: 'text', text: "You are Claude Code, Anthropic's official CLI for Claude." },
    {
      type: 'text',
      text: `You help with software engineering tasks. ${'Be exact. '.repeat(60)}`,
      cache_control: { ...control(plan), scope: 'global' },
    },
    { type: 'text', text: environment, cache_control: control(plan) },
  ];
}

const TOOLS: readonly Json[] = ['Bash', 'Read', 'Edit'].map((name) => ({
  name,
  description: `${name} does what its name says.`,
  input_schema: { type: 'object', properties: { command: { type: 'string' } }, additionalProperties: false },
}));

function promptMessages(plan: ConversationPlan, turn: PlannedTurn, index: number): readonly Json[] {
  const reminder = {
    type: 'text',
    text: "<system-reminder>\n# currentDate\nToday's date is 2026-11-01.\n</system-reminder>\n",
  };
  const image = { type: 'image', source: PIXEL };
  const blocks = [
    ...(index === 0 ? [reminder] : []),
    ...(turn.image ? [image] : []),
    { type: 'text', text: turn.prompt },
  ];
  const first = index === 0 ? 'The following deferred tools are available via ToolSearch:\nWebFetch\nWebSearch' : null;
  return withNotes(plan, blocks, [first, turn.note]);
}

function resultMessages(plan: ConversationPlan, round: PlannedRound, id: string): readonly Json[] {
  const blocks = round.order.map((at) => {
    const tool = round.tools[at];
    const content = tool?.result === 'image' ? [{ type: 'image', source: PIXEL }] : (tool?.result ?? '');
    return {
      tool_use_id: toolId(plan, id, at),
      type: 'tool_result',
      content,
      ...(tool?.isError && { is_error: true }),
    };
  });
  return withNotes(plan, blocks, [round.note]);
}

function withNotes(
  plan: ConversationPlan,
  blocks: readonly Json[],
  notes: readonly (string | null)[],
): readonly Json[] {
  const said = notes.filter((note) => note !== null);
  if (findModelTraits(plan.model).systemMessages) {
    return [{ role: 'user', content: blocks }, ...said.map((content) => ({ role: 'system', content }))];
  }
  const reminders = said.map((note) => ({ type: 'text', text: `<system-reminder>\n${note}\n</system-reminder>` }));
  const isResult = blocks[0]?.type === 'tool_result';
  return [{ role: 'user', content: isResult ? [...blocks, ...reminders] : [...reminders, ...blocks] }];
}

function roundBlocks(plan: ConversationPlan, round: PlannedRound, id: string): readonly AnswerBlock[] {
  return [
    ...thinkingBlocks(plan, round.thinking),
    ...(round.text === null ? [] : [{ type: 'text' as const, text: round.text }]),
    ...round.tools.map(({ name, input }, at) => ({ type: 'tool_use' as const, id: toolId(plan, id, at), name, input })),
  ];
}

function closingBlocks(plan: ConversationPlan, turn: PlannedTurn): readonly AnswerBlock[] {
  return [...thinkingBlocks(plan, turn.thinking), { type: 'text', text: turn.answer }];
}

/** With manual thinking the model always thinks. */
function thinkingBlocks(plan: ConversationPlan, texts: readonly string[]): readonly AnswerBlock[] {
  const manual = findModelTraits(plan.model).thinking === 'manual';
  const said = texts.length === 0 && manual ? ['I think.'] : texts;
  return said.map((thinking) => ({ type: 'thinking', thinking }));
}

function toolId(plan: ConversationPlan, id: string, at: number): string {
  return `toolu_${plan.sessionId.slice(0, 8)}x${id}x${at}`;
}
