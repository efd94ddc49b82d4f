import { createHash } from 'node:crypto';
import { LruMap } from '../../common/map.ts';
import { ancestors } from '../../common/paths.ts';
import { parseJson, sha256, toRecord, toText } from '../../common/text.ts';
import {
  findTypedBesideResults,
  isContinuation,
  readQueuedText,
  readTypedText,
  SIDE_PROMPTS,
  type TypedBesideResults,
} from '../../common/turn.ts';
import type { MessagesRequest } from '../ports.ts';
import { type BodyScan, type PreviousScan, parseSlice, type Slice, scanBody } from './json.ts';
import {
  extendLineage,
  type HeadShape,
  hashMessage,
  isThinking,
  readPinned,
  readSignature,
  readText,
  shapeHead,
  shapeMessage,
  shapeTools,
  toBlocks,
} from './message.ts';

export type MessageInfo = Readonly<ReturnType<typeof describeMessage>>;

type SystemFacts = ReturnType<typeof describeSystem>;

export const NO_SYSTEM: SystemFacts = { workingDirectory: null, isSubagent: false, isUntyped: false };

/** What the rewriter needs of one request. */
export interface ConversationView {
  readonly body: Buffer;
  readonly scan: BodyScan;
  readonly infos: readonly MessageInfo[];
  /** `lineage[i]` is the hash of the conversation up to and including message i. */
  readonly lineage: readonly string[];
  readonly model: string;
  readonly manualThinking: boolean;
  /** `output_config.effort`, '' without one; a change invalidates cached messages. */
  readonly effort: string;
  /** This request has a `role: "system"` message, so the model accepts them. */
  readonly takesSystemMessages: boolean;
  readonly hasTools: boolean;
  readonly maxTokens: number;
  readonly userId: string;
  readonly system: SystemFacts;
}

/** Caches what was parsed by its bytes, so that a request costs only its new messages. */
export class ConversationCache {
  readonly #messages = new LruMap<string, MessageInfo>(4_000);
  readonly #systems = new LruMap<string, SystemFacts>(200);
  readonly #heads = new WeakMap<BodyScan, HeadShape>();
  /** Where each session began. */
  readonly directories = new LruMap<string, string>(2_000);
  /** Those of the newest heads. */
  #tools: { readonly bytes: Buffer; readonly shapes: HeadShape['tools'] }[] = [];
  /** Newest requests of different conversations, the newest last. */
  #threads: ConversationView[] = [];

  message(body: Buffer, at: Slice): MessageInfo {
    const key = digest(body.subarray(at.start, at.end));
    return this.#messages.getOrCreate(key, () => describeMessage(parseSlice(body, at), at));
  }

  /** The newest request of the same conversation, and the number of leading messages with equal bytes. */
  findPrevious(body: Buffer): { readonly view: ConversationView; readonly known: PreviousScan } | null {
    for (const view of this.#threads.toReversed()) {
      const first = view.scan.messages[0]?.end ?? 0;
      if (first > body.length || !body.subarray(0, first).equals(view.body.subarray(0, first))) continue;
      const same = countSharedBytes(body, view.body);
      const messages = view.scan.messages.findLastIndex(({ end }) => end <= same) + 1;
      return { view, known: { scan: view.scan, messages } };
    }
    return null;
  }

