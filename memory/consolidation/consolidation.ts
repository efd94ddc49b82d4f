import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { DAY_MS } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { CometError, getReason, type Problem } from '../../common/errors.ts';
import { formatCount, localDay, localTime } from '../../common/text.ts';
import { createSimilarNodeFinder, linkStrength, linkThresholds, type NodeSimilarity } from '../compaction/linker.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { isWaitingDraft, type MemoryNode } from '../model/node.ts';
import type { LibraryPages, Shelf } from '../pages/library-pages.ts';
import type { MergedPages } from '../pages/merge-pages.ts';
import type { ChangeRecord, DreamFiles, DreamLedger, Untold } from '../storage/fs/dream-files.ts';
import type { PageFiles } from '../storage/fs/page-files.ts';
import { contentDigest } from '../storage/index-writer.ts';
import type { NodeFiles } from '../storage/node-files.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import { PAGE_NAMES, type PageRewrite } from '../storage/page-files.ts';
import type { Tasks } from '../tasks/tasks.ts';
import { isPairedScript } from '../text/tokenizer.ts';
import {
  type BriefInput,
  briefDigest,
  gatherFindings,
  inboxName,
  listNodesSince,
  renderBrief,
  type Savings,
  withBrief,
  withoutBrief,
} from './brief.ts';
import { buildChangeSet, type ChangeSet, type ChangeSetInput, type NeighborPairs } from './change-set.ts';
import { consolidationThresholds, type NodePair } from './merge-nodes.ts';
import { createMergeWriter } from './merge-writer.ts';

export interface ConsolidationRequest {
  /** Report the changes without applying them. */
  readonly dryRun: boolean;
  /** Limit to the project of this directory; such a pass writes no brief. */
  readonly projectDir?: string;
  /** Leave out the brief, as passes between the nightly ones do. */
  readonly noBrief?: boolean;
}

export const PHASES = ['orient', 'gather', 'consolidate', 'prune and index', 'brief'] as const;

/** Runs are repeated when their nodes changed in the meantime. */
const MAX_TRIES = 3;
const FIRST_BRIEF_MS = 7 * DAY_MS;
const MOST_BRIEFS = 20;
const MOST_UNTOLD = 200;

export type ConsolidationReport = ReturnType<typeof getReport>;
export type Consolidator = Awaited<ReturnType<typeof openConsolidator>>;

type Parts = Omit<
  ServiceParts,
  'journal' | 'crashMarks' | 'local' | 'redactor' | 'randomHex' | 'turnRegistry' | 'turnReader' | 'taskQueue' | 'files'
> & {
  readonly config: Pick<Config, 'dream'>;
  readonly dreams: DreamFiles;
  readonly newId: () => string;
  readonly topicPages: LibraryPages;
  readonly tasks: Pick<Tasks, 'briefLines'>;
  /** What requests saved from the one time to the other; absent where it is not counted. */
  readonly savings?: (fromMs: number, toMs: number) => Savings;
};

