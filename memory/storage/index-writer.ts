import { createMutex } from '../../common/async.ts';
import { CometError } from '../../common/errors.ts';
import type { Log } from '../../common/log.ts';
import { grouped, LruMap, slices } from '../../common/map.ts';
import { sha256 } from '../../common/text.ts';
import { type Fact, isDraft, isRedirect, type MemoryNode } from '../model/node.ts';
import { spokenText, type TurnText, withoutToolOutput } from '../model/turn.ts';
import type { IndexEntry, IndexRow, SearchIndex } from '../search/search-index.ts';
import { contentTags } from '../text/tags.ts';
import { uniqueTokens } from '../text/tokenizer.ts';
import type { NodeRegistry } from './node-registry.ts';

/** The only writer of the index. It runs in the background; the next start repeats failed writes. */
export type Indexer = ReturnType<typeof createIndexer>;

type Progress = (done: number, total: number) => void;

export interface IndexerDeps {
  readonly index: SearchIndex;
  readonly catalogue: NodeRegistry;
  readonly getTexts: (sessionId: string) => Promise<readonly TurnText[]>;
  readonly getSession: (turnId: string) => string | undefined;
  readonly taskQueue: { run<T>(kind: 'indexer', work: () => Promise<T>): Promise<T> };
  readonly priority: { rest(): Promise<void> };
  readonly log: Log;
}

/** Caps the batch so that a slow embedder delays a write or a shutdown by seconds at most. */
const NODES_AT_ONCE = 8;
/** Many short sessions share a commit: each one costs the index the same, however few rows it has. */
const NODES_PER_WRITE = 100;

export function createIndexer(deps: IndexerDeps) {
  const { index, catalogue, taskQueue, priority, log } = deps;
  const { sessionTurns, write } = createRowWriter(deps);
  const lock = createMutex();

  /** Queued like other writes, but rejects on failure. */
  const enqueueWork = (work: () => Promise<void>): Promise<void> => taskQueue.run('indexer', () => lock(work));
  const queued = (work: () => Promise<void>): Promise<void> =>
    enqueueWork(work).catch((error: unknown) => log.error('index not written; the next start rebuilds it', { error }));

  function lacking(entries: ReadonlyMap<string, IndexEntry>): MemoryNode[] {
    return catalogue.all().filter((node) => entries.get(node.node_id)?.digest !== contentDigest(node));
  }

  return {
    /** Turns that `texts` does not hold are read from the journal. Gives way to a running recall. */
    upsert: (nodes: readonly MemoryNode[], texts?: readonly TurnText[]): void =>
      void queued(() => priority.rest().then(() => write(nodes, texts))),
    remove: (ids: readonly string[]) =>
      queued(async () => {
        // Whatever is taken away must not stay in what is kept for windows.
        sessionTurns.clear();
        await index.remove(ids);
      }),
    /** Brings the index in step with the catalogue: the disk wins. */
    async reconcile(isStopping: () => boolean, progress: Progress): Promise<void> {
      const entries = await index.entries();
      const stale = [...entries.keys()].filter((id) => catalogue.current(id)?.node_id !== id);
      const wrong = lacking(entries);
      const emptied = wrong.filter((node) => entries.has(node.node_id)).map((node) => node.node_id);
      if (stale.length + emptied.length > 0) await queued(() => index.remove([...stale, ...emptied]));
      for (const nodes of withProgress(inWrites(wrong), wrong.length, progress, isStopping))
        await queued(() => write(nodes));
    },
    /**
     * Fills the index of another embedder beside the one that serves, and lets it take over; what is there already is
     * left as it is. Stops between a few nodes, so that others get their turn.
     * @throws CometError `index_failed` where it is not complete, or what the index throws
     */
    async succeed(isStopping: () => boolean, progress: Progress): Promise<void> {
      const successor = index.successor?.() ?? null;
      if (successor === null) return;
      const away = [...(await successor.entries()).keys()].filter((id) => catalogue.current(id)?.node_id !== id);
      if (away.length > 0) await queued(() => successor.remove(away));
      const missing = lacking(await successor.entries());
      const steps = [...bySession(missing).values()].flatMap((own) => slices(own, NODES_AT_ONCE));
      for (const nodes of withProgress(steps, missing.length, progress, isStopping))
        await queued(() => write(nodes, undefined, successor));
      if (isStopping()) return;
      await enqueueWork(async () => {
        const { length } = lacking(await successor.entries());
        if (length > 0) throw new CometError('index_failed', `${length} memories lack vectors; comet-cc logs says why`);
        await successor.takeOver();
      });
    },
    hasSuccessor: (): boolean => (index.successor?.() ?? null) !== null,
    /** Empties it and fills it again from the catalogue. @throws what the index throws */
    rebuild: (progress: Progress) =>
      enqueueWork(async () => {
        await index.clear();
        const all = catalogue.all();
        for (const nodes of withProgress(inWrites(all), all.length, progress)) await write(nodes);
        progress(all.length, all.length);
        await index.optimize();
      }),
    /** Resolves once all that waits now is written. */
    settled: () => queued(async () => {}),
    /** See `SearchIndex.optimize`, after all that waits. @throws what the index throws */
    optimize: () => enqueueWork(() => index.optimize()),
  };
}

