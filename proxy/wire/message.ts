import { isRecord, sha256, toText } from '../../common/text.ts';
import { findStandingParts, isStandingReminder } from '../../common/turn.ts';

type Json = Record<string, unknown>;

const THINKING = new Set(['thinking', 'redacted_thinking']);

/**
 * The form that identifies a message. A string equals one text block and `cache_control` is ignored, because both change
 * once a message is history. Thinking is ignored, because Claude Code strips it from the whole session when upstream
 * refuses a signature. Keys are sorted.
 */
export function canonicalizeMessage(message: unknown): string {
  const { role, content, ...rest } = message as Json;
  return JSON.stringify(sortKeys({ ...rest, role: role ?? null, content: canonicalContent(content) }));
}

function canonicalContent(content: unknown): unknown {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) return content ?? null;
  return content.filter((block) => !isThinking(block)).map(canonicalBlock);
}

function canonicalBlock(block: unknown): unknown {
  if (!isRecord(block)) return block;
  const { cache_control: _, ...rest } = block;
  return rest['type'] === 'tool_result' && rest['content'] !== undefined
    ? { ...rest, content: canonicalContent(rest['content']) }
    : rest;
}

export const isThinking = (block: unknown): boolean => isRecord(block) && THINKING.has(String(block['type']));

const SIGNATURE_CHARS = 32;

/** The end of the signature or data that tells an answer's thinking from that of another; '' without one. */
export function readSignature(blocks: readonly unknown[]): string {
  const { signature, data = '' } = Object(blocks.findLast(isThinking)) as Json;
  return String(signature ?? data).slice(-SIGNATURE_CHARS);
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isRecord(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sortKeys(value[key])]));
}

export const hashMessage = (message: unknown): string => sha256(canonicalizeMessage(message));

/** `H_i = sha256(H_{i-1} ‖ hash_i)`, hex; `before` is '' for the first message. */
export const extendLineage = (before: string, hash: string): string => sha256(before + hash);

/** What the validation rules need of one content block. */
export interface BlockShape {
  readonly type: string;
  /** `id` of a tool_use, server_tool_use or mcp_tool_use. */
  readonly id?: string;
  readonly name?: string;
  readonly toolUseId?: string;
  /** Empty or whitespace-only text, also in a text block inside a tool_result. */
  readonly blank?: 'empty' | 'space';
  /** TTLs of the cache breakpoints on this block and inside it, in order; 5m by default. */
  readonly ttls?: readonly string[];
  /** Documents in this block, itself or inside a result; absent without any. */
  readonly documents?: number;
  /** The highest document index that its citations name. */
  readonly cites?: number;
  /** Tail of the signature or data of a thinking block, '' when it has none. */
  readonly signatureTail?: string;
}

/** What the validation rules need of one message: small enough to cache thousands. */
export interface MessageShape {
  readonly role: string;
  readonly blocks: readonly BlockShape[];
  readonly extra: readonly string[];
  /** `content` was neither a string nor an array. */
  readonly malformed?: true;
}

interface ToolShape {
  readonly name: string;
  readonly ttl?: string;
  readonly deferred?: true;
}

export type HeadShape = ReturnType<typeof shapeHead>;

export interface RequestShape extends HeadShape {
  readonly messages: readonly MessageShape[];
  readonly bytes: number;
}

export function shapeMessage(message: unknown): MessageShape {
  if (!isRecord(message)) return { role: '', blocks: [], extra: [], malformed: true };
  const { role, content, ...rest } = message;
  const isMalformed = typeof content !== 'string' && !Array.isArray(content);
  const extra = Object.keys(rest);
  return { role: toText(role), blocks: shapeBlocks(content), extra, ...(isMalformed && { malformed: true as const }) };
}

/** The parts of a message that stay when a cut absorbs it, because Claude Code sends them once (decision 0055). */
export interface Pinned {
  /** Text blocks of a user message. */
  readonly reminders: readonly string[];
  /** Content of a system message: text, and tools that it adds or removes. */
  readonly blocks: readonly unknown[];
  /** `output_config` of a system message; it applies until the next one. */
  readonly directive?: unknown;
  /** A tool result says that plan mode ended, as for models without system messages: by a reminder, or in its output. */
  readonly endsPlan?: 'reminder' | 'output';
}

/** Null when nothing stays. */
export function readPinned(message: unknown): Pinned | null {
  const { role, content, output_config: config } = message as Json;
  const blocks = toBlocks(content);
  const directive = role === 'system' ? config : undefined;
  const reminders = role === 'user' ? blocks.flatMap(readText).filter((text) => isStandingReminder(text)) : [];
  const kept = role === 'system' ? blocks.flatMap((block) => keepStanding(block)) : [];
  const ends = blocks.flatMap(readResult).flatMap((text) => text.split(PLAN_ENDED).slice(1));
  const endsPlan = ends[0] === undefined ? undefined : ends.some(isRestOfReminders) ? 'reminder' : 'output';
  if (reminders.length + kept.length === 0 && directive === undefined && !endsPlan) return null;
  return { reminders, blocks: kept, ...(directive !== undefined && { directive }), ...(endsPlan && { endsPlan }) };
}

const PLAN_ENDED = '<system-reminder>\n## Exited Plan Mode\n\nYou have exited plan mode.';

/** Claude Code appends its reminders to a result, whose own text may quote one. */
const isRestOfReminders = (text: string): boolean => {
  const [, ...others] = text.split('</system-reminder>').map((part) => part.trim());
  return others.length > 0 && others.every((part) => part === '' || part.startsWith('<system-reminder>'));
};

