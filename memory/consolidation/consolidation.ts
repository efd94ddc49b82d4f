import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { CometError } from '../../common/errors.ts';
import type { Log } from '../../common/log.ts';
import { createSimilarNodeFinder, linkStrength, linkThresholds, type NodeSimilarity } from '../compaction/linker.ts';
import type { MemoryNode } from '../model/node.ts';
import type { LanguageModel } from '../models/model.ts';
import type { ModelQuota } from '../models/quota.ts';
import type { SearchIndex } from '../search/search-index.ts';
import { contentDigest, type Indexer } from '../storage/index-writer.ts';
import type { NodeFiles } from '../storage/node-files.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import type { Store } from '../storage/node-store.ts';
import type { ChangeRecord, DreamFiles, DreamLedger, NodeRewrite, SnapshotService } from '../storage/snapshot-files.ts';
import { isPairedScript } from '../text/tokenizer.ts';
import { buildChangeSet, type ChangeSet, type NeighborPairs } from './change-set.ts';
import { consolidationRule, consolidationThresholds, type NodePair } from './merge-nodes.ts';
import { createMergeWriter } from './merge-writer.ts';

export interface ConsolidationRequest {
  /** Report the changes without applying them. */
  readonly dryRun: boolean;
  /** Limit to the project of this directory. */
  readonly projectDir?: string;
}

/** Runs are repeated when their nodes changed in the meantime. */
const MAX_TRIES = 3;

export interface ConsolidationStatus extends Pick<DreamLedger, 'at' | 'merged' | 'groups' | 'pruned' | 'left'> {
  readonly running: boolean;
}

export type ConsolidationReport = ReturnType<typeof reportOf>;
export type Consolidator = Awaited<ReturnType<typeof openConsolidator>>;

type Parts = {
  readonly clock: Clock;
  readonly config: Pick<Config, 'dream'>;
  readonly dreams: DreamFiles;
  readonly index: SearchIndex;
  readonly log: Log;
  readonly model: LanguageModel | null;
  readonly nodeFiles: NodeFiles;
  readonly quota?: ModelQuota;
  readonly projectOf: (directory: string | null) => string;
  readonly catalogue: NodeRegistry;
  readonly indexer: Indexer;
  readonly snapshooter: SnapshotService;
  readonly store: Store;
  readonly newId: () => string;
};

export async function openConsolidator(parts: Parts) {
  const { dreams, config, model, quota, index, log, indexer, clock, catalogue } = parts;
  let last: DreamLedger | null = await dreams.load();
  let running = false;

  async function consolidate({ dryRun, projectDir }: ConsolidationRequest, signal: AbortSignal) {
    const rule = consolidationRule(index.embedderId(), model !== null);
    const asked = { model: dryRun ? null : model, modelCallLimit: config.dream.modelCalls, ...rule };
    const mergeWriter = createMergeWriter({ ...asked, quota, log, signal });
    const project = projectDir === undefined ? null : parts.projectOf(projectDir);
    for (let tried = 1; tried <= MAX_TRIES; tried += 1) {
      await indexer.settled();
      const nowMs = clock.now();
      const input = { rule, project, mergeWriter, signal, nowMs, newId: parts.newId };
      const near = (node: MemoryNode): Promise<NeighborPairs> => findNeighbors(parts, node);
      const draft = await buildChangeSet({ ...input, nodes: catalogue.every(), seen: last?.seen ?? {}, near });
      signal.throwIfAborted();
      const at = new Date(nowMs).toISOString();
      if (dryRun) return reportOf(draft, { dryRun, at, snapshot: null, because: '' });
      const snapshot = draft.changes.length === 0 ? null : await apply(parts, draft);
      if (snapshot === false) continue;
      last = ledgerOf(draft, at, snapshot);
      await dreams.save(last);
      return reportOf(draft, { dryRun, at, snapshot, because: mergeWriter.because() });
    }
    throw new CometError('node_invalid', 'memory kept changing during consolidation; run comet-cc dream again later');
  }

  return {
    /** One at a time. @throws the signal's reason, or a disk error after undoing all changes */
    async run(request: ConsolidationRequest, signal: AbortSignal): Promise<ConsolidationReport> {
      if (running) throw new CometError('node_invalid', 'consolidation is already running; see comet-cc status');
      running = true;
      try {
        return await consolidate(request, signal);
      } finally {
        running = false;
      }
    },
    status(): ConsolidationStatus | null {
      if (last === null) return null;
      const { at, merged, groups, pruned, left } = last;
      return { at, merged, groups, pruned, left, running };
    },
  };
}

async function findNeighbors({ index, catalogue }: Parts, node: MemoryNode): Promise<NeighborPairs> {
  const isScript = isPairedScript(node.summary);
  const [link, fit] = [
    linkThresholds(index.embedderId(), isScript),
    consolidationThresholds(index.embedderId(), isScript),
  ];
  const kin = await createSimilarNodeFinder(index, (id) => catalogue.get(id))(node);
  const pairs = (similarityOf: (similarity: NodeSimilarity) => number, least: number): NodePair[] =>
    kin
      .map((each) => ({ left: node.node_id, right: each.node.node_id, similarity: similarityOf(each.similarity) }))
      .filter(({ similarity }) => similarity >= least);
  const strength = (similarity: NodeSimilarity): number => linkStrength(similarity, link);
  return {
    alike: pairs(({ cosine }) => cosine, fit.same),
    grouped: pairs(strength, fit.group),
    linked: pairs(strength, link.least),
  };
}

