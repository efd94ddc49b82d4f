import { CometError } from '../common/errors.ts';
import type { CapturedTurn } from '../common/turn.ts';
import type { Memory, MemoryStatus } from '../memory/index.ts';

/** Turns kept while the store opens; more are in Claude Code's own transcript and come again with the next request. */
const WAITING_TURNS = 1_000;

/** Stands for the file of a problem where all of memory has it. */
export const STORE = 'memory';

/**
 * Memory that may open late, or never: until then nothing is known, so that a plan in force can be replayed while
 * the store is slow or broken. Turns seen meanwhile are kept for it.
 */
export function lateMemory(opening: Promise<Memory>, backend: string): Memory {
  let memory: Memory | null = null;
  let problem = 'the store is still opening';
  let failed = false;
  let waiting: CapturedTurn[] = [];
  const settled = opening.then(
    (opened) => {
      memory = opened;
      if (waiting.length > 0) opened.capture(waiting);
      waiting = [];
    },
    (error: unknown) => {
      problem = error instanceof Error ? error.message : String(error);
      failed = true;
      waiting = [];
    },
  );
  const notOpen = (): CometError =>
    new CometError('daemon_unhealthy', `the memory store did not open: ${problem}; see comet-cc doctor`);
  const whenOpen = async (): Promise<Memory> => {
    await settled;
    if (memory !== null) return memory;
    throw notOpen();
  };
  return {
    capture: (turns) => {
      if (memory !== null) memory.capture(turns);
      else if (waiting.length + turns.length <= WAITING_TURNS) waiting.push(...turns);
    },
    nodesCovering: (turnIds) => memory?.nodesCovering(turnIds) ?? new Map(),
    prepare: (sessionId, turnIds) => memory?.prepare(sessionId, turnIds),
    lines: (ids) => memory?.lines(ids) ?? [],
    standing: async (...asked) => (await whenOpen()).standing(...asked),
    recall: async (request, signal) => (await whenOpen()).recall(request, signal),
    list: (filter) => {
      // Of a store that never opens nobody may say that it is empty.
      if (failed) throw notOpen();
      return memory?.list(filter) ?? [];
    },
    show: async (id, depth) => (await whenOpen()).show(id, depth),
    search: async (query, options) => (await whenOpen()).search(query, options),
    remove: async (ids) => (await whenOpen()).remove(ids),
    forget: async (request) => (await whenOpen()).forget(request),
    sessions: async (filter) => (await whenOpen()).sessions(filter),
    session: async (sessionId) => (await whenOpen()).session(sessionId),
    settle: async (sessionId) => (await whenOpen()).settle(sessionId),
    closeSession: async (sessionId) => (await whenOpen()).closeSession(sessionId),
    about: async (projectDir) => (await whenOpen()).about(projectDir),
    brief: async (sessionId) => (await whenOpen()).brief(sessionId),
    restore: async (sessionId) => (await whenOpen()).restore(sessionId),
    flush: async (timeoutMs) => (await whenOpen()).flush(timeoutMs),
    section: async (id) => (await whenOpen()).section(id),
    edit: async (id, change) => (await whenOpen()).edit(id, change),
    pin: async (ids, isPinned, projectDir) => (await whenOpen()).pin(ids, isPinned, projectDir),
    exportAll: async (format) => (await whenOpen()).exportAll(format),
    importAll: async (text) => (await whenOpen()).importAll(text),
    importDocument: async (request) => (await whenOpen()).importDocument(request),
    importTurns: async (request) => (await whenOpen()).importTurns(request),
    remember: async (request) => (await whenOpen()).remember(request),
    snapshots: async () => (await whenOpen()).snapshots(),
    rollback: async (snapshot) => (await whenOpen()).rollback(snapshot),
    dream: async (request) => (await whenOpen()).dream(request),
    reindex: async () => (await whenOpen()).reindex(),
    stats: async () => (await whenOpen()).stats(),
    why: async (id) => (await whenOpen()).why(id),
    status: () => memory?.status() ?? closedStatus(backend, problem),
    close: async () => {
      await settled;
      await memory?.close();
    },
  };
}

export function idleModel(backend: string): MemoryStatus['llm'] {
  const use = { calls_today: 0, tokens_today: 0, cost_usd_today: 0 };
  return { backend, ...use, deferred: 0, deferred_because: '', deferred_until: null, last_error: '' };
}

function closedStatus(backend: string, problem: string): MemoryStatus {
  return {
    queue: { sensor: 0, compacter: 0, indexer: 0 },
    llm: idleModel(backend),
    nodes: 0,
    problems: [{ file: STORE, message: problem }],
    reindex: null,
    importing: null,
    dream: null,
  };
}
