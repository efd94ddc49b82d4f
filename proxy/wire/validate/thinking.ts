import { type ApiError, invalidRequest } from '../api-error.ts';
import type { MessageShape, RequestShape } from '../request-shape.ts';

const DOCS = 'https://docs.claude.com/en/docs/build-with-claude/extended-thinking';

/** Where thinking blocks may and must stand, as far as one request shows it. */
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
  return shape.thinking?.type === 'enabled' ? checkLoopStart(shape.messages) : checkDisabled(shape);
}

/** Manual thinking: the assistant turn inside a running tool loop has to start with its thinking. */
function checkLoopStart(messages: readonly MessageShape[]): ApiError | null {
  const index = loopStart(messages);
  const block = messages[index]?.blocks[0];
  if (!block || block.signatureTail !== undefined) return null;
  return invalidRequest(
    `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${block.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at ${DOCS}`,
  );
}

/**
 * Index of the first assistant message of the tool loop that is still running, -1 when none is: rounds after the first
 * carry thinking only with interleaved thinking.
 */
function loopStart(messages: readonly MessageShape[]): number {
  const last = messages.findLastIndex((message) => message.role !== 'system');
  if (messages[last]?.role !== 'user' || !hasResult(messages[last])) return -1;
  let start = -1;
  for (let index = last; index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.role === 'assistant') start = index;
    else if (message?.role === 'user' && !hasResult(message)) break;
  }
  return start;
}

function hasResult(message: MessageShape | undefined): boolean {
  return message?.blocks.some((block) => block.type === 'tool_result') === true;
}

function checkDisabled(shape: RequestShape): ApiError | null {
  const index = shape.messages.length - 1;
  const at = shape.messages[index]?.blocks.findIndex((block) => block.signatureTail !== undefined) ?? -1;
  if (shape.thinking?.type !== 'disabled' || at < 0) return null;
  return invalidRequest(
    `messages.${index}.content.${at}: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`thinking\`. To use thinking blocks, enable \`thinking\` in your request.`,
  );
}

/**
 * The thinking of the latest assistant message has to come back whole or not at all: refused when `sent` keeps some of
 * what `received` holds there, but not the same sequence.
 */
export function checkLatestThinking(received: readonly MessageShape[], sent: readonly MessageShape[]): ApiError | null {
  const index = sent.findLastIndex((message) => message.role === 'assistant');
  const kept = seals(sent[index]);
  const had = seals(received.findLast((message) => message.role === 'assistant'));
  if (kept.length === 0 || kept.join() === had.join()) return null;
  const at = sent[index]?.blocks.findIndex((block) => block.signatureTail !== undefined);
  return invalidRequest(
    `messages.${index}.content.${at}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`,
  );
}

function seals(message: MessageShape | undefined): readonly string[] {
  return (message?.blocks ?? []).map((block) => block.signatureTail).filter((seal) => seal !== undefined);
}
