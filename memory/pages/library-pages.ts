import { z } from 'zod';
import { runAtOnce, runInSlices, type Steps } from '../../common/async.ts';
import type { Problem } from '../../common/errors.ts';
import { compareText, localDay, parseJson } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import type { TurnRegistry } from '../ingest/turn-registry.ts';
import { getTitle, getTitleOrigin, isRedirect, type MemoryNode } from '../model/node.ts';
import { getLines, type Page, parsePage, parseStatement, renderPage, withoutNodes } from '../model/page.ts';
import { isTakenBack, withoutAbandoned } from '../recall/project-state.ts';
import type { ArchivedPage } from '../storage/archive.ts';
import type { PageFiles } from '../storage/fs/page-files.ts';
import { PAGE_NAMES, type PageFolder, type PageRewrite } from '../storage/page-files.ts';
import type { Tasks } from '../tasks/tasks.ts';
import { isPast } from '../text/validity.ts';
import { type Episode, type IndexInput, renderIndex, SCHEMA } from './index-page.ts';
import { lintPages, type PageProblem } from './lint-pages.ts';
import { type MergedPages, mergePages, type NodeLinker } from './merge-pages.ts';
import { getCandidates } from './statement.ts';

/** The library as it is on disk. */
export interface Shelf extends PageFolder {
  /** Readable pages by name, without folder and ending. */
  readonly pages: ReadonlyMap<string, Page>;
  /** Topic pages that memory does not write, with their titles. */
  readonly others: ReadonlyMap<string, string>;
}

const State = z.object({ placed: z.array(z.string()) });
const EPISODES = 25;

export type LibraryPages = ReturnType<typeof createLibraryPages>;

interface Parts {
  readonly pageFiles: PageFiles;
  readonly tasks: Pick<Tasks, 'active' | 'lint'>;
  readonly turnRegistry: Pick<TurnRegistry, 'areAbandoned'>;
}

