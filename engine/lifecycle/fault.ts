import type { Rewriter } from '../../proxy/index.ts';

/** Points where a fault can be injected; see docs/decisions/0023. */
const POINTS = {
  /** The engine has read its settings and opened nothing. */
  start: 'the start of the engine',
  /** A request is read whole and about to be rewritten. */
  rewrite: 'the rewriter',
  /** Journal, files and index are opened. */
  store: 'the opening of the store',
  /** Memory is about to read a turn. */
  read: 'the reading of a turn',
  /** Memory is about to make nodes of a turn. */
  compact: 'the compaction of a turn',
} as const;

type Point = keyof typeof POINTS;

const ACTIONS = {
  throw(point: Point): never {
    throw new Error(`an injected fault, in ${POINTS[point]}`);
  },
  hang: () => new Promise<never>(() => {}),
  /** Blocks the event loop for much longer than the guard waits for a heartbeat. */
  block() {
    const until = performance.now() + 10_000;
    while (performance.now() < until);
  },
  exit: () => process.exit(70),
  oom() {
    for (const pieces: string[][] = []; ; ) pieces.push(Array.from({ length: 10_000 }, (_, at) => `filler ${at}`));
  },
} as const;

type Fault = ReturnType<typeof readFaults>[number];

const FAULT = /^(\w+):(\w+)(?:@(\d+)|=([0-9a-f]+))?$/;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * Faults of `COMET_FAULT`, with commas between: `point:action`, `point:action@n` for the nth call of the point only, or
 * `point:action=id` for the turns whose ids begin so.
 * None where the upstream is not this machine, so that no real conversation meets a fault.
 */
export function readFaults(spec: string | undefined, upstream: string) {
  if (!spec || !LOOPBACK.test(new URL(upstream).hostname)) return [];
  return spec.split(',').map((each) => {
    const [, point = '', action = '', call, turn = ''] = FAULT.exec(each) ?? [];
    if (!(point in POINTS && action in ACTIONS))
      throw new Error(`COMET_FAULT: "${each}" is none of ${Object.keys(POINTS)} : ${Object.keys(ACTIONS)}`);
    return { point: point as Point, action: action as keyof typeof ACTIONS, call: call ? Number(call) : null, turn };
  });
}

export function faultAt(faults: readonly Fault[], point: Point): (() => Promise<void>) | null {
  const here = faults.filter((fault) => fault.point === point);
  let calls = 0;
  if (here.length === 0) return null;
  return async () => {
    calls += 1;
    for (const { action, call } of here) if (call === null || call === calls) await ACTIONS[action](point);
  };
}

/** `rewriter` itself unless faults name it. */
export function withFaults<R extends Rewriter>(rewriter: R, faults: readonly Fault[]): R {
  const fault = faultAt(faults, 'rewrite');
  if (fault === null) return rewriter;
  return {
    ...rewriter,
    async rewrite(request, signal) {
      await fault();
      return rewriter.rewrite(request, signal);
    },
  };
}

export function turnFaults(faults: readonly Fault[]) {
  if (!faults.some(({ point }) => point === 'read' || point === 'compact')) return undefined;
  return (at: 'read' | 'compact', turnId: string): void => {
    for (const { point, action, turn } of faults) if (point === at && turnId.startsWith(turn)) void ACTIONS[action](at);
  };
}
