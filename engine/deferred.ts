import { CometError, getReason } from '../common/errors.ts';
import type { CapturedTurn } from '../common/turn.ts';
import type { Memory, MemoryStatus, Sharing, Tasks } from '../memory/index.ts';

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
export function deferred<T extends object>(opening: Promise<T>, meanwhile: Partial<T>): T {
  let service: T | null = null;
  opening.then(
    (opened) => {
      service = opened;
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
        if (service !== null) return call(service, name, args);
        return Object.hasOwn(meanwhile, name)
          ? call(meanwhile, name, args)
          : opening.then((opened) => call(opened, name, args));
      };
    },
  });
}

/** Memory that may open late, or never: until then nothing is known, plans are replayed, and captured turns wait. */
export function deferredMemory(opening: Promise<Memory>, backend: string): Memory {
  let memory: Memory | null = null;
  let problem = OPENING;
  let failure: CometError | null = null;
  let waiting: CapturedTurn[] = [];
  const opened = opening.then(
    (ready) => {
      memory = ready;
      if (waiting.length > 0) ready.capture.captureTurns(waiting);
      waiting = [];
      return ready;
    },
    (cause: unknown) => {
      problem = getReason(cause);
      waiting = [];
      const message = `the memory store did not open: ${problem}; see comet-cc doctor`;
      failure = new CometError('daemon_unhealthy', message, { cause });
      throw failure;
    },
  );
  const of = <K extends keyof Memory>(name: K, meanwhile: Partial<Memory[K]>): Memory[K] =>
    deferred(
      opened.then((ready) => ready[name]),
      meanwhile,
    );
  return {
    capture: of('capture', {
      captureTurns(turns) {
        if (memory !== null) memory.capture.captureTurns(turns);
        else if (failure === null && waiting.length + turns.length <= WAITING_TURNS) waiting.push(...turns);
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
      async close() {
        await opened.catch(() => undefined);
        await memory?.maintenance.close();
      },
    }),
  };
}

export function deferredTasks(opening: Promise<{ readonly tasks: Tasks }>): Tasks {
  return deferred<Tasks>(
    opening.then(({ tasks }) => tasks),
    { due: () => [] },
  );
}

export function deferredSharing(opening: Promise<{ readonly sharing: Sharing | null }>): Sharing {
  return deferred<Sharing>(
    opening.then(({ sharing }) => sharing as Sharing),
    { status: async () => null, wake() {} },
  );
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
