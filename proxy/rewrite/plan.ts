import type { Finding, GivenSlice } from '../ports.ts';
import type { ConversationCache, ConversationView, MessageInfo, RequestContext } from '../wire/conversation.ts';
import { appendSystemBlock, applyEdits, changeMessage, type Edit, prefixWithCommas, type Slice } from '../wire/json.ts';
import { asFormerly, dropSuperseded, type MessageShape, type RequestShape, shapeMessage } from '../wire/message.ts';
import { findHeadEnd } from '../wire/turns.ts';
import { findAddedRefusal, findRefusals, refusalKey } from '../wire/validate.ts';

/** Memory recalled for one prompt. It keeps its position for the lifetime of the plan. */
export interface Injection {
  /** Lineage hash up to the prompt it was recalled for. */
  readonly anchor: string;
  /** `system`: a `role: "system"` message after the prompt. `block`: a trailing text block of the prompt. */
  readonly channel: 'system' | 'block';
  readonly text: string;
  readonly nodeIds: readonly string[];
  /** Of the recalled lines; absent in plans written before findings were recorded. */
  readonly found?: readonly Finding[];
}

/** The leading range of whole turns that is no longer sent. */
export interface Cut {
  /** Lineage hash up to the last absorbed message. */
  readonly through: string;
  /** That message is kept without its tool results: they answer absorbed calls, and a prompt follows them. */
  readonly merged?: true;
  /** Leading text block of the first kept prompt. */
  readonly preamble: string;
  readonly nodeIds: readonly string[];
  /** Absent in plans of versions that kept nothing of the absorbed messages, true, 2 and 3 in those that kept less. */
  readonly pins?: true | 2 | 3 | 4;
}

/** The oldest tool rounds of one turn that are no longer sent. The turn's instruction is still sent. */
export interface RoundCut extends Pick<Cut, 'through' | 'nodeIds' | 'pins'> {
  /** Lineage hash up to the message before the first absorbed one. */
  readonly after: string;
  /** Trailing text block of the instruction. */
  readonly preamble: string;
}

/**
 * What a conversation's prefix is rewritten to. Durable before its first use, and replayed byte for byte on every
 * request whose prefix matches. Only `injections` grows.
 */
export interface EpochPlan {
  readonly id: string;
  readonly sessionId: string;
  readonly createdAtMs: number;
  readonly epoch: number;
  readonly cut: Cut | null;
  /** Behind the cut, oldest first; at most one per turn. */
  readonly rounds: readonly RoundCut[];
  /** Thinking is stripped up to the message with this lineage hash; null strips none. */
  readonly strippedThrough: string | null;
  readonly systemBlock: string | null;
  readonly systemNodeIds: readonly string[];
  /** Findings for the system nodes that a prompt recalled. */
  readonly systemFound?: readonly Finding[] | undefined;
  readonly injections: readonly Injection[];
  /** Of a subagent's plan: why its one injection is there. */
  readonly slice?: Omit<GivenSlice, 'text'>;
  /** Upstream refused the plan: because of a thinking signature, or because of another change. */
  readonly broken: false | 'thinking' | 'structure';
}

/** What the prompt cache keys a prefix by, in addition to its bytes. */
export interface PlanUse {
  readonly atMs: number;
  readonly model: string;
  readonly effort: string;
}

export interface Match {
  readonly plan: EpochPlan;
  /** Index of the newest message that the plan was already used for. */
  readonly servedAt: number;
  /** Of the answers to the request up to there; empty where they are unknown, as after a restart. */
  readonly signatures: readonly string[];
  /** The last of each model and effort. */
  readonly uses: readonly PlanUse[];
}

/** One use of a plan: the lineage hash of the request it served, or of that request with the first answer. */
export type ServedUse = ReturnType<typeof describeUse>;

export type PlanRecord =
  | ({ readonly kind: 'plan'; readonly plan: EpochPlan } & ServedUse)
  | ({ readonly kind: 'injections'; readonly planId: string; readonly injections: readonly Injection[] } & ServedUse)
  | ({ readonly kind: 'served'; readonly planId: string } & ServedUse)
  | { readonly kind: 'broken'; readonly planId: string; readonly broken: 'thinking' | 'structure' }
  /** What the last record brought never went upstream: this many injections, or with null the whole plan. */
  | { readonly kind: 'unsent'; readonly planId: string; readonly added: number | null };

export function describeUse(view: ConversationView, atMs: number) {
  return { served: view.lineage.at(-1) as string, use: { atMs, model: view.model, effort: view.effort } };
}

/**
 * The record that makes `plan` usable.
 * @param extended  the plan that `plan` may extend in place, under its id; without it `plan` is written whole
 */
