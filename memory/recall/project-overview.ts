import { grouped, LruMap, memoize, tally } from '../../common/map.ts';
import { compareText, neutralLine } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import { renderBrief } from '../compaction/brief.ts';
import type { FileReferences, Freshness } from '../ingest/file-references.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { getTaskLists } from '../ingest/turn-registry.ts';
import { isBundled, type MemoryNode } from '../model/node.ts';
import { fileMarks } from '../model/turn.ts';
import { contentTags } from '../text/tags.ts';
import { currentSummary, isClosed, isPast } from '../text/validity.ts';
import { memoryLine } from './format-memory.ts';
import { lastBrief, openTasks } from './handoff.ts';
import { isQuarantined } from './quarantine.ts';
import { recentBriefs } from './session-context.ts';
import { staleNote } from './staleness.ts';

export type ProjectView = Awaited<ReturnType<ReturnType<typeof createProjectOverview>>>;

const MOST = { nodes: 20, facts: 50, tags: 20, decisions: 10, names: 12, files: 12 } as const;
const PROJECTS = 20;
const SUMMARY_CHARS = 400;

type Parts = Pick<ServiceParts, 'nodeFiles' | 'getProject' | 'clock' | 'turnRegistry' | 'catalogue'> & {
  readonly files: Pick<FileReferences, 'freshness'>;
};

export function createProjectOverview({ turnRegistry, catalogue, nodeFiles, getProject, clock, files }: Parts) {
  /** Valid while the registry returns the same list. */
  const getSummaries = memoize((_: readonly MemoryNode[]) => new LruMap<string, ProjectSummary>(PROJECTS));

  async function getBrief(project: string) {
    const any = { project, sessionId: '' };
    const last = lastBrief(await recentBriefs({ catalogue, nodeFiles }, any), any);
    if (last === null) return null;
    return { session_id: last.session_id, updated_at: last.updated_at, text: renderBrief(last) };
  }

  return async (projectDir: string) => {
    const project = getProject(projectDir);
    const nodes = catalogue.all();
    const summary = getSummaries(nodes).getOrCreate(project, () =>
      summarizeProject(nodes.filter((node) => node.project === project)),
    );
    const mostImportant = summary.mostImportant.slice(0, MOST.nodes);
    const told = summary.decisions.filter(({ turns }) => !turnRegistry.areAbandoned(turns));
    const decisions = told.slice(0, MOST.decisions);
    const most = summary.files.slice(0, MOST.files);
    const looked = [...new Set([...mostImportant, ...decisions, ...most.map(({ newest }) => newest)])];
    const [fresh, brief] = await Promise.all([files.freshness(looked, projectDir), getBrief(project)]);
    const getKnown = (node: MemoryNode) => {
      const note = staleNote(fresh.get(node.node_id)?.changes ?? []);
      const { nodeId: node_id, origin, text } = memoryLine(node, null, { note });
      const { importance, valid_from: at } = node;
      const summary = [neutralLine(currentSummary(node) ?? node.summary, SUMMARY_CHARS), note].join(' ').trim();
      /** `text`: its tier-1 line; `summary`: what holds of it, on one line, with a note if its files changed. */
      return { node_id, origin, text, importance, at, summary };
    };
    const isHere = new Set(nodes.filter((node) => node.project === project).map((node) => node.session_id));
    const isOf = ([id, own]: readonly [string, { project: string }]) => own.project === project || isHere.has(id);
    const sessions = [...turnRegistry.sessions()].filter(isOf).map(([, session]) => session);
    return {
      /** The project key, see `memory/storage/fs/project-files.ts`. */
      project,
      counts: {
        sessions: sessions.length,
        turns: sessions.reduce((sum, session) => sum + session.turns, 0),
        nodes: summary.nodes,
        facts: summary.facts.length,
      },
      /** Times of the oldest and the newest memory; null if there is none. */
      since: summary.since,
      until: summary.until,
      brief,
      nodes: mostImportant.map(getKnown),
      decisions: decisions.map(getKnown),
      /** Open items of Claude Code's task lists, with their state. */
      tasks: openTasks(getTaskLists(turnRegistry), { project, sessionId: '', nowMs: clock.now() }),
      tags: summary.tags.slice(0, MOST.tags).map(({ name, nodes }) => ({ tag: name, nodes })),
      /** People and things named by several memories. */
      names: summary.names.slice(0, MOST.names),
      /** `state` is `unknown` if it could not be checked in time. */
      files: most.map((file) => ({ path: file.name, nodes: file.nodes, state: getState(file, fresh) })),
      facts: summary.facts.slice(0, MOST.facts),
    };
  };
}

