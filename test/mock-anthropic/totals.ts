import type { ServedRequest } from './request-record.ts';

export interface Totals {
  /** Requests on `/v1/messages`. */
  readonly requests: number;
  readonly refused: number;
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite5m: number;
  readonly cacheWrite1h: number;
  readonly output: number;
  /** Prompts only, in tokens of uncached input. */
  readonly cost: number;
}

export function addUp(requests: readonly ServedRequest[]): Totals {
  const served = requests.filter((request) => request.kind === 'messages');
  const sum = (of: (request: ServedRequest) => number | undefined) =>
    served.reduce((total, request) => total + (of(request) ?? 0), 0);
  return {
    requests: served.length,
    refused: served.filter((request) => request.refusal !== null).length,
    input: sum((request) => request.usage?.input),
    cacheRead: sum((request) => request.usage?.cacheRead),
    cacheWrite5m: sum((request) => request.usage?.cacheWrite5m),
    cacheWrite1h: sum((request) => request.usage?.cacheWrite1h),
    output: sum((request) => request.usage?.output),
    cost: sum((request) => request.cost),
  };
}
