import type { Config } from '../../common/config.ts';
import { CometError, type Problem } from '../../common/errors.ts';
import { grouped } from '../../common/map.ts';
import { compareText, oneLine } from '../../common/text.ts';
import { lowestOrigin } from '../../common/turn.ts';
import type { Fact } from '../facts/fact.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { getLines, type Page, type PageHead, toSlug } from '../model/page.ts';
import { isQuarantined } from '../recall/quarantine.ts';
import { asksPast } from '../recall/query.ts';
import { UNSEEN, weighTerms } from '../recall/relevance-filter.ts';
import { PAGE_NAMES } from '../storage/page-files.ts';
import { contentTokens } from '../text/keywords.ts';
import { countStatements } from './index-page.ts';
import type { LibraryPages, Shelf } from './library-pages.ts';
import { type SectionQuery, searchSections, type TopicHit } from './topic-search.ts';

/** A topic page as commands and tools list it. */
export interface TopicView extends Pick<PageHead, 'title' | 'scope' | 'project'> {
  /** File name without folder and ending. */
  readonly name: string;
  /** As `2026-03-01`; null for a page in a person's own form, which is the user's. */
  readonly updated: string | null;
  readonly statements: number;
}

export interface TopicText extends TopicView {
  /** Lines with text; headings of the second level are `section`. */
  readonly lines: readonly { readonly section: string; readonly text: string; readonly reported: boolean }[];
}

type Pages = Pick<Shelf, 'texts' | 'pages' | 'others' | 'problems'>;

const LINK = /\[(mem_\d{8}_\d{6}_[0-9a-f]{6})\]\([^()\s]*\)/g;

interface Parts extends Pick<ServiceParts, 'getProject' | 'redactor' | 'index' | 'catalogue'> {
  readonly topicPages: Pick<LibraryPages, 'shelf'>;
  readonly facts: { list(project: string | null): Promise<{ readonly facts: readonly Fact[] }> };
  readonly config: Pick<Config, 'recall'>;
}

/** With the topics of the user; of every project where it is not given. */
type TopicFilter = { readonly projectDir?: string };

interface TopicSearch extends TopicFilter, Pick<SectionQuery, 'top'>, Partial<Pick<SectionQuery, 'told'>> {}

export function createTopics({ topicPages, facts, getProject, redactor, index, catalogue, config }: Parts) {
  const { shelf } = topicPages;
  const getKey = ({ projectDir }: TopicFilter) => (projectDir === undefined ? null : getProject(projectDir));
  return {
    listTopics: async (filter: TopicFilter) => listTopics(await shelf(), getKey(filter)),
    /** Facts and sections of pages, with the relevance filter of recall; reads both as they are now. */
    async searchTopics(query: string, { top, told = [], ...filter }: TopicSearch) {
      const project = getKey(filter);
      const tokens = contentTokens(query);
      const now = await shelf();
      const pages = listTopics(now, project).topics.map((topic) => ({ ...topic, page: getPage(now, topic.name) }));
      const toldTurns = new Set(told.flatMap((id) => catalogue.current(id)?.turns ?? []));
      const rows = (await facts.list(project)).facts.filter(({ turn_id }) => !toldTurns.has(turn_id));
      if (tokens.length === 0 || pages.length + rows.length === 0) return [];
      const idf = await index.termWeights([...tokens, UNSEEN], project === null ? {} : { project });
      const sectionQuery: SectionQuery = {
        ...{ top, told, terms: weighTerms(query, idf), past: asksPast(query), redact: redactor.text },
        minCoverage: config.recall.minCoverage,
        isShown(id) {
          const node = catalogue.current(id);
          return node !== undefined && !isQuarantined(node);
        },
      };
      return [...searchFacts(rows, sectionQuery), ...searchSections(pages, sectionQuery)].slice(0, top);
    },
    readIndex: async (): Promise<string> => redactor.text((await shelf()).texts.get(PAGE_NAMES.index) ?? ''),
    /** @throws CometError as `readTopic` */
    readTopic: async (name: string, filter: TopicFilter): Promise<TopicText> =>
      readTopic(await shelf(), name, { project: getKey(filter), redact: redactor.text }),
  };
}

