import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import { textVector } from '../embeddings/static-embedder.ts';
import { getLines, type Page, toSlug } from '../model/page.ts';
import { hasInstructions } from '../recall/quarantine.ts';
import { isRelevant, leastCoverage, measureCoverage, type QueryTerms } from '../recall/relevance-filter.ts';
import { tokenize } from '../text/tokenizer.ts';

/** A section of a topic page, or the facts of a concept, that a query found. */
export interface TopicHit {
  readonly kind: 'topic' | 'fact';
  /** As `topic:printers#toner`, which `readTopic` takes, or `fact:Project.Decision`. */
  readonly id: string;
  /** Name of the page. */
  readonly topic: string;
  readonly title: string;
  readonly section: string;
  /** Its lines that say most of the query, in their order. */
  readonly lines: readonly string[];
  /** Memories that these lines rest on; none for a person's lines. */
  readonly nodes: readonly string[];
  readonly origin: Origin;
  /** Share of the query's weight that page title, section and lines contain, 0 to 1. */
  readonly score: number;
  readonly fits: boolean;
}

export interface SectionQuery {
  readonly terms: QueryTerms;
  /** The query asks for what was so once. */
  readonly past: boolean;
  readonly minCoverage: number;
  readonly top: number;
  /** Sections that rest on these memories alone are left out. */
  readonly told: readonly string[];
  /** False for a memory that is gone or may not be shown. */
  readonly isShown: (nodeId: string) => boolean;
  readonly redact: (text: string) => string;
}

export interface TopicPage {
  readonly name: string;
  readonly title: string;
  readonly page: Pick<Page, 'lines'>;
}

type Section = ReturnType<typeof readSections>[number];

const MOST_LINES = 4;
const MOST_CHARS = 600;
const PAST = 'before';
const REPORTED = 'reported';
const sectionCache = new WeakMap<object, readonly Section[]>();

/** Sections by what they share with the query, best first; those without a common word are left out. */
export function searchSections(pages: readonly TopicPage[], query: SectionQuery): TopicHit[] {
  return pages
    .flatMap((page) => getSections(page).flatMap((section) => getHit(page, section, query) ?? []))
    .filter(({ nodes }) => nodes.length === 0 || !nodes.every((id) => query.told.includes(id)))
    .sort((one, other) => Number(other.fits) - Number(one.fits) || other.score - one.score)
    .slice(0, query.top);
}

/** A page object stands for one text: an edited page is another object. */
function getSections(topic: TopicPage): readonly Section[] {
  const sections = sectionCache.get(topic.page) ?? readSections(topic);
  sectionCache.set(topic.page, sections);
  return sections;
}

function readSections({ title, page }: TopicPage) {
  const lines = getLines(page).map(({ section, raw, statement }) => {
    const text = statement?.text ?? raw.trim().replace(/^[-*+] /, '');
    return { section, text, nodes: statement?.nodes ?? [], tokens: new Set(tokenize(text)) };
  });
  return [...new Set(lines.map(({ section }) => section))].map((name) => ({
    name,
    lines: lines.filter(({ section }) => section === name),
    tokens: new Set(tokenize(`${title} ${name}`)),
  }));
}

function getHit(
  { name: topic, title }: TopicPage,
  { name, lines, tokens }: Section,
  { terms, past, minCoverage, isShown, redact }: SectionQuery,
): TopicHit | null {
  const kind = name.toLowerCase();
  if (kind === PAST && !past) return null;
  const own = lines.filter((line) => line.nodes.length === 0 || line.nodes.some(isShown));
  const sections = own
    .map((line, at) => ({ line, at, coverage: measureCoverage(terms, line.tokens) }))
    .filter(({ coverage, line }) => coverage > 0 && !hasInstructions(line.text))
    .sort((one, other) => other.coverage - one.coverage || one.at - other.at);
  let left = MOST_CHARS;
  const rest = sections.slice(0, MOST_LINES).filter(({ line }, at) => {
    left -= line.text.length;
    return at === 0 || left >= 0;
  });
  if (rest.length === 0) return null;
  const shown = rest.toSorted((one, other) => one.at - other.at).map(({ line }) => line);
  const score = measureCoverage(terms, new Set([...tokens, ...shown.flatMap((line) => [...line.tokens])]));
  const text = [title, name, ...shown.map((line) => line.text)].join('\n');
  // What memory wrote is of the user or the assistant; a page does not say which.
  const origins = shown.map(({ nodes }) => (nodes.length === 0 ? 'user' : 'assistant'));
  const origin: Origin = kind === REPORTED ? 'external' : lowestOrigin(origins);
  return {
    ...{ kind: 'topic', topic, title, section: name, score, origin },
    id: `topic:${topic}${toSlug(name) && `#${toSlug(name)}`}`,
    lines: shown.map(({ text }) => redact(text.slice(0, MOST_CHARS))),
    nodes: [...new Set(shown.flatMap(({ nodes }) => nodes))],
    fits: isCleanOrigin(origin) && isRelevant(score, terms, leastCoverage(minCoverage, terms, textVector(text))),
  };
}
