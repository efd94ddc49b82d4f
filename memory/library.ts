import { CometError, getOnly } from '../common/errors.ts';
import { grouped } from '../common/map.ts';
import { parseJson, sha256 } from '../common/text.ts';
import { isCleanOrigin, isContinuation, lowestOrigin, type Origin } from '../common/turn.ts';
import type { Archives } from './archive.ts';
import type { Details } from './compaction/details.ts';
import type { Editing } from './edit.ts';
import { createFactLibrary } from './fact-library.ts';
import type { ForgetReport, ForgetRequest } from './forget.ts';
import { memoryGraph } from './graph.ts';
import { findTexts, getBlocks } from './ingest/content-blocks.ts';
import type { JoinedMessage, JoinedTurn } from './ingest/join-parts.ts';
import { sortedInput } from './ingest/turn-registry.ts';
import { readTurn } from './ingest/turn-trust.ts';
import type { ItemFilter, Items } from './items.ts';
import { EVERYWHERE, getTeammate, getTitle, isBundled, isFromText, isRedirect, type MemoryNode } from './model/node.ts';
import type { TurnText } from './model/turn.ts';
import { createTopics } from './pages/topics.ts';
import type { MemoryParts } from './parts.ts';
import type { ProjectView } from './recall/project-overview.ts';
import { isQuarantined } from './recall/quarantine.ts';
import type { OpenBlock, RecallHit } from './recall/types.ts';
import type { Sessions } from './sessions.ts';
import { createHistory } from './snapshot.ts';
import type { NodeRegistry } from './storage/node-registry.ts';
import { sessionStem } from './storage/paths.ts';
import { isCall } from './text/actions.ts';
import { withoutCommands } from './text/sentences.ts';
import { isClosed, isPast } from './text/validity.ts';

export interface NodeFilter extends ItemFilter {
  readonly tag?: string;
  readonly importance?: 'HIGH' | 'MED' | 'LOW';
  /** Includes tool-call nodes. */
  readonly all?: boolean;
  /** Only quarantined nodes; false: none of them. */
  readonly quarantine?: boolean;
  readonly limit?: number;
}

export interface RawMessage {
  readonly seq: number;
  readonly role: string;
  /** Parsed `content`, verbatim except for redacted spans. */
  readonly content: unknown;
  /** Of the stored content; where nothing was redacted, of the characters that Claude Code sent. */
  readonly sha256: string;
  /** Secrets were replaced by marks. */
  readonly redacted?: true;
}

export type NodeView = MemoryNode & {
  /** The beginning of the first prompt of its session. */
  readonly session_title?: string;
  /** Why the detailed summary is missing or written by rules; absent otherwise. */
  readonly detail_note?: string;
  readonly raw?: readonly RawMessage[];
  /** With `raw`: its lowest origin, tool results included. */
  readonly raw_origin?: Origin;
  /** Rounds and tool calls of its turns. */
  readonly children?: readonly { readonly node_id: string; readonly summary: string }[];
};

/** What a user reads and changes. An id may be any unambiguous prefix, also that of a session. */
export type Library = ReturnType<typeof createLibrary>;

/** The start of every mark that replaces a secret. */
const MARK = '[REDACTED:';

interface Parts extends MemoryParts {
  readonly details: Details;
  readonly sessions: Sessions;
  readonly editing: Editing;
  readonly items: Items;
  readonly archives: Archives;
  readonly projectOverview: (projectDir: string) => Promise<ProjectView>;
  readonly libraryBlock: OpenBlock;
  readonly resolve: (prefix: string) => MemoryNode;
  readonly forget: (request: ForgetRequest) => Promise<ForgetReport>;
  /** Settles when history is read. */
  readonly started: Promise<void>;
  /** Reads edits on disk. */
  readonly follow: () => Promise<void>;
}

