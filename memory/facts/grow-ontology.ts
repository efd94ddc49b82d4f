import { compareText } from '../../common/text.ts';
import { getAnchors } from '../text/keywords.ts';
import { tokenize, uniqueTokens } from '../text/tokenizer.ts';
import type { Concept, Ontology } from './ontology.ts';

/** A decision, outcome or open item. */
export interface Statement {
  readonly text: string;
  readonly session_id: string;
  /** ISO time. */
  readonly at: string;
}

const LEAST = { statements: 4, sessions: 3 } as const;
/** What is spoken of for longer lasts. */
const LASTING_MS = 7 * 86_400_000;
const MOST = 10;
const EXAMPLES = 3;
const EXAMPLE_CHARS = 120;
/** A word: paths, figures and versions name no subject. */
const SUBJECT = /^\p{L}[\p{L}-]{2,29}$/u;

/** Subjects that several sessions speak of and no concept names, the most frequent first. */
export function proposeConcepts(statements: readonly Statement[], ontology: Ontology) {
  const names = new Set(
    Object.entries(ontology.concepts).flatMap(([name, { label, examples }]) =>
      uniqueTokens([name.replace(/([a-z])([A-Z])|\./g, '$1 $2'), label, ...examples].join(' ')),
    ),
  );
  const bySubject = new Map<string, { readonly word: string; readonly own: Statement[] }>();
  for (const statement of statements) {
    for (const word of getAnchors(statement.text)) {
      const [token, ...rest] = tokenize(word);
      if (token === undefined || rest.length > 0 || names.has(token) || !SUBJECT.test(word)) continue;
      const entry = bySubject.get(token) ?? { word, own: [] };
      entry.own.push(statement);
      bySubject.set(token, entry);
    }
  }
  return [...bySubject.values()]
    .map(({ word, own }) => getProposal(word.toLowerCase(), own))
    .filter((each) => each.statements >= LEAST.statements && each.sessions >= LEAST.sessions)
    .sort((one, other) => other.statements - one.statements || compareText(one.name, other.name))
    .slice(0, MOST);
}

function getProposal(subject: string, own: readonly Statement[]) {
  const times = own.map(({ at }) => Date.parse(at));
  const lasts = Math.max(...times) - Math.min(...times) >= LASTING_MS;
  const fitting = [...new Set(own.map(({ text }) => text))].filter((text) => text.length <= EXAMPLE_CHARS);
  return {
    name: `Project.${subject.replace(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase())}`,
    concept: {
      label: `what holds about ${subject}`,
      examples: fitting.toSorted((one, other) => one.length - other.length).slice(0, EXAMPLES),
      persistence_class: lasts ? 'long_term' : 'session',
      salience_weight: 0.6,
      cardinality: 5,
      eviction: 'recency',
    } satisfies Concept,
    /** Statements about the subject, and sessions that they are of. */
    statements: own.length,
    sessions: new Set(own.map(({ session_id }) => session_id)).size,
  };
}
