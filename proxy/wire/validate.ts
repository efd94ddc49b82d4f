import { tally } from '../../common/map.ts';
import { parseJson } from '../../common/text.ts';
import type { BlockShape, MessageShape, RequestShape } from './message.ts';
import { findModelTraits } from './models.ts';

/**
 * The errors for which the API would refuse this request, in its words. It returns the first.
 *
 * Checks only what a rewrite can change, so that a new top-level field or beta of Claude Code disables nothing. Does not
 * check whether a thinking signature fits its prefix.
 */
export function* findRefusals(shape: RequestShape): Generator<string> {
  if (shape.bytes > MAX_BYTES) yield 'Request exceeds the maximum size';
  yield* checkRoles(shape);
  yield* checkBlocks(shape);
  yield* checkTools(shape);
  yield* checkCache(shape);
  yield* checkThinking(shape);
  yield* checkCitations(shape);
}

/** The first refusal that `sent` has and `received` has not, or has more often. Null: the rewrite adds none. */
export function findAddedRefusal(received: RequestShape, sent: RequestShape): string | null {
  const refusals = [...findRefusals(sent)];
  if (refusals.length === 0) return null;
  const counts = tally([...findRefusals(received)].map(refusalKey));
  for (const refusal of refusals) {
    const key = refusalKey(refusal);
    const left = counts.get(key) ?? 0;
    if (left === 0) return refusal;
    counts.set(key, left - 1);
  }
  return null;
}

/** A rewrite moves messages, so their places and the count of breakpoints do not distinguish refusals. */
export function refusalKey(message: string): string {
  return message.replace(/\b(messages|system|tools|content)\.\d+/g, '$1.*').replace(/Found \d+/, 'Found *');
}

const MAX_BYTES = 32 * 1024 * 1024;

// Wording seen on the live API in Sep and Oct 2026 (anthropics/claude-code#73821 and public probes).
const ANYWHERE = 'the directive-only form (content: [] with output_config) is accepted at any position';
const FIRST = `use the top-level 'system' parameter for the initial system prompt; ${ANYWHERE}`;
const FOLLOWS = `role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result; ${ANYWHERE}`;
const PRECEDES = `role 'system' must precede an 'assistant' message or end the array; ${ANYWHERE}`;
const PREFILL = 'This model does not support assistant message prefill. The conversation must end with a user message.';

const SYSTEM_BLOCKS = new Set(['text', 'tool_addition', 'tool_removal']);

/** The first message, the roles, the places of `role: "system"`, and the end of the array. */
function* checkRoles(shape: RequestShape): Generator<string> {
  const { messages } = shape;
  const traits = findModelTraits(shape.model);
  if (messages.length === 0) yield 'messages: at least one message is required';
  for (const [index, message] of messages.entries()) {
    const refusal = checkMessage(message, index);
    if (refusal) yield refusal;
  }
  if (messages.some((message) => message.role === 'system') && !traits.systemMessages)
    yield "role 'system' is not supported on this model";
  if (messages[0]?.role === 'assistant') yield 'messages: first message must use the "user" role';
  yield* checkPlacement(messages);
  const last = messages.at(-1);
  if (last?.role === 'assistant' && !traits.prefill && !isPaused(last)) yield PREFILL;
}

function checkMessage(message: MessageShape, index: number): string | null {
  if (message.role === '') return `messages.${index}.role: Field required`;
  if (!['user', 'assistant', 'system'].includes(message.role))
    return `messages.${index}.role: Input should be 'user' or 'assistant'`;
  if (message.malformed) return `messages.${index}.content: Input should be a valid string or array`;
  const allowed = message.role === 'system' ? ['clear_at', 'output_config'] : [];
  const extra = message.extra.find((key) => !allowed.includes(key));
  if (extra !== undefined) return `messages.${index}.${extra}: Extra inputs are not permitted`;
  if (message.role !== 'system') return null;
  if (message.blocks.length === 0 && !message.extra.includes('output_config'))
    return `messages.${index}: system content must contain at least one block`;
  if (message.blocks.some((block) => !SYSTEM_BLOCKS.has(block.type))) {
    return `messages.${index}: role 'system' supports text, tool_addition, and tool_removal blocks only`;
  }
  return null;
}