export function createLibrary({ libraryBlock, ...parts }: Parts) {
  const { getProject, turnRegistry, catalogue, turnReader, details, sessions, started, follow, resolve } = parts;

  function list(filter: NodeFilter): readonly MemoryNode[] {
    const sessionId = filter.sessionId === undefined ? undefined : sessions.named(filter.sessionId);
    const project = filter.projectDir === undefined ? undefined : getProject(filter.projectDir);
    const tag = filter.tag?.toLowerCase();
    const fits = (node: MemoryNode): boolean =>
      (filter.quarantine === true || filter.all === true || !isBundled(node)) &&
      (sessionId === undefined || node.session_id === sessionId) &&
      (project === undefined || node.project === project || node.project === EVERYWHERE) &&
      (tag === undefined || node.topic_tags.some((each) => each.toLowerCase() === tag)) &&
      (filter.importance === undefined || node.importance === filter.importance) &&
      (filter.sinceMs === undefined || Date.parse(node.created_at) >= filter.sinceMs) &&
      (filter.quarantine === undefined || isQuarantined(node) === filter.quarantine);
    const listed = catalogue.all().filter(fits);
    if (filter.all !== true) return listed.slice(0, filter.limit);
    const calls = catalogue.every().filter((node) => isCall(node) && fits(node));
    const newest = (a: MemoryNode, b: MemoryNode): number => b.created_at.localeCompare(a.created_at);
    return (calls.length === 0 ? listed : [...listed, ...calls].toSorted(newest)).slice(0, filter.limit);
  }

  async function restoreSession(sessionId: string): Promise<readonly RawMessage[]> {
    const turns = await turnReader.turns(sessionId);
    if (turns.length === 0)
      throw new CometError('not_found', `no turn of session ${sessionId} is kept; see comet-cc session ls`);
    const shared = await listTurnsBefore(turns[0], parts);
    return getMessages(joinTurns([...shared, ...turns], turnRegistry)).map(({ turnIds: _, ...message }) => message);
  }

  return {
    ...parts.editing,
    ...parts.items,
    ...{ ...createTopics(parts), ...createFactLibrary(parts), ...createViews(parts, list), ...createHistory(parts) },
    exportAll: parts.archives.exportAll,
    /** Newest first. @throws CometError `ambiguous_id` for a session */
    list,
    /**
     * Depth 1 writes the detailed summary where there is none yet, which may take as long as a model does; depth 2 adds
     * the verbatim messages.
     * @throws CometError `not_found` or `ambiguous_id`
     */
    async show(id: string, depth: 0 | 1 | 2): Promise<NodeView> {
      const match = resolve(id);
      const node = { ...match, session_title: turnRegistry.session(match.session_id)?.title ?? '' };
      const below = catalogue.getChildren(node.node_id).map(({ node_id, summary }) => ({ node_id, summary }));
      const children = below.length === 0 ? {} : { children: below };
      if (depth === 1) return { ...node, ...children, ...(await details.show(match)) };
      if (depth === 0) return { ...node, ...children };
      const parent = isCall(node) ? catalogue.current(node.parent_node_id ?? '') : undefined;
      const own = new Set((parent ?? node).turns.flatMap((turnId) => turnRegistry.aliases(turnId)));
      const sessionIds = getSessions(parent ?? node, turnRegistry);
      const read = sessionIds.flatMap((sessionId) => [turnReader.turns(sessionId), turnReader.agents(sessionId)]);
      const turns = (await Promise.all(read)).flat();
      const messages = getMessages(turns).filter(({ turnIds }) => turnIds.some((turnId) => own.has(turnId)));
      const origins = turns.filter(({ turnId }) => own.has(turnId)).map((turn) => readTurn(turn).origin);
      const raw = messages.map(({ turnIds: _, ...message }) => message);
      return { ...node, ...children, raw, raw_origin: lowestOrigin([node.origin, ...origins]) };
    },
    /** Nodes that links lead to and from, the nearest first. @throws as `show` */
    related: (id: string, depth: number) => findRelated(resolve(id), depth, catalogue),
    /** Where a node comes from. @throws as `show` */
    explain: async (id: string) => explainNode(resolve(id), parts),
    /** Removes file section, index rows and raw turns; returns the full ids. @throws as `show` */
    async remove(ids: readonly string[]): Promise<readonly string[]> {
      await started;
      await follow();
      const nodes = [...new Set(ids.map(resolve))];
      await parts.removal.remove(nodes);
      return nodes.map((node) => node.node_id);
    },
    /** Removes by where it came from, whose it is, or when it was said. @throws CometError `ambiguous_id`, `usage` */
    async forget({ sessionId, ...request }: ForgetRequest): Promise<ForgetReport> {
      if ((request.source ?? sessionId ?? request.sinceMs) === undefined)
        throw new CometError('usage', 'name a source, a session or a time to forget');
      await started;
      await follow();
      return parts.forget(sessionId === undefined ? request : { ...request, sessionId: sessions.named(sessionId) });
    },
    /** Newest first; of one project where it is named. */
    listSessions: (filter?: { readonly projectDir?: string }) => started.then(() => sessions.list(filter)),
    /** Prompts of a session with the key of their turn and when it was answered, redacted; [] for an unknown session. */
    async prompts(sessionId: string) {
      const turns = await started.then(() => turnReader.turns(sessionId));
      return turns.map((turn) => ({ key: turn.key, atMs: turn.atMs, text: withoutCommands(readTurn(turn).user) }));
    },
    /** @throws CometError `not_found` */
    showSession: (id: string) => started.then(() => sessions.show(id)),
    readBrief: sessions.readBrief,
    /** Every message of the session in order, for a fork after those of its origin. @throws CometError `not_found` */
    restoreSession: (id: string) => started.then(() => restoreSession(id)),
    projectOverview: (projectDir: string) => started.then(() => parts.projectOverview(projectDir)),
    /** What belongs to the user alone of what each session is given of the library. */
    linkedBlock: () => started.then(libraryBlock.linkedText),
  };
}

