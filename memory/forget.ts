import { grouped } from '../common/map.ts';
import { ORIGINS, type Origin } from '../common/turn.ts';
import type { Pipeline, PipelineParts } from './compaction/pipeline.ts';
import type { Facts } from './facts.ts';
import { isImportLink, turnContentHashes } from './ingest/imported-turn.ts';
import type { ServiceParts } from './ingest/parts.ts';
import { type Claim, isBundled, isGroup, type MemoryNode } from './model/node.ts';
import { taskId } from './model/task.ts';
import { fileMarks, type TurnText } from './model/turn.ts';
import type { LibraryPages } from './pages/library-pages.ts';
import type { IdSetFile, MarkedTurn } from './storage/fs/set-files.ts';
import type { NodeFiles } from './storage/node-files.ts';
import type { TaskSources } from './tasks/task-sources.ts';
import type { Tasks } from './tasks/tasks.ts';
import { isCall } from './text/actions.ts';
import { withoutRevisionsBy } from './text/validity.ts';

/** Selects turns and nodes: all given conditions must hold, and at least one is given. */
export interface ForgetRequest {
  /** Reports what would be removed, and removes nothing. */
  readonly dryRun: boolean;
  /** Content of this source entered the turn; see `Source`. */
  readonly source?: Source;
  readonly sessionId?: string;
  /** Only turns of that time or later. */
  readonly sinceMs?: number;
  /** Of all these turns only the newest, with the nodes that hold it. */
  readonly last?: boolean;
}

export type ForgetReport = Awaited<ReturnType<ReturnType<typeof createForgetting>>>;

interface Parts extends RemovalParts, Pick<PipelineParts, 'crashMarks' | 'compactor' | 'toolRounds' | 'modelUpgrades'> {
  readonly pipeline: Pipeline;
  readonly removal: Removal;
}

type What = Pick<ForgetRequest, 'source' | 'sessionId' | 'sinceMs'>;

