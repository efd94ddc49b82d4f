import type { BlockShape, MessageShape, RequestShape } from './message.ts';
import { findModelTraits } from './models.ts';

/**
 * The error that the API would return, in its words; null when the request is valid.
 *
 * Checks only what a rewrite can change, so that a new top-level field or beta of Claude Code disables nothing. Does not
 * check whether a thinking signature fits its prefix.
 */
export function checkRequest(shape: RequestShape): ApiError | null {
  return (
    (shape.bytes > MAX_BYTES ? TOO_LARGE : null) ??
    checkRoles(shape) ??
    checkBlocks(shape) ??
    checkTools(shape) ??
    checkCache(shape) ??
    checkThinking(shape)
  );
}

const MAX_BYTES = 32 * 1024 * 1024;
const TOO_LARGE = { status: 413, type: 'request_too_large', message: 'Request exceeds the maximum size' };

// Wording seen on the live API in Sep and Oct 2026 (anthropics/claude-code#73821 and public probes).
const ANYWHERE = 'the directive-only form (content: [] with output_config) is accepted at any position';
const FIRST = `use the top-level 'system' parameter for the initial system prompt; ${ANYWHERE}`;
const FOLLOWS = `role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result; ${ANYWHERE}`;
const PRECEDES = `role 'system' must precede an 'assistant' message or end the array; ${ANYWHERE}`;
const PREFILL = 'This model does not support assistant message prefill. The conversation must end with a user message.';

const SYSTEM_BLOCKS = new Set(['text', 'tool_addition', 'tool_removal']);

/** The first message, the roles, the places of `role: "system"`, and the end of the array. */
export function checkRoles(shape: RequestShape): ApiError | null {
  const { messages } = shape;
  const traits = findModelTraits(shape.model);
  if (messages.length === 0) return invalidRequest('messages: at least one message is required');
  for (const [index, message] of messages.entries()) {
    const refusal = checkMessage(message, index);
    if (refusal) return refusal;
  }
  if (messages.some((message) => message.role === 'system') && !traits.systemMessages) {
    return invalidRequest("role 'system' is not supported on this model");
  }
  const first = messages[0];
  if (first?.role === 'assistant') return invalidRequest('messages: first message must use the "user" role');
  const misplaced = checkPlacement(messages);
  if (misplaced) return misplaced;
  const last = messages.at(-1);
  if (last?.role === 'assistant' && !traits.prefill && !isPaused(last)) return invalidRequest(PREFILL);
  return null;
}

function checkMessage(message: MessageShape, index: number): ApiError | null {
  if (message.role === '') return invalidRequest(`messages.${index}.role: Field required`);
  if (!['user', 'assistant', 'system'].includes(message.role)) {
    return invalidRequest(`messages.${index}.role: Input should be 'user' or 'assistant'`);
  }
  if (message.malformed) return invalidRequest(`messages.${index}.content: Input should be a valid string or array`);
  const allowed = message.role === 'system' ? ['clear_at', 'output_config'] : [];
  const extra = message.extra.find((key) => !allowed.includes(key));
  if (extra !== undefined) return invalidRequest(`messages.${index}.${extra}: Extra inputs are not permitted`);
  if (message.role !== 'system') return null;
  if (message.blocks.length === 0 && !message.extra.includes('output_config')) {
    return invalidRequest(`messages.${index}: system content must contain at least one block`);
  }
  if (message.blocks.some((block) => !SYSTEM_BLOCKS.has(block.type))) {
    return invalidRequest(
      `messages.${index}: role 'system' supports text, tool_addition, and tool_removal blocks only`,
    );
  }
  return null;
}

function checkPlacement(messages: readonly MessageShape[]): ApiError | null {
  for (let start = 0; start < messages.length; start += 1) {
    if (!hasFixedPlace(messages[start])) continue;
    let end = start;
    while (hasFixedPlace(messages[end + 1])) end += 1;
    if (start === 0) return invalidRequest(`messages.0: ${FIRST}`);
    const before = messages[start - 1];
    if (before && before.role !== 'user' && before.role !== 'system' && !isServerResult(before.blocks.at(-1)))
      return invalidRequest(`messages.${start}: ${FOLLOWS}`);
    const after = messages[end + 1];
    if (after && after.role !== 'assistant') return invalidRequest(`messages.${end}: ${PRECEDES}`);
    start = end;
  }
  return null;
}

