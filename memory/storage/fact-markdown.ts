import YAML from 'yaml';
import { sha256, toRecord } from '../../common/text.ts';
import { type Fact, factSchema } from '../facts/fact.ts';
import { conceptNamed, type Ontology } from '../facts/ontology.ts';
import { getYaml } from '../model/page.ts';

/** A file of facts as it was read. */
export interface FactPage {
  readonly facts: readonly Fact[];
  readonly closed: readonly Fact[];
  /** Lines that are no facts; they are kept. */
  readonly others: readonly string[];
  /** Of list items that could not be read. */
  readonly problems: readonly string[];
}

const HEADINGS = { before: '## Before', others: '## Other lines' } as const;
const FIELDS = ['said', 'by', 'salience', 'times', 'from', 'to', 'session', 'turn', 'id'] as const;
const ITEM = /^[-*+] ([A-Z][A-Za-z0-9.]*): (.*)$/;
const FIELD = / \[([a-z]+):: ((?:[^[\]\\]|\\.)*)\]$/;
const LINE_CHARS = 2_000;
const DIGITS = 10_000;
const ROUNDING = 1e-6;

const FRONT = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---\r?\n/;

/** '' for the user, else the key of a project; null where the front matter does not say. */
export function findScope(text: string): string | null {
  const { scope, project } = toRecord(getYaml(FRONT.exec(text)?.[1] ?? ''));
  if (scope === 'user') return '';
  return typeof project === 'string' && project !== '' ? project : null;
}

