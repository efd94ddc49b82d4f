import type { ApiError } from '../api-error.ts';
import type { RequestShape } from '../request-shape.ts';
import { checkBlocks } from './blocks.ts';
import { checkCache } from './cache.ts';
import { checkFields } from './fields.ts';
import { checkRoles } from './roles.ts';
import { checkThinking } from './thinking.ts';
import { checkTools } from './tools.ts';

export type { ApiError as Refusal } from '../api-error.ts';

/**
 * What the API would refuse in this request, worded as it words it; null when it would be taken.
 *
 * Stateless: whether a thinking signature still fits its prefix is not seen here.
 *
 * @param scope `rewritten` leaves out what a rewriter never touches (top-level fields, betas, thinking mode), so that a
 *              field of a newer Claude Code disables nothing
 */
export function checkRequest(shape: RequestShape, scope: 'all' | 'rewritten' = 'all'): ApiError | null {
  return (
    (scope === 'all' ? checkFields(shape) : null) ??
    checkSize(shape) ??
    checkRoles(shape) ??
    checkBlocks(shape) ??
    checkTools(shape) ??
    checkCache(shape) ??
    checkThinking(shape)
  );
}

const MAX_BYTES = 32 * 1024 * 1024;

function checkSize(shape: RequestShape): ApiError | null {
  if (shape.bytes <= MAX_BYTES) return null;
  return { status: 413, type: 'request_too_large', message: 'Request exceeds the maximum size' };
}