function findRelated(node: MemoryNode, depth: number, catalogue: NodeRegistry): readonly MemoryNode[] {
  const all = catalogue.all();
  const getLinks = ({ links, parent_node_id }: MemoryNode): MemoryNode[] =>
    [...links, ...(parent_node_id === null ? [] : [parent_node_id])].flatMap((id) => catalogue.current(id) ?? []);
  const seen = new Set([node]);
  for (let near = [node], step = 0; step < depth && near.length > 0; step += 1) {
    const ends = new Set(near);
    const linked = [...near.flatMap(getLinks), ...all.filter((each) => getLinks(each).some((end) => ends.has(end)))];
    near = [...new Set(linked)].filter((each) => !seen.has(each));
    for (const each of near) seen.add(each);
  }
  return [...seen].slice(1);
}

/** A merged node covers turns of several sessions. */
function getSessions({ session_id, turns }: MemoryNode, { getSession }: MemoryParts['turnRegistry']): string[] {
  return [...new Set([session_id, ...turns.flatMap((turnId) => getSession(turnId) ?? [])])];
}

/** The one node whose id, or a former one, begins with `prefix`. @throws CometError `not_found` or `ambiguous_id` */
export function resolveNode(prefix: string, catalogue: NodeRegistry): MemoryNode {
  const nodes = new Set(prefix === '' ? [] : catalogue.matching(prefix).flatMap((id) => catalogue.current(id) ?? []));
  const some = [...nodes].slice(0, 3).map((each) => each.node_id);
  return getOnly(
    [...nodes],
    `no memory begins with "${prefix}"; see comet-cc memory ls`,
    `"${prefix}" fits ${nodes.size} memories (${some.join(', ')}, …); give more of it`,
  );
}

/** Each message once: one that two turns share, as it was sent, with the later turn. */
function joinTurns(turns: readonly JoinedTurn[], { canonicalId }: MemoryParts['turnRegistry']): JoinedTurn[] {
  const byId = new Map(turns.map((turn) => [turn.turnId, turn]));
  const joined: JoinedTurn[] = [];
  for (const turn of turns) {
    const before = turn.merged === true ? byId.get(canonicalId(turn.before ?? '')) : undefined;
    const [[first], results] = [turn.messages, before?.messages.at(-1)];
    if (first === undefined || results?.role !== 'user') {
      joined.push(turn);
      continue;
    }
    const last = joined.at(-1);
    if (last?.turnId === before?.turnId && last !== undefined)
      joined[joined.length - 1] = { ...last, messages: last.messages.slice(0, -1) };
    const whole = { ...first, content: `${results.content.slice(0, -1)},${first.content.slice(1)}` };
    joined.push({ ...turn, messages: [whole, ...turn.messages.slice(1)] });
  }
  return joined.map(withoutRepeated);
}

/** Without the messages of the turn before that Claude Code repeats behind a summary. */
function withoutRepeated(turn: JoinedTurn, at: number, turns: readonly JoinedTurn[]): JoinedTurn {
  const isSummary = findTexts(turn.messages.slice(0, 1).flatMap(getBlocks)).some(isContinuation);
  const before = isSummary ? new Set(turns[at - 1]?.messages.map(identifyMessage)) : new Set();
  let repeats = before.size > 0;
  const messages = turn.messages.filter((message, index) => {
    if (index === 0 || message.role === 'system') return true;
    repeats &&= before.has(identifyMessage(message));
    return !repeats;
  });
  return { ...turn, messages };
}