function hasFixedPlace(message: MessageShape | undefined): boolean {
  return message?.role === 'system' && message.blocks.length > 0;
}

export function isServerResult(block: BlockShape | undefined): boolean {
  return block?.type.endsWith('_tool_result') === true;
}

/** A paused turn (`pause_turn`) is sent back unchanged and continued. */
function isPaused(message: MessageShape): boolean {
  const last = message.blocks.at(-1);
  return isServerResult(last) || last?.type === 'server_tool_use' || last?.type === 'mcp_tool_use';
}

/** Messages must not be empty, text must not be blank. */
export function checkBlocks(shape: RequestShape): ApiError | null {
  const { messages } = shape;
  for (const [index, message] of messages.entries()) {
    if (message.blocks.length > 0 || message.role === 'system') continue;
    if (message.role === 'assistant' && index === messages.length - 1) continue;
    return invalidRequest(
      `messages.${index}: all messages must have non-empty content except for the optional final assistant message`,
    );
  }
  const inSystem = checkText(shape.system, 'system', 'system');
  if (inSystem) return inSystem;
  for (const [index, message] of messages.entries()) {
    const refusal = checkText(message.blocks, 'messages', `messages.${index}.content`);
    if (refusal) return refusal;
  }
  return null;
}

function checkText(blocks: readonly BlockShape[], field: string, path: string): ApiError | null {
  const index = blocks.findIndex((block) => block.blank !== undefined);
  const block = blocks[index];
  if (!block) return null;
  if (block.blank === 'empty' && block.ttls) {
    return invalidRequest(`${path}.${index}.text: cache_control cannot be set for empty text blocks`);
  }
  return invalidRequest(
    block.blank === 'empty'
      ? `${field}: text content blocks must be non-empty`
      : `${field}: text content blocks must contain non-whitespace text`,
  );
}

interface Placed {
  readonly block: BlockShape;
  /** Message and position in it, in the array as sent. */
  readonly index: number;
  readonly at: number;
}

/** Consecutive messages of one role, which the API merges. */
interface Turn {
  readonly role: string;
  readonly index: number;
  readonly blocks: readonly Placed[];
}

/** Each client tool call is answered in the next message, results first; each server result follows its call; ids are unique. */
export function checkTools(shape: RequestShape): ApiError | null {
  const turns = mergeTurns(shape.messages);
  return checkUnique(turns) ?? checkAnswers(turns) ?? checkServerTools(turns);
}

function mergeTurns(messages: readonly MessageShape[]): readonly Turn[] {
  const turns: { role: string; index: number; blocks: Placed[] }[] = [];
  for (const [index, message] of messages.entries()) {
    const placed = message.blocks.map((block, at) => ({ block, index, at }));
    const last = turns.at(-1);
    if (last?.role === message.role) last.blocks.push(...placed);
    else turns.push({ role: message.role, index, blocks: placed });
  }
  return turns;
}

function checkUnique(turns: readonly Turn[]): ApiError | null {
  const seen = new Set<string>();
  for (const turn of turns) {
    for (const placed of turn.blocks) {
      const { id, type } = placed.block;
      if (id === undefined) continue;
      if (seen.has(id)) return invalidRequest(`${formatPath(placed)}: \`${type}\` ids must be unique`);
      seen.add(id);
    }
  }
  return null;
}

function formatPath({ index, at }: Placed): string {
  return `messages.${index}.content.${at}`;
}

function checkAnswers(turns: readonly Turn[]): ApiError | null {
  let called: ReadonlySet<string> = new Set();
  for (const [at, turn] of turns.entries()) {
    if (turn.role === 'assistant') {
      called = new Set(turn.blocks.flatMap(({ block }) => (block.type === 'tool_use' ? [block.id ?? ''] : [])));
      const refusal = checkOrphans(turn, new Set()) ?? checkMissing(turn, called, turns[at + 1]);
      if (refusal) return refusal;
    } else {
      const refusal = checkOrphans(turn, called);
      if (refusal) return refusal;
      called = new Set();
    }
  }
  return null;
}