export function createPlanRecord(extended: EpochPlan | null, plan: EpochPlan, use: ServedUse): PlanRecord {
  if (extended?.id !== plan.id) return { kind: 'plan', plan, ...use };
  const injections = plan.injections.slice(extended.injections.length);
  if (injections.length === 0) return { kind: 'served', planId: plan.id, ...use };
  return { kind: 'injections', planId: plan.id, injections, ...use };
}

export function isEmptyPlan({ cut, rounds, strippedThrough, systemBlock, injections }: EpochPlan): boolean {
  return (cut ?? strippedThrough ?? systemBlock) === null && rounds.length + injections.length === 0;
}

/** Where a plan applies in a request, as message indices. */
export type PlanLocation = NonNullable<ReturnType<typeof locatePlan>>;

/** Message indices; rounds `[start, end)` are absorbed. Null when the request does not have the plan's prefix. */
export function locatePlan(plan: EpochPlan, lineage: readonly string[]) {
  const endOf = (hash: string | null): number => (hash === null ? 0 : lineage.indexOf(hash) + 1);
  const throughEnd = endOf(plan.cut?.through ?? null);
  const stripEnd = endOf(plan.strippedThrough);
  if ((plan.cut !== null && throughEnd === 0) || (plan.strippedThrough !== null && stripEnd === 0)) return null;
  const cutEnd = plan.cut?.merged === true ? throughEnd - 1 : throughEnd;
  const rounds = plan.rounds.map((cut) => ({ cut, start: endOf(cut.after), end: endOf(cut.through) }));
  if (rounds.some(({ start, end }) => start === 0 || end === 0)) return null;
  return { cutEnd, stripEnd, rounds };
}

export type Spliced = NonNullable<ReturnType<typeof applyPlan>>;

/** Takes the place of absorbed turns, so that the first prompt has an answer and roles alternate. */
export const BRIDGE =
  '{"role":"assistant","content":[{"type":"text","text":"(The turns after this one are kept in memory; see the next message.)"}]}';

/** Null when the request does not have the plan's prefix. */
export function applyPlan(view: ConversationView, plan: EpochPlan) {
  const location = locatePlan(plan, view.lineage);
  if (location === null) return null;
  const head = findHeadEnd(view);
  const edits: Edit[] = [];
  /** Outgoing messages in order: the index of a received message, or the bytes of a new or changed one. */
  const messages: (number | Buffer)[] = [];
  let thinkingStripped = 0;
  let systemMessages: Buffer[] = [];
  const turnPins = collectPinned(view, plan.cut, { start: head, end: location.cutEnd, into: location.cutEnd });
  const roundCuts = location.rounds.map(({ start, end, cut }) => {
    const into = findInstruction(view, start);
    return { start, end, cut, into, pins: collectPinned(view, cut, { start, end, into }) };
  });
  const replaceBefore = (slice: Slice, firstDropped: number, added: readonly Buffer[]): void => {
    const bytes = Buffer.concat(added.flatMap((message) => [message, Buffer.from(',')]));
    messages.push(...added);
    edits.push({ start: (view.scan.messages[firstDropped] as Slice).start, end: slice.start, bytes });
  };

  view.scan.messages.forEach((slice, index) => {
    if (plan.cut !== null && index >= head && index < location.cutEnd) return;
    if (location.rounds.some(({ start, end }) => index >= start && index < end)) return;
    const endedRounds = roundCuts.find(({ end }) => index === end);
    if (endedRounds !== undefined) replaceBefore(slice, endedRounds.start, endedRounds.pins.messages);
    const cut = index === location.cutEnd ? plan.cut : null;
    if (cut !== null) replaceBefore(slice, head, [...turnPins.messages, Buffer.from(BRIDGE)]);
    const injections = plan.injections.filter(({ anchor }) => anchor === view.lineage[index]);
    const asSystem = injections.filter((injection) => isSystemMessage(injection, view, index));
    const roundCut = roundCuts.find(({ into }) => into === index);
    const change = changeMessage(view.body, slice, {
      before: cut === null ? [] : [...turnPins.texts, cut.preamble],
      after: [
        ...injections.filter((injection) => !asSystem.includes(injection)).map(({ text }) => text),
        ...(roundCut === undefined ? [] : [...roundCut.pins.texts, roundCut.cut.preamble]),
      ],
      stripThinking: (view.infos[index] as MessageInfo).hasThinking && index < location.stripEnd,
      dropResults: cut?.merged === true,
    });
    thinkingStripped += change?.thinkingStripped ?? 0;
    if (change !== null) edits.push({ ...slice, bytes: change.bytes });
    messages.push(change === null ? index : change.bytes);
    systemMessages.push(...asSystem.map(({ text }) => Buffer.from(JSON.stringify({ role: 'system', content: text }))));
    if (systemMessages.length > 0 && view.infos[index + 1]?.role !== 'system') {
      messages.push(...systemMessages);
      edits.push({ start: slice.end, end: slice.end, bytes: prefixWithCommas(systemMessages) });
      systemMessages = [];
    }
  });
  if (plan.systemBlock !== null) edits.push(...appendSystemBlock(view, plan.systemBlock));
  return { body: applyEdits(view.body, edits), edits, messages, thinkingStripped };
}

