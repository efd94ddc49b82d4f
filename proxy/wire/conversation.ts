import { createHash } from 'node:crypto';
import { LruMap } from '../../common/lru.ts';
import { type BodyScan, type PreviousScan, type Slice, scanBody } from './json-scanner.ts';
import { extendLineage, hashMessage, isThinking } from './message-hashes.ts';
import { type HeadShape, type MessageShape, shapeHead, shapeMessage } from './request-shape.ts';

/** What the rewriter knows of one message; a plain value without its text, so that thousands can be kept. */
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
  /** Claude Code's own "Primary working directory:", null when it names none. */
  readonly workingDirectory: string | null;
  readonly isSubagent: boolean;
}

/** A request, understood as far as the rewriter needs and no further. */
export interface ConversationView {
  readonly body: Buffer;
  readonly scan: BodyScan;
  readonly infos: readonly MessageInfo[];
  /** `lineage[i]` names the conversation up to and including message i. */
  readonly lineage: readonly string[];
  readonly model: string;
  readonly manualThinking: boolean;
  /** `output_config.effort`, '' when the request names none; a change empties the message cache. */
  readonly effort: string;
  /** This very request carries a `role: "system"` message, so the model takes them. */
  readonly takesSystemMessages: boolean;
  readonly hasTools: boolean;
  readonly maxTokens: number;
  readonly userId: string;
  readonly system: SystemFacts;
}

/** Remembers what was learnt of each run of bytes, so that a turn costs what is new in it. */
export class ConversationCache {
  readonly #messages: LruMap<string, MessageInfo>;
  readonly #systems = new LruMap<string, SystemFacts>(200);
  readonly #heads = new LruMap<string, HeadShape>(200);
  /** Newest last. */
  #threads: ConversationView[] = [];

  constructor(mostMessages = 4_000) {
    this.#messages = new LruMap(mostMessages);
  }

  message(body: Buffer, at: Slice): MessageInfo {
    const key = digest(body.subarray(at.start, at.end));
    return this.#messages.getOrCreate(key, () => describeMessage(parseSlice(body, at), at));
  }

  /** The newest request of the same conversation, and how many leading messages both share byte for byte. */
  findPrevious(body: Buffer): { readonly view: ConversationView; readonly known: PreviousScan } | null {
    for (const view of this.#threads.toReversed()) {
      const first = view.scan.messages[0]?.end ?? 0;
      if (first > body.length || !body.subarray(0, first).equals(view.body.subarray(0, first))) continue;
      const same = sharedBytes(body, view.body);
      const messages = view.scan.messages.findLastIndex(({ end }) => end <= same) + 1;
      return { view, known: { scan: view.scan, messages } };
    }
    return null;
  }

  /** Keeps a request in place of the one it follows, the oldest making way. */
  remember(view: ConversationView, instead: ConversationView | null): void {
    this.#threads = [...this.#threads.filter((each) => each !== instead), view];
    let bytes = this.#threads.reduce((total, { body }) => total + body.length, 0);
    while (bytes > KEPT_BYTES || this.#threads.length > KEPT_THREADS) {
      bytes -= this.#threads.shift()?.body.length ?? bytes;
    }
  }

  system(body: Buffer, at: Slice): SystemFacts {
    const key = digest(body.subarray(at.start, at.end));
    return this.#systems.getOrCreate(key, () => describeSystem(parseSlice(body, at)));
  }

  /** All of the request that is not messages, as the rules see it. */
  head({ body, scan }: Pick<ConversationView, 'body' | 'scan'>, betas: readonly string[]): HeadShape {
    const messages = scan.fields.get('messages') as Slice;
    const key = digest(body.subarray(0, messages.start), body.subarray(messages.end), Buffer.from(betas.join()));
    return this.#heads.getOrCreate(key, () => {
      const others = [...scan.fields].filter(([name]) => name !== 'messages');
      return shapeHead(Object.fromEntries(others.map(([name, at]) => [name, parseSlice(body, at)])), betas);
    });
  }
}

const KEPT_BYTES = 8 * 1024 * 1024;
const KEPT_THREADS = 16;
const PIECE_BYTES = 64 * 1024;

/** Length of the longest common start. */
function sharedBytes(a: Buffer, b: Buffer): number {
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

/** @returns null when the body is not a request that may be rewritten (not JSON, an unknown message form) */
export function parseConversation(body: Buffer, cache: ConversationCache): ConversationView | null {
  const before = cache.findPrevious(body);
  const scan = scanBody(body, before?.known ?? null);
  if (scan === null) return null;
  try {
    const view = describe(body, scan, cache, before);
    cache.remember(view, before?.view ?? null);
    return view;
  } catch {
    return null; // a slice that brackets well but is not JSON: the request goes on as it came
  }
}

function describe(
  body: Buffer,
  scan: BodyScan,
  cache: ConversationCache,
  before: ReturnType<ConversationCache['findPrevious']>,
): ConversationView {
  const infos = before?.view.infos.slice(0, before.known.messages) ?? [];
  const lineage = before?.view.lineage.slice(0, before.known.messages) ?? [];
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

/** Of a request with this `tools` field. */
export function hasTools(at: Slice | undefined): boolean {
  return at !== undefined && at.end - at.start > 2;
}

export function parseSlice(body: Buffer, at: Slice): unknown {
  return JSON.parse(body.toString('utf8', at.start, at.end));
}

/** Deterministic estimate: JSON bytes over four. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

function describeMessage(message: unknown, at: Slice): MessageInfo {
  if (typeof message !== 'object' || message === null) throw new TypeError('a message is an object');
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
