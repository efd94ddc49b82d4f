import { getBlocks, isObject, type Json } from './json.ts';
import { getRules } from './models.ts';

const MIN_BUDGET = 1_024;

/** Fields of the body; those with betas are unknown without one of them in the header. Messages reference, Oct 2026. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    `model messages max_tokens system tools tool_choice metadata stop_sequences stream temperature top_k top_p thinking
     output_config service_tier container cache_control inference_geo`
      .split(/\s+/)
      .map((name) => [name, []]),
  ),
  context_management: ['context-management-', 'compact-'],
  mcp_servers: ['mcp-client-'],
  speed: ['fast-mode-'],
  output_format: ['structured-outputs-'],
  diagnostics: ['cache-diagnosis-'],
  fallbacks: ['server-side-fallback-'],
  user_profile_id: ['user-profiles-'],
  context_hint: ['context-hint-'],
  safeguards: ['dangerous-tool-use-'],
  thread: ['message-threads-'],
};

/** Problem of the fields beside `messages`; `has` knows the betas of the header by their beginning. */
export function checkFields(body: Json, has: (beta: string) => boolean): string | null {
  return checkNames(body, has) ?? checkSystem(body) ?? checkToolList(body) ?? checkMode(body);
}

function checkNames(body: Json, has: (beta: string) => boolean): string | null {
  const extra = (path: string): string => `${path}: Extra inputs are not permitted`;
  if (typeof body.model !== 'string' || body.model === '') return 'model: Field required';
  if (body.messages === undefined) return 'messages: Field required';
  if (!Array.isArray(body.messages)) return 'messages: Input should be a valid array';
  if (body.messages.length > 100_000) return 'messages: at most 100000 messages are allowed';
  const unknown = Object.keys(body).find((name) => {
    const wanted = FIELDS[name];
    return wanted === undefined || (wanted.length > 0 && !wanted.some(has));
  });
  if (unknown !== undefined) return extra(unknown);
  const { thinking, output_config: output } = body;
  if (isObject(thinking) && thinking.block_binding !== undefined && !has('thinking-binding-controls-')) {
    return extra(`thinking.${thinking.type}.block_binding`);
  }
  if (isObject(output) && output.task_budget !== undefined && !has('task-budgets-')) {
    return extra('output_config.task_budget');
  }
  const turnScoped = body.messages.findIndex((message) => isObject(message) && message.clear_at !== undefined);
  if (turnScoped >= 0 && !has('mid-conversation-system-clear-at-')) return extra(`messages.${turnScoped}.clear_at`);
  const scoped = getBlocks(body.system).findIndex(
    ({ cache_control: mark }) => isObject(mark) && mark.scope !== undefined,
  );
  return scoped >= 0 && !has('prompt-caching-scope-') ? extra(`system.${scoped}.cache_control.ephemeral.scope`) : null;
}

function checkSystem({ system }: Json): string | null {
  if (system === undefined || typeof system === 'string') return null;
  if (!Array.isArray(system)) return 'system: Input should be a valid array';
  const at = system.findIndex((block) => !isObject(block) || block.type !== 'text' || typeof block.text !== 'string');
  return at < 0 ? null : `system.${at}.type: Input should be 'text'`;
}

function checkToolList({ tools = [], tool_choice: choice }: Json): string | null {
  if (!Array.isArray(tools) || !tools.every(isObject)) return 'tools: Input should be a valid array';
  for (const [at, { name, type, input_schema: schema }] of tools.entries()) {
    if (typeof name !== 'string' && type !== 'mcp_toolset') return `tools.${at}.custom.name: Field required`;
    if (typeof name === 'string' && !/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
      return `tools.${at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`;
    }
    if ((type === undefined || type === 'custom') && !isObject(schema)) {
      return `tools.${at}.custom.input_schema: Field required`;
    }
  }
  const names = tools.map(({ name }) => name).filter((name) => name !== undefined);
  if (new Set(names).size < names.length) return 'tools: Tool names must be unique.';
  if (!isObject(choice)) return null;
  if (choice.type === 'tool' && !names.some((name) => name === choice.name))
    return `Tool '${choice.name}' not found in provided tools`;
  return tools.length === 0 && choice.type === 'any'
    ? 'tool_choice: tool_choice may only be specified while providing tools'
    : null;
}

function checkMode(body: Json): string | null {
  const { model, thinking, max_tokens: most } = body;
  if (!isObject(thinking)) return null;
  const takes = getRules(String(model)).thinking;
  if (thinking.type === 'adaptive' && (takes === 'manual' || takes === 'none')) {
    return 'adaptive thinking is not supported on this model';
  }
  const sampling = thinking.type === 'disabled' ? null : checkThinkingWith(body);
  if (thinking.type !== 'enabled' || sampling !== null) return sampling;
  if (takes === 'adaptive') {
    return '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.';
  }
  const budget = Number(thinking.budget_tokens ?? 0);
  if (budget < MIN_BUDGET) {
    return `thinking.enabled.budget_tokens: Input should be greater than or equal to ${MIN_BUDGET}`;
  }
  return typeof most === 'number' && most <= budget
    ? '`max_tokens` must be greater than `thinking.budget_tokens`.'
    : null;
}

/** What thinking excludes: extended-thinking page, "Feature compatibility". */
function checkThinkingWith({ tool_choice: choice, temperature, top_k: topK, top_p: topP }: Json): string | null {
  if (isObject(choice) && (choice.type === 'any' || choice.type === 'tool')) {
    return 'Thinking may not be enabled when tool_choice forces tool use.';
  }
  if (temperature !== undefined && temperature !== 1)
    return '`temperature` may only be set to 1 when thinking is enabled.';
  if (topK !== undefined) return '`top_k` must be unset when thinking is enabled.';
  return typeof topP === 'number' && topP < 0.95
    ? '`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.'
    : null;
}