/** Reads the pages and plans their changes. The caller must apply a plan completely or not at all. */
export function createLibraryPages({ pageFiles, tasks, turnRegistry }: Parts) {
  const parse = createPageParser();

  async function shelf(): Promise<Shelf> {
    const { texts, problems, isWritable } = await pageFiles.load();
    const read = await runInSlices(readShelf(texts, pageFiles.dir, problems, parse));
    parse.keepOnly(texts);
    return { ...read, isWritable };
  }

  const getRewrites = async (now: Shelf, after: Texts, nodes: readonly MemoryNode[]) =>
    planRewrites(now, after, { parse, episodes: getEpisodes(nodes, pageFiles), tasks: await tasks.active() });
  const getLinker = (nodes: readonly MemoryNode[]): NodeLinker =>
    linker(new Map(nodes.map((node) => [node.node_id, node])), pageFiles);

  return {
    files: pageFiles,
    shelf,
    /** What a pass over these nodes changes in the topics. @param project  null for all */
    merge(now: Shelf, nodes: readonly MemoryNode[], project: string | null): MergedPages {
      const own = nodes.filter((node) => project === null || node.project === project);
      return mergePages({
        pages: now.pages,
        names: [...now.texts.keys()].filter((name) => name.startsWith('topics/')).map(getStem),
        candidates: now.isWritable ? withoutAbandoned(own, turnRegistry).flatMap(getCandidates) : [],
        placed: findPlaced(now),
        getLink: getLinker(nodes),
      });
    },
    /** Every file that changes with these topics, the index included. */
    async rewrites(
      now: Shelf,
      { changed, placed }: Pick<MergedPages, 'changed' | 'placed'>,
      nodes: readonly MemoryNode[],
    ) {
      if (!now.isWritable) return [];
      const left = nodes.filter(({ turns }) => turns.some((turnId) => turnRegistry.areAbandoned([turnId])));
      const find = (id: string): MemoryNode | undefined => left.find((node) => node.node_id === id);
      const isLeft = (id: string, text: string): boolean => isTakenBack(find(id), text, turnRegistry);
      const pages = left.length === 0 ? changed : new Map([...now.pages, ...changed]);
      const after = toTexts(now, pages, isLeft, getLinker(nodes));
      if (placed.length > 0)
        after.set(PAGE_NAMES.state, `${JSON.stringify({ placed: [...findPlaced(now), ...placed] })}\n`);
      return await getRewrites(now, after, nodes);
    },
    getLinker,
    async lint(isNode: (id: string) => boolean): Promise<readonly PageProblem[]> {
      const now = await shelf();
      // A page of the inbox names what there was on its day.
      const texts = new Map([...now.texts].filter(([name]) => !name.startsWith('inbox/')));
      const getName = (file: string): string => file.replace(`${pageFiles.dir}/`, '');
      const problems = now.problems.map(({ file, message }) => ({ file: getName(file), message }));
      const read = (await tasks.lint()).map((each): PageProblem => ({ ...each, file: getName(each.file), line: null }));
      return [...(await lintPages({ ...now, texts, problems, isNode })), ...read];
    },
    /** What has to change when these nodes are removed for good. @param nodes  those that stay */
    async planRemoval(removedIds: ReadonlySet<string>, nodes: readonly MemoryNode[]): Promise<readonly PageRewrite[]> {
      const now = await shelf();
      const isGone = (id: string): boolean => removedIds.has(id);
      const after = toTexts(now, now.pages, isGone, getLinker(nodes));
      for (const [name, text] of now.texts) {
        const lines = text.split(/(?<=\n)/).filter((line) => parseStatement(line)?.nodes.some(isGone) !== true);
        if (name.startsWith('inbox/')) after.set(name, lines.join(''));
      }
      return getRewrites(now, after, nodes);
    },
    /**
     * What has to change for pages of an archive to be there.
     * @param isWhole  the archive is all that there was: what memory alone wrote since goes, and its texts win, but over
     *   pages in which a person has written since
     */
    async planRestore(pages: readonly ArchivedPage[], isWhole: boolean, nodes: readonly MemoryNode[]) {
      const now = await shelf();
      const given = new Map(pages.map(({ name, text }) => [name, text]));
      const after = new Map<string, string | null>();
      for (const [name, text] of given) {
        const here = now.texts.get(name);
        const isSame = name === PAGE_NAMES.state || getOwnText(here ?? '') === getOwnText(text);
        if (here === undefined || (isWhole && isSame)) after.set(name, text);
      }
      for (const [name, page] of isWhole ? now.pages : []) {
        const file = `topics/${name}.md`;
        const isOurs = getLines(page).every(({ statement }) => statement !== null);
        if (isOurs && !given.has(file)) after.set(file, null);
      }
      if (isWhole && !given.has(PAGE_NAMES.state)) after.set(PAGE_NAMES.state, null);
      return getRewrites(now, after, nodes);
    },
  };
}

/** What a person wrote into a page. */
function getOwnText(text: string): string {
  const page = parsePage(text);
  if (typeof page === 'string') return text;
  return getLines(page)
    .map(({ statement, raw }) => (statement === null ? raw : ''))
    .join('');
}

function toTexts(now: Shelf, pages: Shelf['pages'], isGone: (id: string, text: string) => boolean, link: NodeLinker) {
  const after = new Map<string, string | null>();
  for (const [name, page] of pages) {
    const left = withoutNodes(page, isGone, (id) => link(id, name));
    if (left !== now.pages.get(name)) after.set(`topics/${name}.md`, left && renderPage(left));
  }
  return after;
}

type Texts = ReadonlyMap<string, string | null>;

/** Changes of files, with the index that belongs to them. */
function planRewrites(
  now: Shelf,
  after: Texts,
  { parse, episodes, tasks }: Pick<IndexInput, 'episodes' | 'tasks'> & { readonly parse: Parse },
): readonly PageRewrite[] {
  const texts = new Map(now.texts);
  for (const [name, text] of after) {
    if (text === null) texts.delete(name);
    else texts.set(name, text);
  }
  const next = runAtOnce(readShelf(texts, '', [], parse));
  const plans = findPlans(texts);
  const isEmpty = next.pages.size + next.others.size + plans.size + tasks.length === 0;
  if (!isEmpty || texts.has(PAGE_NAMES.index))
    texts.set(PAGE_NAMES.index, renderIndex({ ...next, plans, tasks, episodes: isEmpty ? [] : episodes }));
  if (!(isEmpty || texts.has(PAGE_NAMES.schema))) texts.set(PAGE_NAMES.schema, SCHEMA);
  return [...new Set([...now.texts.keys(), ...texts.keys()])].flatMap((name): PageRewrite[] => {
    const [before, text] = [now.texts.get(name) ?? null, texts.get(name) ?? null];
    return before === text ? [] : [{ name, before, after: text }];
  });
}

