import { z } from 'zod';
import { finishesWithin, withTimeout } from '../../common/async.ts';
import { CometError, getOnly } from '../../common/errors.ts';
import { getMode, type Mode } from '../../common/policy.ts';
import { oneLine } from '../../common/text.ts';
import { lowestOrigin, ORIGINS } from '../../common/turn.ts';
import { publicNode, type SessionDetail, SHARED_NAME, shareAddress } from '../../memory/index.ts';
import { TASK_MODES, TASK_PRIORITIES, TASK_STATUSES } from '../../memory/recall/index.ts';
import type { SessionTitles } from '../transcript/session-titles.ts';
import { compactInput, promptInput, sessionInput, startInput, subagentInput } from './hooks.ts';
import { claudeImportInput } from './import-claude.ts';
import { fileImportInput, importFile } from './import-file.ts';
import { absolutePath as file, id, ids, projectPath as path, text } from './schema.ts';
import { type EngineServices, type EngineStatus, operation } from './service.ts';
import {
  finishSessions,
  type NamedReceipt,
  nameReceipts,
  newestRequest,
  type ProjectSummary,
  projectSummary,
  receiptNamed,
  requestCounts,
  sessionSummary,
  startLine,
} from './summary.ts';
import { uiOperations } from './ui/contract.ts';
import { removeNodes } from './ui/edit.ts';

/** `status` waits this long for a store that is opening. */
const OPENING_MS = 1_000;

/** The project of the session that a program asks for: it reads only what the user allows there. */
const within = path.optional();
const section = z.string().max(400_000);
const title = z.string().max(300);
const taskFields = {
  at: text.optional(),
  mode: z.enum(TASK_MODES).optional(),
  priority: z.enum(TASK_PRIORITIES).optional(),
  topic: text.optional(),
  dependsOn: z.array(id).max(50).optional(),
};
/** Of a project, or who shares it. */
const shared = z.string().min(1).max(400);
/** Credentials of the shell that asks: passed on to the storage, and kept only while the engine runs. */
const env = z.record(z.string().max(200), z.string().max(10_000)).default({});
/** Who says it: the user at a terminal, or a program. */
const saidBy = z.enum(['user', 'tool']);