function checkMissing(turn: Turn, called: ReadonlySet<string>, next: Turn | undefined): ApiError | null {
  const answered = new Set<string>();
  for (const { block } of next?.role === 'user' ? next.blocks : []) {
    // The API ignores results that follow other content.
    if (block.type !== 'tool_result') break;
    answered.add(block.toolUseId ?? '');
  }
  const missing = [...called].filter((id) => !answered.has(id));
  if (missing.length === 0) return null;
  return invalidRequest(
    `messages.${turn.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  );
}

function checkOrphans(turn: Turn, called: ReadonlySet<string>): ApiError | null {
  const seen = new Set<string>();
  for (const placed of turn.blocks) {
    const { block } = placed;
    if (block.type !== 'tool_result') continue;
    const id = block.toolUseId ?? '';
    if (!called.has(id)) {
      return invalidRequest(
        `${formatPath(placed)}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    }
    if (seen.has(id)) {
      return invalidRequest(
        `${formatPath(placed)}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
      );
    }
    seen.add(id);
  }
  return null;
}

function checkServerTools(turns: readonly Turn[]): ApiError | null {
  const open = new Map<string, Placed>();
  for (const turn of turns) {
    if (turn.role === 'user' && turn.blocks.some(({ block }) => block.type !== 'tool_result')) {
      const left = [...open.values()][0];
      if (left) {
        return invalidRequest(
          `${formatPath(left)}: \`${left.block.name}\` tool use with id \`${left.block.id}\` was found without a corresponding \`${left.block.name}_tool_result\` block`,
        );
      }
    }
    if (turn.role !== 'assistant') continue;
    const orphan = matchServerResults(turn, open);
    if (orphan) return orphan;
  }
  return null;
}

function matchServerResults(turn: Turn, open: Map<string, Placed>): ApiError | null {
  for (const placed of turn.blocks) {
    const { block } = placed;
    if (block.type === 'server_tool_use' || block.type === 'mcp_tool_use') open.set(block.id ?? '', placed);
    if (!isServerResult(block) || block.toolUseId === undefined || open.delete(block.toolUseId)) continue;
    const use = block.type === 'mcp_tool_result' ? 'mcp_tool_use' : 'server_tool_use';
    return invalidRequest(
      `${formatPath(placed)}: unexpected \`tool_use_id\` found in \`${block.type}\` blocks: ${block.toolUseId}. Each \`${block.type}\` block must have a corresponding \`${use}\` block before it.`,
    );
  }
  return null;
}

const MAX_BREAKPOINTS = 4;

interface Breakpoint {
  readonly path: string;
  readonly ttl: string;
}

/** At most four cache breakpoints, at allowed places, 1h before 5m over tools, system and messages. */
function checkCache(shape: RequestShape): ApiError | null {
  const deferred = shape.tools.find((tool) => tool.deferred && tool.ttl !== undefined);
  if (deferred) {
    return invalidRequest(
      `Tool '${deferred.name}' cannot have both defer_loading=true and cache_control set. Tools with defer_loading cannot use prompt caching.`,
    );
  }
  for (const [index, message] of shape.messages.entries()) {
    for (const [at, block] of message.blocks.entries()) {
      if (block.signatureTail === undefined || !block.ttls) continue;
      return invalidRequest(
        `messages.${index}.content.${at}.${block.type}.cache_control: Extra inputs are not permitted`,
      );
    }
  }
  const breakpoints = listBreakpoints(shape);
  if (breakpoints.length > MAX_BREAKPOINTS) {
    return invalidRequest(`A maximum of 4 blocks with cache_control may be provided. Found ${breakpoints.length}.`);
  }
  return checkTtls(breakpoints);
}

