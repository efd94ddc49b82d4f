import { DAY_MS } from '../../common/async.ts';
import { grouped } from '../../common/map.ts';
import {
  amount,
  compareText,
  dollars,
  formatCount,
  localDay,
  localTime,
  neutralLine,
  sha256,
} from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import { withAbsoluteDates } from '../model/dates.ts';
import { getTitle, getTitleOrigin, isBundled, isGroup, isRedirect, type MemoryNode } from '../model/node.ts';
import { getLines, type Page, renderStatement, statementText } from '../model/page.ts';
import { pageAddress } from '../pages/index-page.ts';
import { pageStatementId, projectName } from '../pages/merge-pages.ts';
import { hasInstructions, isQuarantined } from '../recall/quarantine.ts';
import type { Untold } from '../storage/fs/dream-files.ts';
import { isClosed, isPast } from '../text/validity.ts';

/** What requests saved, on whole days. */
export interface Savings {
  readonly received: number;
  readonly sent: number;
  /** Net, at API prices. */
  readonly usd: number;
  /** The day is not over, so the next brief counts it again. */
  readonly isToday?: boolean;
}

export interface BriefInput {
  /** What is told happened in between, ms. */
  readonly sinceMs: number;
  readonly nowMs: number;
  /** After the pass, as `pages`. */
  readonly nodes: readonly MemoryNode[];
  /** By file name without ending. */
  readonly pages: ReadonlyMap<string, Page>;
  readonly tasks: Readonly<Record<'due' | 'neglected', readonly string[]>>;
  readonly untold: Untold;
  /** Null where they are not known. */
  readonly saved: Savings | null;
  readonly getLink: (nodeId: string) => string;
}

const MOST = { projects: 8, sessions: 5, lines: 12, pages: 12 } as const;
const TITLE_CHARS = 120;
const NEGLECTED_MS = 60 * DAY_MS;
const REPEATED = 3;

/**
 * Memories of a time; one that was written late counts from then on.
 * @returns only what says something by itself: no redirects, groups or tool rounds
 */
export function listNodesSince(nodes: readonly MemoryNode[], sinceMs: number): readonly MemoryNode[] {
  return nodes.filter(
    (node) =>
      !(isRedirect(node) || isGroup(node) || isBundled(node)) &&
      node.kind !== 'tool' &&
      Date.parse(node.created_at) > sinceMs &&
      Date.parse(node.valid_from) > sinceMs - DAY_MS,
  );
}

/** What a pass should look at: corrections, repeated patterns and neglected topics. */
export function gatherFindings(input: Pick<BriefInput, 'nodes' | 'pages' | 'sinceMs' | 'nowMs'>) {
  const { nodes, pages, sinceMs, nowMs } = input;
  const fresh = listNodesSince(nodes, sinceMs);
  const ids = new Set(fresh.map(({ node_id }) => node_id));
  const past = nodes.filter((node) => !isRedirect(node) && isPast(node));
  const ended = [...past, ...nodes.flatMap(({ facts }) => facts.filter(isClosed))];
  const corrections = ended.filter(({ valid_to }) => Date.parse(valid_to ?? '') > sinceMs).length;
  const lines = [...pages.values()].flatMap(getLines).flatMap(({ statement }) => statement ?? []);
  const sources = lines.map((statement) => statement.nodes).filter((own) => own.length >= REPEATED);
  const repeated = sources.filter((own) => own.some((id) => ids.has(id))).length;
  const active = new Set(fresh.map(({ project }) => project));
  const oldDay = localDay(nowMs - NEGLECTED_MS);
  const neglected = [...pages].flatMap(([name, { head }]) =>
    active.has(head.project) && head.updated < oldDay ? [name] : [],
  );
  return { corrections, repeated, neglected };
}

/** A section of an inbox page, without its day's other lines; '' where there is nothing to tell. */
export function renderBrief(input: BriefInput): string {
  const { sinceMs, nowMs, tasks, saved } = input;
  const fresh = listNodesSince(input.nodes, sinceMs).filter((node) => !isQuarantined(node));
  const parts = [
    section('What happened', happenedLines(fresh, input)),
    section('Decided', decisionLines(fresh, input)),
    section('No longer holds', pastLines(input)),
    section('Tasks', [...listed(tasks.due), ...listed(tasks.neglected.map((line) => `neglected: ${line}`))]),
    section('The library', libraryLines(input)),
  ].flat();
  if (parts.length === 0) return '';
  const days = Math.max(1, Math.round((nowMs - sinceMs) / DAY_MS));
  const since =
    localDay(sinceMs) === localDay(nowMs) ? 'today' : `${formatCount(days, 'day')} since ${localDay(sinceMs)}`;
  const head = `## Brief, ${localTime(nowMs, nowMs)}: ${since}`;
  return [head, '', ...parts, ...(saved === null ? [] : section('Saved', savedLines(saved)))].join('\n');
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`### ${title}`, '', ...lines, ''];
}

function listed(lines: readonly string[]): string[] {
  const left = lines.length - MOST.lines;
  return [...lines.slice(0, MOST.lines).map((line) => `- ${line}`), ...(left > 0 ? [`- … and ${left} more`] : [])];
}