/** Claude Code strips the thinking of a conversation when upstream refuses it. */
function identifyMessage(message: JoinedMessage): string {
  const said = getBlocks(message).filter(({ type }) => type !== 'thinking' && type !== 'redacted_thinking');
  return `${message.role} ${sortedInput(JSON.stringify(said.map(({ cache_control: _, ...block }) => block)))}`;
}

/** Messages in order of the session, numbered from 0, with the ids of turn and part. */
function getMessages(turns: readonly JoinedTurn[]): (RawMessage & { readonly turnIds: readonly string[] })[] {
  return turns
    .flatMap(({ messages, turnId, redacted }) =>
      messages.map((message) => ({ message, redacted, turnIds: [turnId, message.part ?? turnId] })),
    )
    .map(({ message: { role, content, sha256 }, redacted, turnIds }, seq) => {
      const marked = redacted && content.includes(MARK) ? { redacted: true as const } : {};
      return { seq, role, content: getContent(content), sha256, ...marked, turnIds };
    });
}

/** Memory as a picture: what people look at rather than read. */
function createViews(parts: Omit<Parts, 'libraryBlock'>, list: (filter: NodeFilter) => readonly MemoryNode[]) {
  return {
    /** Every message of the session in order, with its turn and the nodes that stand for it; [] for an unknown one. */
    readSession: (id: string) => parts.started.then(() => readSession(id, parts)),
    /** Titles and projects; undefined for a session that is not known. */
    nameSessions: async (ids: readonly string[]) =>
      new Map(ids.map((id) => [id, parts.turnRegistry.session(id)] as const)),
    /** All memories with what they are about and their links, without those in `hidden`. */
    graph: (hidden: ReadonlySet<string>) => memoryGraph(list({}).filter((node) => !hidden.has(node.node_id))),
  };
}

async function readSession(sessionId: string, { turnReader, turnRegistry, catalogue }: MemoryParts) {
  const turns = await turnReader.turns(sessionId);
  const byId = new Map(turns.map((turn) => [turn.turnId, turn]));
  const getCurrent = (id: string): string => catalogue.current(id)?.node_id ?? '';
  const formerIds = catalogue.every().flatMap(({ node_id }) => (getCurrent(node_id) === node_id ? [] : [node_id]));
  const former = grouped(formerIds, getCurrent);
  return getMessages(turns).map(({ turnIds, ...message }) => {
    const covering = turnIds.flatMap((turnId) => turnRegistry.aliases(turnId)).flatMap(catalogue.nodesCovering);
    const nodes = covering.flatMap((id) => [id, ...(former.get(id) ?? [])]);
    const turn = byId.get(turnIds[0] as string) as JoinedTurn;
    return { ...message, turn: turn.key, at: new Date(turn.atMs).toISOString(), nodes: [...new Set(nodes)] };
  });
}

/** Content that was not JSON is shown as text. */
function getContent(content: string): unknown {
  const value = parseJson(content);
  return value === undefined ? content : value;
}

/**
 * The turns that a session shares with the one it was forked from, oldest first: they are kept once, in the session
 * that had them first. If a turn is not kept, the list continues with the turn before it in the same session.
 */
export async function listTurnsBefore(
  first: Pick<JoinedTurn, 'before'> | undefined,
  { turnRegistry, turnReader }: MemoryParts,
): Promise<JoinedTurn[]> {
  const read = new Map<string, Promise<readonly JoinedTurn[]>>();
  const joinedTurns: JoinedTurn[] = [];
  const seen = new Set<string>();
  for (let before = first?.before ?? ''; before !== '' && !seen.has(before); ) {
    seen.add(before);
    const sessionId = turnRegistry.getSession(before);
    if (sessionId === undefined) break;
    const turns = read.get(sessionId) ?? turnReader.turns(sessionId);
    read.set(sessionId, turns);
    const name = turnRegistry.aliases(before)[0];
    const at = (await turns).findIndex(({ turnId }) => turnId === name);
    const turn = (await turns)[at];
    if (turn === undefined) break;
    joinedTurns.unshift(turn);
    before = turn.before ?? '';
    if (before !== '' && turnRegistry.getSession(before) === undefined) before = (await turns)[at - 1]?.turnId ?? '';
  }
  return joinedTurns;
}