/** Removes turns. First, a new node is built from the other turns of each node, so that nothing else is lost. */
export function createForgetting(parts: Parts) {
  const { turnRegistry, catalogue, compactor, journal, toolRounds, turnReader, modelUpgrades } = parts;

  async function getTurns({ source, sessionId, sinceMs = Number.NEGATIVE_INFINITY }: What): Promise<TurnText[]> {
    const ids = sessionId === undefined ? await journal.sessions() : [sessionId];
    const isMeant = (turn: TurnText): boolean =>
      turn.atMs >= sinceMs && (source === undefined || isTurnFrom(turn, source));
    const turnTexts: TurnText[] = [];
    for (const id of ids) turnTexts.push(...(await turnReader.ofSession(id)).filter(isMeant));
    return turnTexts;
  }

  function fits(node: MemoryNode, { source, sessionId, sinceMs }: What): boolean {
    if (sessionId !== undefined && node.session_id !== sessionId) return false;
    if (sinceMs !== undefined && Date.parse(node.valid_from) < sinceMs) return false;
    return source === undefined || isNodeFrom(node, source);
  }

  /** Ids of whole turns, or of a part whose turn still runs. */
  function getNames(turns: readonly TurnText[]): Set<string> {
    return new Set(
      turns.flatMap(({ turnId }) => {
        const wholes = turnRegistry.getWholes(turnId).map((whole) => turnRegistry.canonicalId(whole.turnId));
        return wholes.length > 0 ? wholes : [turnId];
      }),
    );
  }

  async function remake(nodes: readonly MemoryNode[], removedIds: ReadonlySet<string>): Promise<number> {
    const stays = new Set(nodes.flatMap((node) => node.turns).map(turnRegistry.canonicalId));
    for (const turnId of removedIds) stays.delete(turnId);
    const bySession = grouped([...stays], (turnId) => turnRegistry.getSession(turnId) ?? '');
    let made = 0;
    for (const [sessionId, turnIds] of bySession) {
      const turns = (await turnReader.ofSession(sessionId)).filter(({ turnId }) => turnIds.includes(turnId));
      const project = turnRegistry.session(sessionId)?.project ?? '';
      if (turns.length === 0) continue;
      const own = nodes.filter((node) => node.session_id === sessionId).flatMap((node) => node.source_links);
      const links = [...new Set(own.filter(isImportLink))];
      const past = links.length === 0 ? {} : { past: { atMs: turns.at(-1)?.atMs ?? 0, links } };
      const batch = { sessionId, project, reason: 'forced', turns, ...past } as const;
      const { nodes: fresh } = await compactor.draftNodes([batch], (nodes) => toolRounds.getChildren(nodes, turns));
      if (links.length === 0) modelUpgrades.add(fresh);
      made += fresh.length;
    }
    return made;
  }

  /** Unreadable turns: they may contain the source. */
  function findSkipped({ source, sessionId, sinceMs = 0 }: What): MarkedTurn[] {
    const skipped = source === undefined ? parts.crashMarks.skipped() : [];
    return skipped.filter((turn) => [undefined, turn.sessionId].includes(sessionId) && turn.atMs >= sinceMs);
  }

  return async ({ dryRun, last = false, ...what }: ForgetRequest) => {
    if (!dryRun) await parts.pipeline.compactTails();
    const turns = (await getTurns(what)).sort((a, b) => a.atMs - b.atMs);
    const turnIds = getNames(last ? turns.slice(-1) : turns);
    const isHit = (node: MemoryNode) => node.turns.some((turnId) => turnIds.has(turnRegistry.canonicalId(turnId)));
    const nodes = catalogue.all().filter((node) => isHit(node) || (!last && fits(node, what)));
    for (const node of nodes)
      if (!isHit(node)) for (const turnId of node.turns) turnIds.add(turnRegistry.canonicalId(turnId));
    const sessions = new Set([...turnIds].flatMap((turnId) => turnRegistry.getSession(turnId) ?? []));
    for (const { session_id } of nodes) sessions.add(session_id);
    const tasks = await parts.tasks.findDerived(getTaskSources(nodes, await getTexts([...turnIds], parts)));
    const remade = dryRun ? 0 : await remake(nodes, turnIds);
    if (!dryRun && nodes.length + turnIds.size > 0) await parts.removal.remove(nodes, [...turnIds]);
    const skipped = (last ? [] : findSkipped(what)).filter(({ turnId }) => !parts.removal.isForgotten(turnId));
    if (!dryRun) await parts.removal.removeRaw(skipped);
    return {
      dry_run: dryRun,
      turns: turnIds.size + skipped.length,
      sessions: [...sessions].sort(),
      nodes: nodes.filter((node) => !isBundled(node)).map(({ node_id, summary }) => ({ node_id, summary })),
      /** Nodes rebuilt from remaining turns that shared a node with removed ones. */
      remade,
      /** Tasks that were made of them. */
      tasks: tasks.map(({ name, title }) => ({ id: taskId(name), title })),
    };
  };
}

const PAGE_TRIES = 3;

/** Where something came from, as the user names it. */
export interface Source {
  /** An origin, a tool, an MCP server (`mcp__name`), a host, an address, or a file. */
  readonly name: string;
  /** The absolute path that `name` would be on the user's machine. */
  readonly file?: string;
}

const URLS = /\b(?:https?|ftp|wss?):\/\/[^\s"'`<>\\)\]}]+/gi;
const PATH_KEYS = /"(?:file_path|notebook_path|path|filePath)":("(?:[^"\\]|\\.)*")/g;

export function isTurnFrom(turn: TurnText, source: Source): boolean {
  const { name } = source;
  if (isOrigin(name)) return turn.origin === name;
  if ((turn.files ?? []).some(({ path }) => isFile(path, source))) return true;
  return turn.parts.some(({ kind, tool, text }) => {
    if (kind === 'assistant') return false;
    if (tool !== '' && (tool === name || (/^mcp__[^_]/.test(name) && tool.startsWith(`${name}__`)))) return true;
    // A result quotes whatever it likes: only what was called says where it comes from.
    return (
      kind === 'tool_use' && ((text.match(URLS) ?? []).some((url) => isAddress(url, name)) || namesFile(text, source))
    );
  });
}

