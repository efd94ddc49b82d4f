import { isDeepStrictEqual } from 'node:util';
import { grouped } from '../../common/map.ts';
import { compareText, localDay } from '../../common/text.ts';
import { endsStatement, getEnding } from '../compaction/supersede-rules.ts';
import {
  addLine,
  getLines,
  newPage,
  type Page,
  type PageStatement,
  renderStatement,
  replaceLines,
  type SectionName,
  toSlug,
} from '../model/page.ts';
import { getWords, isNearDuplicate, saySame } from '../text/paraphrase.ts';
import { type Attribute, type Candidate, getAttribute, statementId } from './statement.ts';

export interface MergeInput {
  /** Readable pages by file name without ending. */
  readonly pages: ReadonlyMap<string, Page>;
  /** Every name in the folder, readable or not. */
  readonly names: readonly string[];
  readonly candidates: readonly Candidate[];
  /** Ids of statements that an earlier pass placed: what a person removed since stays away. */
  readonly placed: ReadonlySet<string>;
  readonly getLink: NodeLinker;
}

/** Address of a node, relative to the file of a page: its name below its folder, without ending. */
export type NodeLinker = (nodeId: string, page?: string) => string;

export type MergedPages = ReturnType<typeof mergePages>;

/** A page gets no further statement beyond this; a second one continues it. */
const FULL_LINES = 280;
const MOST_REPORTED = 8;
const MOST_SOURCES = 4;
const BEFORE = 'Before';
const REPORTED = 'Reported';
const RETURNS =
  /\b(?:again|back|after all|re-?introduc\w+|reinstat\w+|restor\w+)\b|(?<!\p{L})(?:wieder|de nuevo|otra vez)(?!\p{L})|重新|다시/iu;

interface Entry {
  /** Index of its line; null for a new one. */
  readonly at: number | null;
  section: string;
  statement: PageStatement;
  /** What a person wrote around it stays; only this says that the line is written again. */
  isChanged: boolean;
  readonly attribute: Attribute | null;
  readonly words: string;
  readonly tokens: ReadonlySet<string>;
  /** Day from which it holds. */
  readonly since: string;
}

interface Draft {
  readonly page: Page;
  readonly entries: Entry[];
  /** Words of each line of a person. */
  readonly others: readonly ReadonlySet<string>[];
  readonly sources: Set<string>;
  updated: string;
}

/** Merges what is not placed yet; the result does not depend on how it is divided into passes of one order in time. */
export function mergePages(input: MergeInput) {
  const state = newState(input);
  for (const [name, page] of input.pages) addDraft(state, name, page);
  const inOrder = input.candidates.toSorted(
    (one, other) => compareText(one.at, other.at) || compareText(one.id, other.id),
  );
  const fresh = inOrder.filter(({ id }) => !input.placed.has(id));
  const placed = fresh.filter(({ section }) => section !== REPORTED).map(({ id }) => id);
  for (const candidate of fresh) if (candidate.section !== REPORTED) place(state, candidate);
  for (const candidate of inOrder) closeEnded(state, candidate);
  for (const candidate of fresh)
    if (candidate.section === REPORTED && report(state, candidate)) placed.push(candidate.id);
  const changed = new Map<string, Page>();
  for (const [name, draft] of state.drafts) {
    const page = finishPage(draft, (nodeId) => input.getLink(nodeId, name));
    if (page !== null) changed.set(name, page);
  }
  const { added, ended, past } = state;
  return { changed, placed, added, ended, past };
}

type State = ReturnType<typeof newState>;

function newState({ names, candidates }: MergeInput) {
  return {
    drafts: new Map<string, Draft>(),
    byProject: new Map<string, Draft[]>(),
    names: new Set(names.map((name) => name.toLowerCase())),
    origins: grouped(candidates, ({ nodeId }) => nodeId),
    /** How many statements were added, and how many moved to `Before`. */
    added: 0,
    ended: 0,
    /** Ids (`pageStatementId`) of those that no longer hold: they moved to `Before`, or came there at once. */
    past: [] as string[],
  };
}

function addDraft(state: State, name: string, page: Page): Draft {
  const lines = getLines(page);
  const draft: Draft = {
    page,
    entries: lines.flatMap(({ at, section, statement }) =>
      statement === null ? [] : [getEntry(state, { at, section, statement })],
    ),
    others: lines.flatMap(({ raw, statement }) => (statement === null ? [getWords(raw)] : [])),
    sources: new Set(page.head.sources),
    updated: page.head.updated,
  };
  state.drafts.set(name, draft);
  state.names.add(name.toLowerCase());
  const key = page.head.scope === 'user' ? '' : page.head.project;
  state.byProject.set(key, [...(state.byProject.get(key) ?? []), draft]);
  return draft;
}

