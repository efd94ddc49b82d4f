import { type ApiError, invalidRequest } from '../api-error.ts';
import { findModelTraits } from '../models.ts';
import type { BlockShape, MessageShape, RequestShape } from '../request-shape.ts';

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
    if (before && before.role !== 'user' && !endsInServerResult(before))
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

function endsInServerResult(message: MessageShape): boolean {
  return message.role === 'system' || isServerResult(message.blocks.at(-1));
}

export function isServerResult(block: BlockShape | undefined): boolean {
  return block?.type.endsWith('_tool_result') === true;
}

/** A paused turn (`pause_turn`) is sent back unchanged and continued. */
function isPaused(message: MessageShape): boolean {
  const last = message.blocks.at(-1);
  return isServerResult(last) || last?.type === 'server_tool_use' || last?.type === 'mcp_tool_use';
}