export async function openConsolidator(parts: Parts) {
  const { dreams, config, model, indexer, clock, topicPages } = parts;
  let last: DreamLedger | null = await dreams.load();
  let running = false;
  let blocked: readonly Problem[] = [];

  async function consolidate(request: ConsolidationRequest, signal: AbortSignal) {
    const { dryRun, projectDir } = request;
    const isWaiting = (node: MemoryNode): boolean => model !== null && isWaitingDraft(node, clock.now());
    const rule = { ...consolidationThresholds(parts.index.embedderId()), isWaiting };
    const mergeWriter = createMergeWriter({
      ...parts,
      ...{ modelCallLimit: config.dream.modelCalls, tokenLimit: config.dream.tokens },
      ...rule,
      model: dryRun ? null : model,
      signal,
      refused: last?.refused,
    });
    const project = projectDir === undefined ? null : parts.getProject(projectDir);
    for (let tried = 1; tried <= MAX_TRIES; tried += 1) {
      await indexer.settled();
      const pass = await planPass(parts, { request, project, rule, mergeWriter, signal, last, nowMs: clock.now() });
      signal.throwIfAborted();
      blocked = pass.isBlocked ? pass.problems : [];
      if (dryRun) return getReport(pass, { dryRun, snapshot: null, because: '' });
      const ledger = await apply(parts, pass, last);
      if (ledger === null) continue;
      last = ledger;
      return getReport(pass, { dryRun, snapshot: ledger.snapshot, because: mergeWriter.because() });
    }
    throw new CometError('node_invalid', 'memory kept changing during consolidation; run comet-cc dream again later');
  }

  async function update(change: Partial<DreamLedger>): Promise<void> {
    if (last === null) return;
    last = { ...last, ...change };
    await dreams.save(last);
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
    status() {
      if (last === null) return null;
      const { at, merged, groups, pruned, left } = last;
      return { at, merged, groups, pruned, left, running };
    },
    /** Why the last pass changed no page. */
    problems: () => blocked,
    /** When the last pass of all phases ended well, ms; null before the first. */
    lastFullMs: (): number | null => (last?.full === undefined ? null : Date.parse(last.full)),
    /** File of the newest brief, once: the next call returns null until there is a newer one. */
    async takeBrief(): Promise<string | null> {
      const [newest] = last?.briefs ?? [];
      if (newest === undefined || last?.shown === newest.at || running) return null;
      await update({ shown: newest.at });
      const name = inboxName(newest.day);
      return (await topicPages.files.load()).texts.has(name) ? path.join(topicPages.files.dir, name) : null;
    },
    /** Removes the briefs that were written since a snapshot; the next brief covers their time again. */
    async takeBackBriefs(snapshot: string, snapshotMs: number): Promise<void> {
      const briefs = last?.briefs ?? [];
      const removals = briefs.filter((brief) => brief.snapshot === snapshot || Date.parse(brief.at) >= snapshotMs);
      const oldest = removals.at(-1);
      if (oldest === undefined) return;
      for (const { day, digest } of removals) {
        const name = inboxName(day);
        const before = (await topicPages.files.load()).texts.get(name);
        if (before === undefined) continue;
        const after = withoutBrief(before, day, digest);
        if (after !== before) await topicPages.files.replace({ name, before, after });
      }
      await update({ told: oldest.since, briefs: briefs.filter((brief) => !removals.includes(brief)) });
    },
  };
}

interface PassInput extends Pick<ChangeSetInput, 'project' | 'rule' | 'mergeWriter' | 'signal' | 'nowMs'> {
  readonly request: ConsolidationRequest;
  readonly last: DreamLedger | null;
}

type Pass = Awaited<ReturnType<typeof planPass>>;

/** Decides what a pass changes, phase by phase; nothing is written. */
async function planPass(parts: Parts, input: PassInput) {
  const { catalogue, topicPages } = parts;
  const { nowMs, project, last } = input;
  const before = { nodes: catalogue.every(), shelf: await topicPages.shelf() };
  const orientation = await orient(parts, before, input);
  const findings = gatherFindings({ ...before, pages: before.shelf.pages, sinceMs: orientation.sinceMs, nowMs });

  const near = (node: MemoryNode): Promise<NeighborPairs> => findNeighbors(parts, node);
  const change = { ...input, nodes: before.nodes, seen: last?.seen ?? {}, near, newId: parts.newId };
  const draft = await buildChangeSet(change);
  const nodes = listNodesAfter(draft, catalogue);
  const { shelf } = before;
  const merged = topicPages.merge(shelf, nodes, project);
  const untold = untoldAfter(last?.untold, draft, merged);
  const rewrites = await topicPages.rewrites(shelf, merged, nodes);
  const brief = getBrief(parts, input, { ...orientation, nodes, shelf, merged, untold });
  return {
    ...{ at: new Date(nowMs).toISOString(), draft, merged, untold, problems: shelf.problems, rewrites, brief },
    isFull: isFull(input.request),
    isBlocked: !shelf.isWritable,
    isTold: isFull(input.request) && mayTell(shelf, nowMs),
    refused: input.mergeWriter.refusals(),
    phases: getPhases(input, { orientation, findings, draft, merged, rewrites, shelf, brief }),
  };
}

const isFull = ({ projectDir, noBrief = false }: ConsolidationRequest): boolean => projectDir === undefined && !noBrief;

interface Before {
  readonly nodes: readonly MemoryNode[];
  readonly shelf: Shelf;
}

