import { type ApiError, invalidRequest } from '../api-error.ts';
import type { RequestShape } from '../request-shape.ts';

const MAX_BREAKPOINTS = 4;

interface Breakpoint {
  readonly path: string;
  readonly ttl: string;
}

/** At most four cache breakpoints, at allowed places, 1h before 5m over tools, system and messages. */
export function checkCache(shape: RequestShape): ApiError | null {
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
