import { createHash } from 'node:crypto';
import { LruMap } from '../../common/map.ts';
import { type BodyScan, type PreviousScan, type Slice, scanBody } from './json-scanner.ts';
import { extendLineage, hashMessage, isThinking } from './message-hashes.ts';
import { type HeadShape, type MessageShape, shapeHead, shapeMessage } from './request-shape.ts';

/** What the rewriter needs of one message, without its text, so that thousands can be cached. */
export interface MessageInfo {
  readonly hash: string;
  readonly role: string;
  /** A user message that answers no tool call. */
  readonly isPrompt: boolean;
  readonly hasThinking: boolean;
  readonly tokens: number;
  readonly shape: MessageShape;
}

export interface SystemFacts {
  /** From Claude Code's "Primary working directory:"; null without one. */
  readonly workingDirectory: string | null;
  readonly isSubagent: boolean;
}

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
  readonly #messages: LruMap<string, MessageInfo>;
  readonly #systems = new LruMap<string, SystemFacts>(200);
  readonly #heads = new LruMap<string, HeadShape>(200);
  /** Newest requests of different conversations, the newest last. */
  #threads: ConversationView[] = [];

  constructor(mostMessages = 4_000) {
    this.#messages = new LruMap(mostMessages);
  }

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
    while (bytes > MAX_THREAD_BYTES || this.#threads.length > MAX_THREADS) {
      bytes -= this.#threads.shift()?.body.length ?? bytes;
    }
  }

  system(body: Buffer, at: Slice): SystemFacts {
    const key = digest(body.subarray(at.start, at.end));
    return this.#systems.getOrCreate(key, () => describeSystem(parseSlice(body, at)));
  }

  /** The shape of everything but the messages. */
  head({ body, scan }: Pick<ConversationView, 'body' | 'scan'>): HeadShape {
    const messages = scan.fields.get('messages') as Slice;
    const key = digest(body.subarray(0, messages.start), body.subarray(messages.end));
    return this.#heads.getOrCreate(key, () => {
      const others = [...scan.fields].filter(([name]) => name !== 'messages');
      return shapeHead(Object.fromEntries(others.map(([name, at]) => [name, parseSlice(body, at)])));
    });
  }
}

const MAX_THREAD_BYTES = 8 * 1024 * 1024;
const MAX_THREADS = 16;
const PIECE_BYTES = 64 * 1024;

/** Length of the longest common prefix. */
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

function digest(...parts: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('base64');
}

/** Null when the body may not be rewritten: not JSON, or an unknown message form. */
export function parseConversation(body: Buffer, cache: ConversationCache): ConversationView | null {
  const previous = cache.findPrevious(body);
  const scan = scanBody(body, previous?.known ?? null);
  if (scan === null) return null;
  try {
    const view = describe(body, scan, cache, previous);
    cache.remember(view, previous?.view ?? null);
    return view;
  } catch {
    return null; // a slice with matching brackets that is not JSON
  }
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
  const field = (name: string): unknown => {
    const at = scan.fields.get(name);
    return at === undefined ? undefined : parseSlice(body, at);
  };
  const thinking = field('thinking') as { type?: unknown } | undefined;
  const output = field('output_config') as { effort?: unknown } | undefined;
  const metadata = field('metadata') as { user_id?: unknown } | undefined;
  const systemAt = scan.fields.get('system');
  return {
    body,
    scan,
    infos,
    lineage,
    model: String(field('model') ?? ''),
    manualThinking: thinking?.type === 'enabled',
    effort: typeof output?.effort === 'string' ? output.effort : '',
    takesSystemMessages: infos.some((info) => info.role === 'system'),
    hasTools: hasTools(scan.fields.get('tools')),
    maxTokens: Number(field('max_tokens') ?? 0),
    userId: typeof metadata?.user_id === 'string' ? metadata.user_id : '',
    system: systemAt === undefined ? { workingDirectory: null, isSubagent: false } : cache.system(body, systemAt),
  };
}

/** Whether this `tools` field is a non-empty array. */
export function hasTools(at: Slice | undefined): boolean {
  return at !== undefined && at.end - at.start > 2;
}

export function parseSlice(body: Buffer, at: Slice): unknown {
  return JSON.parse(body.toString('utf8', at.start, at.end));
}

/** A deterministic estimate: JSON bytes over four. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

function describeMessage(message: unknown, at: Slice): MessageInfo {
  if (typeof message !== 'object' || message === null) throw new TypeError('message is not an object');
  const { role, content } = message as { role?: unknown; content?: unknown };
  const blocks = Array.isArray(content) ? content : [];
  const answersTool = blocks.some((block) => /tool_result$/.test(String((block as { type?: unknown } | null)?.type)));
  return {
    hash: hashMessage(message),
    role: String(role),
    isPrompt: role === 'user' && !answersTool,
    hasThinking: blocks.some(isThinking),
    tokens: estimateTokens(at.end - at.start),
    shape: shapeMessage(message),
  };
}

const DIRECTORY = /Primary working directory: ([^\n]+)/;

function describeSystem(system: unknown): SystemFacts {
  const blocks = Array.isArray(system) ? system : [{ text: system }];
  const texts = blocks.map((block) => String((block as { text?: unknown } | null)?.text ?? ''));
  const directory = texts.map((text) => DIRECTORY.exec(text)?.[1]?.trim()).find((found) => found !== undefined);
  const attribution = texts[0]?.startsWith('x-anthropic-billing-header:') ? texts[0] : '';
  return { workingDirectory: directory ?? null, isSubagent: attribution.includes('cc_is_subagent=true') };
}
