import { setTimeout as after } from 'node:timers/promises';
import { CometError } from '../../common/errors.ts';
import { modeOf } from '../../common/policy.ts';
import type { Memory } from '../../memory/index.ts';
import type { Receipts } from '../../proxy/ledger/receipts.ts';
import type { Receipt } from '../../proxy/rewrite/receipt.ts';
import type { ConsentBook } from '../policy/index.ts';
import { NO_PAUSES, type Pauses } from '../policy/pauses.ts';
import type { EngineStatus, Handlers, StatuslineView } from './contract.ts';
import type { Costs } from './costs.ts';
import type { HookHandlers } from './hooks.ts';
import type { ClaudeImport } from './import-claude.ts';
import { importFile } from './import-file.ts';

/** `status` waits so long for a store that is just being opened. */
const OPENING_MS = 1_000;

export interface HandlerDeps {
  readonly memory: Memory;
  /** Settles once the store is open, or will not open. */
  readonly opened: () => Promise<unknown>;
  readonly requests: () => EngineStatus['requests'];
  readonly costs: () => Costs;
  readonly pauses?: () => Pauses;
  readonly consent: Pick<ConsentBook, 'of'>;
  /** Project key of a directory. */
  readonly projectOf: (directory: string) => string;
  readonly hooks: HookHandlers;
  /** What was saved in a conversation; null where nothing was counted. */
  readonly conversation?: (sessionId: string) => Pick<StatuslineView, 'tokens' | 'trimming_off'> | null;
  /** Those that memory does not know of. */
  readonly problems?: () => EngineStatus['problems'];
  readonly receipts: Pick<Receipts, 'list' | 'forget'>;
  readonly claudeImport: ClaudeImport;
  readonly version: string;
}

/** The API's operations over what the engine is made of. */
export function createHandlers(deps: HandlerDeps): Handlers {
  const {
    memory,
    opened,
    requests,
    costs,
    consent,
    projectOf,
    hooks,
    pauses,
    problems,
    receipts,
    claudeImport,
    conversation,
    version,
  } = deps;

  /**
   * Which memories a program may be told that asks for a session in `projectDir`; all where none is named.
   *
   * @throws CometError `not_allowed` where the user has memory paused, or kept to the running session
   */
  function ranging(projectDir: string | undefined): { readonly projectDir?: string } {
    if (projectDir === undefined) return {};
    const { adds, scope } = consent.of(projectDir);
    if (!adds) {
      throw new CometError('not_allowed', 'memory is off in this project; the user can end that: comet-cc resume');
    }
    if (scope === 'session') {
      throw new CometError('not_allowed', 'in this project nothing of other sessions is recalled: the user says so');
    }
    return scope === 'all' ? {} : { projectDir };
  }

  /** @throws CometError `not_allowed` for a memory that a program there may not be told of; as `show` */
  async function reach(ids: readonly string[], within: string | undefined, toRead = false): Promise<void> {
    const { projectDir } = ranging(within);
    if (projectDir === undefined) return;
    for (const id of ids) {
      const { node_id, project, pinned_in = [] } = await memory.show(id, 0);
      const asking = projectOf(projectDir);
      if (project === asking || (toRead && pinned_in.includes(asking))) continue;
      throw new CometError(
        'not_allowed',
        `${node_id} is of another project; the user can read it: comet-cc memory show`,
      );
    }
  }

  return {
    status: async () => {
      await Promise.race([opened(), after(OPENING_MS, undefined, { ref: false })]);
      const { problems: known, ...status } = memory.status();
      return {
        pid: process.pid,
        version,
        requests: requests(),
        ...costs(),
        ...status,
        importing: claudeImport.progress() ?? status.importing,
        paused: pauses?.() ?? NO_PAUSES,
        problems: [...known, ...(problems?.() ?? [])],
      };
    },
    explain: ({ request }) => receiptNamed(receipts.list(), request),
    'receipts/list': () => receipts.list(),
    'nodes/list': async ({ within, ...filter }) => {
      await opened();
      return memory.list(defined({ ...filter, ...ranging(within) }));
    },
    'nodes/show': async ({ id, depth, within }) => {
      await reach([id], within, true);
      return memory.show(id, depth);
    },
    'nodes/search': ({ query, within, ...options }) =>
      memory.search(query, defined({ ...options, ...ranging(within) })),
    'nodes/remove': async ({ ids, within }) => {
      await reach(ids, within);
      const gone = await memory.remove(ids);
      await receipts.forget(gone);
      return gone;
    },
    'nodes/forget': async ({ source, ...request }) => {
      const report = await memory.forget(defined({ ...request, source: source && defined(source) }));
      if (!report.dry_run) await receipts.forget(report.nodes.map(({ node_id }) => node_id));
      return report;
    },
    'nodes/section': ({ id }) => memory.section(id),
    'nodes/edit': ({ id, change }) => memory.edit(id, change),
    'nodes/pin': ({ ids, pinned, projectDir }) => memory.pin(ids, pinned, projectDir),
    'nodes/why': ({ id }) => memory.why(id),
    'nodes/remember': (request) => memory.remember(request),
    ...hooks,
    'project/overview': ({ projectDir, within }) => {
      ranging(within);
      return memory.about(projectDir);
    },
    'memory/stats': async () => ({ ...(await memory.stats()), savings: costs().savings }),
    'memory/export': ({ format }) => memory.exportAll(format),
    'memory/import': (input) => importFile(memory, input),
    'memory/import-claude': (input) => claudeImport.run(defined(input)),
    'memory/dream': (request) => memory.dream(defined(request)),
    'memory/reindex': () => memory.reindex(),
    'snapshots/list': () => memory.snapshots(),
    'snapshots/rollback': ({ id }) => memory.rollback(id),
    'sessions/list': ({ within }) => memory.sessions(ranging(within)),
    'sessions/show': ({ sessionId }) => memory.session(sessionId),
    'sessions/close': ({ sessionId }) => memory.closeSession(sessionId),
    'sessions/brief': ({ sessionId }) => memory.brief(sessionId),
    'sessions/restore': ({ sessionId }) => memory.restore(sessionId),
    statusline: ({ sessionId = '', projectDir }) => ({
      mode: modeOf(consent.of(projectDir ?? null)),
      nodes: memory.list(projectDir === undefined ? {} : { projectDir }).length,
      tokens: null,
      trimming_off: false,
      ...conversation?.(sessionId),
    }),
    flush: ({ timeoutMs }) => memory.flush(timeoutMs),
  };
}

function defined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
}

/** `last`, or a request id as far as it is unambiguous. */
function receiptNamed(receipts: readonly Receipt[], name: string): Receipt {
  const found = name === 'last' ? lastOf(receipts) : receipts.filter((one) => one.request_id.startsWith(name));
  if (found.length > 1)
    throw new CometError('ambiguous_id', `${found.length} requests begin with "${name}"; give more of the id`);
  const [receipt] = found;
  if (receipt !== undefined) return receipt;
  const problem = name === 'last' ? 'no request has been rewritten' : `no request begins with "${name}"`;
  throw new CometError('not_found', `${problem} lately; comet-cc explain --list shows those that are kept`);
}

/** The newest one that was rewritten: others have little to explain. */
function lastOf(receipts: readonly Receipt[]): Receipt[] {
  return receipts.filter((one) => one.edits.length > 0).slice(0, 1);
}
