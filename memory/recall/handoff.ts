import { compareText, trimEnd } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import type { SourcedClaim } from '../compaction/brief.ts';
import type { Task, TaskList } from '../ingest/task-list.ts';
import { isBundled, isFromText, type MemoryNode, type StoredBrief } from '../model/node.ts';
import { isSameMatter } from '../text/paraphrase.ts';
import { uniqueTokens } from '../text/tokenizer.ts';
import { isPast } from '../text/validity.ts';
import { getShortOrigin, type ProjectState, type StateItem } from './project-state.ts';

/** Limits on open items of other sessions. */
const THREADS = 4;
const THREAD_BRIEFS = 3;
const THREAD_DAYS_MS = 14 * 86_400_000;
const TASKS = 6;
/** Claims of a brief that are nothing to do. */
const SETTLED = /^(?:Done|Found|Stands|Decided): /;

export interface HandoffRules {
  readonly project: string;
  /** The starting session, whose own memories are left out. */
  readonly sessionId: string;
  readonly most: number;
}

type Start = Pick<HandoffRules, 'project' | 'sessionId'>;

/** Of open items, decisions and outcomes; outcomes fill what the others leave. */
const SHARES = { open: 8, decided: 6 } as const;
/** So much of a text tells whether it was said. */
const TOLD_CHARS = 60;
/** Share of words by which two sentences say one thing, and the least that have enough. */
const TOLD_SHARE = 0.7;
const TOLD_WORDS = 4;
const TOLD_IN = { open: /^- (?:Open|Next): /, decided: /^- Decided: /, outcome: /^- (?:Done|Found|Stands): / } as const;

/** Open items, decisions and outcomes of clean origin from other sessions that `told` does not tell. */
export function handedItems(
  state: ProjectState,
  { sessionId, most, told }: Pick<HandoffRules, 'sessionId' | 'most'> & { readonly told: readonly string[] },
): StateItem[] {
  const isNews = (item: StateItem): boolean =>
    item.node.session_id !== sessionId &&
    isCleanOrigin(getShortOrigin(item)) &&
    !told.some((line) => tells(line, item));
  const { open, decided, outcome } = state;
  const items = [...open.filter(isNews).slice(0, SHARES.open), ...decided.filter(isNews).slice(0, SHARES.decided)];
  const named = new Set(items.map(({ node }) => node));
  return [...items, ...outcome.filter((item) => isNews(item) && !named.has(item.node))].slice(0, most);
}

/** Whether a line of a brief quotes the item, or a model says the same there in other words. */
export function tells(line: string, { kind, text }: StateItem): boolean {
  const [head, said = ''] = line.split(TOLD_IN[kind]);
  const isShort = (each: string) => uniqueTokens(each).length < TOLD_WORDS;
  if (line.includes(trimEnd(text.slice(0, TOLD_CHARS), '.)'))) return head === '' || !isShort(text);
  return head === '' && !isShort(said) && !isShort(text) && isSameMatter(said, text, TOLD_SHARE);
}

/** HIGH nodes of clean origin from the project's other sessions, newest first. */
export function handOver(newestFirst: readonly MemoryNode[], { project, sessionId, most }: HandoffRules): MemoryNode[] {
  if (project === '') return [];
  return newestFirst
    .filter((node) => node.project === project && node.session_id !== sessionId && node.importance === 'HIGH')
    .filter((node) => isCleanOrigin(node.origin) && !isPast(node))
    .filter((node) => node.recall_mode === 'active' && !isBundled(node) && !isFromText(node))
    .slice(0, most);
}

/** The latest brief of another session of the project. */
export function lastBrief(briefs: readonly StoredBrief[], { project, sessionId }: Start): StoredBrief | null {
  if (project === '') return null;
  return others(briefs, project, sessionId)[0] ?? null;
}

/** Claims of clean origin from other sessions' active work that `shown` does not contain. */
export function openThreads(
  briefs: readonly StoredBrief[],
  { project, sessionId, shown, nowMs }: Start & { readonly shown: StoredBrief | null; readonly nowMs: number },
): SourcedClaim[] {
  if (project === '') return [];
  const texts = new Set([...(shown?.active ?? []), ...(shown?.hints ?? [])].map(({ text }) => text));
  const open = others(briefs, project, sessionId)
    .filter((brief) => brief.session_id !== shown?.session_id && nowMs - Date.parse(brief.updated_at) <= THREAD_DAYS_MS)
    .slice(0, THREAD_BRIEFS)
    .flatMap(({ active }) => active.filter(({ text }) => !SETTLED.test(text)))
    .filter(({ text, origin }) => isCleanOrigin(origin) && !texts.has(text));
  return [...new Map(open.map((claim) => [claim.text, claim])).values()].slice(0, THREADS);
}

type StatedTask = Task & { readonly project: string; readonly sessionId: string };

/** Each task of these sessions as the newest of them left it, the newest session's first, begun ones before others. */
export function latestTasks(lists: readonly TaskList[], nowMs: number): StatedTask[] {
  const tasks = lists
    .filter(({ lastAtMs }) => nowMs - lastAtMs <= THREAD_DAYS_MS)
    .toSorted((one, other) => other.lastAtMs - one.lastAtMs || one.sessionId.localeCompare(other.sessionId))
    .flatMap(({ tasks, project, sessionId }) => {
      const begun = tasks.filter(({ status }) => status === 'in_progress');
      return [...begun, ...tasks.filter((task) => !begun.includes(task))].map((task) => ({
        ...task,
        project,
        sessionId,
      }));
    });
  const latest = new Map<string, StatedTask>();
  for (const task of tasks) {
    const key = `${task.project}\n${task.text}`;
    if (latest.has(key) || (isUnfinished(task) && !isCleanOrigin(task.origin))) continue;
    latest.set(key, task);
  }
  return [...latest.values()];
}

const isUnfinished = ({ status }: Task): boolean => status === 'pending' || status === 'in_progress';

const taskText = ({ text, status }: Task): string => `${text} (${status === 'pending' ? 'to do' : 'in progress'})`;

/** Tasks as items of a project's state; one without a node is left out. */
export function taskItems(tasks: readonly StatedTask[], getNode: (task: StatedTask) => MemoryNode | undefined) {
  const open = tasks.filter(isUnfinished).flatMap((task): StateItem[] => {
    const node = getNode(task);
    const { origin, turn } = task;
    return node === undefined ? [] : [{ kind: 'open', node, text: taskText(task), origin, turn }];
  });
  return { open, done: tasks.filter((task) => !isUnfinished(task)).map(({ text }) => text) };
}

/** Unfinished tasks of clean origin from other sessions of the project; the latest status of a task counts. */
export function openTasks(
  lists: readonly TaskList[],
  { project, sessionId, nowMs }: Start & { readonly nowMs: number },
): string[] {
  if (project === '') return [];
  // Whatever the session itself says of a task counts.
  const near = lists.map((list) => (list.sessionId === sessionId ? { ...list, project, lastAtMs: nowMs } : list));
  const own = near.filter((list) => list.project === project);
  return latestTasks(own, nowMs)
    .filter((task) => task.sessionId !== sessionId && isUnfinished(task))
    .slice(0, TASKS)
    .map(taskText);
}

/** Newest first, empty briefs left out. */
function others(briefs: readonly StoredBrief[], project: string, sessionId: string): StoredBrief[] {
  return briefs
    .filter((brief) => brief.project === project && brief.session_id !== sessionId)
    .filter(({ active, hints }) => active.length + hints.length > 0)
    .toSorted((a, b) => compareText(b.updated_at, a.updated_at) || compareText(a.session_id, b.session_id));
}
