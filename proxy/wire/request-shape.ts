import { isRecord } from '../../common/text.ts';

/** One content block, as far as the rules look at it. */
export interface BlockShape {
  readonly type: string;
  /** `id` of a tool_use, server_tool_use or mcp_tool_use. */
  readonly id?: string;
  /** Tool name of those. */
  readonly name?: string;
  /** `tool_use_id` of a result. */
  readonly toolUseId?: string;
  /** Text that is empty or whitespace only; on a tool_result: such a text block inside it. */
  readonly blank?: 'empty' | 'space';
  /** TTLs of the cache breakpoints on this block and inside it, in order; no `ttl` counts as 5m. */
  readonly ttls?: readonly string[];
  /** A breakpoint with `scope`. */
  readonly scoped?: true;
  /** Tail of the signature (or data) of a thinking block, '' when it has none: enough to tell blocks apart. */
  readonly signatureTail?: string;
}

/** One message, as far as the rules look at it: small, plain, and safe to keep beside the message's hash. */
export interface MessageShape {
  readonly role: string;
  readonly blocks: readonly BlockShape[];
  /** Keys other than role and content. */
  readonly extra: readonly string[];
  /** `content` was neither a string nor an array. */
  readonly malformed?: true;
}

export interface ToolShape {
  readonly name: string;
  readonly ttl?: string;
  readonly deferred?: true;
}

/** Everything outside `messages`. */
export interface HeadShape {
  readonly model: string;
  readonly keys: readonly string[];
  readonly betas: readonly string[];
  readonly system: readonly BlockShape[];
  readonly tools: readonly ToolShape[];
  readonly thinking: { readonly type: string; readonly budgetTokens: number; readonly binding: boolean } | null;
  /** TTL of the top-level automatic breakpoint; null when there is none. */
  readonly autoTtl: string | null;
  readonly maxTokens: number | null;
  readonly stream: boolean;
  readonly outputKeys: readonly string[];
  /** Length of the whole body in bytes; 0 when the caller does not care. */
  readonly bytes: number;
}

export interface RequestShape extends HeadShape {
  readonly messages: readonly MessageShape[];
  readonly messagesMalformed?: true;
}

type Json = Record<string, unknown>;

export function shapeMessage(message: unknown): MessageShape {
  if (!isRecord(message)) return { role: '', blocks: [], extra: [], malformed: true };
  const extra = Object.keys(message).filter((key) => key !== 'role' && key !== 'content');
  const role = typeof message.role === 'string' ? message.role : '';
  const { content } = message;
  if (typeof content === 'string') {
    const blocks = content === '' ? [] : [shapeBlock({ type: 'text', text: content })];
    return { role, blocks, extra };
  }
  if (!Array.isArray(content)) return { role, blocks: [], extra, malformed: true };
  return { role, blocks: content.map(shapeBlock), extra };
}

/** All but the messages; join it with cached message shapes: `{ ...shapeHead(body, betas), messages }`. */
export function shapeHead(body: Json, betas: readonly string[], bytes = 0): HeadShape {
  const thinking = isRecord(body.thinking) ? body.thinking : null;
  return {
    model: text(body.model),
    keys: Object.keys(body),
    betas,
    system: shapeSystem(body.system),
    tools: Array.isArray(body.tools) ? body.tools.map(shapeTool) : [],
    thinking: thinking && {
      type: text(thinking.type),
      budgetTokens: typeof thinking.budget_tokens === 'number' ? thinking.budget_tokens : 0,
      binding: thinking.block_binding !== undefined,
    },
    autoTtl: ttlOf(body) ?? null,
    maxTokens: typeof body.max_tokens === 'number' ? body.max_tokens : null,
    stream: body.stream === true,
    outputKeys: isRecord(body.output_config) ? Object.keys(body.output_config) : [],
    bytes,
  };
}

/** @param betas values of the `anthropic-beta` header, split at commas; see {@link parseBetas} */
export function shapeRequest(body: Json, betas: readonly string[], bytes = 0): RequestShape {
  const head = shapeHead(body, betas, bytes);
  if (!Array.isArray(body.messages)) return { ...head, messages: [], messagesMalformed: true };
  return { ...head, messages: body.messages.map(shapeMessage) };
}

export function parseBetas(header: string | undefined): readonly string[] {
  return (header ?? '')
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '');
}

function shapeSystem(system: unknown): readonly BlockShape[] {
  if (typeof system === 'string') return system === '' ? [] : [shapeBlock({ type: 'text', text: system })];
  return Array.isArray(system) ? system.map(shapeBlock) : [];
}

function shapeTool(tool: unknown): ToolShape {
  if (!isRecord(tool)) return { name: '' };
  const ttl = ttlOf(tool);
  return {
    name: text(tool.name),
    ...(ttl !== undefined && { ttl }),
    ...(tool.defer_loading === true && { deferred: true as const }),
  };
}

function shapeBlock(block: unknown): BlockShape {
  if (!isRecord(block)) return { type: '' };
  const type = text(block.type);
  const nested = isResult(type) && Array.isArray(block.content) ? block.content.filter(isRecord) : [];
  const ttls = [block, ...nested].map(ttlOf).filter((ttl) => ttl !== undefined);
  const blank = [block, ...nested].map(blankOf).find((value) => value !== undefined);
  const scoped = isRecord(block.cache_control) && block.cache_control.scope !== undefined;
  const seal = sealOf(type, block);
  return {
    type,
    ...(typeof block.id === 'string' && isUse(type) && { id: block.id, name: text(block.name) }),
    ...(typeof block.tool_use_id === 'string' && { toolUseId: block.tool_use_id }),
    ...(blank && { blank }),
    ...(ttls.length > 0 && { ttls }),
    ...(scoped && { scoped: true as const }),
    ...(seal !== undefined && { signatureTail: seal }),
  };
}

const SEAL_LENGTH = 24;

function sealOf(type: string, block: Json): string | undefined {
  if (type === 'thinking') return text(block.signature).slice(-SEAL_LENGTH);
  return type === 'redacted_thinking' ? text(block.data).slice(-SEAL_LENGTH) : undefined;
}

function blankOf(block: Json): 'empty' | 'space' | undefined {
  if (block.type !== 'text' || typeof block.text !== 'string') return undefined;
  if (block.text === '') return 'empty';
  return /\S/.test(block.text) ? undefined : 'space';
}

function ttlOf(holder: Json): string | undefined {
  if (!isRecord(holder.cache_control)) return undefined;
  return typeof holder.cache_control.ttl === 'string' ? holder.cache_control.ttl : '5m';
}

function isUse(type: string): boolean {
  return type === 'tool_use' || type === 'server_tool_use' || type === 'mcp_tool_use';
}

function isResult(type: string): boolean {
  return type === 'tool_result' || type.endsWith('_tool_result');
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