function getEntry({ origins }: State, entry: Pick<Entry, 'at' | 'section' | 'statement'>): Entry {
  const { statement } = entry;
  // `mem_20260301_101500_…`: when it was written.
  const getTime = (id: string) =>
    id.slice(4, 19).replace(/^(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)$/, '$1-$2-$3T$4:$5:$6Z');
  const days = statement.nodes.map((id) => localDay(origins.get(id)?.[0]?.at ?? getTime(id)));
  const since = statement.validFrom ?? days.toSorted()[0] ?? '';
  const { text } = statement;
  const read = { attribute: getAttribute(text), words: text.toLowerCase(), tokens: getWords(text) };
  return { ...entry, ...read, isChanged: false, since };
}

function getScope(state: State, { scope, project }: Candidate): readonly Draft[] {
  return state.byProject.get(scope === 'user' ? '' : project) ?? [];
}

function place(state: State, candidate: Candidate): void {
  const near = getScope(state, candidate);
  if (near.some((draft) => isKnown(draft, candidate))) return;
  const ending = createEnding(candidate);
  const day = localDay(candidate.at);
  let home: Draft | undefined;
  let endedBy = candidate.endedAt === null ? undefined : localDay(candidate.endedAt);
  for (const draft of near) {
    for (const entry of draft.entries) {
      if (entry.section === BEFORE || entry.section === REPORTED) continue;
      if (entry.since <= day && ending.ends(entry) && mayEnd(state, candidate, entry)) {
        end(state, draft, entry, day);
        home ??= draft;
      } else if (
        entry.since > day &&
        createEnding({ text: entry.statement.text, attribute: entry.attribute }).ends(ending.asEntry)
      ) {
        endedBy = endedBy === undefined || entry.since < endedBy ? entry.since : endedBy;
        home ??= draft;
      }
    }
  }
  add(state, home ?? createDraft(state, candidate), candidate, endedBy);
}

/** It stands in the page already, in these or in a person's words: then it only becomes a source. */
function isKnown(draft: Draft, { text, nodeId, at }: Candidate): boolean {
  const day = localDay(at);
  const own = getWords(text);
  const same = draft.entries.find(
    ({ section, statement, tokens }) =>
      section !== REPORTED && saySame(tokens, own) && (section !== BEFORE || (statement.validTo ?? '9') > day),
  );
  if (same === undefined && !draft.others.some((line) => saySame(line, own))) return false;
  const nodes = same?.statement.nodes ?? [];
  if (same !== undefined && !nodes.includes(nodeId) && nodes.length < MOST_SOURCES) {
    same.statement = { ...same.statement, nodes: [...nodes, nodeId] };
    same.isChanged = true;
  }
  draft.sources.add(nodeId);
  return true;
}

/** How a statement ends others: another value of the same, or the return of what they gave up. */
export function createEnding({ text, attribute }: { readonly text: string; readonly attribute: Attribute | null }) {
  const ending = getEnding(text);
  const isReturn = RETURNS.test(text);
  const subject = attribute?.subject ?? '';
  return {
    asEntry: { statement: { text }, attribute, words: text.toLowerCase() },
    ends({
      statement,
      attribute: other,
      words,
    }: Pick<Entry, 'attribute' | 'words'> & { readonly statement: { readonly text: string } }): boolean {
      if (subject !== '' && other !== null && other.name === attribute?.name && other.subject === subject) return true;
      // A stem lacks at most the last letter of its word.
      const isShared = ending?.shared.every((word) => words.includes(word.length > 4 ? word.slice(0, -1) : word));
      if (ending !== null && isShared && endsStatement(ending, statement.text)) return true;
      const former = isReturn ? getEnding(statement.text) : null;
      return former !== null && former.assertion === null && endsStatement(former, text.replace(RETURNS, '').trim());
    },
  };
}

/** What the user said is ended by the user alone. */
function mayEnd({ origins }: State, { origin }: Candidate, { statement }: Entry): boolean {
  if (origin === 'user') return true;
  const nodeOrigins = statement.nodes.flatMap((id) => origins.get(id) ?? []);
  const own = nodeOrigins.filter(({ text }) => isNearDuplicate(text, statement.text));
  return own.length > 0 && own.every((each) => each.origin !== 'user');
}

function end(state: State, draft: Draft, entry: Entry, day: string): void {
  entry.statement = { ...entry.statement, validFrom: entry.since, validTo: day };
  entry.section = BEFORE;
  entry.isChanged = true;
  if (day > draft.updated) draft.updated = day;
  state.ended += 1;
  state.past.push(pageStatementId(entry.statement));
}

/** The same as long as its text and its first node are. */
export const pageStatementId = ({ nodes: [nodeId = ''], text }: PageStatement): string => statementId(nodeId, text);