function searchFacts(facts: readonly Fact[], query: SectionQuery): TopicHit[] {
  const byConcept = grouped(facts, ({ concept }) => concept);
  const lines = [...byConcept].flatMap(([concept, own]) => [
    `## ${concept}`,
    ...own.map(({ value }) => `- ${oneLine(value)}`),
  ]);
  return searchSections([{ name: 'facts', title: 'Facts', page: { lines } }], query).map((hit) => {
    const origin = lowestOrigin((byConcept.get(hit.section) ?? []).map((fact) => fact.origin));
    return { ...hit, kind: 'fact', id: `fact:${hit.section}`, origin };
  });
}

/** Newest first, then pages of a person's own; `problems` are pages that are skipped, and why. @param project  with those of the user; null for every project */
export function listTopics(shelf: Pages, project: string | null) {
  const own = [...shelf.pages].map(([name, page]) => getView(name, page));
  const others = [...shelf.others]
    .filter(([name]) => getProblem(shelf, name) === undefined)
    .map(([name, title]): TopicView => ({ name, title, scope: 'user', project: '', updated: null, statements: 0 }));
  const byAge = own
    .filter((topic) => project === null || topic.scope === 'user' || topic.project === project)
    .sort((one, other) => compareText(other.updated ?? '', one.updated ?? '') || compareText(one.name, other.name));
  return { topics: [...byAge, ...others], problems: shelf.problems };
}

/** By name, title or the id of a section; never by a path. @throws CometError `not_found`, `node_invalid` for a page that is skipped */
export function readTopic(
  shelf: Pages,
  input: string,
  { project, redact }: { readonly project: string | null; readonly redact: (text: string) => string },
): TopicText {
  const whole = input.trim().replace(/^topic:/, '');
  const { topics } = listTopics(shelf, project);
  const find = (text: string): TopicView | undefined => {
    const wanted = text.replace(/\.md$/, '');
    const problem = getProblem(shelf, wanted);
    if (problem !== undefined) throw new CometError('node_invalid', `${wanted}.md ${problem.message}`);
    return (
      topics.find(({ name }) => name === wanted) ??
      topics.find(({ name, title }) => name === toSlug(wanted) || title.toLowerCase() === wanted.toLowerCase())
    );
  };
  const at = whole.lastIndexOf('#');
  const page = find(whole);
  const topic = page ?? (at < 0 ? undefined : find(whole.slice(0, at)));
  const part = page === undefined ? toSlug(whole.slice(at + 1)) : null;
  const lines = topic === undefined ? [] : getLines(getPage(shelf, topic.name));
  const shown = lines.filter(({ section }) => part === null || toSlug(section) === part);
  if (topic === undefined || (part !== null && shown.length === 0))
    throw new CometError('not_found', `no topic ${JSON.stringify(input)} here`);
  return {
    ...topic,
    lines: shown.map(({ section, raw }) => {
      const text = redact(raw.trimEnd().replace(LINK, '$1'));
      // What came from outside is a claim, also where a person wrote the heading.
      return { section, text, reported: section.toLowerCase() === 'reported' };
    }),
  };
}

/** A page in a person's own form has lines alone. */
function getPage({ pages, texts }: Pages, name: string): Pick<Page, 'lines'> {
  return pages.get(name) ?? { lines: (texts.get(`topics/${name}.md`) ?? '').split(/(?<=\n)/) };
}

function getView(name: string, page: Page): TopicView {
  const { title, scope, project, updated } = page.head;
  return { name, title, scope, project, updated, statements: countStatements(page) };
}

function getProblem({ problems }: Pages, name: string): Problem | undefined {
  return problems.find(({ file }) => file.endsWith(`/topics/${name}.md`));
}
