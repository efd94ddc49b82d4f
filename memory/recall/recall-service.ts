import { finishesWithin } from '../../common/async.ts';
import type { Scope } from '../../common/policy.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import type { Redactor } from '../../redact/index.ts';
import type { Pipeline } from '../compaction/pipeline.ts';
import type { TurnRegistry } from '../ingest/turn-registry.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import { memoryLine, quarantinedLine, summaryLine } from './format-memory.ts';
import { isQuarantined } from './quarantine.ts';
import type { Recaller } from './recall.ts';
import type { OpenContext } from './session-context.ts';
import type { MemoryLine, RecallHit, RecallRequest, SearchOptions, SessionContext } from './types.ts';

/** What leaves memory for a prompt or a search. */
export interface Recall {
  /** Best first; empty when nothing passes the relevance filter. @throws the signal's reason */
  recall(request: RecallRequest, signal: AbortSignal): Promise<readonly RecallHit[]>;
  /**
   * Best first. With `file`, hits about that file or folder come first, newest first where `query` is empty, then what
   * fits the query or names the file. A session may be named by any unambiguous start of its id.
   *
   * @throws CometError `ambiguous_id`
   */
  search(query: string, options: SearchOptions): Promise<readonly RecallHit[]>;
  /** Tier-1 lines in the order given; unknown ids are left out. */
  lines(nodeIds: readonly string[]): readonly MemoryLine[];
  /**
   * For each turn that durable nodes cover, their ids; an empty list for a turn that the user removed. Synchronous, from
   * memory.
   */
  nodesCovering(turnIds: readonly string[]): ReadonlyMap<string, readonly string[]>;
  /** Brief of the session (or the last one of its project), and the passive and pinned lines; its own with `session`. */
  sessionContext(sessionId: string, projectDir: string | null, scope?: Scope): Promise<SessionContext>;
}

interface Parts {
  readonly redactor: Redactor;
  readonly projectOf: (directory: string | null) => string;
  readonly turnRegistry: TurnRegistry;
  readonly catalogue: NodeRegistry;
  readonly pipeline: Pick<Pipeline, 'notice' | 'showed'>;
  readonly recaller: Pick<Recaller, 'recall'>;
  readonly search: Recall['search'];
  readonly openContext: OpenContext;
  /** The full id of a session. */
  readonly named: (prefix: string) => string;
  readonly isGone: (turnId: string) => boolean;
  readonly isClosing: () => boolean;
  /** Called for each request of a conversation. */
  readonly onActivity: () => void;
}

/** Part of the time that a first prompt waits for memory. */
const TAILS_MS = 60;
/** Lines are whole as long as all of them stay below this; the preamble's budget of 2,000 tokens holds more. */
const WHOLE_LINES_CHARS = 7_000;

export function createRecall(parts: Parts): Recall {
  const { redactor, projectOf, turnRegistry, catalogue, pipeline, recaller, search, openContext } = parts;
  const { named, isGone, isClosing, onActivity } = parts;
  return {
    async recall(request, signal) {
      onActivity();
      const visibleTurns = new Set(
        [...request.visibleTurns].flatMap((turnId) => [turnId, ...turnRegistry.aliases(turnId)]),
      );
      // Private text is not searched for either.
      const prompt = redactor.text(request.prompt);
      const recent = request.recent.map(redactor.text);
      const hits = await recaller.recall({ ...request, prompt, recent, visibleTurns }, signal);
      const unclean = hits.filter(({ line }) => !isCleanOrigin(line.origin)).map(({ line }) => line.text);
      if (unclean.length > 0) pipeline.showed(request.sessionId, unclean);
      return hits;
    },
    search: async (query, { sessionId, ...options }) =>
      search(query, sessionId === undefined ? options : { ...options, sessionId: named(sessionId) }),
    lines: (nodeIds) => nodeLines(nodeIds, catalogue),
    nodesCovering(turnIds) {
      const found = turnIds.map(
        (turnId) => [turnId, [...new Set(turnRegistry.aliases(turnId).flatMap(catalogue.nodesCovering))]] as const,
      );
      return new Map(found.filter(([turnId, ids]) => ids.length > 0 || isGone(turnId)));
    },
    async sessionContext(sessionId, projectDir, scope) {
      onActivity();
      // Waiting turns of the project's other sessions are summarized first, as far as that takes no time.
      if (!isClosing()) await finishesWithin(pipeline.notice(sessionId, projectOf(projectDir)), TAILS_MS);
      return openContext(sessionId, projectDir, scope);
    },
  };
}

/** Tier-1 lines of nodes, whole summaries for the newest as far as the budget goes. */
export function nodeLines(nodeIds: readonly string[], catalogue: Pick<NodeRegistry, 'current'>): readonly MemoryLine[] {
  const nodes = [...new Set(nodeIds.flatMap((id) => catalogue.current(id) ?? []))];
  const lines = nodes.map((node) => (isQuarantined(node) ? quarantinedLine(node) : memoryLine(node, null)));
  let left = WHOLE_LINES_CHARS - lines.reduce((sum, line) => sum + line.text.length, 0);
  // The conversation continues from the newest.
  for (const [at, node] of [...nodes.entries()].reverse()) {
    if (isQuarantined(node)) continue;
    const whole = summaryLine(node);
    left -= whole.text.length - (lines[at]?.text.length ?? 0);
    if (left < 0) break;
    lines[at] = whole;
  }
  return lines;
}
