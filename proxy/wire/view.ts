import { createHash } from 'node:crypto';
import { extendLineage, isThinking, messageHash } from './lineage.ts';
import { type BodyScan, type Slice, scanBody } from './scan.ts';
import { type HeadShape, type MessageShape, shapeHead, shapeMessage } from './shape.ts';

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
export class ViewCache {
  readonly #messages = new Map<string, MessageInfo>();
  readonly #systems = new Map<string, SystemFacts>();
  readonly #heads = new Map<string, HeadShape>();
  readonly #most: number;

  constructor(mostMessages = 20_000) {
    this.#most = mostMessages;
  }

  message(body: Buffer, at: Slice): MessageInfo {
    const key = digest(body.subarray(at.start, at.end));
    return remember(this.#messages, key, this.#most, () => describeMessage(parseSlice(body, at), at));
  }

  system(body: Buffer, at: Slice): SystemFacts {
    const key = digest(body.subarray(at.start, at.end));
    return remember(this.#systems, key, 200, () => describeSystem(parseSlice(body, at)));
  }

  /** All of the request that is not messages, as the rules see it. */
  head({ body, scan }: Pick<ConversationView, 'body' | 'scan'>, betas: readonly string[]): HeadShape {
    const messages = scan.fields.get('messages') as Slice;
    const key = digest(body.subarray(0, messages.start), body.subarray(messages.end), Buffer.from(betas.join()));
    return remember(this.#heads, key, 200, () => {
      const others = [...scan.fields].filter(([name]) => name !== 'messages');
      return shapeHead(Object.fromEntries(others.map(([name, at]) => [name, parseSlice(body, at)])), betas);
    });
  }
}

function digest(...parts: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('base64');
}

function remember<T>(known: Map<string, T>, key: string, most: number, describe: () => T): T {
  const found = known.get(key) ?? describe();
  known.delete(key); // re-inserted last: the map's order is the order of use
  known.set(key, found);
  if (known.size > most) known.delete(known.keys().next().value as string);
  return found;
}

/** @returns null when the body is not a request that may be rewritten (not JSON, an unknown message form) */
export function viewConversation(body: Buffer, cache: ViewCache): ConversationView | null {
  const scan = scanBody(body);
  if (scan === null) return null;
  try {
    return describe(body, scan, cache);
  } catch {
    return null; // a slice that brackets well but is not JSON: the request goes on as it came
  }
}

function describe(body: Buffer, scan: BodyScan, cache: ViewCache): ConversationView {
  const infos = scan.messages.map((at) => cache.message(body, at));
  const lineage: string[] = [];
  for (const info of infos) lineage.push(extendLineage(lineage.at(-1) ?? '', info.hash));
  const field = (name: string): unknown => {
    const at = scan.fields.get(name);
    return at === undefined ? undefined : parseSlice(body, at);
  };
  const thinking = field('thinking') as { type?: unknown } | undefined;
  const output = field('output_config') as { effort?: unknown } | undefined;
  const metadata = field('metadata') as { user_id?: unknown } | undefined;
  const systemAt = scan.fields.get('system');
  const toolsAt = scan.fields.get('tools');
  return {
    body,
    scan,
    infos,
    lineage,
    model: String(field('model') ?? ''),
    manualThinking: thinking?.type === 'enabled',
    effort: typeof output?.effort === 'string' ? output.effort : '',
    takesSystemMessages: infos.some((info) => info.role === 'system'),
    hasTools: toolsAt !== undefined && toolsAt.end - toolsAt.start > 2,
    maxTokens: Number(field('max_tokens') ?? 0),
    userId: typeof metadata?.user_id === 'string' ? metadata.user_id : '',
    system: systemAt === undefined ? { workingDirectory: null, isSubagent: false } : cache.system(body, systemAt),
  };
}

export function parseSlice(body: Buffer, at: Slice): unknown {
  return JSON.parse(body.toString('utf8', at.start, at.end));
}

/** Deterministic estimate: JSON bytes over four. */
export function tokensOf(bytes: number): number {
  return Math.ceil(bytes / 4);
}

function describeMessage(message: unknown, at: Slice): MessageInfo {
  if (typeof message !== 'object' || message === null) throw new TypeError('a message is an object');
  const { role, content } = message as { role?: unknown; content?: unknown };
  const blocks = Array.isArray(content) ? content : [];
  const answersTool = blocks.some((block) => /tool_result$/.test(String((block as { type?: unknown } | null)?.type)));
  return {
    hash: messageHash(message),
    role: String(role),
    isPrompt: role === 'user' && !answersTool,
    hasThinking: blocks.some(isThinking),
    tokens: tokensOf(at.end - at.start),
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
