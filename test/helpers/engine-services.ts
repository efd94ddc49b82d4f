import { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { EMPTY_COSTS } from '../../engine/api/cost.ts';
import { createHookHandlers } from '../../engine/api/hooks.ts';
import { createClaudeImport } from '../../engine/api/import-claude.ts';
import type { EngineServices } from '../../engine/api/service.ts';
import { createRemovals } from '../../engine/api/ui/forget.ts';
import { createUndo } from '../../engine/api/ui/snapshot.ts';
import { deferred, deferredMemory } from '../../engine/deferred.ts';
import { createAccess } from '../../engine/policy/guard.ts';
import { NO_PAUSES } from '../../engine/policy/pause.ts';
import { createSeals } from '../../engine/policy/seal.ts';
import type { Memory, Sharing, Tasks } from '../../memory/index.ts';

export type ServiceMethods = { readonly [K in keyof Memory]?: Partial<Memory[K]> };

const never = new Promise<{ readonly tasks: Tasks; readonly sharing: Sharing }>(() => {});

/** Memory with these methods; the others behave as before the store has opened. */
export function memoryWith(methods: ServiceMethods): Memory {
  const unopened = deferredMemory(new Promise<Memory>(() => {}), 'local');
  const withMethods = <T extends object>(service: T, own: Partial<T> = {}): T =>
    new Proxy(service, { get: (target, name) => Reflect.get(name in own ? own : target, name) as unknown });
  return {
    capture: withMethods(unopened.capture, methods.capture),
    recall: withMethods(unopened.recall, methods.recall),
    library: withMethods(unopened.library, methods.library),
    imports: withMethods(unopened.imports, methods.imports),
    maintenance: withMethods(unopened.maintenance, methods.maintenance),
  };
}

/** An engine whose memory has these methods, and where the user allows everything in a project. */
export function engineServices(methods: ServiceMethods, over: Partial<EngineServices> = {}): EngineServices {
  const memory = memoryWith(methods);
  const policy = {
    of: () => ({ captures: true, adds: true, scope: 'project' as const }),
    pauses: () => NO_PAUSES,
    problems: () => [],
  };
  return {
    memory,
    policy,
    access: createAccess(policy, memory.library, String),
    hooks: createHookHandlers({
      memory,
      policy,
      subagents: { ofType: async () => null, note: () => undefined },
      config: Config.parse({ recall: { deadlineMs: 100 } }),
      linkedText: async () => '',
      log: silentLog,
      now: Date.now,
    }),
    claudeImport: createClaudeImport({
      imports: memory.imports,
      tokensToday: () => 0,
      done: { load: async () => [], add: async () => {} },
      hasModel: false,
      getProject: (directory) => directory ?? '',
      captures: () => true,
      now: Date.now,
    }),
    requests: () => ({ total: 0, rewritten: 0, passed_through: 0, failed_open: 0 }),
    recalls: () => ({
      asked: 0,
      in_time: 0,
      late_delivered: 0,
      late_empty: 0,
      late_lost: 0,
      late_waiting: 0,
      failed: 0,
      others_missed: 0,
    }),
    costs: () => EMPTY_COSTS,
    receipts: { list: () => [], ofSession: () => [], forget: async () => {} },
    problems: () => [],
    opened: async () => {},
    seals: createSeals(),
    tasks: deferred(never, ({ tasks }) => tasks, { due: () => [] }),
    budget: () => ({ daily_tokens: 0, session_tokens: 0, sessions: [] }),
    titles: { of: async () => new Map() },
    environment: [],
    sharing: deferred(never, ({ sharing }) => sharing, { status: async () => null, wake() {} }),
    pagesChanged: () => {},
    version: '1.2.3',
    ledger: { days: () => [], conversation: () => null },
    undo: createUndo(Date.now),
    removals: createRemovals({ file: '/nowhere/removals', remove: async () => undefined, log: silentLog }),
    health: { checks: async () => [], daemon: async () => null, log: async () => [] },
    pausing: { pause: async () => NO_PAUSES, resume: async () => NO_PAUSES },
    quota: () => [],
    activity: () => ({ answering: 0, lastRequestMs: 0 }),
    ui: { open: () => Promise.reject(new Error('no dashboard')), touch: () => {}, address: () => null },
    ...over,
  };
}
