import { type ApiError, invalidRequest } from '../api-error.ts';
import type { MessageShape, RequestShape } from '../request-shape.ts';

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