/** Reads a file whose scope is known. @param nowIso  when facts that were written by hand begin */
export function parseFactPage(text: string, ontology: Ontology, nowIso: string): FactPage {
  const page = { facts: [] as Fact[], closed: [] as Fact[], others: [] as string[], problems: [] as string[] };
  for (const raw of text.replace(FRONT, '').split(/\r?\n/)) {
    const line = raw.trim();
    if (line === '' || /^# Facts\b/.test(line) || Object.values(HEADINGS).includes(line as never)) continue;
    const fact = /^[-*+] /.test(line) ? readLine(line, ontology, nowIso) : null;
    if (fact === null || typeof fact === 'string') page.others.push(raw.trimEnd());
    else if (fact.valid_to !== null) page.closed.push(fact);
    else if (!page.facts.some(({ id, value }) => id === fact.id && value === fact.value)) page.facts.push(fact);
    if (typeof fact === 'string') page.problems.push(`${fact}: ${line.slice(0, 60)}`);
  }
  return page;
}

/** The text of a file; lines that are no facts come last. */
export function renderFactPage(scope: string, { facts, closed, others }: Omit<FactPage, 'problems'>): string {
  const head = scope === '' ? { scope: 'user' } : { scope: 'project', project: scope };
  const name = scope.split(/[\\/]/).findLast((part) => part !== '');
  const section = (title: string, lines: readonly string[]) => (lines.length === 0 ? [] : ['', title, '', ...lines]);
  const lines = [
    '---',
    YAML.stringify(head, { lineWidth: 0 }).trimEnd(),
    '---',
    ...section(name === undefined ? '# Facts about the user' : `# Facts (${name})`, [...facts.map(getLine), '']),
    ...section(HEADINGS.before, closed.map(getLine)),
    ...section(HEADINGS.others, others),
  ];
  return `${lines.join('\n').trimEnd()}\n`;
}

/** `text` is `Concept: value`; a line `isOwn` where a person wrote it: it names no turn, and holds. */
export type FactLine = Readonly<Record<'raw' | 'text' | 'id' | 'turn', string>> & { readonly isOwn: boolean };

export function findFacts(text: string): FactLine[] {
  return text.split(/\r?\n/).flatMap((raw) => {
    const { rest, fields } = getFields(raw.trim());
    const [, concept, value = ''] = ITEM.exec(rest) ?? [];
    if (concept === undefined) return [];
    const [id = '', turn = ''] = [fields.get('id'), fields.get('turn')];
    const isOwn = turn === '' && !fields.has('to');
    return [{ ...{ raw, id, turn, isOwn }, text: `${concept}: ${unescaped(value).trim()}` }];
  });
}

/** The text without these facts; the same text where it has none. */
export function withoutFacts(text: string, isRemoved: (fact: FactLine) => boolean): string {
  const removals = new Set(findFacts(text).flatMap((fact) => (isRemoved(fact) ? [fact.raw] : [])));
  if (removals.size === 0) return text;
  const lines = text.split(/\r?\n/);
  return lines.filter((line) => !removals.has(line)).join('\n');
}

/** The text of a scope's file with the lines of facts of another text that it does not have. */
export function withFactsOf(scope: string, before: string | null, other: string): string | null {
  const text = before ?? renderFactPage(scope, { facts: [], closed: [], others: [] });
  const here = findFacts(text).flatMap(({ id, text }) => [id, text]);
  const fresh = findFacts(other).filter(({ id, text }) => !here.includes(text) && (id === '' || !here.includes(id)));
  return fresh.length === 0 ? before : `${[text.trimEnd(), ...fresh.map(({ raw }) => raw)].join('\n')}\n`;
}

/** `Concept: value` as a line of a file. */
export function factLine(text: string): string {
  const at = text.indexOf(': ');
  return `- ${text.slice(0, at)}: ${escaped(text.slice(at + 2))}`;
}

function getLine(fact: Fact): string {
  const values: Readonly<Record<(typeof FIELDS)[number], string | null>> = {
    said: fact.evidence,
    by: fact.origin,
    salience: String(Math.floor(fact.salience * DIGITS + ROUNDING) / DIGITS),
    times: String(fact.asserted),
    from: fact.valid_from,
    to: fact.valid_to,
    session: fact.session_id,
    turn: fact.turn_id,
    id: fact.id,
  };
  const fields = FIELDS.flatMap((name) => (values[name] === null ? [] : [` [${name}:: ${escaped(values[name])}]`]));
  return `- ${fact.concept}: ${escaped(fact.value)}${fields.join('')}`;
}

const escaped = (text: string): string => text.replace(/\s+/g, ' ').replace(/[[\]\\]/g, '\\$&');

const unescaped = (text: string): string => text.replace(/\\(.)/g, '$1');

function getFields(line: string): { readonly rest: string; readonly fields: ReadonlyMap<string, string> } {
  const fields = new Map<string, string>();
  let rest = line;
  for (let match = FIELD.exec(rest); match !== null; match = FIELD.exec(rest)) {
    fields.set(match[1] as string, unescaped(match[2] as string));
    rest = rest.slice(0, match.index);
  }
  return { rest, fields };
}

/** A fact, or why the line is none. A line without fields is the user's own. */
function readLine(line: string, ontology: Ontology, nowIso: string): Fact | string {
  if (line.length > LINE_CHARS) return 'is too long';
  const { rest, fields } = getFields(line);
  const [, concept = '', text = ''] = ITEM.exec(rest) ?? [];
  const declared = conceptNamed(ontology, concept);
  if (concept === '' || text.trim() === '') return 'expected `- Concept: value`';
  if (declared === null) return `the ontology declares no ${concept}`;
  const value = unescaped(text).trim();
  const read = factSchema.safeParse({
    id: fields.get('id') ?? `fact_${sha256(`${concept}\n${value}`, 13)}`,
    concept,
    value,
    evidence: fields.get('said') ?? value,
    turn_id: fields.get('turn') ?? '',
    session_id: fields.get('session') ?? '',
    salience: Number(fields.get('salience') ?? declared.salience_weight),
    origin: fields.get('by') ?? 'user',
    asserted: Number(fields.get('times') ?? 1),
    valid_from: fields.get('from') ?? nowIso,
    valid_to: fields.get('to') ?? null,
  });
  return read.success ? read.data : `has an unclear ${read.error.issues[0]?.path.join('.') || 'field'}`;
}
