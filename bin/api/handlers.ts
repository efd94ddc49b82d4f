import type { Memory } from '../../memory/face.ts';
import type { EngineStatus, Handlers } from './operations.ts';

export interface HandlerDeps {
  readonly memory: Memory;
  readonly requests: () => EngineStatus['requests'];
  readonly tokens: () => { readonly original: number; readonly sent: number };
  /** Those that memory does not know of. */
  readonly problems?: () => EngineStatus['problems'];
  readonly version: string;
}

/** The API's operations over what the engine is made of. */
export function createHandlers({ memory, requests, tokens, problems, version }: HandlerDeps): Handlers {
  return {
    status: () => {
      const { queue, llm, nodes, problems: known } = memory.status();
      const { original, sent } = tokens();
      return {
        pid: process.pid,
        version,
        requests: requests(),
        tokens: { original, sent, net_saved: original - sent },
        queue,
        llm,
        nodes,
        problems: [...known, ...(problems?.() ?? [])],
      };
    },
    'nodes/list': (filter) => memory.list(defined(filter)),
    'nodes/show': ({ id, depth }) => memory.show(id, depth),
    'nodes/search': ({ query, ...options }) => memory.search(query, defined(options)),
    'nodes/remove': ({ ids }) => memory.remove(ids),
    'sessions/list': () => memory.sessions(),
    'sessions/brief': ({ sessionId }) => memory.brief(sessionId),
    'sessions/restore': ({ sessionId }) => memory.restore(sessionId),
    flush: ({ timeoutMs }) => memory.flush(timeoutMs),
  };
}

function defined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
}
