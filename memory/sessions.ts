import { CometError, getOnly } from '../common/errors.ts';
import { grouped } from '../common/map.ts';
import { renderBrief } from './compaction/brief.ts';
import { getTitle } from './model/node.ts';
import type { MemoryParts } from './parts.ts';
import { nodeLines } from './recall/recall-service.ts';

export type Sessions = Awaited<ReturnType<typeof openSessions>>;
export type SessionView = ReturnType<Sessions['list']>[number];
export type SessionDetail = Awaited<ReturnType<Sessions['show']>>;

/** A session stays closed until its next turn. */
export async function openSessions(parts: MemoryParts) {
  const { config, clock, closings, getProject, turnRegistry, catalogue, pipeline, nodeFiles, facts } = parts;
  const closedAt = new Map(await closings.load());

  function getView(id: string, own = catalogue.all().filter((node) => node.session_id === id)) {
    const nodeIds: readonly string[] = own.map(({ node_id }) => node_id);
    const facts = turnRegistry.session(id);
    if (facts === undefined) throw unknownSession(id);
    const closedAtMs = closedAt.get(id) ?? Number.NEGATIVE_INFINITY;
    const isClosed = closedAtMs >= facts.lastAtMs;
    const { idleMs } = config.compaction;
    const isSilent = idleMs > 0 && clock.now() - facts.lastAtMs >= idleMs;
    return {
      session_id: id,
      /** The beginning of its first prompt, else the title of its first memory. */
      title: facts.title || titleOfFirst(nodeIds, catalogue),
      /** Memories of a folder that joined its remote are of that project. */
      project: own[0]?.project ?? facts.project,
      status: isClosed || isSilent ? ('closed' as const) : ('active' as const),
      created_at: new Date(facts.firstAtMs).toISOString(),
      updated_at: new Date(facts.lastAtMs).toISOString(),
      /** When the user closed it; null where it is open, or was reopened by a turn. */
      closed_at: isClosed ? new Date(closedAtMs).toISOString() : null,
      turns: facts.turns,
      node_ids: nodeIds,
    };
  }

  function getAll(project: string | null) {
    const nodes = grouped(catalogue.all(), (node) => node.session_id);
    return [...turnRegistry.sessions().keys()]
      .map((id) => getView(id, nodes.get(id) ?? []))
      .filter((view) => project === null || view.project === project)
      .sort((a, b) => b.updated_at.localeCompare(a.updated_at));
  }

  async function summarize(id: string): Promise<void> {
    getView(id);
    if (await pipeline.compactTail(id)) return;
    const message = `the last turns of session ${id} could not be summarized; see comet-cc doctor`;
    throw new CometError('journal_failed', message);
  }

  async function readBrief(id: string): Promise<string> {
    const brief = await nodeFiles.readBrief(id);
    if (brief !== null) return renderBrief(brief);
    if (turnRegistry.session(id) !== undefined) return '';
    throw unknownSession(id);
  }

  return {
    /** Newest first. */
    list: ({ projectDir }: { readonly projectDir?: string } = {}) =>
      getAll(projectDir === undefined ? null : getProject(projectDir)),
    /** `nodes`: oldest first. @throws CometError `not_found` */
    async show(id: string) {
      const view = getView(id);
      const nodes = nodeLines(view.node_ids.toReversed(), parts);
      return {
        ...view,
        nodes: nodes.map(({ nodeId, origin, text }) => ({ node_id: nodeId, origin, text })),
        brief: await readBrief(id),
      };
    },
    /** Summarizes the session's waiting turns. @throws CometError `not_found` */
    summarize,
    /** Does the same, and marks the session closed until its next turn. @throws CometError `not_found` */
    async close(id: string) {
      // A turn that arrives while the tail is compacted reopens the session.
      const atMs = Math.max(clock.now(), Date.parse(getView(id).updated_at));
      await summarize(id);
      await facts.endSession(id);
      await closings.add(id, atMs);
      closedAt.set(id, atMs);
      return getView(id);
    },
    /** The brief as markdown, '' when there is none. @throws CometError `not_found` */
    readBrief,
    /** The full id of a session; `prefix` itself where none begins with it. @throws CometError `ambiguous_id` */
    named(prefix: string): string {
      const ids = new Set([...turnRegistry.sessions().keys(), ...catalogue.all().map((node) => node.session_id)]);
      const fitting = ids.has(prefix) ? [prefix] : [...ids].filter((id) => id.startsWith(prefix));
      const some = fitting.slice(0, 3).join(', ');
      const several = `${fitting.length} sessions begin with "${prefix}" (${some}); give more of the id`;
      return fitting.length === 0 ? prefix : getOnly(fitting, '', several);
    },
  };
}

/** @param nodeIds  the newest first */
function titleOfFirst(nodeIds: readonly string[], { current }: MemoryParts['catalogue']): string {
  const first = current(nodeIds.at(-1) ?? '');
  return first === undefined ? '' : getTitle(first);
}

function unknownSession(id: string): CometError {
  return new CometError('not_found', `no session ${id} is known; see comet-cc session ls`);
}
