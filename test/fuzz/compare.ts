import { isStandingReminder } from '../../common/turn.ts';
import { BRIDGE } from '../../proxy/rewrite/plan.ts';
import { scanArray, scanBody } from '../../proxy/wire/json.ts';
import type { Exchange, Json } from './rewriter-rig.ts';

/** What went out instead of what came in, message by message. */
export interface Comparison {
  /** For each message sent: the index of the message received that it is, or null where it is ours. */
  readonly of: readonly (number | null)[];
  readonly received: number;
  /** Those received that are prompts. */
  readonly prompts: readonly number[];
  /** Where the received ones go on behind the first message and what is bound to it. */
  readonly head: number;
  readonly sent: readonly string[];
}

const RECALLS = 'comet-cc recalls';
const OURS_AS_SYSTEM = `{"role":"system","content":"${RECALLS}`;
/** Compared over and over, request after request. */
const known = new Map<string, boolean>();

/**
 * Pairs the messages sent with those received, from the newest back.
 *
 * @throws where a message that comet-cc did not add differs from the one received by more than injected blocks and thinking
 */
export function compare(exchange: Exchange): Comparison {
  const found = compared.get(exchange) ?? pairUp(exchange);
  compared.set(exchange, found);
  return found;
}

const compared = new WeakMap<Exchange, Comparison>();

function pairUp({ request, sent }: Exchange): Comparison {
  if (known.size > 20_000) known.clear();
  const had = slices(request.bytes);
  const goes = sent === request.bytes ? had : slices(sent);
  const head = goes.indexOf(BRIDGE);
  const behind = had.findIndex((text, index) => index > 0 && !text.startsWith('{"role":"system"'));
  const behindHead = behind < 0 ? had.length : behind;
  const of: (number | null)[] = goes
    .slice(0, Math.max(0, head))
    .map((message, index) => (index < behindHead ? paired(message, had, { most: index, least: index }) : null));
  const tail: typeof of = [];
  let next = had.length - 1;
  const bridged = head < 0 ? undefined : goes.slice(head + 1).find((message) => !message.startsWith(OURS_AS_SYSTEM));
  for (const message of goes.slice(of.length).toReversed()) {
    const place = { most: next, least: of.length, isBridged: message === bridged };
    const at = message === BRIDGE || message.startsWith(OURS_AS_SYSTEM) ? null : paired(message, had, place);
    tail.push(at);
    if (at !== null) next = at - 1;
  }
  of.push(...tail.reverse());
  const prompts = had.flatMap((text, index) => (isPrompt(text) ? [index] : []));
  return { of, received: had.length, prompts, head: behindHead, sent: goes };
}

/** Also one that was sent with tool results, by a user who does not wait for the task to end. */
function isPrompt(text: string): boolean {
  if (!text.startsWith('{"role":"user"')) return false;
  return !text.includes('"tool_result"') || getBlocks(parse(text)).some(isTyped);
}

function isTyped({ type, text }: Json): boolean {
  return type === 'text' && !/^<|^\[Request interrupted/.test(String(text));
}

interface Place {
  readonly least: number;
  readonly most: number;
  /** The first message behind what was cut. */
  readonly isBridged?: boolean;
}

/** Index of the message received that went out as `message`: the newest in [least, most]. */
function paired(message: string, had: readonly string[], { most, least, isBridged = false }: Place): number {
  let at = most;
  while (at >= least && !isSame(message, isBridged ? unanswered(had[at]) : (had[at] ?? '{}'))) at -= 1;
  if (at < least) throw new Error(`sent, but not received: ${message.slice(0, 300)}`);
  return at;
}

/** A prompt without the tool results that it was sent with: the calls are cut. */
function unanswered(received = '{}'): string {
  if (!received.includes('"tool_result"') || !isPrompt(received)) return received;
  const message = parse(received);
  return JSON.stringify({ ...message, content: getBlocks(message).filter(({ type }) => type !== 'tool_result') });
}

/** Runs of received messages that were left out, as [from, to). */
export function getGaps({ of, received }: Comparison): readonly (readonly [number, number])[] {
  const kept = of.filter((index) => index !== null);
  const gaps: [number, number][] = [];
  let next = 0;
  for (const index of [...kept, received]) {
    if (index > next) gaps.push([next, index]);
    next = index + 1;
  }
  return gaps;
}

/** What counts for the prompt cache and for signatures: everything but breakpoints and the string form. */
export function isBoundAlike(a: string, b: string): boolean {
  return a === b || remembered(`${a}\n${b}`, () => bound(a) === bound(b));
}

/** The system prompt as it counts: the API takes the attribution out before all else. */
export function getSystem(body: Buffer): string {
  const at = scanBody(body)?.fields.get('system');
  const blocks = at === undefined ? null : scanArray(body, at.start);
  return (blocks ?? [])
    .slice(1)
    .map((block) => body.toString('utf8', block.start, block.end))
    .join();
}

function slices(body: Buffer): string[] {
  return (scanBody(body)?.messages ?? []).map(({ start, end }) => body.toString('utf8', start, end));
}

function isSame(sent: string, received: string): boolean {
  return sent === received || remembered(`${sent}\n\n${received}`, () => isKept(parse(sent), parse(received)));
}

function isKept(sent: Json, received: Json): boolean {
  if (sent['role'] !== received['role']) return false;
  const had = getBlocks(received);
  const ours = getBlocks(sent).filter((block) => !isOurs(block) && !isPinned(block, had));
  if (JSON.stringify(ours) === JSON.stringify(had)) return true;
  if (received['role'] !== 'assistant') return false;
  const unthought = had.filter((block) => !/thinking$/.test(String(block['type'])));
  const emptied = unthought.length === 0 ? [{ type: 'text', text: '(no text)' }] : unthought;
  return JSON.stringify(ours) === JSON.stringify(emptied);
}

/** What was recalled stands in the prompt where no system message may, as before another message of the user. */
function isOurs({ type, text }: Json): boolean {
  return type === 'text' && ['<comet-cc-memory', RECALLS].some((head) => String(text).startsWith(head));
}

/** What an absorbed message said once. */
function isPinned({ type, text }: Json, had: readonly Json[]): boolean {
  return type === 'text' && isStandingReminder(String(text)) && !had.some((block) => block['text'] === text);
}

function getBlocks({ content }: Json): readonly Json[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (content as readonly Json[]);
}

function bound(text: string): string {
  const message = parse(text);
  return JSON.stringify([message['role'], getBlocks(message)], (key, value) =>
    key === 'cache_control' ? undefined : value,
  );
}

function parse(text: string): Json {
  return JSON.parse(text) as Json;
}

function remembered(key: string, decide: () => boolean): boolean {
  const found = known.get(key) ?? decide();
  known.set(key, found);
  return found;
}