function* checkPlacement(messages: readonly MessageShape[]): Generator<string> {
  for (let start = 0; start < messages.length; start += 1) {
    if (!hasFixedPlace(messages[start])) continue;
    let end = start;
    while (hasFixedPlace(messages[end + 1])) end += 1;
    if (start === 0) yield `messages.0: ${FIRST}`;
    const before = messages[start - 1];
    if (before && before.role !== 'user' && before.role !== 'system' && !isServerResult(before.blocks.at(-1)))
      yield `messages.${start}: ${FOLLOWS}`;
    const after = messages[end + 1];
    if (after && after.role !== 'assistant') yield `messages.${end}: ${PRECEDES}`;
    start = end;
  }
}

function hasFixedPlace(message: MessageShape | undefined): boolean {
  return message?.role === 'system' && message.blocks.length > 0;
}

const isServerResult = (block: BlockShape | undefined): boolean => block?.type.endsWith('_tool_result') === true;

/** A paused turn (`pause_turn`) is sent back unchanged and continued. */
function isPaused(message: MessageShape): boolean {
  const last = message.blocks.at(-1);
  return isServerResult(last) || last?.type === 'server_tool_use' || last?.type === 'mcp_tool_use';
}

/** Messages must not be empty, text must not be blank. */
function* checkBlocks(shape: RequestShape): Generator<string> {
  const { messages } = shape;
  for (const [index, message] of messages.entries()) {
    if (message.blocks.length > 0 || message.role === 'system') continue;
    if (message.role === 'assistant' && index === messages.length - 1) continue;
    yield `messages.${index}: all messages must have non-empty content except for the optional final assistant message`;
  }
  yield* checkText(shape.system, 'system', 'system');
  for (const [index, message] of messages.entries())
    yield* checkText(message.blocks, 'messages', `messages.${index}.content`);
}

function* checkText(blocks: readonly BlockShape[], field: string, path: string): Generator<string> {
  for (const [index, { blank, ttls }] of blocks.entries()) {
    if (blank === undefined) continue;
    if (blank === 'space') yield `${field}: text content blocks must contain non-whitespace text`;
    else if (!ttls) yield `${field}: text content blocks must be non-empty`;
    else yield `${path}.${index}.text: cache_control cannot be set for empty text blocks`;
  }
}

/** A block with message and position in it, in the array as sent. */
type Placed = ReturnType<typeof placeBlocks>[number];

function placeBlocks({ role, blocks }: MessageShape, index: number) {
  return blocks.map((block, at) => ({ role, block, index, at }));
}

const formatPath = ({ index, at }: Placed): string => `messages.${index}.content.${at}`;

/** Consecutive messages of one role, which the API merges. */
type Turn = ReturnType<typeof mergeTurns>[number];

/** Each client tool call is answered in the next message, results first; each server result follows its call; ids are unique. */
function* checkTools(shape: RequestShape): Generator<string> {
  const turns = mergeTurns(shape.messages);
  yield* checkUnique(turns);
  yield* checkAnswers(turns);
  yield* checkServerTools(turns);
}

function mergeTurns(messages: readonly MessageShape[]) {
  const turns: { role: string; index: number; blocks: Placed[] }[] = [];
  for (const [index, message] of messages.entries()) {
    const placed = placeBlocks(message, index);
    const last = turns.at(-1);
    if (last?.role === message.role) last.blocks.push(...placed);
    else turns.push({ role: message.role, index, blocks: placed });
  }
  return turns;
}

function* checkUnique(turns: readonly Turn[]): Generator<string> {
  const seen = new Set<string>();
  for (const placed of turns.flatMap(({ blocks }) => blocks)) {
    const { id, type } = placed.block;
    if (id === undefined) continue;
    if (seen.has(id)) yield `${formatPath(placed)}: \`${type}\` ids must be unique`;
    seen.add(id);
  }
}

function* checkAnswers(turns: readonly Turn[]): Generator<string> {
  let called: ReadonlySet<string> = new Set();
  for (const [at, turn] of turns.entries()) {
    yield* checkOrphans(turn, turn.role === 'assistant' ? new Set() : called);
    called = new Set();
    if (turn.role !== 'assistant') continue;
    called = new Set(turn.blocks.flatMap(({ block }) => (block.type === 'tool_use' ? [block.id ?? ''] : [])));
    const refusal = checkMissing(turn, called, turns[at + 1]);
    if (refusal) yield refusal;
  }
}

