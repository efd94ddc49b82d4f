import type { ConversationView, MessageInfo } from '../wire/conversation.ts';
import type { Slice } from '../wire/json-scanner.ts';
import {
  appendSystemBlock,
  applyEdits,
  changeMessage,
  type Edit,
  encodeSystemMessage,
  prefixWithCommas,
} from '../wire/splice.ts';
import { findHeadEnd } from '../wire/split-turns.ts';
import { type EpochPlan, type Injection, locatePlan } from './plan.ts';

export interface Spliced {
  readonly body: Buffer;
  readonly edits: readonly Edit[];
  /** Outgoing messages in order: the index of a received message, or the bytes of a new or changed one. */
  readonly messages: readonly (number | Buffer)[];
  readonly thinkingStripped: number;
}

/** Takes the place of absorbed turns, so that the first prompt has an answer and roles alternate. */
export const BRIDGE =
  '{"role":"assistant","content":[{"type":"text","text":"(The turns after this one are kept in memory; see the next message.)"}]}';

/** Null when the request does not have the plan's prefix. */
export function applyPlan(view: ConversationView, plan: EpochPlan): Spliced | null {
  const location = locatePlan(plan, view.lineage);
  if (location === null) return null;
  const head = findHeadEnd(view);
  const edits: Edit[] = [];
  const messages: (number | Buffer)[] = [];
  let thinkingStripped = 0;
  let systemMessages: Buffer[] = [];
  const roundCuts = new Map(location.rounds.map(({ start, cut }) => [findInstruction(view, start), cut]));
  const removeBefore = (slice: Slice, firstDropped: number, bytes: Buffer): void => {
    edits.push({ start: (view.scan.messages[firstDropped] as Slice).start, end: slice.start, bytes });
  };

  view.scan.messages.forEach((slice, index) => {
    if (plan.cut !== null && index >= head && index < location.cutEnd) return;
    if (location.rounds.some(({ start, end }) => index >= start && index < end)) return;
    const endedRounds = location.rounds.find(({ end }) => index === end);
    if (endedRounds !== undefined) removeBefore(slice, endedRounds.start, Buffer.alloc(0));
    const cut = index === location.cutEnd ? plan.cut : null;
    if (cut !== null) {
      messages.push(Buffer.from(BRIDGE));
      removeBefore(slice, head, Buffer.from(`${BRIDGE},`));
    }
    const injections = plan.injections.filter(({ anchor }) => anchor === view.lineage[index]);
    const asSystem = injections.filter((injection) => isSystemMessage(injection, view, index));
    const asBlock = injections.filter((injection) => !asSystem.includes(injection));
    const roundCut = roundCuts.get(index);
    const change = changeMessage(view.body, slice, {
      before: cut?.preamble ?? null,
      after: [...asBlock.map(({ text }) => text), ...(roundCut === undefined ? [] : [roundCut.preamble])],
      stripThinking: (view.infos[index] as MessageInfo).hasThinking && index < location.stripEnd,
    });
    thinkingStripped += change?.thinkingStripped ?? 0;
    if (change !== null) edits.push({ ...slice, bytes: change.bytes });
    messages.push(change === null ? index : change.bytes);
    systemMessages.push(...asSystem.map(({ text }) => encodeSystemMessage(text)));
    if (systemMessages.length > 0 && view.infos[index + 1]?.role !== 'system') {
      messages.push(...systemMessages);
      edits.push({ start: slice.end, end: slice.end, bytes: prefixWithCommas(systemMessages) });
      systemMessages = [];
    }
  });
  if (plan.systemBlock !== null) edits.push(...appendSystemBlock(view, plan.systemBlock));
  return { body: applyEdits(view.body, edits), edits, messages, thinkingStripped };
}

/** Index of the user message that the rounds starting at `start` answer; system messages may stand between. */
function findInstruction({ infos }: ConversationView, start: number): number {
  let index = start - 1;
  while (index > 0 && infos[index]?.role === 'system') index -= 1;
  return index;
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
