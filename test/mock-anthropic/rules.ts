import { checkBlock, checkCacheControls, isResult, isThinking, isUse, type Message } from './block-rules.ts';
import { checkFields } from './field-rules.ts';
import { getBlocks, isObject, type Json } from './json.ts';
import { getRules } from './models.ts';
import { invalid, type Refusal, TOO_LARGE } from './refusal.ts';
import { checkTools } from './tool-rules.ts';

const MAX_BYTES = 32 * 1024 * 1024;
const DOCS = 'https://docs.claude.com/en/docs/build-with-claude/extended-thinking';
/** What the API refuses in a body by itself, worded as the API words it; signatures are checked elsewhere. */
export function findRefusal(body: Json, betas: readonly string[], bytes: number): Refusal | null {
  const has = (prefix: string): boolean => betas.some((beta) => beta.startsWith(prefix));
  const problem = checkFields(body, has);
  if (problem !== null) return invalid(problem);
  if (bytes > MAX_BYTES) return TOO_LARGE;
  const received = body.messages as readonly unknown[];
  const messages = received.map((message) => read(isObject(message) ? message : {}));
  const found =
    checkRoles(received, messages, String(body.model)) ??
    checkObjects(received) ??
    checkContent(body, messages) ??
    checkTools(messages) ??
    checkCacheControls(body, messages) ??
    checkThinking(body, messages) ??
    checkBlocks(messages, has);
  return found === null ? null : invalid(found);
}

/** A growing conversation passes the same message objects again and again. */
const readMessages = new WeakMap<Json, Message>();

function read(message: Json): Message {
  const found = readMessages.get(message) ?? { role: String(message.role ?? ''), blocks: getBlocks(message.content) };
  readMessages.set(message, found);
  return found;
}

// Wording seen on the live API in Sep and Oct 2026 (anthropics/claude-code#73821 and public probes).
const ANYWHERE = 'the directive-only form (content: [] with output_config) is accepted at any position';
const SYSTEM_BLOCKS = ['text', 'tool_addition', 'tool_removal'];

function checkRoles(received: readonly unknown[], messages: readonly Message[], model: string): string | null {
  const rules = getRules(model);
  if (messages.length === 0) return 'messages: at least one message is required';
  for (const [index, message] of received.entries()) {
    const problem = checkMessage(isObject(message) ? message : {}, messages[index] as Message);
    if (problem !== null) return `messages.${index}${problem}`;
  }
  if (!rules.systemMessages && messages.some(isSystem)) return "role 'system' is not supported on this model";
  if (messages[0]?.role === 'assistant') return 'messages: first message must use the "user" role';
  for (const index of messages.keys()) {
    const problem = checkPlace(messages, index);
    if (problem !== null) return `messages.${index}: ${problem}; ${ANYWHERE}`;
  }
  const last = messages.at(-1) as Message;
  const type = String(last.blocks.at(-1)?.type);
  const isPaused = type.endsWith('_tool_result') || type === 'server_tool_use' || type === 'mcp_tool_use';
  return last.role === 'assistant' && !rules.prefill && !isPaused
    ? 'This model does not support assistant message prefill. The conversation must end with a user message.'
    : null;
}

function checkMessage(message: Json, { role, blocks }: Message): string | null {
  if (typeof message.role !== 'string' || role === '') return '.role: Field required';
  if (!['user', 'assistant', 'system'].includes(role)) return ".role: Input should be 'user' or 'assistant'";
  if (typeof message.content !== 'string' && !Array.isArray(message.content)) {
    return '.content: Input should be a valid string or array';
  }
  const allowed = ['role', 'content', ...(role === 'system' ? ['clear_at', 'output_config'] : [])];
  const extra = Object.keys(message).find((key) => !allowed.includes(key));
  if (extra !== undefined) return `.${extra}: Extra inputs are not permitted`;
  if (role !== 'system') return null;
  if (blocks.length === 0 && message.output_config === undefined) {
    return ': system content must contain at least one block';
  }
  const takes = blocks.every(({ type }) => SYSTEM_BLOCKS.includes(String(type)));
  return takes ? null : ": role 'system' supports text, tool_addition, and tool_removal blocks only";
}

function checkObjects(received: readonly unknown[]): string | null {
  for (const [index, message] of received.entries()) {
    const blocks = isObject(message) && Array.isArray(message.content) ? message.content : [];
    const at = blocks.findIndex((block) => !isObject(block));
    if (at >= 0) return `messages.${index}.content.${at}: Input should be a valid dictionary or object`;
  }
  return null;
}