/** Text for a directive without other content: a directive alone may not follow another system message. */
const REMARK = { type: 'text', text: 'Earlier messages are kept in memory.' };

/**
 * What stays of the absorbed messages `[start, end)`: text blocks for the message `into`, and system messages in their
 * place, the last of them with the directive that applies behind them.
 */
function collectPinned(
  view: ConversationView,
  cut: Cut | RoundCut | null,
  { start, end, into }: { readonly start: number; readonly end: number; readonly into: number },
) {
  const absorbed = cut?.pins === undefined ? [] : view.infos.slice(start, end);
  const pins = dropSuperseded(absorbed.flatMap(({ pinned }) => (pinned ? asFormerly(pinned, Number(cut?.pins)) : [])));
  const said = new Set(view.infos[into]?.pinned?.reminders);
  const texts = [...new Set(pins.flatMap(({ reminders }) => reminders))].filter((text) => !said.has(text));
  const contents = pins.flatMap(({ blocks }) => (blocks.length > 0 ? [blocks] : []));
  const directive = pins.findLast((pin) => pin.directive !== undefined)?.directive;
  if (contents.length === 0 && directive !== undefined) contents.push([REMARK]);
  const messages = contents.map((content, at) => {
    const isLast = at === contents.length - 1;
    return Buffer.from(JSON.stringify({ role: 'system', content, ...(isLast && { output_config: directive }) }));
  });
  return { texts, messages };
}

/** Index of the user message that the rounds starting at `start` answer; system messages may come between. */
function findInstruction({ infos }: ConversationView, start: number): number {
  return Math.max(
    0,
    infos.slice(0, start).findLastIndex(({ role }) => role !== 'system'),
  );
}

/**
 * A `role: "system"` message is only valid before an assistant message or at the end, and only for models that accept
 * one. Otherwise the same text becomes a block of the prompt.
 */
function isSystemMessage(injection: Injection, view: ConversationView, index: number): boolean {
  if (injection.channel === 'block' || !view.takesSystemMessages) return false;
  let next = index + 1;
  while (view.infos[next]?.role === 'system') next += 1;
  const role = view.infos[next]?.role;
  return role === undefined || role === 'assistant';
}

/** The error that the API would return for the rewritten request and not for the received one; null without one. */
export function validateRewrite({ view }: RequestContext, plan: EpochPlan, spliced: Spliced, cache: ConversationCache) {
  const head = cache.head(view);
  const system = plan.systemBlock === null ? head.system : [...head.system, { type: 'text' }];
  const messages = spliced.messages.map((message) =>
    typeof message === 'number'
      ? (view.infos[message]?.shape as MessageShape)
      : shapeMessage(JSON.parse(message.toString('utf8'))),
  );
  const sent = { ...head, system, bytes: spliced.body.length, messages };
  return findAddedRefusal(shapeReceived(view, cache), sent);
}

function shapeReceived(view: ConversationView, cache: ConversationCache): RequestShape {
  return { ...cache.head(view), bytes: view.body.length, messages: view.infos.map((info) => info.shape) };
}

/** A field inside a block, which no other part of the request bears on. */
const IN_BLOCK = /^messages\.(\d+)\.content\.\d+(?:\.\w|: Input (?:tag|should)\b)/;

/** Whether the API would refuse the received request with the same message. */
export function refusesReceived(message: string, { view }: RequestContext, spliced: Spliced, cache: ConversationCache) {
  const place = /thinking|signature|cache_control/.test(message) ? null : IN_BLOCK.exec(message);
  if (place !== null && typeof spliced.messages[Number(place[1])] === 'number') return true;
  const key = refusalKey(message);
  return [...findRefusals(shapeReceived(view, cache))].some((refusal) => refusalKey(refusal) === key);
}

/** The outcome of the pipeline for one request. */
export interface RewriteResult {
  readonly context: RequestContext;
  readonly plan: EpochPlan | null;
  /** Null when the received bytes go upstream. */
  readonly spliced: Spliced | null;
  /** For the receipt: why the request got this plan, as `replay`, `recall`, or the reason of a new epoch. */
  readonly decision: string;
  /** The request is the first one with a new cut. */
  readonly cut: boolean;
  /** When the prompt cache of the model was read before; undefined where nothing of the plan was sent before. */
  readonly formerUse?: PlanUse | undefined;
}