/** By project, the one with most memories first. What came from outside is only counted. */
function happenedLines(fresh: readonly MemoryNode[], { getLink }: BriefInput): string[] {
  const byProject = grouped(fresh, (node) => node.project);
  const projects = [...byProject].toSorted(([, one], [, other]) => other.length - one.length);
  const left = projects.length - MOST.projects;
  return [
    ...projects.slice(0, MOST.projects).flatMap(([project, nodes]) => {
      const sessions = [...grouped(nodes, (node) => node.session_id).values()];
      const episodes = sessions
        .flatMap((own) => own.filter(isTellable).toSorted((a, b) => compareText(b.valid_from, a.valid_from))[0] ?? [])
        .toSorted((a, b) => compareText(b.valid_from, a.valid_from));
      const of = `${formatCount(sessions.length, 'session')}, ${formatCount(nodes.length, 'memory', 'memories')}`;
      return [
        `- ${neutralLine(projectName(project), TITLE_CHARS)}: ${of}`,
        ...episodes.slice(0, MOST.sessions).map((node) => `  ${getLine(datedTitle(node), node, getLink)}`),
      ];
    }),
    ...(left > 0 ? [`- … and ${formatCount(left, 'more project')}`] : []),
  ];
}

function datedTitle(node: MemoryNode): string {
  return withAbsoluteDates(neutralLine(getTitle(node), TITLE_CHARS), Date.parse(node.valid_from));
}

function isTellable(node: MemoryNode): boolean {
  return isCleanOrigin(getTitleOrigin(node)) && !hasInstructions(getTitle(node));
}

function decisionLines(fresh: readonly MemoryNode[], { getLink }: BriefInput): string[] {
  const lines = new Map<string, string>();
  for (const node of fresh.toSorted((a, b) => compareText(a.valid_from, b.valid_from))) {
    for (const { text, origin, closed } of node.decisions ?? []) {
      if (!isCleanOrigin(origin) || closed !== undefined || hasInstructions(text)) continue;
      const who = origin === 'user' ? '' : 'Claude: ';
      const line = `${neutralLine(projectName(node.project), TITLE_CHARS)}: ${who}${text}`;
      lines.set(line.toLowerCase(), getLine(line, node, getLink).slice(2));
    }
  }
  return listed([...lines.values()]);
}

/** What contradicted earlier memory: statements that moved to `Before` since the last brief. */
function pastLines({ pages, untold, getLink }: BriefInput): string[] {
  const past = new Set(untold.past);
  const lines = [...pages.values()].flatMap((page) =>
    getLines(page).flatMap(({ section: name, statement }) => {
      if (name !== 'Before' || statement === null || !past.has(pageStatementId(statement))) return [];
      const { text, nodes, validTo = '' } = statement;
      const line = `${page.head.title}: “${text}” held until ${validTo}`;
      return [renderStatement({ text: statementText(line), nodes }, getLink).slice(2)];
    }),
  );
  return listed(lines);
}

function libraryLines({ untold, pages }: BriefInput): string[] {
  const { added, past, merged, groups, tags, linked, pruned } = untold;
  const phrases = [
    `${formatCount(added, 'statement')} added`,
    `${formatCount(past.length, 'statement')} moved to Before`,
    `${formatCount(merged, 'memory', 'memories')} merged`,
    `${formatCount(groups, 'group')} made or extended`,
    `${formatCount(tags, 'tag')} normalized`,
    `${formatCount(linked, 'link')} made`,
    `${pruned} pruned`,
  ].filter((phrase) => !phrase.startsWith('0 '));
  const changed = untold.pages.flatMap((name) => {
    const title = pages.get(name)?.head.title;
    return title === undefined
      ? []
      : [`[${neutralLine(title, TITLE_CHARS).replace(/[[\]]/g, '')}](../topics/${pageAddress(name)}.md)`];
  });
  const left = changed.length - MOST.pages;
  const more = left > 0 ? `, … and ${left} more` : '';
  return [
    ...(phrases.length === 0 ? [] : [`- ${phrases.join(', ')}`]),
    ...(changed.length === 0 ? [] : [`- pages that changed: ${changed.slice(0, MOST.pages).join(', ')}${more}`]),
  ];
}

function savedLines({ received, sent, usd, isToday }: Savings): string[] {
  if (received === 0) return [];
  const price = `${dollars(usd)} at API prices${isToday ? ', today so far' : ''}`;
  const tokens = sent > received ? `none: memory added ${amount(sent - received)} to` : `${amount(received - sent)} of`;
  return [`- ${tokens} ${amount(received)} tokens of context, ${price}`];
}

function getLine(text: string, { node_id }: MemoryNode, getLink: BriefInput['getLink']): string {
  return renderStatement({ text: statementText(text), nodes: [node_id] }, getLink);
}

/** What is appended during the day follows below this. */
const TODAY = '## Today';

export const inboxName = (day: string): string => `inbox/${day}.md`;

/** The page of a day with a brief on top; every other line stays as it is. */
export function withBrief(page: string | null, day: string, brief: string): string {
  const text = page ?? titleLine(day);
  const [title = '', ...rest] = text.split(/(?<=\n)/);
  const [head, body] = title.startsWith('# ') ? [title, rest.join('')] : ['', text];
  const lines = body.replace(/^\s*\n/, '');
  const today = lines.startsWith('## ') ? '' : `${TODAY}\n\n`;
  return `${head}${head.endsWith('\n') || head === '' ? '' : '\n'}${head === '' ? '' : '\n'}${brief}\n${today}${lines}`;
}

/** The page without the brief of this digest: null where nothing else is in it, the same text where somebody changed it. */
export function withoutBrief(page: string, day: string, digest: string): string | null {
  for (const start of [...page.matchAll(/^## Brief, /gm)].map(({ index }) => index)) {
    const next = page.slice(start + 1).search(/^## /m);
    const end = next < 0 ? page.length : start + 1 + next;
    if (briefDigest(page.slice(start, end).replace(/\n$/, '')) !== digest) continue;
    const left = page.slice(0, start) + page.slice(end);
    return left.trim() === `${titleLine(day)}${TODAY}`.trim() ? null : left;
  }
  return page;
}

export const briefDigest = (brief: string): string => sha256(brief, 16);

const titleLine = (day: string): string => `# Inbox ${day}\n\n`;