export type Public<T> = T extends MemoryNode ? Omit<T, 'status'> & ReturnType<typeof derivedFields> : never;
export type PublicNode = Public<MemoryNode>;
export type PublicHit = Omit<RecallHit, 'node'> & { readonly node: PublicNode };

export function publicNode<T extends MemoryNode>(node: T): Public<T> {
  return { ...node, ...derivedFields(node) } as unknown as Public<T>;
}

/** What programs are given of a node beside its own fields: those of CoMeT that follow from others, or never change. */
function derivedFields(node: MemoryNode) {
  const teammate = getTeammate(node);
  return {
    title: getTitle(node),
    status: getStatus(node),
    written_by: writtenBy(node),
    content_key: sha256((node.kind === 'group' ? node.links : node.turns).join('\n')),
    raw_location: `journal/${sessionStem(node.session_id)}.log`,
    strength: 1,
    recall_count: 0,
    last_recalled_at: null,
    /** Who published it, where it came from another person's machine. */
    ...(teammate === null ? {} : { teammate }),
  };
}

/** One word for kind and author, as the first version had it. */
export function writtenBy(node: MemoryNode): string {
  if (node.kind === 'tool') return 'bundle';
  if (isFromText(node)) return 'document';
  const { author, status } = node;
  if (author.by === 'rules') return status === 'draft' ? 'local' : 'consolidation';
  return author.by === 'user' ? 'user' : (author.model ?? 'model');
}

function getStatus(node: MemoryNode): MemoryNode['status'] | 'superseded' | 'quarantined' {
  if (isRedirect(node) || isPast(node)) return 'superseded';
  return isQuarantined(node) ? 'quarantined' : node.status;
}

export type NodeReason = Awaited<ReturnType<typeof explainNode>>;

const PROMPT_CHARS = 300;

async function explainNode(node: MemoryNode, { turnRegistry, catalogue, turnReader }: MemoryParts) {
  const turns = (await Promise.all(getSessions(node, turnRegistry).map(turnReader.ofSession))).flat();
  const turnsById = new Map(turns.map((turn) => [turn.turnId, turn]));
  return {
    node_id: node.node_id,
    summary: node.summary,
    origin: node.origin,
    written_by: writtenBy(node),
    compaction_reason: node.compaction_reason,
    turns: node.turns.map((turnId) => getReason(turnId, turnsById.get(turnRegistry.canonicalId(turnId)))),
    /** Current facts, and the turns that each rests on. */
    facts: node.facts
      .filter((fact) => !isClosed(fact))
      .map(({ concept, value, polarity, evidence, origin }) => {
        return { concept, value, polarity, origin: origin ?? node.origin, turns: evidence };
      }),
    aliases: catalogue.pointersTo(node.node_id).map((each) => each.node_id),
    replaced: findReplaced(node),
    /** Nodes of which it superseded a statement. */
    replaces: catalogue.all().flatMap((each) => (isRevisedBy(each, node.node_id) ? [each.node_id] : [])),
  };
}

/** Superseded statements; the whole node where `statement` is null. */
function findReplaced(node: MemoryNode) {
  const whole = isPast(node) ? [{ statement: null, valid_to: node.valid_to, by: node.superseded_by }] : [];
  const parts = node.facts.filter(isClosed).map((fact) => {
    return { statement: fact.value, valid_to: fact.valid_to ?? null, by: fact.superseded_by ?? null };
  });
  return [...whole, ...parts];
}

function isRevisedBy(node: MemoryNode, id: string): boolean {
  return node.node_id !== id && (node.superseded_by === id || node.facts.some((fact) => fact.superseded_by === id));
}

/** `at` null: its raw text is not kept. `tools`: those whose results lowered the origin. */
function getReason(turn: string, text: TurnText | undefined) {
  if (text === undefined) return { turn, at: null, origin: null, prompt: '', tools: [] };
  const foreign = text.parts.filter((part) => part.kind === 'tool_result' && !isCleanOrigin(part.origin));
  const tools = [...new Set(foreign.map((part) => part.tool))];
  const at = new Date(text.atMs).toISOString();
  return { turn, at, origin: text.origin, prompt: text.user.slice(0, PROMPT_CHARS), tools };
}