/** Where things are: the index, the episodes since the last brief, the open tasks. */
async function orient({ tasks }: Parts, { nodes, shelf }: Before, { nowMs, last }: PassInput) {
  const toldMs = Date.parse(last?.told ?? '');
  const oldestMs = nodes.reduce((oldest, { valid_from }) => Math.min(oldest, Date.parse(valid_from)), nowMs);
  const sinceMs = toldMs <= nowMs ? toldMs : Math.max(nowMs - FIRST_BRIEF_MS, oldestMs - 1);
  const lines = await tasks.briefLines({ sinceMs, nowMs });
  return { sinceMs, episodes: listNodesSince(nodes, sinceMs).length, topics: shelf.pages.size, lines };
}

interface BriefParts extends Before, Pick<BriefInput, 'sinceMs' | 'untold'> {
  readonly lines: BriefInput['tasks'];
  readonly merged: MergedPages;
}

/** Whether the day's page is writable; if not, the next brief covers the same days. */
function mayTell({ isWritable, problems }: Shelf, nowMs: number): boolean {
  const page = `/${inboxName(localDay(nowMs))}`;
  return isWritable && !problems.some(({ file }) => file.endsWith(page));
}

function getBrief({ topicPages, savings }: Parts, { request, nowMs }: PassInput, parts: BriefParts) {
  const { shelf, merged, nodes, sinceMs, lines: tasks, untold } = parts;
  if (!mayTell(shelf, nowMs) || !isFull(request)) return null;
  const pages = new Map([...shelf.pages, ...merged.changed]);
  const saved = savings?.(sinceMs, nowMs) ?? null;
  const getLink = topicPages.getLinker(nodes);
  const text = renderBrief({ ...{ sinceMs, nowMs, nodes, pages, tasks, untold, saved, getLink } });
  if (text === '') return null;
  const day = localDay(nowMs);
  const name = inboxName(day);
  const before = shelf.texts.get(name) ?? null;
  return { day, digest: briefDigest(text), rewrite: { name, before, after: withBrief(before, day, text) } };
}

/** What the next brief reports of the library, this pass included. */
function untoldAfter(previous: Untold | undefined, draft: ChangeSet, merged: MergedPages): Untold {
  const all = (one: readonly string[] = [], other: readonly string[]): string[] =>
    [...new Set([...one, ...other])].slice(-MOST_UNTOLD);
  const counts = { ...getCounts(draft), added: merged.added };
  for (const name of Object.keys(counts) as (keyof typeof counts)[]) counts[name] += previous?.[name] ?? 0;
  return { ...counts, pages: all(previous?.pages, [...merged.changed.keys()]), past: all(previous?.past, merged.past) };
}

interface PhaseParts extends Pick<Before, 'shelf'> {
  readonly orientation: Awaited<ReturnType<typeof orient>>;
  readonly findings: ReturnType<typeof gatherFindings>;
  readonly draft: ChangeSet;
  readonly merged: MergedPages;
  readonly rewrites: readonly PageRewrite[];
  readonly brief: ReturnType<typeof getBrief>;
}

function getPhases({ request, nowMs }: PassInput, parts: PhaseParts) {
  const { orientation, findings, draft, merged, rewrites, shelf, brief } = parts;
  const { sinceMs, topics, episodes, lines } = orientation;
  const verb = request.dryRun ? 'would be ' : '';
  const counts = getCounts(draft);
  const index =
    rewrites.find(({ name }) => name === PAGE_NAMES.index)?.after ?? shelf.texts.get(PAGE_NAMES.index) ?? '';
  const phaseText: Readonly<Record<(typeof PHASES)[number], string>> = {
    orient: `${formatCount(topics, 'topic page')}, ${formatCount(lines.open, 'open task')}, ${formatCount(episodes, 'memory', 'memories')} since ${localTime(sinceMs, 0)}`,
    gather: `${formatCount(findings.corrections, 'correction')}, ${formatCount(findings.repeated, 'repeated statement')}, ${formatCount(findings.neglected.length, 'neglected topic')}, ${formatCount(lines.due.length + lines.neglected.length, 'due or neglected task')}`,
    consolidate: `${formatCount(draft.lookedAt, 'new or changed memory', 'new or changed memories')} examined: ${verb}${counts.merged} merged, ${counts.groups} grouped, ${counts.tags} tags normalized, ${formatCount(counts.linked, 'link')} made; ${formatCount(merged.changed.size, 'page')} ${request.dryRun ? 'would change' : 'changed'}, ${formatCount(merged.added, 'statement')} added, ${merged.ended} moved to Before`,
    'prune and index': `${draft.pruned.links} links dropped, ${draft.pruned.nodes.length} memories pruned, ${index === '' ? 'no index' : `INDEX has ${formatCount(index.split('\n').length - 1, 'line')}`}`,
    brief: briefLine(request, brief, mayTell(shelf, nowMs)),
  };
  return PHASES.map((name) => ({ name, line: phaseText[name] }));
}