/** Every operation of the API: the body of `POST /v1/<name>`, and what answers it. */
export const operations = {
  status: operation({}, engineStatus),
  flush: operation({ timeoutMs: z.int().positive().max(3_600_000) }, ({ memory }, { timeoutMs }) =>
    memory.maintenance.flush(timeoutMs),
  ),
  statusline: operation(
    { sessionId: id.optional(), projectDir: path.optional() },
    async (services, { sessionId = '', projectDir }): Promise<StatuslineView> => {
      const { memory, tasks, policy, ledger, opened } = services;
      const { library } = memory;
      await opened();
      return {
        mode: getMode(policy.of(projectDir ?? null)),
        nodes: library.list(projectDir === undefined ? {} : { projectDir }).length,
        due: tasks.due(projectDir),
        trimming_off: (ledger.conversation(sessionId)?.off ?? null) !== null,
        request: newestRequest(services, sessionId),
      };
    },
  ),
  explain: operation({ request: id, sessionId: id.optional() }, async (services, { request, sessionId = '' }) => {
    const own = services.receipts.list().filter((each) => each.session_id.startsWith(sessionId));
    const sessions = [...new Set(own.map((each) => each.session_id))];
    const none = `no request of session ${sessionId} is kept; see comet-cc explain --list`;
    if (sessionId !== '')
      getOnly(sessions, none, `${sessions.length} sessions begin with "${sessionId}"; give more of the id`);
    const [receipt] = await nameReceipts(services, [receiptNamed(own, request)]);
    return receipt as NamedReceipt;
  }),
  'receipts/list': operation({}, (services) => nameReceipts(services, services.receipts.list())),

  'nodes/list': operation(
    {
      sessionId: id.optional(),
      projectDir: text.optional(),
      tag: text.optional(),
      importance: z.enum(['HIGH', 'MED', 'LOW']).optional(),
      sinceMs: z.number().optional(),
      all: z.boolean().optional(),
      quarantine: z.boolean().optional(),
      limit: z.int().positive().optional(),
      within,
    },
    async ({ memory, access, opened }, { within, ...filter }) => {
      await opened();
      return memory.library.list({ ...filter, ...access.projectFilter(within) }).map(publicNode);
    },
  ),
  'nodes/show': operation(
    { id, depth: z.literal([0, 1, 2]), within },
    async ({ memory: { library }, access, titles }, { id, depth, within }) => {
      await access.assertReachable([id], within, 'read');
      const node = publicNode(library.withClosed(await library.show(id, depth)));
      if (within !== undefined) return node;
      const session_title = (await titles.of([node.session_id])).get(node.session_id) ?? node.session_title ?? '';
      return { ...node, session_title };
    },
  ),
  'nodes/search': operation(
    z
      .strictObject({
        query: z.string().max(20_000),
        top: z.int().positive().max(1_000),
        sessionId: id.optional(),
        projectDir: text.optional(),
        file: file.optional(),
        within,
      })
      .refine(({ query, file }) => query !== '' || file !== undefined, 'a query, or a file'),
    async ({ memory, access }, { query, within, ...options }) => {
      const hits = await memory.recall.search(query, { ...options, ...access.projectFilter(within) });
      return hits.map((hit) => ({ ...hit, node: publicNode(hit.node) }));
    },
  ),
  'nodes/remove': operation({ ids, within }, async (services, { ids, within }) => {
    await services.access.assertReachable(ids, within, 'remove');
    return removeNodes(services, ids);
  }),
  'nodes/forget': operation(
    {
      dryRun: z.boolean(),
      source: z.strictObject({ name: id, file: file.optional() }).optional(),
      sessionId: id.optional(),
      sinceMs: z.number().optional(),
      last: z.boolean().optional(),
    },
    async ({ memory, receipts }, request) => {
      const report = await memory.library.forget(request);
      if (!report.dry_run) await receipts.forget(report.nodes.map(({ node_id }) => node_id));
      return report;
    },
  ),
  'nodes/section': operation({ id }, ({ memory }, { id }) => memory.library.readSection(id)),
  'nodes/edit': operation(
    {
      id,
      change: z.union([
        z.strictObject({ text: section, base: section }),
        z.strictObject({ set: z.record(z.string().max(100), section) }),
      ]),
    },
    async ({ memory: { library } }, { id, change }) => publicNode(library.withClosed(await library.edit(id, change))),
  ),
  'nodes/pin': operation(
    { ids, pinned: z.boolean(), projectDir: text.optional() },
    async ({ memory }, { ids, pinned, projectDir }) =>
      (await memory.library.pin(ids, pinned, projectDir)).map(publicNode),
  ),
  'nodes/related': operation(
    { id, depth: z.int().min(1).max(4) },
    async ({ memory: { library }, opened }, { id, depth }) => {
      await opened();
      return library.related(id, depth).map(publicNode);
    },
  ),
  'nodes/why': operation({ id }, ({ memory }, { id }) => memory.library.explain(id)),
  /** At most as long as the text of a node. */
  'nodes/remember': operation({ text: z.string().min(1).max(2_000), projectDir: path }, async ({ memory }, request) => {
    const { node, isNew } = await memory.imports.remember(request);
    return { node: publicNode(node), isNew };
  }),
  'nodes/seal': operation(
    { digest: z.string().regex(/^[0-9a-f]{64}$/), origin: z.enum(ORIGINS) },
    ({ seals }, { digest, origin }) => seals.lineFor(digest, origin),
  ),
  'project/summary': operation(
    { projectDir: path, /** Whether a session begins. */ begins: z.boolean().default(false) },
    async (services, { projectDir, begins }): Promise<ProjectSummary> => {
      await services.opened();
      return begins ? await sessionSummary(services, projectDir) : projectSummary(services, projectDir);
    },
  ),
  'items/list': operation(
    { projectDir: text.optional(), sessionId: id.optional(), sinceMs: z.number().optional() },
    async ({ memory: { library }, opened }, filter) => {
      await opened();
      return library.listItems(filter);
    },
  ),
  'items/close': operation({ ids, as: z.enum(['done', 'dropped']) }, ({ memory: { library } }, { ids, as }) =>
    library.closeItems(ids, as),
  ),
  /** Stored as a note. `typed`: by the user in a terminal, so that it is the user's word; else its origin is unknown. */
  'items/add': operation(
    {
      kind: z.enum(['todo', 'decision']),
      text: z.string().min(1).max(500),
      projectDir: path,
      typed: z.boolean().default(false),
    },
    async ({ memory: { library, imports } }, { kind, typed, ...request }) => {
      const { node } = await imports.remember(request);
      return library.stateNote(node.node_id, kind, typed);
    },
  ),
  'topics/list': operation({ within }, ({ memory: { library }, access }, { within }) =>
    library.listTopics(access.projectFilter(within)),
  ),
  /** Sections that fit, best first, without those that rest on memories of `told` alone. */
  'topics/search': operation(
    {
      query: z.string().max(20_000),
      top: z.int().positive().max(100),
      told: z.array(id).max(1_000).optional(),
      projectDir: text.optional(),
      within,
    },
    async ({ memory: { library }, access }, { within, query, ...options }) => {
      const hits = await library.searchTopics(query, { ...options, ...access.projectFilter(within) });
      return hits.filter(({ fits }) => fits);
    },
  ),
  'topics/read': operation({ name: text, within }, ({ memory: { library }, access }, { name, within }) =>
    library.readTopic(name, access.projectFilter(within)),
  ),
  /** The user's, and those of a project where it is named. */
  'facts/list': operation(
    { projectDir: text.optional(), within },
    async ({ memory: { library }, access, removals }, { within, ...filter }) => {
      const { facts, problems } = await library.listFacts({ ...filter, ...access.projectFilter(within) });
      return { facts: facts.filter(({ id }) => !removals.hidden().has(id)), problems };
    },
  ),
  'facts/concepts': operation({}, async ({ memory: { library } }) => ({ concepts: await library.listConcepts() })),
  'facts/why': operation({ id, within }, ({ memory: { library }, access }, { id, within }) =>
    library.explainFact(id, access.projectFilter(within)),
  ),
  /** By id, or all of a concept. */
  'facts/forget': operation(
    { names: ids, projectDir: text.optional(), within },
    ({ memory: { library }, access }, { names, within, ...filter }) =>
      library.forgetFacts(names, { ...filter, ...access.projectFilter(within) }),
  ),
  'tasks/list': operation(
    { projectDir: text.optional(), all: z.boolean().optional(), within },
    ({ tasks, access }, { within, ...filter }) => tasks.list({ ...filter, ...access.projectFilter(within) }),
  ),
  'tasks/show': operation({ id, within }, ({ tasks, access }, { id, within }) =>
    tasks.show(id, access.projectFilter(within).projectDir),
  ),
  /** `from`: an open item that the task is made of. */
  'tasks/add': operation(
    {
      ...taskFields,
      title,
      what: section.optional(),
      from: id.optional(),
      projectDir: path.optional(),
      by: saidBy,
      within,
    },
    async ({ memory: { library }, tasks, access }, { from, by, within, projectDir = within, ...given }) => {
      access.projectFilter(within);
      const item = from === undefined ? null : await library.findItem(from);
      const about = item && { context: [`${item.node_id}: ${item.title}`], sources: [item.node_id] };
      const title = given.title || item?.text || '';
      const open = item === null ? [] : (await tasks.list({})).tasks;
      const same = open.find(
        (task) => [task.title, task.statement].includes(oneLine(title)) && task.project === item?.project,
      );
      if (same !== undefined)
        throw new CometError('usage', `it is task ${same.id} already: comet-cc task show ${same.id}`);
      return tasks.add({
        ...{ ...given, ...about, title },
        ...{ origin: lowestOrigin([by, item?.origin ?? by]), projectDir: projectDir ?? null, project: item?.project },
      });
    },
  ),
  'tasks/edit': operation(
    { id, fields: z.strictObject({ ...taskFields, title: title.optional() }), by: saidBy, within },
    ({ tasks, access }, { id, fields, by, within }) =>
      tasks.edit(id, fields, { by, within: access.projectFilter(within).projectDir }),
  ),
  'tasks/status': operation(
    { id, status: z.enum(TASK_STATUSES), within },
    async ({ memory: { library }, tasks, access }, { id, status, within }) => {
      const { projectDir } = access.projectFilter(within);
      const former = await tasks.show(id, projectDir);
      const task = await tasks.setStatus(id, status, projectDir);
      const texts = [task.title, task.statement ?? ''];
      if (status === 'done') await library.closeSame(texts, task.project);
      else if (former.status === 'done') await library.reopenSame(texts, task.project);
      return task;
    },
  ),
  'tasks/remove': operation({ id }, ({ tasks }, { id }) => tasks.remove(id)),
  'inbox/show': operation({ day: z.iso.date('expected a day, as 2026-11-24').optional() }, ({ tasks }, { day }) =>
    tasks.inbox(day),
  ),
  'project/overview': operation({ projectDir: text, within }, ({ memory, access }, { projectDir, within }) => {
    access.projectFilter(within);
    return memory.library.projectOverview(projectDir);
  }),

  'memory/stats': operation({}, async ({ memory, costs }) => ({
    ...(await memory.maintenance.stats()),
    savings: costs().savings,
  })),
  'memory/export': operation({ format: z.enum(['md', 'jsonl']) }, ({ memory }, { format }) =>
    memory.library.exportAll(format),
  ),
  'memory/import': operation(fileImportInput, ({ memory }, input) => importFile(memory.imports, input)),
  'memory/import-claude': operation(claudeImportInput, ({ claudeImport }, input) => claudeImport.run(input)),
  'memory/dream': operation({ dryRun: z.boolean(), projectDir: path.optional() }, ({ memory }, request) =>
    memory.maintenance.dream(request),
  ),
  /** What `library link` writes: the part of the library that belongs to every project. */
  'library/block': operation({}, async ({ memory: { library } }) => ({ text: await library.linkedBlock() })),
  /** `INDEX.md` as it is; '' before there is one. */
  'library/index': operation({}, async ({ memory: { library } }) => ({ text: await library.readIndex() })),
  'library/lint': operation({}, ({ memory: { maintenance } }) => maintenance.lintPages()),
  'memory/reindex': operation({}, ({ memory }) => memory.maintenance.reindex()),
  'snapshots/list': operation({}, ({ memory }) => memory.maintenance.listSnapshots()),
  'snapshots/rollback': operation({ id }, ({ memory }, { id }) => memory.maintenance.rollback(id)),

  /** Programs, which name the project that they may read, get the titles that memory itself has. */
  'sessions/list': operation({ within }, async ({ memory: { library }, access, titles, removals }, { within }) => {
    const hidden = removals.hidden();
    const sessions = (await library.listSessions(access.projectFilter(within))).map((session) => {
      return { ...session, node_ids: session.node_ids.filter((node) => !hidden.has(node)) };
    });
    return within === undefined ? titled(sessions, titles) : sessions;
  }),
  'sessions/show': operation(sessionInput, async ({ memory: { library }, titles }, { sessionId }) => {
    const [shown] = await titled([await library.showSession(sessionId)], titles);
    return shown as SessionDetail;
  }),
  'sessions/close': operation(sessionInput, ({ memory }, { sessionId }) => memory.capture.closeSession(sessionId)),
  'sessions/brief': operation(sessionInput, ({ memory: { library } }, { sessionId }) => library.readBrief(sessionId)),
  'sessions/restore': operation(sessionInput, ({ memory: { library } }, { sessionId }) =>
    library.restoreSession(sessionId),
  ),

  /** Summarizes what the sessions of one `comet-cc run` left, and tells of the newest. */
  'sessions/finish': operation(
    { projectDir: path, sinceMs: z.number(), sessionId: id.optional(), others: z.array(id).optional() },
    finishSessions,
  ),

  'hooks/session-start': operation(startInput, async (services, { tells, passes, ...input }) => {
    services.sharing.wake();
    const { text, isFirst } = await services.hooks.sessionStart(input);
    if (!tells || !isFirst) return { text, message: '' };
    return { text, message: startLine(await sessionSummary(services, input.projectDir), passes) };
  }),
  'hooks/prompt': operation(promptInput, ({ hooks }, input) => hooks.prompt(input)),
  'hooks/compact': operation(compactInput, ({ hooks }, input) => hooks.compact(input)),
  /** What the type of a subagent is subscribed to. */
  'hooks/subagents': operation(subagentInput, ({ hooks }, input) => hooks.subagentStart(input)),
  'hooks/session-end': operation(sessionInput, ({ hooks }, input) => hooks.sessionEnd(input)),

  /** Memory on the user's other machines, or those of a team. */
  'share/status': operation({}, ({ sharing }) => sharing.status()),
  'share/look': operation({ url: shareAddress, env }, ({ sharing }, input) => sharing.look(input)),
  'share/join': operation(
    {
      url: shareAddress,
      first: z.boolean(),
      scope: z.enum(['me', 'team']).optional(),
      projects: z.array(shared).max(100).optional(),
      name: z.string(),
      env,
    },
    ({ sharing }, { url, first, scope = null, projects = null, name, env }) => {
      if (!SHARED_NAME.test(name))
        throw new CometError('usage', '--name is up to 40 letters, digits, dots, dashes and spaces');
      return sharing.join({ url, scope, projects, name }, first, env);
    },
  ),
  'share/preview': operation({ env }, ({ sharing }, { env }) => sharing.preview(env)),
  'share/push': operation({ env }, async ({ sharing }, { env }) => ({ sent: await sharing.push(env) })),
  'share/pull': operation({ env }, async ({ sharing }, { env }) => ({ added: await sharing.pull(env) })),
  'share/trust': operation({ who: shared, trusted: z.boolean() }, ({ sharing }, { who, trusted }) =>
    sharing.trust(who, trusted),
  ),
  'share/leave': operation({ env }, ({ sharing }, { env }) => sharing.leave(env)),
  ...uiOperations,
};