const readResult = (block: unknown): string[] =>
  Object(block).type === 'tool_result' ? toBlocks(Object(block).content).flatMap(readText) : [];

export function toBlocks(content: unknown): readonly unknown[] {
  return Array.isArray(content) ? content : [{ type: 'text', text: content }];
}

/** What a plan keeps of it whose `pins` is `kinds`; those with 3 took any output for the end of plan mode. */
export const asFormerly = ({ endsPlan, ...pin }: Pinned, kinds: number): Pinned => ({
  ...pin,
  ...(endsPlan && (kinds === 3 || (kinds > 3 && endsPlan === 'reminder')) && { endsPlan }),
  reminders: pin.reminders.filter((text) => isStandingReminder(text, kinds)),
  blocks: pin.blocks.flatMap((block) => keepStanding(block, kinds)),
});

const ON_PLAN_MODE = /^(?:<system-reminder>\n)?(?:Plan mode is active\.|## Exited Plan)/;
/** Statements of which only the last holds; those on plan mode are long, those on the directory many. */
const SUPERSEDED = [
  ON_PLAN_MODE,
  /^(?:<system-reminder>\n)?# Environment update\n - Primary working directory: [^\n]+(?:\n<\/system-reminder>\n?)?$/,
];

export function dropSuperseded(all: readonly Pinned[]): readonly Pinned[] {
  return SUPERSEDED.reduce((pins, statement) => {
    const isOther = (text: string): boolean => !statement.test(text);
    const isOtherBlock = (block: unknown): boolean => readText(block).every(isOther);
    const isOne = ({ reminders, blocks, endsPlan }: Pinned): boolean =>
      (endsPlan && statement === ON_PLAN_MODE) || !reminders.every(isOther) || !blocks.every(isOtherBlock);
    const last = pins.findLastIndex(isOne);
    return pins.map((pin, at) => {
      const { reminders, blocks } = pin;
      return at >= last ? pin : { ...pin, reminders: reminders.filter(isOther), blocks: blocks.filter(isOtherBlock) };
    });
  }, all);
}

export function readText(block: unknown): string[] {
  return isRecord(block) && block['type'] === 'text' && typeof block['text'] === 'string' ? [block['text']] : [];
}

function keepStanding(block: unknown, kinds?: number): unknown[] {
  if (!isRecord(block)) return [];
  const { cache_control: _, ...rest } = block;
  if (rest['type'] === 'tool_addition' || rest['type'] === 'tool_removal') return [rest];
  return readText(block)
    .flatMap((text) => findStandingParts(text, kinds))
    .map((text) => ({ type: 'text', text }));
}

/** What the validation rules need outside `messages`. @param body  the request without its messages */
export function shapeHead(body: Json) {
  return {
    model: toText(body.model),
    system: shapeBlocks(body.system),
    tools: shapeTools(body.tools),
    thinking: isRecord(body.thinking) ? toText(body.thinking.type) : '',
    /** TTL of the top-level automatic breakpoint; null without one. */
    autoTtl: readTtl(body) ?? null,
  };
}

export const shapeTools = (tools: unknown): readonly ToolShape[] => (Array.isArray(tools) ? tools.map(shapeTool) : []);

function shapeBlocks(content: unknown): readonly BlockShape[] {
  if (typeof content === 'string') return content === '' ? [] : [shapeBlock({ type: 'text', text: content })];
  return Array.isArray(content) ? content.map(shapeBlock) : [];
}

function shapeTool(tool: unknown): ToolShape {
  if (!isRecord(tool)) return { name: '' };
  const ttl = readTtl(tool);
  return {
    name: toText(tool.name),
    ...(ttl !== undefined && { ttl }),
    ...(tool.defer_loading === true && { deferred: true as const }),
  };
}

function shapeBlock(block: unknown): BlockShape {
  if (!isRecord(block)) return { type: '' };
  const type = toText(block.type);
  const nested = /(^|_)tool_result$/.test(type) && Array.isArray(block.content) ? block.content.filter(isRecord) : [];
  const ttls = [block, ...nested].map(readTtl).filter((ttl) => ttl !== undefined);
  const blank = [block, ...nested].map(findBlank).find((value) => value !== undefined);
  const documents = [block, ...nested].filter((each) => each['type'] === 'document').length;
  return {
    type,
    ...(typeof block.id === 'string' &&
      /^(server_|mcp_)?tool_use$/.test(type) && { id: block.id, name: toText(block.name) }),
    ...(typeof block.tool_use_id === 'string' && { toolUseId: block.tool_use_id }),
    ...(blank && { blank }),
    ...(ttls.length > 0 && { ttls }),
    ...(documents > 0 && { documents }),
    ...findCited(block),
    ...(THINKING.has(type) && {
      signatureTail: toText(type === 'thinking' ? block.signature : block.data).slice(-TAIL_LENGTH),
    }),
  };
}

function findCited({ citations }: Json): Pick<BlockShape, 'cites'> {
  const indexes: unknown[] = (Array.isArray(citations) ? citations : []).map((each) => Object(each).document_index);
  const named = indexes.filter((index) => typeof index === 'number');
  return named.length > 0 ? { cites: Math.max(...named) } : {};
}

const TAIL_LENGTH = 24;

function findBlank(block: Json): 'empty' | 'space' | undefined {
  if (block.type !== 'text' || typeof block.text !== 'string') return undefined;
  if (block.text === '') return 'empty';
  return /\S/.test(block.text) ? undefined : 'space';
}

export function readTtl(holder: Readonly<Json>): string | undefined {
  if (!isRecord(holder.cache_control)) return undefined;
  return typeof holder.cache_control.ttl === 'string' ? holder.cache_control.ttl : '5m';
}