function briefLine(request: ConsolidationRequest, brief: PhaseParts['brief'], isTold: boolean): string {
  if (brief !== null) return `${request.dryRun ? 'would be in ' : ''}${brief.rewrite.name}`;
  if (request.projectDir !== undefined) return 'none: only one project was looked at';
  if (!isFull(request)) return 'left to the nightly pass';
  return isTold ? 'nothing to tell' : "left to the next pass: the day's inbox page cannot be written";
}

async function findNeighbors({ index, catalogue }: Parts, node: MemoryNode): Promise<NeighborPairs> {
  const isScript = isPairedScript(node.summary);
  const link = linkThresholds(index.embedderId(), isScript);
  const fit = consolidationThresholds(index.embedderId(), isScript);
  const kin = await createSimilarNodeFinder(index, (id) => catalogue.get(id))(node);
  const pairs = (getSimilarity: (similarity: NodeSimilarity) => number, least: number): NodePair[] =>
    kin
      .map((each) => ({ left: node.node_id, right: each.node.node_id, similarity: getSimilarity(each.similarity) }))
      .filter(({ similarity }) => similarity >= least);
  const strength = (similarity: NodeSimilarity): number => linkStrength(similarity, link);
  return {
    alike: pairs(({ cosine }) => cosine, fit.same),
    grouped: pairs(strength, fit.group),
    linked: pairs(strength, link.least),
  };
}

function listNodesAfter({ changes }: ChangeSet, catalogue: NodeRegistry): readonly MemoryNode[] {
  const nodes = new Map(catalogue.every().map((node) => [node.node_id, node]));
  for (const { before, after } of changes) {
    if (after !== null) nodes.set(after.node_id, after);
    else if (before !== null) nodes.delete(before.node_id);
  }
  return [...nodes.values()];
}

/** The state after it; null, without a change, if a node or page changed since the pass was planned. */
async function apply(parts: Parts, pass: Pass, last: DreamLedger | null): Promise<DreamLedger | null> {
  const { store, catalogue, snapshooter, dreams, topicPages } = parts;
  const { merged, rewrites, brief } = pass;
  const { changes } = pass.draft;
  const pages = [...rewrites, ...(brief === null ? [] : [brief.rewrite])];
  if (changes.length + pages.length === 0) {
    const ledger = getLedger(pass, last, null);
    await dreams.save(ledger);
    return ledger;
  }
  return await store.exclusive(async (store) => {
    await store.refresh();
    const moved = changes.some(({ before, after }) => {
      const now = catalogue.get((before ?? after)?.node_id ?? '') ?? null;
      return now !== before && !isDeepStrictEqual(now, before);
    });
    const texts = pages.length === 0 ? null : await topicPages.files.load();
    if (moved || pages.some(({ name, before }) => (texts?.texts.get(name) ?? null) !== before)) return null;
    // What is not in a snapshot needs none: index and inbox.
    const snapshot = changes.length + merged.changed.size === 0 ? null : await snapshooter.take('consolidate');
    const ledger = getLedger(pass, last, snapshot);
    const written = await writeChange({ snapshot: snapshot ?? '', changes, pages, former: last }, ledger, parts);
    if (written === null) return null;
    store.adopt(written.fresh, written.gone);
    return ledger;
  });
}

function getCounts({ merged, groups, tags, linked, pruned }: ChangeSet) {
  const goneInto = merged.reduce((sum, each) => sum + each.merged.length, 0);
  const counts = { merged: goneInto, groups: groups.length, tags: tags.length, linked };
  return { ...counts, pruned: pruned.links + pruned.nodes.length };
}

