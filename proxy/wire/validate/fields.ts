import { type ApiError, invalidRequest } from '../api-error.ts';
import { findModelTraits } from '../models.ts';
import type { RequestShape } from '../request-shape.ts';

// The Messages API reference, Oct 2026, and what Claude Code 2.1.197 sends.
const KNOWN = new Set(
  `model messages max_tokens system tools tool_choice metadata stop_sequences stream temperature top_k top_p thinking
   output_config output_format service_tier container context_management mcp_servers cache_control inference_geo speed
   diagnostics fallbacks user_profile_id context_hint`.split(/\s+/),
);

/** Body fields that are unknown to the API unless one of these betas is in the header. */
const PAIRED: readonly (readonly [field: string, betas: readonly string[]])[] = [
  ['context_management', ['context-management-', 'compact-']],
  ['mcp_servers', ['mcp-client-']],
  ['speed', ['fast-mode-']],
  ['output_format', ['structured-outputs-']],
  ['diagnostics', ['cache-diagnosis-']],
  ['fallbacks', ['server-side-fallback-']],
  ['user_profile_id', ['user-profiles-']],
  ['context_hint', ['context-hint-']],
];

const MIN_BUDGET = 1024;
const MAX_MESSAGES = 100_000;

export function checkFields(shape: RequestShape): ApiError | null {
  return checkPresent(shape) ?? checkKnown(shape) ?? checkPairs(shape) ?? checkMode(shape);
}

function checkPresent(shape: RequestShape): ApiError | null {
  if (shape.model === '') return invalidRequest('model: Field required');
  if (!shape.keys.includes('messages')) return invalidRequest('messages: Field required');
  if (shape.messagesMalformed) return invalidRequest('messages: Input should be a valid array');
  if (shape.messages.length > MAX_MESSAGES)
    return invalidRequest(`messages: at most ${MAX_MESSAGES} messages are allowed`);
  return null;
}

function checkKnown(shape: RequestShape): ApiError | null {
  const unknown = shape.keys.find((key) => !KNOWN.has(key));
  return unknown === undefined ? null : notPermitted(unknown);
}

function checkPairs(shape: RequestShape): ApiError | null {
  const has = (prefix: string) => shape.betas.some((beta) => beta.startsWith(prefix));
  for (const [field, betas] of PAIRED) {
    if (shape.keys.includes(field) && !betas.some(has)) return notPermitted(field);
  }
  if (shape.thinking?.binding && !has('thinking-binding-controls-')) {
    return notPermitted(`thinking.${shape.thinking.type}.block_binding`);
  }
  if (shape.outputKeys.includes('task_budget') && !has('task-budgets-'))
    return notPermitted('output_config.task_budget');
  if (!has('prompt-caching-scope-')) {
    const index = shape.system.findIndex((block) => block.scoped);
    if (index >= 0) return notPermitted(`system.${index}.cache_control.ephemeral.scope`);
  }
  return null;
}

function checkMode(shape: RequestShape): ApiError | null {
  const { thinking } = shape;
  if (thinking === null) return null;
  const takes = findModelTraits(shape.model).thinking;
  if (thinking.type === 'adaptive' && (takes === 'manual' || takes === 'none')) {
    return invalidRequest('adaptive thinking is not supported on this model');
  }
  if (thinking.type !== 'enabled') return null;
  if (takes === 'adaptive') {
    return invalidRequest(
      '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    );
  }
  if (thinking.budgetTokens < MIN_BUDGET) {
    return invalidRequest(`thinking.enabled.budget_tokens: Input should be greater than or equal to ${MIN_BUDGET}`);
  }
  if (shape.maxTokens !== null && shape.maxTokens <= thinking.budgetTokens) {
    return invalidRequest('`max_tokens` must be greater than `thinking.budget_tokens`.');
  }
  return null;
}

function notPermitted(path: string): ApiError {
  return invalidRequest(`${path}: Extra inputs are not permitted`);
}