function checkMissing(turn: Turn, called: ReadonlySet<string>, next: Turn | undefined): string | null {
  const answered = new Set<string>();
  for (const { block } of next?.role === 'user' ? next.blocks : []) {
    // The API ignores results that follow other content.
    if (block.type !== 'tool_result') break;
    answered.add(block.toolUseId ?? '');
  }
  const missing = [...called].filter((id) => !answered.has(id));
  if (missing.length === 0) return null;
  return `messages.${turn.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}

function* checkOrphans(turn: Turn, called: ReadonlySet<string>): Generator<string> {
  const seen = new Set<string>();
  for (const placed of turn.blocks) {
    const { block } = placed;
    if (block.type !== 'tool_result') continue;
    const id = block.toolUseId ?? '';
    if (!called.has(id)) {
      yield `${formatPath(placed)}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    }
    if (seen.has(id)) {
      yield `${formatPath(placed)}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`;
    }
    seen.add(id);
  }
}

function* checkServerTools(turns: readonly Turn[]): Generator<string> {
  const open = new Map<string, Placed>();
  for (const turn of turns) {
    if (turn.role === 'user' && turn.blocks.some(({ block }) => block.type !== 'tool_result')) {
      for (const left of open.values()) {
        yield `${formatPath(left)}: \`${left.block.name}\` tool use with id \`${left.block.id}\` was found without a corresponding \`${left.block.name}_tool_result\` block`;
      }
      open.clear();
    }
    if (turn.role === 'assistant') yield* matchServerResults(turn, open);
  }
}

function* matchServerResults(turn: Turn, open: Map<string, Placed>): Generator<string> {
  for (const placed of turn.blocks) {
    const { block } = placed;
    if (block.type === 'server_tool_use' || block.type === 'mcp_tool_use') open.set(block.id ?? '', placed);
    if (!isServerResult(block) || block.toolUseId === undefined || open.delete(block.toolUseId)) continue;
    const use = block.type === 'mcp_tool_result' ? 'mcp_tool_use' : 'server_tool_use';
    yield `${formatPath(placed)}: unexpected \`tool_use_id\` found in \`${block.type}\` blocks: ${block.toolUseId}. Each \`${block.type}\` block must have a corresponding \`${use}\` block before it.`;
  }
}

const MAX_BREAKPOINTS = 4;

interface Breakpoint {
  readonly path: string;
  readonly ttl: string;
}

/** At most four cache breakpoints, at allowed places, 1h before 5m over tools, system and messages. */
function* checkCache(shape: RequestShape): Generator<string> {
  for (const { name, deferred, ttl } of shape.tools) {
    if (!deferred || ttl === undefined) continue;
    yield `Tool '${name}' cannot have both defer_loading=true and cache_control set. Tools with defer_loading cannot use prompt caching.`;
  }
  for (const placed of shape.messages.flatMap(placeBlocks)) {
    const { block } = placed;
    if (block.signatureTail !== undefined && block.ttls)
      yield `${formatPath(placed)}.${block.type}.cache_control: Extra inputs are not permitted`;
  }
  const breakpoints = listBreakpoints(shape);
  for (let excess = breakpoints.length; excess > MAX_BREAKPOINTS; excess -= 1)
    yield `A maximum of 4 blocks with cache_control may be provided. Found ${breakpoints.length}.`;
  yield* checkTtls(breakpoints);
}

function listBreakpoints(shape: RequestShape): readonly Breakpoint[] {
  const breakpoints: Breakpoint[] = [];
  const add = (ttls: readonly string[] | undefined, path: string) => {
    for (const ttl of ttls ?? []) breakpoints.push({ path, ttl });
  };
  for (const [index, { ttl }] of shape.tools.entries()) add(ttl === undefined ? [] : [ttl], `tools.${index}`);
  for (const [index, block] of shape.system.entries()) add(block.ttls, `system.${index}`);
  for (const placed of shape.messages.flatMap(placeBlocks)) add(placed.block.ttls, formatPath(placed));
  const last = shape.messages.at(-1)?.blocks.at(-1)?.ttls?.at(-1);
  // The automatic breakpoint is on the last block; an equal one already there counts once.
  if (shape.autoTtl !== null && last !== shape.autoTtl) breakpoints.push({ path: 'cache_control', ttl: shape.autoTtl });
  return breakpoints;
}