/** Compared with the newest memory about the file. */
function getState({ name, newest }: ProjectSummary['files'][number], fresh: ReadonlyMap<string, Freshness>) {
  const change = fresh.get(newest.node_id)?.changes.find(({ path }) => path === name);
  if (change !== undefined) return change.state;
  const mark = fileMarks(newest.source_links).find(({ path }) => path === name);
  return fresh.has(newest.node_id) && mark?.sha256 !== '' ? 'as_remembered' : 'unknown';
}

const PINNED_FIRST = ['', 'HIGH', 'MED', 'LOW'];
const DECISION = 'FLAG:DECISION';
/** A capitalized word of at least three letters inside a sentence. */
const NAME = /(?<=\p{Ll},? )\p{Lu}\p{Ll}{2,}(?: \p{Lu}\p{Ll}{2,})?(?!\p{L})/gu;
const DATES =
  /^(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|Jan|Feb|March|April|May|June|July|Aug|Sept|Oct|Nov|Dec)/;
const MIN_NAME_NODES = 2;

type ProjectSummary = ReturnType<typeof summarizeProject>;

/** @param newestFirst  memories of one project */
export function summarizeProject(newestFirst: readonly MemoryNode[]) {
  const times = newestFirst.map((node) => node.valid_from).toSorted(compareText);
  const open = newestFirst.filter((node) => !isQuarantined(node));
  const valid = open.filter((node) => !isPast(node));
  const shown = valid.filter((node) => !isBundled(node));
  const names = countNames(valid.filter(({ origin }) => isCleanOrigin(origin)).map(getNames));
  return {
    nodes: newestFirst.length,
    since: times[0] ?? null,
    until: times.at(-1) ?? null,
    /** Pinned first, then by importance, then the newest. */
    mostImportant: PINNED_FIRST.flatMap((level) =>
      shown.filter(({ pinned_from, importance }) => (pinned_from === undefined ? importance : '') === level),
    ),
    /** Newest first, as facts are. */
    decisions: shown.filter(({ topic_tags }) => topic_tags.some((tag) => tag.toUpperCase() === DECISION)),
    /** Most used first, as names and files are. */
    tags: countNames(open.map(({ topic_tags }) => contentTags(topic_tags))),
    names: names.filter(({ nodes }) => nodes >= MIN_NAME_NODES),
    files: getFiles(valid),
    facts: getFacts(valid),
  };
}

function getNames({ summary }: MemoryNode): string[] {
  return [...new Set([...summary.matchAll(NAME)].map(([name]) => name))].filter((name) => !DATES.test(name));
}

function getFiles(nodes: readonly MemoryNode[]) {
  const about = nodes.map((node) => ({ node, paths: fileMarks(node.source_links).map(({ path }) => path) }));
  const newest = new Map<string, MemoryNode>();
  for (const { node, paths } of about) for (const path of paths) newest.set(path, newest.get(path) ?? node);
  return countNames(about.map(({ paths }) => paths)).map((file) => ({
    ...file,
    newest: newest.get(file.name) as MemoryNode,
  }));
}

function getFacts(nodes: readonly MemoryNode[]) {
  const facts = nodes.flatMap(({ node_id, origin: lowest, facts }) =>
    facts.flatMap((fact) => {
      const { concept, value, polarity, origin = lowest } = fact;
      return isClosed(fact) ? [] : [{ concept, value, polarity, origin, node_id }];
    }),
  );
  const byText = grouped(facts, ({ polarity, concept, value }) => `${polarity}\0${concept}\0${value}`);
  return [...byText.values()].flatMap(([first]) => first ?? []);
}

function countNames(lists: readonly (readonly string[])[]) {
  return [...tally(lists.flat())]
    .map(([name, nodes]) => ({ name, nodes }))
    .sort((a, b) => b.nodes - a.nodes || (a.name < b.name ? -1 : 1));
}
