import { z } from 'zod';
import { id, ids, text } from '../schema.ts';
import { type EngineServices, operation } from '../service.ts';
import { nameReceipts, receiptNamed } from '../summary.ts';
import { sessionView } from './conversation.ts';
import { savingsView } from './cost.ts';
import { editNode, forget, pinNodes, quarantineNodes, removeAll, undoChange } from './edit.ts';
import { overviewView } from './overview.ts';
import { requestView } from './request.ts';
import { searchInput, searchView } from './search.ts';

/** Key of a project, as sessions have it; everywhere where it is not given. */
const projectDir = text.optional();

export const uiOperations = {
  /** For a browser that signs in. */
  'ui/open': operation({}, ({ ui }) => ui.open()),
  /** For links into the page; null where nothing listens. */
  'ui/address': operation({}, ({ ui }) => ({ url: ui.address() })),
  'ui/overview': operation({}, (services) => overviewView(services, Date.now())),
  'ui/savings': operation({}, savingsView),
  'ui/session': operation(
    { sessionId: id, from: z.int().nonnegative().default(0), limit: z.int().positive().max(20_000).default(20_000) },
    sessionView,
  ),
  'ui/request': operation({ requestId: id }, async (services, { requestId }) => {
    const [receipt] = await nameReceipts(services, [receiptNamed(services.receipts.list(), requestId)]);
    return requestView(services, receipt as NonNullable<typeof receipt>);
  }),
  /** Of a memory by its id, of a topic page by its name. */
  'ui/history': operation(
    { kind: z.enum(['memory', 'topic']), name: text.min(1) },
    ({ memory: { library } }, { kind, name }) =>
      kind === 'memory' ? library.memoryHistory(name) : library.topicHistory(name),
  ),
  'ui/search': operation(searchInput, async (services, search) => {
    await services.opened();
    return searchView(services, search);
  }),
  'ui/graph': operation({}, async ({ memory: { library }, removals, opened }) => {
    await opened();
    return library.graph(removals.hidden());
  }),
  'ui/health': operation({}, healthView),
  'ui/pause': operation({ mode: z.enum(['private', 'off']), projectDir }, ({ pausing }, input) =>
    pausing.pause(input.mode, input.projectDir ?? null),
  ),
  'ui/resume': operation({ projectDir }, ({ pausing }, input) => pausing.resume(input.projectDir ?? null)),
  'ui/edit': operation({ id, set: z.record(z.string().max(100), z.string().max(400_000)) }, (services, input) =>
    editNode(services, input.id, input.set),
  ),
  'ui/pin': operation({ ids, pinned: z.boolean() }, (services, input) => pinNodes(services, input.ids, input.pinned)),
  'ui/quarantine': operation({ ids, quarantined: z.boolean() }, (services, input) =>
    quarantineNodes(services, input.ids, input.quarantined),
  ),
  /** Memories and facts. `final`: at once, without a way back. */
  'ui/forget': operation({ ids, final: z.boolean().optional() }, async (services, input) =>
    input.final ? { ids: await removeAll(services, input.ids), undo: null } : await forget(services, input.ids),
  ),
  /** What a change of the page gave. */
  'ui/undo': operation({ undo: id }, (services, input) => undoChange(services, input.undo)),
};

async function healthView({ memory, policy, problems, budget, version, health, quota }: EngineServices) {
  const [checks, daemon, log] = await Promise.all([health.checks(), health.daemon(), health.log()]);
  const { llm, problems: own } = memory.maintenance.status();
  return {
    ...{ version, pid: process.pid, node: process.version, checks, daemon, log, llm, budget: budget() },
    uptime_ms: Math.round(process.uptime() * 1_000),
    rss: process.memoryUsage.rss(),
    paused: policy.pauses(),
    problems: [...own, ...problems(), ...policy.problems()],
    /** Shares of the limits that the API reports, 0 to 1. */
    quota: quota().map(({ name, utilization, resetAtMs }) => {
      return { name, used: utilization, resets: new Date(resetAtMs).toISOString() };
    }),
  };
}