function* checkTtls(breakpoints: readonly Breakpoint[]): Generator<string> {
  let short = false;
  for (const { path, ttl } of breakpoints) {
    const field = path === 'cache_control' ? 'cache_control' : `${path}.cache_control`;
    if (ttl !== '5m' && ttl !== '1h') yield `${field}.ephemeral.ttl: Input should be '5m' or '1h'`;
    if (ttl === '1h' && short) {
      yield `${field}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: \`tools\`, \`system\`, \`messages\`.`;
    }
    short ||= ttl === '5m';
  }
}

const DOCS = 'https://docs.claude.com/en/docs/build-with-claude/extended-thinking';

/** Where thinking blocks are allowed and required. */
function* checkThinking(shape: RequestShape): Generator<string> {
  for (const placed of shape.messages.flatMap(placeBlocks)) {
    const { role, block } = placed;
    if (block.signatureTail === undefined) continue;
    const path = formatPath(placed);
    if (role !== 'assistant') yield `${path}: \`${block.type}\` blocks may only be in \`assistant\` messages`;
    if (block.signatureTail === '')
      yield `${path}.${block.type}.${block.type === 'thinking' ? 'signature' : 'data'}: Field required`;
  }
  const refusal = shape.thinking === 'enabled' ? checkLoopStart(shape.messages) : checkDisabledThinking(shape);
  if (refusal) yield refusal;
}

/** A citation names a document before it by its index. */
function* checkCitations({ messages }: RequestShape): Generator<string> {
  let documents = 0;
  for (const placed of messages.flatMap(placeBlocks)) {
    const { block } = placed;
    if ((block.cites ?? -1) >= documents)
      yield `${formatPath(placed)}.text.citations: no document with index ${block.cites}`;
    documents += block.documents ?? 0;
  }
}

/** With manual thinking, the assistant turn of a running tool loop must start with its thinking. */
function checkLoopStart(messages: readonly MessageShape[]): string | null {
  const index = findLoopStart(messages);
  const block = messages[index]?.blocks[0];
  if (!block || block.signatureTail !== undefined) return null;
  return `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${block.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at ${DOCS}`;
}

/** Index of the first assistant message of the running tool loop; -1 without one. */
function findLoopStart(messages: readonly MessageShape[]): number {
  const last = messages.findLastIndex((message) => message.role !== 'system');
  if (messages[last]?.role !== 'user' || !hasToolResult(messages[last])) return -1;
  let start = -1;
  for (let index = last; index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.role === 'assistant') start = index;
    else if (message?.role === 'user' && !hasToolResult(message)) break;
  }
  return start;
}

function hasToolResult(message: MessageShape | undefined): boolean {
  return message?.blocks.some((block) => block.type === 'tool_result') === true;
}

function checkDisabledThinking(shape: RequestShape): string | null {
  const index = shape.messages.length - 1;
  const at = shape.messages[index]?.blocks.findIndex((block) => block.signatureTail !== undefined) ?? -1;
  if (shape.thinking !== 'disabled' || at < 0) return null;
  return `messages.${index}.content.${at}: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`thinking\`. To use thinking blocks, enable \`thinking\` in your request.`;
}

/** Errors that no rewrite causes: limits of the account, media that only the client sends, other top-level fields. */
const NOT_OURS =
  /too long|too large|context limit|credit|quota|usage limit|content filter|usage policy|organization has|for (?:this|your) organization|model name|beta flag|unexpected value|context beta|\bimage\b|\bpdf\b|^(?!messages\b|system\b)[a-z_]+[.:]/i;

/** Which part of a rewrite caused a 400. An unknown error counts as `structure`; null: no rewrite can cause it. */
export function classifyApiError(errorText: string): 'thinking' | 'structure' | null {
  const message = readApiMessage(errorText);
  if (NOT_OURS.test(message)) return null;
  return /thinking|signature|bound to/i.test(message) ? 'thinking' : 'structure';
}

/** `error.message` of an error response; other text as it is. */
export function readApiMessage(errorText: string): string {
  const body = parseJson(errorText) as { error?: { message?: unknown }; message?: unknown } | null | undefined;
  return String(body?.error?.message ?? body?.message ?? errorText);
}
