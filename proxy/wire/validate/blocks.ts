import { type ApiError, invalidRequest } from '../api-error.ts';
import type { BlockShape, RequestShape } from '../request-shape.ts';

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