function isSystem(message: Message | undefined): boolean {
  return message?.role === 'system';
}

/** A run of system messages with content follows a prompt or a server tool's result, and precedes an answer or ends. */
function checkPlace(messages: readonly Message[], index: number): string | null {
  const placed = (at: number): boolean => isSystem(messages[at]) && messages[at]?.blocks.length !== 0;
  if (!placed(index)) return null;
  if (index === 0) return "use the top-level 'system' parameter for the initial system prompt";
  const before = messages[index - 1] as Message;
  const follows = before.role !== 'assistant' || String(before.blocks.at(-1)?.type).endsWith('_tool_result');
  if (!follows) {
    return "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result";
  }
  const after = messages[index + 1];
  return after === undefined || after.role === 'assistant' || placed(index + 1)
    ? null
    : "role 'system' must precede an 'assistant' message or end the array";
}

function checkContent(body: Json, messages: readonly Message[]): string | null {
  for (const [index, { role, blocks }] of messages.entries()) {
    const mayBeEmpty = role === 'system' || (role === 'assistant' && index === messages.length - 1);
    if (blocks.length === 0 && !mayBeEmpty) {
      return `messages.${index}: all messages must have non-empty content except for the optional final assistant message`;
    }
  }
  const system = checkText(getBlocks(body.system), 'system', 'system');
  if (system !== null) return system;
  for (const [index, { blocks }] of messages.entries()) {
    const problem = checkText(blocks, 'messages', `messages.${index}.content`);
    if (problem !== null) return problem;
  }
  return null;
}

function checkText(blocks: readonly Json[], field: string, path: string): string | null {
  for (const [at, block] of blocks.entries()) {
    const inner = isResult(block) && Array.isArray(block.content) ? block.content.filter(isObject) : [];
    for (const { type, text } of [block, ...inner]) {
      if (type !== 'text' || typeof text !== 'string' || /\S/.test(text)) continue;
      if (text !== '') return `${field}: text content blocks must contain non-whitespace text`;
      if (block.cache_control) return `${path}.${at}.text: cache_control cannot be set for empty text blocks`;
      return `${field}: text content blocks must be non-empty`;
    }
  }
  return null;
}

function checkThinking(body: Json, messages: readonly Message[]): string | null {
  for (const [index, { role, blocks }] of messages.entries()) {
    for (const [at, block] of blocks.entries()) {
      if (!isThinking(block)) continue;
      const path = `messages.${index}.content.${at}`;
      if (role !== 'assistant') return `${path}: \`${block.type}\` blocks may only be in \`assistant\` messages`;
      const field = block.type === 'thinking' ? 'signature' : 'data';
      if (typeof block[field] !== 'string' || block[field] === '')
        return `${path}.${block.type}.${field}: Field required`;
    }
  }
  const mode = isObject(body.thinking) ? body.thinking.type : null;
  if (mode === 'enabled') return checkLoopStart(messages);
  const last = messages.length - 1;
  const at = messages[last]?.blocks.findIndex(isThinking) ?? -1;
  return mode === 'disabled' && at >= 0
    ? `messages.${last}.content.${at}: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`thinking\`. To use thinking blocks, enable \`thinking\` in your request.`
    : null;
}

/** Manual thinking: the assistant message that opened the running tool loop starts with its thinking. */
function checkLoopStart(messages: readonly Message[]): string | null {
  const answersTool = ({ role, blocks }: Message): boolean =>
    role === 'user' && blocks.some(({ type }) => type === 'tool_result');
  const last = messages.findLast((message) => !isSystem(message));
  if (last === undefined || !answersTool(last)) return null;
  const prompt = messages.findLastIndex((message) => message.role === 'user' && !answersTool(message));
  const index = messages.findIndex(({ role }, at) => at > prompt && role === 'assistant');
  const first = messages[index]?.blocks[0];
  if (first === undefined || isThinking(first)) return null;
  return `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at ${DOCS}`;
}

/** Types, ids and citations of single blocks. */
function checkBlocks(messages: readonly Message[], has: (beta: string) => boolean): string | null {
  let documents = 0;
  for (const [index, { role, blocks }] of messages.entries()) {
    for (const [at, block] of blocks.entries()) {
      const problem = checkBlock({ role, has, documents }, block);
      if (problem !== null) return `messages.${index}.content.${at}${problem}`;
      if (block.type === 'document') documents += 1;
      if (isUse(block) || !Array.isArray(block.content)) continue;
      documents += block.content.filter((inner) => isObject(inner) && inner.type === 'document').length;
    }
  }
  return null;
}
