import path from 'node:path';
import { runInSlices, type Steps } from '../../common/async.ts';
import type { Problem } from '../../common/errors.ts';
import { grouped } from '../../common/map.ts';
import { decodePercent } from '../../common/text.ts';
import { getLines, type Page } from '../model/page.ts';
import { createEnding } from './merge-pages.ts';
import { getAttribute } from './statement.ts';

export interface PageProblem {
  /** As in `topics/x.md`. */
  readonly file: string;
  /** Line number from 1; null for a problem of the whole file. */
  readonly line: number | null;
  readonly kind: 'contradiction' | 'source_gone' | 'orphan' | 'dead_link' | 'too_long' | 'unreadable';
  readonly message: string;
}

interface LintInput {
  /** Texts by file name. */
  readonly texts: ReadonlyMap<string, string>;
  readonly pages: ReadonlyMap<string, Page>;
  readonly problems: readonly Problem[];
  readonly isNode: (id: string) => boolean;
}

const MOST_PAGE_LINES = 300;
const MOST_INDEX_LINES = 200;
const INDEX = 'INDEX.md';
const LINK = /\]\(([^()\s#]{1,300})(?:#[^()\s]{0,200})?\)/g;

/** What a person should look at in the library, in order of files. */
export async function lintPages(input: LintInput): Promise<PageProblem[]> {
  const { texts, pages, problems } = input;
  const unreadable = problems.map((each): PageProblem => ({ ...each, line: null, kind: 'unreadable' }));
  const near = grouped([...pages], ([, { head }]) => `${head.scope} ${head.project}`);
  const contrary = await Promise.all([...near.values()].map((own) => runInSlices(contradictions(own))));
  const all = [
    ...unreadable,
    ...[...pages].flatMap(([name, page]) =>
      getLines(page).flatMap(({ at, statement }): PageProblem[] => {
        if (statement === null || statement.nodes.some(input.isNode)) return [];
        const message = `no memory says this any more: ${statement.text}`;
        return [{ file: `topics/${name}.md`, line: lineNumber(page, at), kind: 'source_gone', message }];
      }),
    ),
    ...contrary.flat(),
    ...linkProblems(texts),
    ...[...texts].flatMap(([file, text]): PageProblem[] => {
      const most = file === INDEX ? MOST_INDEX_LINES : MOST_PAGE_LINES;
      const lines = text.split('\n').length - 1;
      if (lines <= most || !file.endsWith('.md') || file.startsWith('plans/')) return [];
      return [{ file, line: null, kind: 'too_long', message: `has ${lines} lines, more than ${most}` }];
    }),
  ];
  return all.sort((one, other) => (one.file < other.file ? -1 : Number(one.file > other.file)));
}

/** Statements that hold now although a newer one of the same project ends them. */
function* contradictions(pages: readonly (readonly [string, Page])[]): Steps<PageProblem[]> {
  const current: ReturnType<typeof findCurrent> = [];
  for (const [name, page] of pages) {
    yield;
    current.push(...findCurrent(name, page));
  }
  const problems: PageProblem[] = [];
  for (const former of current) {
    yield;
    const next = current.find(
      (other) => other.at !== former.at && other.since > former.since && other.ending.ends(former.ending.asEntry),
    );
    if (next === undefined) continue;
    const message = `“${former.text}” and, later, “${next.text}” (${next.at})`;
    problems.push({ file: former.file, line: former.line, kind: 'contradiction', message });
  }
  return problems;
}

function findCurrent(name: string, page: Page) {
  return getLines(page).flatMap(({ at, section, statement }) => {
    if (statement === null || section === 'Before' || section === 'Reported') return [];
    const { text, validFrom: since = '' } = statement;
    const ending = createEnding({ text, attribute: getAttribute(text) });
    const file = `topics/${name}.md`;
    const line = lineNumber(page, at);
    return since === '' ? [] : [{ at: `${file}:${line}`, file, line, text, since, ending }];
  });
}

/** @param at  index in the lines after the front matter */
const lineNumber = ({ front }: Page, at: number): number => front.length + at + 1;

function linkProblems(texts: ReadonlyMap<string, string>): PageProblem[] {
  const linked = new Set<string>();
  const dead: PageProblem[] = [];
  for (const [file, text] of texts) {
    for (const [, address = ''] of text.matchAll(LINK)) {
      const to = path.posix.join(path.posix.dirname(file), decodePercent(address) ?? address);
      if (file !== to) linked.add(to);
      const isOwn = /^(?:topics|plans)\/.+\.md$/.test(to);
      if (isOwn && !texts.has(to)) dead.push({ file, line: null, kind: 'dead_link', message: `there is no ${to}` });
    }
  }
  const orphans = [...texts.keys()].filter(
    (name) => name.startsWith('topics/') && texts.has(INDEX) && !linked.has(name),
  );
  const message = 'nothing links to it; comet-cc dream writes the index again, and lists the newest topics only';
  return [...dead, ...orphans.map((file): PageProblem => ({ file, line: null, kind: 'orphan', message }))];
}
