import { CometError } from '../../common/errors.ts';
import { type CapturedMessage, type CapturedTurn, CONTINUATION } from '../../common/turn.ts';
import { EVERYWHERE, type Library, type Memory } from '../../memory/index.ts';
import type { Policy } from './index.ts';

/**
 * Memory that captures, imports and recalls only what the user's policy allows.
 * @param hidden  ids of memories that are about to be removed
 */
export function guardMemory(memory: Memory, policy: Policy, hidden: () => ReadonlySet<string>): Memory {
  return { ...memory, ...guardIntake(memory, policy), recall: guardRecall(memory.recall, policy, hidden) };
}

// Methods are named one by one: memory that is still opening is a Proxy, and a spread of it copies nothing.
function guardIntake({ capture, imports }: Memory, policy: Policy): Pick<Memory, 'capture' | 'imports'> {
  function assertAllowed<R extends { readonly projectDir: string }>(request: R): R {
    if (policy.of(request.projectDir).captures) return request;
    throw new CometError('not_allowed', 'capture is off here: memory is paused, or the project turns it off');
  }

  /** A summary also says what was said while capture was off. */
  function mayCapture({ projectDir, atMs, sessionId, messages }: CapturedTurn): boolean {
    const isSummary = ({ role, content }: CapturedMessage) => role === 'user' && content.includes(`"${CONTINUATION}`);
    const isApart = !policy.hasWithheld(sessionId, '') || !messages.some(isSummary);
    return isApart && policy.allowsImport(projectDir, atMs, atMs);
  }

  return {
    capture: {
      captureTurns(turns) {
        for (const turn of turns) if (!mayCapture(turn)) policy.withhold(turn.key, turn.sessionId, '');
        capture.captureTurns(turns.filter(({ key }) => !policy.isWithheld(key)));
      },
      awaitCaptures: (sessionId) => capture.awaitCaptures(sessionId),
      reportPrompt: (...args) => capture.reportPrompt(...args),
      prepareNodes: (...args) => capture.prepareNodes(...args),
      summarizeSession: (id) => capture.summarizeSession(id),
      closeSession: (id) => capture.closeSession(id),
    },
    imports: {
      importArchive: (...args) => imports.importArchive(...args),
      hasTurns: (sessionId) => imports.hasTurns(sessionId),
      importTurns: (request) =>
        imports.importTurns({
          ...request,
          isAllowed: ({ projectDir, startMs, atMs }) => policy.allowsImport(projectDir, startMs, atMs),
        }),
      remember: async (request) => imports.remember(assertAllowed(request)),
      importDocument: async (request) => imports.importDocument(assertAllowed(request)),
    },
  };
}

function guardRecall(recall: Memory['recall'], policy: Policy, hidden: () => ReadonlySet<string>): Memory['recall'] {
  type RecallHits = Awaited<ReturnType<Memory['recall']['recall']>>;
  const shown = (hits: RecallHits): RecallHits => hits.filter(({ node }) => !hidden().has(node.node_id));
  return {
    recall: async (request, signal) =>
      shown(await recall.recall({ scope: policy.of(request.projectDir).scope, ...request }, signal)),
    sessionContext: (sessionId, projectDir, scope = policy.of(projectDir).scope) =>
      recall.sessionContext(sessionId, projectDir, scope),
    factChanges: (sessionId, projectDir, shown, scope = policy.of(projectDir).scope) =>
      recall.factChanges(sessionId, projectDir, shown, scope),
    search: async (...args) => shown(await recall.search(...args)),
    lines: (ids) => recall.lines(ids),
    quotes: (ids) => recall.quotes(ids),
    nodesCovering: (ids) => recall.nodesCovering(ids),
  };
}

/** Which memories a program may read or remove that works for a session in a project. */
export type Access = ReturnType<typeof createAccess>;

export function createAccess(
  policy: Pick<Policy, 'of'>,
  library: Pick<Library, 'show'>,
  getProject: (directory: string) => string,
) {
  function projectFilter(within: string | undefined): { readonly projectDir?: string } {
    if (within === undefined) return {};
    const { adds, scope } = policy.of(within);
    if (!adds)
      throw new CometError('not_allowed', 'memory is off in this project; the user can end that: comet-cc resume');
    if (scope === 'session')
      throw new CometError('not_allowed', 'this project recalls nothing of other sessions; the user set that');
    return scope === 'all' ? {} : { projectDir: within };
  }

  return {
    /**
     * A filter for the project of `within`; none where all of memory may be read.
     * @throws CometError `not_allowed` where memory is paused, or kept to the running session
     */
    projectFilter,
    /** @throws CometError `not_allowed` for a memory of another project; as `projectFilter`, as `Library.show` */
    async assertReachable(ids: readonly string[], within: string | undefined, use: 'read' | 'remove'): Promise<void> {
      const { projectDir } = projectFilter(within);
      if (projectDir === undefined) return;
      const asking = getProject(projectDir);
      const isOpen = (project: string): boolean => project === asking || project === EVERYWHERE;
      for (const id of ids) {
        const { node_id, project, pinned_in = [] } = await library.show(id, 0);
        if (project === asking || (use === 'read' && [...pinned_in, project].some(isOpen))) continue;
        const next = 'the user can read it: comet-cc memory show';
        throw new CometError('not_allowed', `${node_id} is of another project; ${next}`);
      }
    },
  };
}