export function isNodeFrom(node: MemoryNode, source: Source): boolean {
  if (isOrigin(source.name)) return node.origin === source.name;
  if (fileMarks(node.source_links).some(({ path }) => isFile(path, source))) return true;
  return node.source_links.some((link) => {
    const [, document] = /^document:(.*)$/s.exec(link) ?? [];
    return document === undefined ? isAddress(link, source.name) : isFile(document, source);
  });
}

const isOrigin = (name: string): boolean => ORIGINS.includes(name as Origin);

/** A URL matches its host, the host's parent domains, and every URL prefix of it. */
function isAddress(address: string, name: string): boolean {
  if (!URL.canParse(address)) return false;
  const { host, hostname, href } = new URL(address);
  const named = name.toLowerCase();
  if (!named.includes('://')) return [host, hostname].some((own) => own === named || own.endsWith(`.${named}`));
  if (!URL.canParse(name)) return false;
  const start = new URL(name).href.replace(/\/$/, '');
  return href === start || ['/', '?', '#'].some((next) => href.startsWith(start + next));
}

function namesFile(input: string, source: Source): boolean {
  return [...input.matchAll(PATH_KEYS)].some(([, path = '""']) => isFile(String(JSON.parse(path)), source));
}

/** The file itself, or one below the folder; a path of a project is relative to its root. */
function isFile(path: string, { name, file }: Source): boolean {
  const isAt = (folder: string): boolean => path === folder || path.startsWith(`${folder.replace(/\/$/, '')}/`);
  if (file !== undefined && isAt(file)) return true;
  const relative = name.replace(/^\.\//, '');
  return relative !== '' && !relative.startsWith('.') && !path.startsWith('/') && isAt(relative);
}

interface RemovalParts
  extends Pick<
    ServiceParts,
    'journal' | 'nodeFiles' | 'turnRegistry' | 'catalogue' | 'indexer' | 'snapshooter' | 'store' | 'turnReader'
  > {
  readonly topicPages: LibraryPages;
  readonly tasks: Pick<Tasks, 'forget' | 'findDerived'>;
  readonly facts: Pick<Facts, 'forgetTurns'>;
}

export type Removal = Awaited<ReturnType<typeof openRemoval>>;

/** @param parts.removedNodes  what other machines that share memory are to remove too; absent where none is shared */
export async function openRemoval(
  parts: RemovalParts & { readonly forgotten: IdSetFile; readonly removedNodes?: Pick<IdSetFile, 'add'> },
) {
  const { turnRegistry, forgotten, snapshooter, store } = parts;
  const removed = new Set(await forgotten.load());
  for (const turnId of removed) turnRegistry.reserve(turnId);

  async function forget(turnIds: readonly string[]): Promise<void> {
    await forgotten.add(turnIds);
    for (const turnId of turnIds) removed.add(turnId);
  }

  return {
    /** The user removed the turn: it is not captured again. */
    isForgotten: (turnId: string): boolean => removed.has(turnId),
    hasForgotten: (): boolean => removed.size > 0,
    /** Removes turns that nothing was made of. */
    async removeRaw(turns: readonly MarkedTurn[]): Promise<void> {
      if (turns.length > 0) await forget(turns.map(({ turnId }) => turnId));
      for (const { sessionId, turnId } of turns) await parts.journal.remove(sessionId, [turnId]);
    },
    /** The user removed the turn, or took its node out of the files: no node is made of it again. */
    isGone: (turnId: string): boolean =>
      turnRegistry.aliases(turnId).some((form) => removed.has(form) || store.isDismissed(form)),
    /** See `removeNodes`; a snapshot is taken first. @param removedNodes  null where other machines know of it already */
    async remove(nodes: readonly MemoryNode[], turnIds?: readonly string[], removedNodes = parts.removedNodes ?? null) {
      await snapshooter.take('rm');
      await removeNodes(nodes, { ...parts, forget, told: removedNodes }, turnIds);
    },
  };
}

/**
 * Removes every trace of these nodes: their sections and backups, pointers to them, index rows and their bytes, raw
 * turns, claims of briefs that rest on them, and all of it in snapshots. An interrupted removal can be repeated.
 * @param of  the turns that go with them; by default all of theirs
 */
async function removeNodes(
  chosen: readonly MemoryNode[],
  parts: RemovalParts & {
    readonly forget: (turnIds: readonly string[]) => Promise<void>;
    readonly told: Pick<IdSetFile, 'add'> | null;
  },
  of: readonly string[] = chosen.flatMap((node) => node.turns),
): Promise<void> {
  const { turnRegistry, catalogue, indexer, journal, nodeFiles, snapshooter, store, turnReader } = parts;
  const getForms = (names: readonly string[]) => names.flatMap((turnId) => [turnId, ...turnRegistry.aliases(turnId)]);
  const turns = getForms(of);
  const rounds = getForms(turns.flatMap((turnId) => turnRegistry.getParts(turnId)));
  const turnIds = [...new Set([...turns, ...rounds])];
  const bundles = rounds.flatMap((turnId) => catalogue.nodesCovering(turnId)).flatMap((id) => catalogue.get(id) ?? []);
  const named = [...new Set([...chosen, ...bundles])];
  const calls = named.flatMap((node) => catalogue.getChildren(node.node_id)).filter(isCall);
  // A group's text quotes its members.
  const groups = named.flatMap((node) => catalogue.get(node.parent_node_id ?? '') ?? []).filter(isGroup);
  const nodes = [...new Set([...named, ...calls, ...groups])];
  const sessions = new Set([
    ...turnIds.flatMap((turnId) => turnRegistry.getSession(turnId) ?? []),
    ...nodes.map(({ session_id }) => session_id),
  ]);
  // Turns that stay although some of their rounds are removed.
  const wholes = turnIds.flatMap(turnRegistry.getWholes).filter(({ turnId }) => !turnIds.includes(turnId));
  const texts = await getTexts(turnIds, parts);
  await parts.forget([...turnIds, ...texts.flatMap(({ sessionId, turn }) => turnContentHashes(sessionId, turn))]);
  const pointers = nodes.flatMap((node) => catalogue.pointersTo(node.node_id));
  await parts.told?.add([...nodes, ...pointers].map(({ node_id }) => node_id));
  await parts.tasks.forget(getTaskSources([...nodes, ...pointers], texts));
  await parts.facts.forgetTurns(new Set(turnIds));
  for (const turnId of turnIds) turnRegistry.reserve(turnId);
  const copies = wholes.filter(({ isCopied }) => isCopied).map(({ turnId }) => turnId);
  const getSessionId = (turnId: string): string =>
    turnRegistry.getSession(turnId) ?? nodes.find((node) => node.turns.includes(turnId))?.session_id ?? '';
  for (const [sessionId, own] of grouped([...turnIds, ...copies], getSessionId)) {
    if (sessionId !== '') await journal.remove(sessionId, own);
  }
  turnReader.drop([...turnIds, ...wholes.map(({ turnId }) => turnRegistry.canonicalId(turnId))]);
  turnRegistry.drop(turnIds);
  for (const sessionId of sessions) {
    const isOver = turnRegistry.session(sessionId) === undefined;
    await cleanBrief({ sessionId, isOver, gone: new Set(turnIds) }, nodeFiles);
  }
  await store.exclusive(async (store) => {
    const ids = nodes.flatMap((node) => [node, ...catalogue.pointersTo(node.node_id)]).map(({ node_id }) => node_id);
    const removedIds = new Set(ids);
    const relinked = catalogue.every().filter((node) => !removedIds.has(node.node_id) && mentions(node, removedIds));
    await store.remove(ids, turnIds);
    await store.save(relinked.map((node) => withoutLinks(node, removedIds)));
    await removeFromPages(removedIds, parts);
    const names = wholes.flatMap(({ turnId }) => turnRegistry.aliases(turnId));
    const kept = [...new Set(names.flatMap((turnId) => catalogue.nodesCovering(turnId)))];
    // Their rows hold words of removed rounds.
    if (kept.length > 0) {
      await indexer.remove(kept);
      indexer.upsert(kept.flatMap((id) => catalogue.get(id) ?? []));
    }
    await snapshooter.scrub(removedIds, new Set(turnIds), (id) => catalogue.get(id) !== undefined);
  });
  await indexer.optimize();
}

/** What rests on these nodes alone leaves the pages and the index; a page that is edited meanwhile is read again. */
async function removeFromPages(removedIds: ReadonlySet<string>, { topicPages, catalogue }: RemovalParts) {
  for (let tries = 0; tries < PAGE_TRIES; tries += 1) {
    const rewrites = await topicPages.planRemoval(removedIds, catalogue.every());
    if (!(await Promise.all(rewrites.map(topicPages.files.replace))).includes(false)) return;
  }
}

type SaidTurn = { readonly sessionId: string; readonly turn: TurnText };

/** The turns; their content hashes keep imports from restoring them under another id. */
async function getTexts(turnIds: readonly string[], { turnRegistry, turnReader }: RemovalParts): Promise<SaidTurn[]> {
  const removedIds = new Set(turnIds.map(turnRegistry.canonicalId));
  const sessions = new Set(turnIds.flatMap((turnId) => turnRegistry.getSession(turnId) ?? []));
  const read = await Promise.all([...sessions].map(async (id) => ({ id, turns: await turnReader.ofSession(id) })));
  return read.flatMap(({ id: sessionId, turns }) =>
    turns.filter(({ turnId }) => removedIds.has(turnId)).map((turn) => ({ sessionId, turn })),
  );
}

function getTaskSources(nodes: readonly MemoryNode[], texts: readonly SaidTurn[]): TaskSources {
  const calls = texts.flatMap(({ turn }) => turn.parts.filter(({ kind }) => kind === 'tool_use'));
  return { nodes: new Set(nodes.map(({ node_id }) => node_id)), calls };
}

function mentions({ links, parent_node_id, superseded_by, facts }: MemoryNode, removedIds: ReadonlySet<string>) {
  const ids = [...links, parent_node_id, superseded_by, ...facts.map((fact) => fact.superseded_by)];
  return ids.some((id) => removedIds.has(id ?? ''));
}

function withoutLinks(node: MemoryNode, removedIds: ReadonlySet<string>): MemoryNode {
  const kept = (id: string | null): string | null => (removedIds.has(id ?? '') ? null : id);
  const valid = withoutRevisionsBy(node, removedIds);
  return {
    ...valid,
    links: node.links.filter((id) => !removedIds.has(id)),
    parent_node_id: kept(node.parent_node_id),
    superseded_by: kept(valid.superseded_by),
  };
}

/** Removes claims that rest on removed turns; all of them where no turn of the session is left. */
async function cleanBrief(
  { sessionId, isOver, gone }: { sessionId: string; isOver: boolean; gone: ReadonlySet<string> },
  nodeFiles: NodeFiles,
): Promise<void> {
  const brief = await nodeFiles.readBrief(sessionId);
  if (brief === null) return;
  const stays = ({ sources }: Claim): boolean => !isOver && !sources.some((turnId) => gone.has(turnId));
  const [active, hints] = [brief.active.filter(stays), brief.hints.filter(stays)];
  if (active.length + hints.length < brief.active.length + brief.hints.length)
    await nodeFiles.writeBrief({ ...brief, active, hints });
}