/** Operations after which the library may say something else. */
export const CHANGING: ReadonlySet<string> = new Set<Operation>([
  ...(['nodes/remove', 'nodes/forget', 'nodes/edit', 'memory/import', 'memory/dream', 'snapshots/rollback'] as const),
  ...(['tasks/add', 'tasks/edit', 'tasks/status', 'tasks/remove'] as const),
  ...(['facts/forget', 'ui/edit', 'ui/forget', 'ui/undo'] as const),
]);

/** What the page may call: it neither imports files by path, answers hooks, nor waits for the engine. */
export const PAGE_OPERATIONS: ReadonlySet<string> = new Set<Operation>([
  ...(['status', 'explain', 'nodes/list', 'nodes/show', 'nodes/search', 'nodes/edit', 'nodes/related'] as const),
  ...(['nodes/why', 'topics/list', 'topics/read', 'facts/list', 'facts/concepts', 'facts/forget'] as const),
  ...(['tasks/list', 'tasks/add', 'tasks/status', 'inbox/show', 'sessions/list', 'library/index'] as const),
  ...(['ui/overview', 'ui/savings', 'ui/session', 'ui/request', 'ui/search', 'ui/graph', 'ui/history'] as const),
  ...(['ui/health', 'ui/pause', 'ui/resume', 'ui/edit', 'ui/pin', 'ui/quarantine', 'ui/forget', 'ui/undo'] as const),
]);

