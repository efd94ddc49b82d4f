import type { ApiError } from '../api-error.ts';
import type { RequestShape } from '../request-shape.ts';
import { checkBlocks } from './blocks.ts';
import { checkCache } from './cache.ts';
import { checkRoles } from './roles.ts';
import { checkThinking } from './thinking.ts';
import { checkTools } from './tools.ts';

export type { ApiError as Refusal } from '../api-error.ts';

/**
 * The error that the API would return, in its words; null when the request is valid.
 *
 * Checks only what a rewrite can change, so that a new top-level field or beta of Claude Code disables nothing. Does not
 * check whether a thinking signature fits its prefix.
 */
export function checkRequest(shape: RequestShape): ApiError | null {
  return (
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