/** Reports before each step how many nodes of all are done. */
function* withProgress(
  steps: Iterable<MemoryNode[]>,
  total: number,
  progress: Progress,
  isStopping = () => false,
): Generator<MemoryNode[]> {
  let done = 0;
  for (const nodes of steps) {
    if (isStopping()) return;
    progress(done, total);
    yield nodes;
    done += nodes.length;
  }
}

function createRowWriter({ index, catalogue, getTexts, getSession }: IndexerDeps) {
  const sessionTurns = createSessionTurns(getTexts);

  async function write(
    nodes: readonly MemoryNode[],
    texts?: readonly TurnText[],
    target: Pick<SearchIndex, 'put'> = index,
  ): Promise<void> {
    const rows: IndexRow[] = [];
    for (const [sessionId, own] of bySession(nodes)) {
      // A node may have been removed or replaced while it waited here.
      if (!own.some(isLive)) continue;
      const read = await sessionTurns.read(sessionId, holdAll(own, texts) ? texts : undefined);
      for (const node of own.filter(isLive)) rows.push(...getRows(node, await withOthers(node, read)));
    }
    if (rows.length > 0) await target.put(rows);
  }

  /** A node that others were merged into stands for turns of their sessions too. */
  async function withOthers(node: MemoryNode, own: NodeTexts): Promise<NodeTexts> {
    const away = node.turns.filter((turnId) => !own.turns.has(turnId)).flatMap((turnId) => getSession(turnId) ?? []);
    const others = [...new Set(away)].filter((sessionId) => sessionId !== node.session_id);
    let all = own;
    for (const sessionId of others) {
      const { turns, positions } = await sessionTurns.read(sessionId);
      all = { turns: new Map([...turns, ...all.turns]), positions: new Map([...positions, ...all.positions]) };
    }
    return all;
  }

  /** Whatever would be written otherwise waits here too; what is the same in the index may be another object by now. */
  function isLive(node: MemoryNode): boolean {
    const now = catalogue.get(node.node_id);
    return now === node || (now !== undefined && !isRedirect(now) && contentDigest(now) === contentDigest(node));
  }

  return { sessionTurns, write };
}

/** Older nodes may be written along with a batch: what was said in them is not among its texts. */
function holdAll(nodes: readonly MemoryNode[], texts: readonly TurnText[] = []): boolean {
  const ids = new Set(texts.map(({ turnId }) => turnId));
  return nodes.every(({ turns }) => turns.every((turnId) => ids.has(turnId)));
}

function bySession(nodes: readonly MemoryNode[]): Map<string, MemoryNode[]> {
  return grouped(nodes, (node) => node.session_id);
}

/** Whole sessions together, until there are enough nodes for one write. */
function* inWrites(nodes: readonly MemoryNode[]): Generator<MemoryNode[]> {
  let together: MemoryNode[] = [];
  for (const [, own] of bySession(nodes)) {
    together.push(...own);
    if (together.length < NODES_PER_WRITE) continue;
    yield together;
    together = [];
  }
  if (together.length > 0) yield together;
}

export interface NodeTexts {
  readonly turns: ReadonlyMap<string, TurnText>;
  /** For each turn its session, and how many turns came before it there. */
  readonly positions: ReadonlyMap<string, { readonly sessionId: string; readonly position: number }>;
}

/** Of a session; a place is a whole number that a float holds. */
const MOST_TURNS = 2 ** 20;
const EMPTY_ROW = { turnId: '', digest: '', trigger: '', place: null, sources: [] } as const;

