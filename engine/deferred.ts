import { CometError, getReason } from '../common/errors.ts';
import type { CapturedTurn } from '../common/turn.ts';
import type { Memory, MemoryStatus } from '../memory/index.ts';

/** Turns kept while the store opens; Claude Code's next request offers the rest again. */
const WAITING_TURNS = 1_000;

/** Reported as the file of a problem that concerns all of memory. */
export const STORE = 'memory';

/** The problem that is none after a moment. */
export const OPENING = 'the store is still opening';

/**
 * A service that opens later. Until then the methods in `meanwhile` answer at once, and every other call waits; where
 * the opening fails, `meanwhile` keeps answering and other calls reject.
 */
export function deferred<O, T extends object>(opening: Promise<O>, pick: (opened: O) => T, meanwhile: Partial<T>): T {
  let service: Partial<T> | null = null;
  opening.then(
    (opened) => {
      service = pick(opened);
    },
    () => undefined,
  );
  const call = (target: Partial<T>, name: string | symbol, args: unknown[]): unknown =>
    Reflect.apply(Reflect.get(target, name) as () => unknown, target, args);
  return new Proxy({} as T, {
    get(_, name) {
      // An object with `then` would be taken for a promise.
      if (name === 'then') return undefined;
      return (...args: unknown[]) => {
        if (service !== null || Object.hasOwn(meanwhile, name)) return call(service ?? meanwhile, name, args);
        return opening.then((opened) => call(pick(opened), name, args));
      };
    },
  });
}

/** Memory that may open late, or never: until then nothing is known, plans are replayed, and captured turns wait. */
export function deferredMemory(opening: Promise<Memory>, backend: string): Memory {
  let problem = OPENING;
  let failure: CometError | null = null;
  const waiting: CapturedTurn[] = [];
  const opened = opening.catch((cause: unknown) => {
    problem = getReason(cause);
    waiting.length = 0;
    const message = `the memory store did not open: ${problem}; see comet-cc doctor`;
    failure = new CometError('daemon_unhealthy', message, { cause });
    throw failure;
  });
  const of = <K extends keyof Memory>(name: K, meanwhile: Partial<Memory[K]>): Memory[K] =>
    deferred(opened, (memory) => memory[name], meanwhile);
  const memory: Memory = {
    capture: of('capture', {
      captureTurns(turns) {
        if (failure === null && waiting.length + turns.length <= WAITING_TURNS) waiting.push(...turns);
      },
      async awaitCaptures() {},
      prepareNodes() {},
      reportPrompt() {},
    }),
    recall: of('recall', { nodesCovering: () => new Map(), lines: () => [] }),
    library: of('library', {
      list() {
        // A store that failed to open may hold nodes.
        if (failure !== null) throw failure;
        return [];
      },
    }),
    imports: of('imports', {}),
    maintenance: of('maintenance', {
      status: () => ({ ...IDLE_MEMORY, llm: idleModel(backend), problems: [{ file: STORE, message: problem }] }),
      revision: () => 0,
      finish: async () => {},
      takeBrief: async () => null,
      close: async () => (await opened.catch(() => null))?.maintenance.close(),
    }),
  };
  // After the services above: from here on they know that it is open.
  opened.then(
    ({ capture }) => waiting.length > 0 && capture.captureTurns(waiting.splice(0)),
    () => undefined,
  );
  return memory;
}

export function idleModel(backend: string): MemoryStatus['llm'] {
  const use = { calls_today: 0, tokens_today: 0, running: 0, cost_usd_today: 0 };
  return { backend, ...use, deferred: 0, deferred_because: '', deferred_until: null, last_error: '' };
}

export const IDLE_MEMORY: Omit<MemoryStatus, 'llm' | 'problems'> = {
  queue: { sensor: 0, compacter: 0, indexer: 0 },
  sensor: { turns: 0, in_doubt: 0, asked: 0 },
  nodes: 0,
  notes: [],
  reindex: null,
  importing: null,
  dream: null,
};