/** What a newer node ended, as memory noticed when that was written. */
function closeEnded(state: State, candidate: Candidate): void {
  const { endedAt, nodeId, text } = candidate;
  if (endedAt === null) return;
  for (const draft of getScope(state, candidate)) {
    for (const entry of draft.entries) {
      const { nodes } = entry.statement;
      if (entry.section === BEFORE || entry.section === REPORTED || !nodes.includes(nodeId)) continue;
      if (!isNearDuplicate(entry.statement.text, text)) continue;
      const others = nodes.filter((id) => id !== nodeId).flatMap((id) => state.origins.get(id) ?? []);
      const isOpen = others.some((each) => each.endedAt === null && isNearDuplicate(each.text, text));
      if (!isOpen) end(state, draft, entry, localDay(endedAt));
    }
  }
}

function add(state: State, draft: Draft, { text, nodeId, section, attribute, at }: Candidate, endedBy?: string): void {
  const validFrom = localDay(at);
  const isOver = endedBy !== undefined;
  const dates = { ...(attribute !== null || isOver ? { validFrom } : {}), ...(isOver ? { validTo: endedBy } : {}) };
  const entry = getEntry(state, {
    at: null,
    section: isOver ? BEFORE : section,
    statement: { text, nodes: [nodeId], ...dates },
  });
  draft.entries.push({ ...entry, since: validFrom, isChanged: true });
  if (isOver) state.past.push(pageStatementId(entry.statement));
  draft.sources.add(nodeId);
  if (validFrom > draft.updated) draft.updated = validFrom;
  state.added += 1;
}

/** A claim from outside, quoted and dated, in a page that exists for other reasons. */
function report(state: State, candidate: Candidate): boolean {
  const draft = getScope(state, candidate).find(({ page }) => page.head.topic === candidate.topic);
  if (draft === undefined) return false;
  const day = localDay(candidate.at);
  const text = `${day}, from outside (${candidate.origin}): “${candidate.text.replace(/[“”"]/g, "'")}”`;
  if (draft.entries.some(({ statement }) => statement.text.includes(candidate.text.slice(0, 120)))) return true;
  if (draft.entries.filter(({ section }) => section === REPORTED).length >= MOST_REPORTED) return true;
  const { nodeId } = candidate;
  const entry = getEntry(state, { at: null, section: REPORTED, statement: { text, nodes: [nodeId] } });
  draft.entries.push({ ...entry, isChanged: true });
  draft.sources.add(nodeId);
  state.added += 1;
  return true;
}

function createDraft(state: State, { scope, project, topic, at }: Candidate): Draft {
  const key = scope === 'user' ? '' : project;
  const free = (state.byProject.get(key) ?? [])
    .filter(({ page }) => page.head.topic === topic)
    .find(({ page, entries }) => page.lines.length + entries.filter((each) => each.at === null).length < FULL_LINES);
  if (free !== undefined) return free;
  const name = projectName(project);
  const stem = scope === 'user' ? toSlug(topic) : toSlug(`${name}-${topic}`);
  const names = (nth: number): string => (nth === 1 ? stem : `${stem}-${nth}`);
  let nth = 1;
  while (state.names.has(names(nth))) nth += 1;
  const words = topic.replace(/[-_]/g, ' ');
  const title = `${words.charAt(0).toUpperCase()}${words.slice(1)}${scope === 'user' ? '' : ` (${name})`}`;
  const head = { title, scope, project: key, topic, updated: localDay(at), sources: [] };
  return addDraft(state, names(nth), newPage(head));
}

/** The last name of a project's key. */
export function projectName(project: string): string {
  const last = project.split(/[\\/]/).findLast((part) => part !== '') ?? '';
  return last.replace(/\.git$/, '') || 'project';
}

function finishPage({ page, entries, sources, updated }: Draft, getLink: (nodeId: string) => string): Page | null {
  const changed = entries.filter(({ isChanged }) => isChanged);
  const head = { ...page.head, updated, sources: [...sources] };
  if (changed.length === 0 && isDeepStrictEqual(head, page.head)) return null;
  const sectionAt = new Map(getLines(page).map(({ at, section }) => [at, section]));
  const isMoved = ({ at, section }: Entry): boolean => at === null || sectionAt.get(at) !== section;
  const replaced = changed.flatMap((entry) =>
    entry.at === null ? [] : [[entry.at, isMoved(entry) ? null : renderStatement(entry.statement, getLink)] as const],
  );
  let next = replaceLines({ ...page, head }, new Map(replaced));
  for (const { section, statement } of changed.filter(isMoved))
    next = addLine(next, section as SectionName, renderStatement(statement, getLink));
  return next;
}