function getLedger(pass: Pass, last: DreamLedger | null, snapshot: string | null): DreamLedger {
  const { at, draft, brief, untold, refused } = pass;
  const { left, seen } = draft;
  const now = { at, snapshot, ...getCounts(draft), left, seen, ...(refused.length === 0 ? {} : { refused }) };
  const { told, full, briefs = [], shown } = last ?? {};
  const kept = { ...(shown === undefined ? {} : { shown }), briefs };
  const ended = pass.isFull ? at : full;
  if (!pass.isTold) return { ...kept, ...(told ? { told } : {}), ...(ended ? { full: ended } : {}), ...now, untold };
  if (brief === null) return { ...kept, ...now, told: at, full: at };
  const record = { at, snapshot, day: brief.day, since: told ?? null, digest: brief.digest };
  return { ...kept, ...now, told: at, full: at, briefs: [record, ...briefs].slice(0, MOST_BRIEFS) };
}

function getReport(
  { at, draft, merged: pages, problems, brief, phases }: Pass,
  { dryRun, snapshot, because }: { dryRun: boolean; snapshot: string | null; because: string },
) {
  const { lookedAt, merged, groups, tags, linked, pruned, left } = draft;
  return {
    dry_run: dryRun,
    at,
    /** For `rollback`; null if nothing changed. */
    snapshot,
    /** What each phase found or did, in order. */
    phases,
    /** Nodes new or changed since the last run. */
    looked_at: lookedAt,
    ...{ merged, groups, tags, linked, pruned },
    /** Topic pages that changed, the statements that they gained, and those that no longer hold. */
    pages: { changed: [...pages.changed.keys()], added: pages.added, ended: pages.ended, problems },
    /** Page of the inbox, as `inbox/2026-11-24.md`; null where no brief is written. */
    brief: brief?.rewrite.name ?? null,
    left,
    /** Why the configured model was not called, '' otherwise. */
    without_model: because,
  };
}

type Files = Pick<NodeFiles, 'load' | 'save' | 'drop'>;

/** Atomic, also when the process is killed. Null, without a change, if a page was edited meanwhile. @throws a disk error after undoing all changes */
async function writeChange(
  record: ChangeRecord,
  ledger: DreamLedger,
  { nodeFiles: files, dreams, topicPages }: Pick<Parts, 'nodeFiles' | 'dreams' | 'topicPages'>,
): Promise<{ readonly fresh: MemoryNode[]; readonly gone: string[] } | null> {
  const pageFiles = topicPages.files;
  const fresh = record.changes.flatMap(({ after }) => after ?? []);
  const removals = record.changes.flatMap(({ before, after }) =>
    after === null && before !== null ? [before.node_id] : [],
  );
  await dreams.begin(record, Object.fromEntries(fresh.map((node) => [node.node_id, contentDigest(node)])));
  try {
    await files.save(fresh);
    if (removals.length > 0) await files.drop(removals);
    for (const page of record.pages ?? []) {
      if (await pageFiles.replace(page)) continue;
      await undo(record, files, dreams, pageFiles);
      return null;
    }
    await dreams.save(ledger);
  } catch (error) {
    await undo(record, files, dreams, pageFiles);
    const hint = 'nothing was changed; make room, or see whether the folder may be written, and run comet-cc dream';
    throw new CometError('unsafe_file', `memory and pages cannot be written (${getReason(error)}): ${hint}`, {
      cause: error,
    });
  }
  await dreams.end();
  return { fresh, gone: removals };
}

/** Undoes an interrupted write; false if there was none. */
export async function recoverChange(files: Files, dreams: DreamFiles, pageFiles: PageFiles): Promise<boolean> {
  const record = await dreams.pending();
  if (record !== null) await undo(record, files, dreams, pageFiles);
  return record !== null;
}

/** Ends the change; keeps nodes and pages that were edited since. */
async function undo(
  { changes, pages = [], former }: ChangeRecord,
  files: Files,
  dreams: DreamFiles,
  pageFiles: PageFiles,
): Promise<void> {
  if (former !== undefined) await dreams.save(former);
  for (const { name, before, after } of pages) await pageFiles.replace({ name, before: after, after: before });
  const now = new Map((await files.load()).nodes.map((node) => [node.node_id, node]));
  const back: MemoryNode[] = [];
  const removals: string[] = [];
  for (const { before, after } of changes) {
    const { node_id: id } = (before ?? after) as MemoryNode;
    const node = now.get(id);
    const isOurs = after === null ? node === undefined : node !== undefined && isDeepStrictEqual(node, after);
    if (!isOurs) continue;
    if (before === null) removals.push(id);
    else back.push(before);
  }
  if (back.length > 0) await files.save(back);
  if (removals.length > 0) await files.drop(removals);
  await dreams.end();
}
