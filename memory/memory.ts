import { createArchives } from './archive.ts';
import { createCapture } from './capture.ts';
import { createDetails } from './compaction/details.ts';
import { openConsolidator, recoverChange } from './consolidation/consolidation.ts';
import { createSchedule } from './consolidation/schedule.ts';
import { createEditing } from './edit.ts';
import { createForgetting } from './forget.ts';
import { createImports } from './import.ts';
import { createItems } from './items.ts';
import { createLibrary, resolveNode } from './library.ts';
import { type BackgroundTasks, createMaintenance, startBackgroundTasks } from './maintenance.ts';
import type { MemoryNode } from './model/node.ts';
import { changedFactLines, withFacts } from './pages/format-facts.ts';
import { createLibraryBlock } from './pages/library-block.ts';
import { createParts, type MemoryOptions, type MemoryParts } from './parts.ts';
import { withClientDocuments } from './recall/client-documents.ts';
import { createFileSearch } from './recall/file-search.ts';
import { createProjectOverview } from './recall/project-overview.ts';
import { createRecaller, type Recaller } from './recall/recall.ts';
import { createRecall } from './recall/recall-service.ts';
import { createReranking } from './recall/reranking.ts';
import { createSessionContext } from './recall/session-context.ts';
import type { OpenBlock, ShownText } from './recall/types.ts';
import { openSessions } from './sessions.ts';
import { createSharing } from './share.ts';
import type { NodeRegistry } from './storage/node-registry.ts';

export type Memory = Omit<Awaited<ReturnType<typeof createMemory>>, 'sharing'>;

/**
 * Composes the services. Resolves once the nodes on disk are known; sessions and index follow in the background, and
 * `flush` waits for them.
 *
 * With `llm: off` no model is used and nothing is compacted unasked: turns are kept, and nodes are made locally only
 * where `prepareNodes` or `flush` asks for them (or when 200 turns wait).
 */
export async function createMemory(options: MemoryOptions) {
  const parts = await createParts(options);
  const { store, log, dreamFiles, pipeline, modelUpgrades, catalogue, removal, topicDetector } = parts;
  const sessions = await openSessions(parts);
  if (await recoverChange(options.nodeFiles, dreamFiles, options.pageFiles))
    log.warn('an interrupted dream was undone');
  await store.open(await dreamFiles.lastDigests());

  const closing = new AbortController();
  const isClosing = (): boolean => closing.signal.aborted;
  const background = startBackgroundTasks({ ...parts, isClosing });
  const { started, follow } = background;
  const resolve = (prefix: string): MemoryNode => resolveNode(prefix, catalogue);
  const consolidator = await openConsolidator({ ...parts, dreams: dreamFiles, newId: parts.compactor.newId });
  const nowMs = options.clock.now();
  // A full disk must not keep memory from opening.
  const sinceMs = await dreamFiles.firstMs(nowMs).catch(() => nowMs);
  const schedule = createSchedule({ ...options, dreams: consolidator, sinceMs, ready: started });
  const { facts, config } = parts;
  const pages = createLibraryBlock(parts);
  const libraryBlock = config.facts.tokens > 0 ? withFacts(pages, facts, config.facts.tokens) : pages;
  void libraryBlock.refresh();
  const shared = { ...parts, libraryBlock, sessions, started, follow, resolve, isClosing, onActivity: schedule.reset };
  const details = createDetails(shared);
  const archives = createArchives({ ...options, ...shared, takeBackBriefs: consolidator.takeBackBriefs });
  const { imports, progress } = createImports({ ...shared, archives });

  const sharing = options.share === undefined ? null : createSharing({ ...shared, share: options.share });

  async function close(): Promise<void> {
    await sharing?.close();
    closing.abort(new Error('memory is closing'));
    await schedule.close();
    await background.stopWatching();
    topicDetector.close();
    details.close();
    const upgradesEnded = modelUpgrades.close();
    await pipeline.close();
    await facts.close();
    await Promise.all([upgradesEnded, options.model?.close(), options.local.close()]);
    await background.succeeded;
    await store.exclusive(async () => {});
    await parts.taskQueue.idle();
    await Promise.all([options.journal.close(), options.index.close()]);
  }

  let closed: Promise<void> | null = null;
  return {
    capture: createCapture(shared),
    recall: createRecall({
      ...shared,
      factChanges: getFactChanges(parts),
      ...getSearch(shared, background.repair),
      named: sessions.named,
      isGone: removal.isGone,
    }),
    library: createLibrary({
      ...shared,
      archives,
      details,
      editing: createEditing(shared),
      items: createItems(shared),
      projectOverview: createProjectOverview(shared),
      forget: createForgetting(shared),
    }),
    imports,
    sharing,
    maintenance: createMaintenance({
      ...{ ...shared, archives, background, consolidator, schedule },
      ...{ importing: progress, closing: closing.signal },
      close: () => (closed ??= close()),
    }),
  };
}

function getFactChanges({ facts, config }: MemoryParts) {
  const { tokens: budgetTokens } = config.facts;
  return async (request: ShownText & { readonly sessionId: string; readonly project: string }) => {
    if (budgetTokens === 0) return [];
    await facts.refresh();
    const source = facts.current(request.project);
    return source === null ? [] : changedFactLines(source, { ...request, budgetTokens });
  };
}

function getSearch(parts: MemoryParts & { readonly libraryBlock: OpenBlock }, repair: BackgroundTasks['repair']) {
  const { catalogue, clock, config, files, filter, index, log, getProject, reranker, turnReader } = parts;
  const { recall, rerank: rules } = config;
  const { now } = clock;
  const { answer } = parts.priority;
  const found = createRecaller({
    ...{ index, getProject, files, repair, now, config: recall, turnText: turnReader.words },
    getNode: (id) => displayNode(catalogue.current(id), catalogue),
    ...(filter && { filter }),
    ...(reranker && { reranking: createReranking({ reranker, rules, deadlineMs: recall.deadlineMs, now, log }) }),
  });
  const ranked: Recaller = {
    ...found,
    recall: (...request) => answer(() => found.recall(...request)),
    search: (...request) => answer(() => found.search(...request)),
  };
  const recaller = withClientDocuments(ranked, parts);
  const search = createFileSearch({ recaller, files });
  return { recaller, search, openContext: createSessionContext({ ...parts, library: parts.libraryBlock }) };
}

/** A node of tool rounds is shown as the node of its turn, where there is one. */
function displayNode(node: MemoryNode | undefined, catalogue: NodeRegistry): MemoryNode | null {
  const isChild = node?.kind === 'tool' && node.parent_node_id !== null;
  return (isChild ? catalogue.current(node.parent_node_id ?? '') : undefined) ?? node ?? null;
}