/** Returns the snapshot id, or false if a node changed since the change set was computed. */
function apply(parts: Parts, { changes }: ChangeSet): Promise<string | false> {
  const { store, catalogue, snapshooter, nodeFiles, dreams } = parts;
  return store.exclusive(async (held) => {
    await held.refresh();
    const moved = changes.some(({ before, after }) => {
      const now = catalogue.get((before ?? after)?.node_id ?? '') ?? null;
      return now !== before && !isDeepStrictEqual(now, before);
    });
    if (moved) return false;
    const snapshot = await snapshooter.take('consolidate');
    const { fresh, gone } = await writeChange({ snapshot, changes }, nodeFiles, dreams);
    held.adopt(fresh, gone);
    return snapshot;
  });
}

function ledgerOf(draft: ChangeSet, at: string, snapshot: string | null): DreamLedger {
  const { merged, groups, tags, linked, pruned, left, seen } = draft;
  const goneInto = merged.reduce((sum, each) => sum + each.merged.length, 0);
  const counts = { merged: goneInto, groups: groups.length, tags: tags.length, linked };
  return { at, snapshot, ...counts, pruned: pruned.links + pruned.nodes.length, left, seen };
}

function reportOf(
  { lookedAt, merged, groups, tags, linked, pruned, left }: ChangeSet,
  { dryRun, at, snapshot, because }: { dryRun: boolean; at: string; snapshot: string | null; because: string },
) {
  return {
    dry_run: dryRun,
    at,
    /** For `rollback`; null if nothing changed. */
    snapshot,
    /** Nodes new or changed since the last run. */
    looked_at: lookedAt,
    ...{ merged, groups, tags, linked, pruned },
    /** Nodes left to the next run. */
    left,
    /** Why the configured model was not called, '' otherwise. */
    without_model: because,
  };
}

type Files = Pick<NodeFiles, 'load' | 'save' | 'drop'>;

/** Atomic, also when the process is killed. @throws a disk error after undoing all changes */
async function writeChange(
  record: ChangeRecord,
  files: Files,
  dreams: DreamFiles,
): Promise<{ readonly fresh: MemoryNode[]; readonly gone: string[] }> {
  const fresh = record.changes.flatMap(({ after }) => after ?? []);
  const gone = record.changes.flatMap(({ before, after }) =>
    after === null && before !== null ? [before.node_id] : [],
  );
  await dreams.begin(record, Object.fromEntries(fresh.map((node) => [node.node_id, contentDigest(node)])));
  try {
    await files.save(fresh);
    if (gone.length > 0) await files.drop(gone);
  } catch (error) {
    await undo(record.changes, files);
    await dreams.end();
    throw error;
  }
  await dreams.end();
  return { fresh, gone };
}

/** Undoes an interrupted write; false if there was none. */
export async function recoverChange(files: Files, dreams: DreamFiles): Promise<boolean> {
  const record = await dreams.pending();
  if (record === null) return false;
  await undo(record.changes, files);
  await dreams.end();
  return true;
}

/** Keeps nodes that were edited since. */
async function undo(changes: readonly NodeRewrite[], files: Files): Promise<void> {
  const now = new Map((await files.load()).nodes.map((node) => [node.node_id, node]));
  const back: MemoryNode[] = [];
  const gone: string[] = [];
  for (const { before, after } of changes) {
    const { node_id: id } = (before ?? after) as MemoryNode;
    const found = now.get(id);
    const isOurs = after === null ? found === undefined : found !== undefined && isDeepStrictEqual(found, after);
    if (!isOurs) continue;
    if (before === null) gone.push(id);
    else back.push(before);
  }
  if (back.length > 0) await files.save(back);
  if (gone.length > 0) await files.drop(gone);
}

type IdleParts = {
  readonly config: Pick<Config, 'llm' | 'dream'>;
  readonly model: LanguageModel | null;
  readonly quota?: ModelQuota;
  readonly dreams: Consolidator;
  /** Resolves once the nodes are loaded. */
  readonly ready: Promise<void>;
  readonly log: Log;
};

/** Consolidates after a period without requests. */
export function createIdleScheduler({ config, model, quota, dreams, ready, log }: IdleParts) {
  const idleMs = config.llm === 'off' ? 0 : config.dream.idleMinutes * 60_000;
  let timer: NodeJS.Timeout | null = null;
  let cancel = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let closed = false;

  function schedule(): void {
    if (timer !== null) clearTimeout(timer);
    timer = closed || idleMs === 0 ? null : setTimeout(start, idleMs).unref();
  }

  /** Waits for the quota, so that one run can do everything. */
  function start(): void {
    timer = null;
    if (model !== null && quota?.decide().kind === 'defer') schedule();
    else running = consolidate(cancel.signal);
  }

  async function consolidate(signal: AbortSignal): Promise<void> {
    try {
      await ready;
      signal.throwIfAborted();
      const { left } = await dreams.run({ dryRun: false }, signal);
      if (left > 0) schedule();
    } catch (error) {
      if (!signal.aborted) log.error('consolidation failed', { error });
    }
  }

  schedule();
  return {
    /** Cancels a running consolidation and restarts the timer. */
    reset(): void {
      cancel.abort(new Error('a request arrived'));
      cancel = new AbortController();
      schedule();
    },
    async close(): Promise<void> {
      closed = true;
      cancel.abort(new Error('memory is closing'));
      schedule();
      await running;
    },
  };
}