export function getRows(node: MemoryNode, { turns, positions }: NodeTexts): IndexRow[] {
  const shared = { ...EMPTY_ROW, nodeId: node.node_id, sessionId: node.session_id, project: node.project };
  const facts = node.facts.map(factText);
  const atMs = Date.parse(node.valid_from);
  const texts = [node.summary, node.trigger, contentTags(node.topic_tags).join(' '), ...facts];
  const text = [...texts, node.detailed_summary ?? ''].join('\n').trimEnd();
  const own: IndexRow = {
    ...shared,
    ...{ kind: 'node', origin: node.origin, atMs, digest: contentDigest(node) },
    ...{ text, embedded: node.summary, trigger: node.trigger },
  };
  const turnRows = node.turns.flatMap((turnId): IndexRow[] => {
    const turn = turns.get(turnId);
    const text = turn === undefined ? '' : spokenText(turn);
    if (turn === undefined || text === '') return [];
    const { origin } = withoutToolOutput(turn);
    const { sessionId = '', position = null } = positions.get(turnId) ?? {};
    // Places of two sessions of a project are far apart, whatever their lengths.
    const first = Number.parseInt(sha256(sessionId, 8), 16) * MOST_TURNS;
    const place = position === null ? {} : { sessionId, place: first + position };
    return [{ ...shared, ...place, kind: 'turn', turnId, origin, atMs: turn.atMs, text: text, embedded: text }];
  });
  // Facts of a draft repeat sentences of its turns: indexing them twice would crowd out other results.
  const factRows = (isDraft(node) ? [] : node.facts).map(({ evidence: sources }, at): IndexRow => {
    const fact = facts[at] as string;
    const saidAtMs = turns.get(sources[0] ?? '')?.atMs ?? atMs;
    return { ...shared, kind: 'fact', origin: node.origin, atMs: saidAtMs, sources, text: fact, embedded: fact };
  });
  return [own, ...turnRows, ...factRows];
}

function factText({ concept, value }: Fact): string {
  const tokens = uniqueTokens(value);
  return uniqueTokens(concept).every((token, at) => tokens[at] === token) ? value : `${concept}: ${value}`;
}

const SESSIONS = 16;

/** Turns with those right before them in their session. @param getTexts  every turn of a session, oldest first */
export function createSessionTurns(getTexts: (sessionId: string) => Promise<readonly TurnText[]>) {
  const sessions = new LruMap<string, readonly string[]>(SESSIONS);

  async function getOrder(sessionId: string, texts: readonly TurnText[]): Promise<readonly string[]> {
    const held = sessions.get(sessionId);
    const ids = new Set(held);
    const fresh = texts.filter(({ turnId }) => !ids.has(turnId));
    if (held !== undefined && fresh.length === 0) return held;
    // What follows the last known turn is new; where known ones come after it, the order is another.
    const continues = held !== undefined && texts.slice(-fresh.length).every((turn, at) => turn === fresh[at]);
    return continues ? [...held, ...getTurnIds(fresh)] : getTurnIds(await getTexts(sessionId));
  }

  return {
    /** @param texts  of some turns of the session; where they are left out, all of it are read */
    async read(sessionId: string, texts?: readonly TurnText[]): Promise<NodeTexts> {
      const turns = texts ?? (await getTexts(sessionId));
      const order = texts === undefined ? getTurnIds(turns) : await getOrder(sessionId, turns);
      sessions.set(sessionId, order);
      const positions = new Map(order.map((turnId, position) => [turnId, { sessionId, position }]));
      return { turns: new Map(turns.map((turn) => [turn.turnId, turn])), positions };
    },
    clear: (): void => sessions.clear(),
  };
}

const getTurnIds = (turns: readonly TurnText[]): string[] => turns.map(({ turnId }) => turnId);

/** Names what the index holds of a node: another digest means other rows. */
export function contentDigest(node: MemoryNode): string {
  const { node_id, session_id, project, origin, valid_from, summary, trigger, topic_tags, facts, turns } = node;
  const detail = node.detailed_summary === null ? [] : [node.detailed_summary];
  const texts = [summary, trigger, contentTags(topic_tags), facts.map(({ concept, value }) => [concept, value])];
  return sha256(JSON.stringify([node_id, session_id, project, origin, valid_from, ...texts, turns, ...detail]), 24);
}