type Operations = typeof operations;
export type Operation = keyof Operations;
export type OperationInput<K extends Operation> = z.infer<Operations[K]['input']>;
export type OperationResults = { readonly [K in Operation]: Awaited<ReturnType<Operations[K]['run']>> };

/** What Claude Code's statusline shows of a session and its project. */
export interface StatuslineView {
  readonly mode: Mode;
  /** Of the project; of all memory where none is known. */
  readonly nodes: number;
  readonly trimming_off: boolean;
  /** Titles of tasks that were due lately, newest first; absent in engines of earlier versions. */
  readonly due?: readonly string[];
  /** Of the session's newest request; null before the first, absent in engines of earlier versions. */
  readonly request?: ReturnType<typeof newestRequest>;
}

async function engineStatus(services: EngineServices): Promise<EngineStatus> {
  const { memory, policy, claudeImport, opened, requests, recalls, costs, problems, version } = services;
  await finishesWithin(opened(), OPENING_MS);
  const status = memory.maintenance.status();
  const { trimming_off: off, ...saved } = costs();
  const budget = services.budget();
  const isNamed = off.length > 0 || budget.sessions.some(({ spent }) => spent);
  const titles = isNamed ? await sessionTitles(services) : new Map<string, string>();
  const named = <T extends { session_id: string }>(each: T) => ({ ...each, title: titles.get(each.session_id) ?? '' });
  return {
    pid: process.pid,
    version,
    requests: requests(),
    recalls: recalls(),
    ...saved,
    trimming_off: off.map(named),
    ...requestCounts(services),
    budget: { ...budget, sessions: budget.sessions.map(named) },
    environment: services.environment,
    share: await services.sharing.status().catch(() => null),
    ...status,
    importing: claudeImport.progress() ?? status.importing,
    paused: policy.pauses(),
    problems: [...status.problems, ...problems(), ...policy.problems()],
  };
}

/** Empty while history is read. */
async function sessionTitles({ memory: { library }, titles }: EngineServices): Promise<ReadonlyMap<string, string>> {
  const sessions = library.listSessions().then((all) => titled(all, titles));
  const read = sessions.then((all) => new Map(all.map(({ session_id, title }) => [session_id, title])));
  return await withTimeout(read, OPENING_MS, () => new Error('history is still read')).catch(() => new Map());
}

/** With Claude Code's own title where a session has one. */
async function titled<T extends { readonly session_id: string; readonly title: string }>(
  sessions: readonly T[],
  titles: SessionTitles,
): Promise<readonly T[]> {
  const own = await titles.of(sessions.map(({ session_id }) => session_id));
  return sessions.map((session) => ({ ...session, title: own.get(session.session_id) ?? session.title }));
}
