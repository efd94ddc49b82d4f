import { memoize } from '../../common/map.ts';
import { compareText, formatCount, neutralLine } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import { getLines, type Page } from '../model/page.ts';
import type { Task } from '../model/task.ts';
import { getUrgency, isOverdue } from '../tasks/trigger.ts';
import { projectName } from './merge-pages.ts';

export interface IndexInput {
  /** By file name without ending. */
  readonly pages: ReadonlyMap<string, Page>;
  /** Pages in a person's own form: title by file name without ending. */
  readonly others: ReadonlyMap<string, string>;
  readonly plans: ReadonlyMap<string, string>;
  readonly tasks: readonly Task[];
  /** Newest first. */
  readonly episodes: readonly Episode[];
}

export interface Episode {
  /** As `2026-03-01`. */
  readonly day: string;
  readonly title: string;
  readonly project: string;
  /** Address of its file, relative to the library. */
  readonly link: string;
}

const MOST = { topics: 100, plans: 20, tasks: 30, episodes: 25 } as const;
const TITLE_CHARS = 100;
const WEAK_MS = 60 * 86_400_000;

/** INDEX.md: a line for each topic, plan, active task and new episode. */
export function renderIndex({ pages, others, plans, tasks, episodes }: IndexInput): string {
  const topics = [
    ...orderPages([...pages]).map(([name, page]) => `${linkTo('topics', name, page.head.title)} · ${formatPage(page)}`),
    ...[...others].map(([name, title]) => linkTo('topics', name, title)),
  ];
  const lines = episodes.map(({ day, title, project, link }) => {
    return `- ${day} [${findTitle(title)}](${link}) · ${projectName(project)}`;
  });
  const planLines = [...plans].map(([name, title]) => linkTo('plans', name, title));
  const active = tasks.filter(({ status }) => status === 'active').sort(byUrgency);
  return [
    '# Index',
    '',
    'Written by comet-cc after each pass; edit the pages, not this file.',
    ...section('Topics', topics, MOST.topics, 'topics/'),
    ...section('Plans', planLines, MOST.plans, 'plans/'),
    ...section('Active tasks', active.map(taskLine), MOST.tasks, 'tasks/active/'),
    ...section('Newest episodes', lines, MOST.episodes, ''),
    '',
  ].join('\n');
}

function section(title: string, lines: readonly string[], most: number, folder: string): string[] {
  if (lines.length === 0) return [];
  const left = lines.length - most;
  const more = left > 0 && folder !== '' ? [`- … and ${left} more in \`${folder}\``] : [];
  return ['', `## ${title}`, '', ...lines.slice(0, most), ...more];
}

/** A page may be in a subfolder; a parenthesis would end the link. */
export function pageAddress(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/').replaceAll('(', '%28').replaceAll(')', '%29');
}

function linkTo(folder: string, name: string, title: string): string {
  return `- [${findTitle(title)}](${folder}/${pageAddress(name)}.md)`;
}

const findTitle = (title: string): string => neutralLine(title, TITLE_CHARS).replace(/[[\]]/g, '');

function taskLine(task: Task): string {
  const { name, title, trigger, project, origin } = task;
  const marks = [
    ...(trigger === undefined ? [] : [neutralLine(trigger, TITLE_CHARS)]),
    ...(project === '' ? [] : [projectName(project)]),
    ...(isOverdue(task) ? ['overdue'] : []),
    ...(isCleanOrigin(origin) ? [] : ['noted by a tool']),
  ];
  return [linkTo('tasks/active', name, title), ...marks].join(' · ');
}

/** Newest first; what one memory alone says, and none for long, comes last. */
export function orderPages(pages: readonly (readonly [string, Page])[]): (readonly [string, Page])[] {
  const newestMs = pages.reduce((newest, [, { head }]) => Math.max(newest, Date.parse(head.updated) || 0), 0);
  const isWeak = ({ head: { sources, updated } }: Page): boolean =>
    sources.length === 1 && Date.parse(updated) < newestMs - WEAK_MS;
  return pages.toSorted(
    ([one, a], [other, b]) =>
      Number(isWeak(a)) - Number(isWeak(b)) || compareText(b.head.updated, a.head.updated) || compareText(one, other),
  );
}

/** By priority, where overdue tasks count one more, then the newest. */
export function byUrgency(one: Task, other: Task): number {
  return (
    getUrgency(other) - getUrgency(one) || compareText(other.created, one.created) || compareText(one.name, other.name)
  );
}

/** Whether what a section says holds now and is said in the page's own voice. */
export const isCurrent = (section: string): boolean => !/^(?:before|reported)\b/i.test(section);

export const countStatements = memoize(
  (page: Page) => getLines(page).filter(({ section, statement }) => statement !== null && isCurrent(section)).length,
);

/** As in `3 statements, 2026-03-01`. */
export function formatPage(page: Page): string {
  return `${formatCount(countStatements(page), 'statement')}, ${page.head.updated}`;
}

/** SCHEMA.md: written once, then the user's. */
export const SCHEMA = `# How this library is kept

comet-cc writes these pages and never changes a line that it did not write. Edit anything: what is on disk wins.

- \`INDEX.md\` is generated. \`topics/\` holds one page for each subject, \`plans/\` is yours.
- A line of comet-cc is a list item that ends with links to the memories it rests on: \`- text ([mem_…](…))\`. Take the
  links away and the line is yours; remove the line and it stays away.
- \`[valid_from:: date]\` and \`[valid_to:: date]\` say when a value held. What no longer holds moves to \`## Before\`.
- What came from outside (web pages, tools, other people's files) is only quoted, with its date, under \`## Reported\`.
- Front matter: title, scope (user or project), project, topic, updated, sources. Other keys are yours.
`;