  /** Replaces `previous` by its successor and evicts the oldest requests over the limits. */
  remember(view: ConversationView, previous: ConversationView | null): void {
    this.#threads = [...this.#threads.filter((each) => each !== previous), view];
    let bytes = this.#threads.reduce((total, { body }) => total + body.length, 0);
    while (bytes > MAX_THREAD_BYTES || this.#threads.length > MAX_THREADS)
      bytes -= this.#threads.shift()?.body.length ?? bytes;
  }

  system(body: Buffer, at: Slice): SystemFacts {
    const key = digest(body.subarray(at.start, at.end));
    return this.#systems.getOrCreate(key, () => describeSystem(parseSlice(body, at)));
  }

  /** The shape of everything but the messages. */
  head({ body, scan }: Pick<ConversationView, 'body' | 'scan'>): HeadShape {
    const lastHead = this.#heads.get(scan);
    if (lastHead !== undefined) return lastHead;
    const others = [...scan.fields].filter(([name]) => name !== 'messages' && name !== 'tools');
    const fields = Object.fromEntries(others.map(([name, at]) => [name, parseSlice(body, at)]));
    const head = { ...shapeHead(fields), tools: this.#shapeTools(body, scan.fields.get('tools')) };
    this.#heads.set(scan, head);
    return head;
  }

  /** Tools are most of a head and rarely change; the attribution beside them differs in every request. */
  #shapeTools(body: Buffer, at: Slice | undefined): HeadShape['tools'] {
    if (at === undefined) return [];
    const bytes = body.subarray(at.start, at.end);
    const tools = this.#tools.find((each) => each.bytes.equals(bytes));
    if (tools !== undefined) return tools.shapes;
    const shapes = shapeTools(parseSlice(body, at));
    this.#tools = [...this.#tools.slice(1 - MAX_TOOLS), { bytes: Buffer.from(bytes), shapes }];
    return shapes;
  }
}

const MAX_THREAD_BYTES = 8 * 1024 * 1024;
const MAX_THREADS = 16;
/** Sessions and their subagents mostly have the same ones, of 100 KB and more. */
const MAX_TOOLS = 6;
const PIECE_BYTES = 64 * 1024;

function countSharedBytes(a: Buffer, b: Buffer): number {
  const most = Math.min(a.length, b.length);
  let at = 0;
  for (let size = PIECE_BYTES; size >= 1; ) {
    const end = at + size;
    if (end <= most && a.subarray(at, end).equals(b.subarray(at, end))) at = end;
    else size = Math.floor(size / 2);
  }
  return at;
}

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('base64');

/** Null when the body may not be rewritten: not JSON, an unknown message form, or only the end of a conversation. */
export function parseConversation(body: Buffer, cache: ConversationCache): ConversationView | null {
  const previous = cache.findPrevious(body);
  const scan = scanBody(body, previous?.known ?? null);
  if (scan === null) return null;
  try {
    // With message threads (2.1.332, where the server turns them on), upstream holds all messages before these.
    if (toRecord(readField({ body, scan }, 'thread'))['type'] === 'continue') return null;
    const view = describe(body, scan, cache, previous);
    cache.remember(view, previous?.view ?? null);
    return view;
  } catch {
    return null; // a slice with matching brackets that is not JSON
  }
}

function readField({ body, scan }: Pick<ConversationView, 'body' | 'scan'>, name: string): unknown {
  const at = scan.fields.get(name);
  return at === undefined ? undefined : parseSlice(body, at);
}

function describe(
  body: Buffer,
  scan: BodyScan,
  cache: ConversationCache,
  previous: ReturnType<ConversationCache['findPrevious']>,
): ConversationView {
  const infos = previous?.view.infos.slice(0, previous.known.messages) ?? [];
  const lineage = previous?.view.lineage.slice(0, previous.known.messages) ?? [];
  for (const at of scan.messages.slice(infos.length)) {
    const info = cache.message(body, at);
    infos.push(info);
    lineage.push(extendLineage(lineage.at(-1) ?? '', info.hash));
  }
  const field = (name: string): unknown => readField({ body, scan }, name);
  const systemAt = scan.fields.get('system');
  const system = systemAt === undefined ? NO_SYSTEM : cache.system(body, systemAt);
  return {
    body,
    scan,
    infos,
    lineage,
    model: String(field('model') ?? ''),
    manualThinking: toRecord(field('thinking'))['type'] === 'enabled',
    effort: toText(toRecord(field('output_config'))['effort']),
    takesSystemMessages: infos.some((info) => info.role === 'system'),
    hasTools: hasTools(scan.fields.get('tools')),
    maxTokens: Number(field('max_tokens') ?? 0),
    userId: toText(toRecord(field('metadata'))['user_id']),
    system: { ...system, workingDirectory: system.workingDirectory ?? findWorkingDirectory({ body, scan, infos }) },
  };
}

/**
 * The message may also quote text of the repository (skills, agents) that states another directory: after the environment
 * at the start of a conversation, before it after a compaction.
 */
function findWorkingDirectory(view: Pick<ConversationView, 'body' | 'scan' | 'infos'>): string | null {
  const stated = view.infos.find(({ directories }) => directories.length > 0)?.directories ?? [];
  const isCompacted = stated.length > 1 && isContinuation(readTexts(view, 0).join('\n'));
  return stated.at(isCompacted ? -1 : 0) ?? null;
}

const hasTools = (at: Slice | undefined): boolean => at !== undefined && at.end - at.start > 2;

/** A deterministic estimate: JSON bytes over four. */
export const estimateTokens = (bytes: number): number => Math.ceil(bytes / 4);

export function countRequestTokens({ body, scan, infos }: Pick<ConversationView, 'body' | 'scan' | 'infos'>): number {
  const bytes = scan.messages.reduce((sum, { start, end }) => sum + end - start, 0);
  return estimateTokens(body.length - bytes) + infos.reduce((sum, { tokens }) => sum + tokens, 0);
}

/** Roughly a screenshot; the bytes of an image do not indicate its tokens. */
export const IMAGE_TOKENS = 1_500;

/** Lengths of images and documents in base64, which say nothing of what they weigh. */
function findEncoded(blocks: readonly unknown[]): number[] {
  return blocks.flatMap((block) => {
    const { type, source, content } = Object(block) as Readonly<Record<string, unknown>>;
    if (type === 'tool_result' && Array.isArray(content)) return findEncoded(content);
    const { data } = Object(source) as { data?: unknown };
    return (type === 'image' || type === 'document') && typeof data === 'string' ? [data.length] : [];
  });
}

/** What the rewriter needs of one message, without its text, so that thousands can be cached. */
export function describeMessage(message: unknown, at: Slice) {
  if (typeof message !== 'object' || message === null) throw new TypeError('message is not an object');
  const { role, content } = message as { role?: unknown; content?: unknown };
  const blocks = Array.isArray(content) ? content : [];
  const sizes = findEncoded(blocks);
  const pinned = readPinned(message);
  const answersTool = blocks.some((block) => /tool_result$/.test(getType(block)));
  return {
    hash: hashMessage(message),
    role: String(role),
    /** A user message that answers no tool call. */
    isPrompt: role === 'user' && !answersTool,
    /** What the user typed beside tool results, or in a system message while the turn ran; null without any. */
    typed: findTyped(String(role), content, answersTool),
    hasThinking: blocks.some(isThinking),
    signature: readSignature(blocks),
    tokens: estimateTokens(sizes.reduce((left, size) => left - size, at.end - at.start)) + sizes.length * IMAGE_TOKENS,
    shape: shapeMessage(message),
    directories: findDirectories(String(role), content),
    pinned,
    pinnedTokens: pinned === null ? 0 : estimateTokens(Buffer.byteLength(JSON.stringify(pinned))),
  };
}

/** Claude Code 2.1.332 states the environment in a message, 2.1.197 in the system prompt. */
const ENVIRONMENT = /^# Environment\n[^\n]*\n - Primary working directory: ([^\n]+)/gm;
const REMINDED_ENVIRONMENT = '<system-reminder>\n# Environment\n';

/** The working directories that a message states: anywhere in a system message, else in blocks that begin with it. */
function findDirectories(role: string, content: unknown): readonly string[] {
  if (role !== 'system' && role !== 'user') return [];
  const texts = toBlocks(content).flatMap(readText);
  const statements = role === 'system' ? texts : texts.filter((text) => text.startsWith(REMINDED_ENVIRONMENT));
  return statements.flatMap((text) => Array.from(text.matchAll(ENVIRONMENT), ([, dir = '']) => dir.trim()));
}

function findTyped(role: string, content: unknown, answersTool: boolean): TypedBesideResults | null {
  const blocks = toBlocks(content);
  if (role === 'system' && readQueuedText(blocks.flatMap(readText)) !== '')
    return { kind: 'queued', isInterruption: false };
  if (role !== 'user' || !answersTool) return null;
  const first = blocks.findIndex((block) => getType(block) !== 'tool_result');
  const isAfterResults = first > 0 && !blocks.slice(first).some((block) => /tool_result$/.test(getType(block)));
  return isAfterResults ? findTypedBesideResults(blocks.flatMap(readText)) : null;
}

const getType = (block: unknown): string => String((block as { type?: unknown } | null)?.type);

const DIRECTORY = /Primary working directory: ([^\n]+)/;
/** With `--bare` the prompt begins with it, and states no environment. */
const BARE_DIRECTORY = /^CWD: ([^\n]+)\nDate: /;
/** Values of `cc_turn_origin` (2.1.332) for prompts that the user did not type; the others are `human`, `sdk`, `unknown`. */
const UNTYPED = new Set(['scheduled', 'task_notification', 'auto_continuation', 'peer', 'host_synthetic', 'system']);
const SUBAGENT_DIRECTORY = /^Working directory: ([^\n]+)/m;

/** `workingDirectory` is from Claude Code's words on the environment; null without them. */
function describeSystem(system: unknown) {
  const texts = readSystemTexts(system);
  const attribution = texts[0]?.startsWith('x-anthropic-billing-header:') ? texts[0] : '';
  const isSubagent = attribution.includes('cc_is_subagent=true');
  const places = [DIRECTORY, isSubagent ? SUBAGENT_DIRECTORY : BARE_DIRECTORY];
  const matches = places.flatMap((place) => texts.flatMap((text) => place.exec(text)?.[1]?.trim() ?? []));
  const isUntyped = UNTYPED.has(/\bcc_turn_origin=([a-z_]{1,40});/.exec(attribution)?.[1] ?? '');
  return { workingDirectory: matches[0] ?? null, isSubagent, isUntyped };
}

export function readSystemText(view: Pick<ConversationView, 'body' | 'scan'>): string {
  return readSystemTexts(readField(view, 'system')).join('\n');
}

const readSystemTexts = (system: unknown) => toBlocks(system).map((block) => String(Object(block).text ?? ''));

/** What the user typed in a message, or the text of an answer; '' without any. */
export function readMessageText(view: ConversationView, index: number): string {
  const texts = readTexts(view, index);
  if (view.infos[index]?.role !== 'user') return texts.join('\n').trim();
  return readTypedText(texts, { answers: view.infos[index]?.isPrompt ? null : 'tool' });
}

/** What the user typed in the newest user message, and while the turn ran in the system messages behind it. */
export function readPromptText(view: ConversationView, index: number): string {
  const queued = view.infos.flatMap(({ role }, at) =>
    at > index && role === 'system' ? readQueuedText(readTexts(view, at)) : [],
  );
  return [readMessageText(view, index), ...queued].filter((text) => text !== '').join('\n');
}

function readTexts(view: Pick<ConversationView, 'body' | 'scan'>, index: number): string[] {
  const slice = view.scan.messages[index];
  return slice === undefined ? [] : readBlocks(view, slice).flatMap(readText);
}

/** The texts of the messages before `index` that have one, oldest first. */
export function readRecentTexts(view: ConversationView, index: number, most: number): string[] {
  const texts: string[] = [];
  for (let at = index - 1; at >= 0 && texts.length < most; at -= 1) {
    if (view.infos[at]?.role === 'system') continue;
    const text = readMessageText(view, at);
    if (text !== '') texts.unshift(text);
  }
  return texts;
}

/**
 * - `main`: the user's conversation
 * - `side`: on the main prefix, but not a turn of it (compaction, prompt suggestion): plans are replayed, never extended
 * - `other`: subagents, titles, probes, comet-cc's own children, and unknown requests
 */
export type RequestClass = 'main' | 'side' | 'other';

const HINT_CLASSES: Readonly<Record<string, RequestClass>> = {
  main: 'main',
  compaction: 'side',
  subagent: 'other',
  workflow: 'other',
  auxiliary: 'side',
  side_reply: 'side',
};

const HINT = 'x-claude-code-request-class';
export const AGENT_ID = 'x-claude-code-agent-id';

/**
 * One message, no tools, no hint: it neither continues nor starts a conversation, so no plan can apply. Decided without
 * parsing the message.
 */
export function isStandalone({ messages, fields }: BodyScan, headers: Readonly<Record<string, string>>): boolean {
  return messages.length === 1 && !hasTools(fields.get('tools')) && headers[HINT] === undefined;
}

/** A cheap check that avoids scanning most bodies. */
export function mayBeStandalone(body: Buffer, headers: Readonly<Record<string, string>>): boolean {
  return headers[HINT] === undefined && !body.includes('"tools":[{');
}

/** Uses the hint header, and for older clients what is known of their requests. */
export function classify(view: ConversationView, headers: Readonly<Record<string, string>>): RequestClass {
  if (headers['x-comet-cc-child'] !== undefined) return 'other';
  const hint = HINT_CLASSES[headers[HINT] ?? ''];
  // Subagents are compacted too, and titles are auxiliary.
  if (hint === 'main' || hint === 'other') return hint;
  if (headers[AGENT_ID] !== undefined || view.system.isSubagent || view.userId.includes('parent_session_id'))
    return 'other';
  const isQuotaProbe = view.maxTokens === 1;
  if (isQuotaProbe || (!view.hasTools && headers[HINT] !== 'compaction')) return 'other';
  return hint ?? (startsSidePrompt(view) || leavesNewestUncached(view) ? 'side' : 'main');
}

/** A side prompt may be in the message that answers the last tool call. Decodes only candidates. */
function startsSidePrompt(view: ConversationView): boolean {
  const at = view.scan.messages[view.infos.findLastIndex((info) => info.role === 'user')];
  if (at === undefined) return false;
  const bytes = view.body.subarray(at.start, at.end);
  if (!SIDE_PROMPTS.some((text) => bytes.includes(text))) return false;
  return findOpening(readBlocks(view, at), SIDE_PROMPTS) >= 0;
}

export function findOpening(blocks: readonly TextBlock[], openings: readonly string[]): number {
  return blocks.findIndex(
    ({ type, text }) => type === 'text' && openings.some((opening) => text?.trimStart().startsWith(opening)),
  );
}

export function readBlocks({ body }: Pick<ConversationView, 'body'>, at: Slice): readonly TextBlock[] {
  return toBlocks((parseSlice(body, at) as { content?: unknown }).content) as readonly TextBlock[];
}

interface TextBlock {
  readonly type?: string;
  readonly text?: string;
}

/**
 * In its main loop, Claude Code sets a cache breakpoint on the newest message. A request that branches off the main
 * prefix (side question, recap, suggestion) sets it on the message before, because nothing follows. Seen in 2.1.197.
 */
function leavesNewestUncached({ infos }: ConversationView): boolean {
  const newest = infos.findLastIndex((info) => info.role !== 'system');
  const isMarked = (info: MessageInfo): boolean => info.shape.blocks.some((block) => block.ttls !== undefined);
  if (infos[newest]?.role !== 'user' || infos.slice(newest).some(isMarked)) return false;
  return infos.slice(0, newest).some(isMarked);
}

/** From the header or `metadata.user_id`; else working directory and first message identify the session. */
export function findSessionId(view: Identity, headers: Readonly<Record<string, string>>): string {
  const old = /_session_([0-9a-fA-F-]{36})$/.exec(view.userId)?.[1];
  const { session_id: id } = toRecord(parseJson(view.userId));
  const named = headers['x-claude-code-session-id'] || old || toText(id);
  if (named !== '') return named;
  const identity = [view.userId, view.system.workingDirectory ?? '', view.lineage[0] ?? ''].join('\n');
  return `nameless-${sha256(identity, 24)}`;
}

type Identity = Pick<ConversationView, 'userId' | 'lineage'> & { readonly system: { workingDirectory: string | null } };

export type RequestContext = NonNullable<ReturnType<typeof parseRequest>>;

/** Versions before 2.1.332: the first that was seen to state the environment in a message. */
const STATES_IN_SYSTEM = /^claude-cli\/(?:[01]|2\.0|2\.1\.(?:\d\d?|[12]\d\d|3[0-2]\d|33[01]))\b/;

/** Null when the body is not a request that may be rewritten. */
export function parseRequest(request: MessagesRequest, cache: ConversationCache) {
  const parsed = parseConversation(request.body, cache);
  if (parsed === null) return null;
  // The system prompt may be an agent of the repository, which could open the memory of another project.
  const stated = STATES_IN_SYSTEM.test(request.headers['user-agent'] ?? '') ? null : findWorkingDirectory(parsed);
  const found = stated ?? parsed.system.workingDirectory;
  const sessionId = findSessionId({ ...parsed, system: { workingDirectory: found } }, request.headers);
  const kind = classify(parsed, request.headers);
  // Behind a compaction, Claude Code states where its shell is.
  const first = cache.directories.get(sessionId) ?? found;
  const workingDirectory = found === null || (first !== null && ancestors(found).includes(first)) ? first : found;
  if (kind === 'main' && workingDirectory !== null) cache.directories.set(sessionId, workingDirectory);
  const view = { ...parsed, system: { ...parsed.system, workingDirectory } };
  const { [AGENT_ID]: agentId, [HINT]: hint } = request.headers;
  const isSubagent = kind === 'other' && (view.system.isSubagent || agentId !== undefined || hint === 'subagent');
  return { request, view, sessionId, kind, isSubagent };
}