/** Titles by file name, without ending. */
export function findPlans(texts: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const plans = [...texts].filter(([name]) => name.startsWith('plans/'));
  return new Map(plans.map(([name, text]) => [getStem(name), findTitle(name, text)]));
}

/** Parses a text again only where it changed. */
function createPageParser() {
  const cache = new Map<string, { readonly text: string; readonly page: Page | string }>();
  const parse = (text: string, name: string): Page | string => {
    const before = cache.get(name);
    if (before?.text === text) return before.page;
    const page = parsePage(text);
    cache.set(name, { text, page });
    return page;
  };
  return Object.assign(parse, {
    keepOnly(texts: ReadonlyMap<string, string>): void {
      for (const name of cache.keys()) if (!texts.has(name)) cache.delete(name);
    },
  });
}

type Parse = (text: string, name: string) => Page | string;

/** The shelf of these files, but for whether it can be written. */
export function* readShelf(
  texts: ReadonlyMap<string, string>,
  dir: string,
  newProblems: readonly Problem[],
  parse: Parse = parsePage,
): Steps<Omit<Shelf, 'isWritable'>> {
  const pages = new Map<string, Page>();
  const others = new Map<string, string>();
  const problems = [...newProblems];
  for (const [name, text] of texts) {
    if (!name.startsWith('topics/')) continue;
    yield;
    const page = parse(text, name);
    if (typeof page !== 'string') pages.set(getStem(name), page);
    else others.set(getStem(name), findTitle(name, text));
    if (typeof page === 'string' && page !== 'has no front matter')
      problems.push({ file: `${dir}/${name}`, message: page });
  }
  return { texts, pages, others, problems };
}

const getStem = (name: string): string => name.slice(name.indexOf('/') + 1).replace(/\.md$/, '');

function findTitle(name: string, text: string): string {
  return /^# (.{1,200})$/m.exec(text.slice(0, 4_000))?.[1] ?? getStem(name);
}

/** Where no page is left, none was removed on purpose: then all begins again. */
function findPlaced({ texts, pages }: Shelf): ReadonlySet<string> {
  const read = State.safeParse(parseJson(texts.get(PAGE_NAMES.state) ?? ''));
  return new Set(read.success && pages.size > 0 ? read.data.placed : []);
}

function linker(nodes: ReadonlyMap<string, MemoryNode>, { getAddress }: PageFiles): NodeLinker {
  return (id, page = '') => {
    const node = nodes.get(id);
    return node === undefined ? '#' : `${'../'.repeat(page.split('/').length)}${getAddress(node)}#${id}`;
  };
}

/** The newest memory of each of the newest sessions. */
export function getEpisodes(nodes: readonly MemoryNode[], { getAddress }: Pick<PageFiles, 'getAddress'>): Episode[] {
  const bySession = new Map<string, MemoryNode>();
  for (const node of nodes) {
    if (node.kind !== 'turn' || isRedirect(node) || isPast(node) || !isCleanOrigin(getTitleOrigin(node))) continue;
    const session = bySession.get(node.session_id);
    if (session === undefined || session.valid_from < node.valid_from) bySession.set(node.session_id, node);
  }
  const newest = [...bySession.values()].sort(
    (one, other) => compareText(other.valid_from, one.valid_from) || compareText(other.node_id, one.node_id),
  );
  return newest.slice(0, EPISODES).map((node) => {
    const { project, valid_from } = node;
    return { day: localDay(valid_from), title: getTitle(node), project, link: getAddress(node) };
  });
}