function listBreakpoints(shape: RequestShape): readonly Breakpoint[] {
  const found: Breakpoint[] = [];
  for (const [index, tool] of shape.tools.entries()) {
    if (tool.ttl !== undefined) found.push({ path: `tools.${index}`, ttl: tool.ttl });
  }
  const add = (ttls: readonly string[] | undefined, path: string) => {
    for (const ttl of ttls ?? []) found.push({ path, ttl });
  };
  for (const [index, block] of shape.system.entries()) add(block.ttls, `system.${index}`);
  for (const [index, message] of shape.messages.entries()) {
    for (const [at, block] of message.blocks.entries()) add(block.ttls, `messages.${index}.content.${at}`);
  }
  const last = shape.messages.at(-1)?.blocks.at(-1)?.ttls?.at(-1);
  // The automatic breakpoint is on the last block; an equal one already there counts once.
  if (shape.autoTtl !== null && last !== shape.autoTtl) found.push({ path: 'cache_control', ttl: shape.autoTtl });
  return found;
}

function checkTtls(breakpoints: readonly Breakpoint[]): ApiError | null {
  let short = false;
  for (const { path, ttl } of breakpoints) {
    const field = path === 'cache_control' ? 'cache_control' : `${path}.cache_control`;
    if (ttl !== '5m' && ttl !== '1h') return invalidRequest(`${field}.ephemeral.ttl: Input should be '5m' or '1h'`);
    if (ttl === '1h' && short) {
      return invalidRequest(
        `${field}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: \`tools\`, \`system\`, \`messages\`.`,
      );
    }
    short ||= ttl === '5m';
  }
  return null;
}

const DOCS = 'https://docs.claude.com/en/docs/build-with-claude/extended-thinking';

/** Where thinking blocks are allowed and required. */
export function checkThinking(shape: RequestShape): ApiError | null {
  for (const [index, message] of shape.messages.entries()) {
    for (const [at, block] of message.blocks.entries()) {
      if (block.signatureTail === undefined) continue;
      const path = `messages.${index}.content.${at}`;
      if (message.role !== 'assistant')
        return invalidRequest(`${path}: \`${block.type}\` blocks may only be in \`assistant\` messages`);
      if (block.signatureTail === '') {
        return invalidRequest(
          `${path}.${block.type}.${block.type === 'thinking' ? 'signature' : 'data'}: Field required`,
        );
      }
    }
  }
  return shape.thinking === 'enabled' ? checkLoopStart(shape.messages) : checkDisabledThinking(shape);
}

/** With manual thinking, the assistant turn of a running tool loop must start with its thinking. */
function checkLoopStart(messages: readonly MessageShape[]): ApiError | null {
  const index = findLoopStart(messages);
  const block = messages[index]?.blocks[0];
  if (!block || block.signatureTail !== undefined) return null;
  return invalidRequest(
    `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${block.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at ${DOCS}`,
  );
}

/**
 * Index of the first assistant message of the running tool loop, -1 without one. Later rounds have thinking only with
 * interleaved thinking.
 */
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

function checkDisabledThinking(shape: RequestShape): ApiError | null {
  const index = shape.messages.length - 1;
  const at = shape.messages[index]?.blocks.findIndex((block) => block.signatureTail !== undefined) ?? -1;
  if (shape.thinking !== 'disabled' || at < 0) return null;
  return invalidRequest(
    `messages.${index}.content.${at}: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`thinking\`. To use thinking blocks, enable \`thinking\` in your request.`,
  );
}

/** An error response of the API: HTTP status, `error.type`, `error.message`. */
export interface ApiError {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

export function invalidRequest(message: string): ApiError {
  return { status: 400, type: 'invalid_request_error', message };
}

/** Which part of a rewrite may have caused a 400; null for errors that a rewrite cannot cause. */
export function classifyApiError(errorText: string): 'thinking' | 'structure' | null {
  if (/too long|too large|credit|quota|usage limit/i.test(errorText)) return null;
  if (/thinking|signature|bound to/i.test(errorText)) return 'thinking';
  return /messages|system|tool_use|tool_result|cache_control|role|text content/i.test(errorText) ? 'structure' : null;
}
