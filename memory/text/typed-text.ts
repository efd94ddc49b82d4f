import { tally } from '../../common/map.ts';
import { REVISES } from './sentences.ts';
import type { Statement } from './statements.ts';

const SHELL_PROMPT = /^\s*[$%❯➜!]\s+\S/;
/** Signs of a line that a program wrote. */
const OUTPUT: readonly RegExp[] = [
  /^\s*(?:[$%❯➜]\s|>>> |\+{3} |-{3} |@@ |diff --git |index [0-9a-f]{6,})/,
  /^\s*(?:at\s\S{1,200}\s?\(|File "[^"]{1,300}", line \d|Traceback |goroutine \d|Caused by: |\d{1,6}\s*[|│]|[├└│┌╭╰])/,
  /^\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d/,
  /^\s*\[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|PASS|FAIL|npm ERR!|error\[E\d+\])\b[\]: \t]/,
  /^\s*(?:not )?ok(?: {2}|\t| \d+ (?:-|#) )|^(?:remote|fatal|error|warning|hint|panic): |^(?:unknown (?:command|subcommand|option|(?:shorthand )?flag)\b|Did you mean (?:this|one of these)\?)/,
  /^\s*(?:[{}[\]](?:,|\s|$)|"[^"]{1,80}"\s*:|<\/?[a-z][\w-]{0,40}[^>]{0,200}>\s*$)/,
  /^\s*(?:={3,}|-{3,}|\*{3,}|_{3,})/,
  /^\s*\||^\s{4,}>\s/,
  /^[^\s]{200,}/,
  /^[+-](?:\s{2,}|\t)|^\s*(?:\/\/|[)}\]])|^\s*(?:create mode|\d+ files? changed|[✓✗×✔✖] )/,
];
/** A line that is typed may end so too, alone or in a short prompt. */
const UNSURE = /[{};]\s*$|:\s+\/[\w.-]+\/[\w.-]\S*$/;
/** A paragraph with this share of such lines, or of this many lines that are no sentences, is output as a whole. */
const OUTPUT_SHARE = 0.3;
const OUTPUT_LINES = 5;
/** The fewest lines of plain words, without full stops, that make a paragraph a list. */
const LIST_LINES = 3;
/** The largest share of digits and signs in a line of plain words. */
const SIGNS = 0.1;
/** In hard-wrapped prose, every line but the last is at least this long. */
const WRAPPED_CHARS = 50;
const SENTENCE = /[.?!,;:。？！，]["')\]]?\s*$|^\s*(?:[-*•]|\d{1,2}[.)])\s/;
/** So far in only a program begins the line after its own. */
const DEEP = /^(?: {4}|\t)/;
const COMMAND_LINE = /^\/[\w:-]{1,60}\s*$/;
const FENCE = /^\s{0,6}(```|~~~)/;
const LINE_CHARS = 1_000;
/** Further in it is of a terminal. */
const QUOTE_LINE = /^ {0,3}>\s/;
const WHOLE_SENTENCE = /[.?!。？！]["')\]]?\s*$/;
/** Of a prompt of one line, such as what `#` once saved to CLAUDE.md. */
const ONE_HEADING = /^#{1,3} {1,3}(?=[^\n]+$)/;
/** Stands for what is left out between typed lines. */
const GAP = '…';

type Mark = 'typed' | 'output' | 'blank' | 'fenced';

function isPlain(line: string): boolean {
  return !DEEP.test(line) && /\p{L} \p{L}/u.test(line) && line.replace(/[\p{L}\s]/gu, '').length <= line.length * SIGNS;
}

/** @returns the lines that are items of a list */
function markParagraphs(lines: readonly string[], marks: Mark[]): Set<number> {
  const items = new Set<number>();
  for (let from = 0; from < marks.length; ) {
    let to = from;
    while (to < marks.length && marks[to] !== 'blank' && marks[to] !== 'fenced') to += 1;
    const own = lines.slice(from, to);
    const output = marks.slice(from, to).filter((mark) => mark === 'output').length;
    const isLoose = own.filter((line) => SENTENCE.test(line)).length < own.length * OUTPUT_SHARE;
    const mayBeList = isLoose && output === 0 && own.length >= LIST_LINES;
    const isTyped = mayBeList && own.filter((line) => !isPlain(line)).length < own.length * OUTPUT_SHARE;
    const isList = isTyped && own.slice(0, -1).some((line) => line.length < WRAPPED_CHARS);
    if (isList) for (let at = from; at < to; at += 1) if (!SENTENCE.test(lines[at] as string)) items.add(at);
    const isLog = isLoose && !isTyped && own.length >= OUTPUT_LINES;
    // The first line may introduce what was pasted.
    const start = SENTENCE.test(own[0] ?? '') && marks[from] === 'typed' ? from + 1 : from;
    // What follows a command of a shell is its output.
    const command = own.findIndex((line) => SHELL_PROMPT.test(line));
    if (command >= 0) marks.fill('output', from + command, to);
    if (own.length > 2 && (isLog || output >= own.length * OUTPUT_SHARE)) marks.fill('output', start, to);
    for (let at = from + 1; at < to; at += 1) {
      if (marks[at - 1] === 'output' && DEEP.test(lines[at] as string)) marks[at] = 'output';
    }
    from = to + 1;
  }
  return items;
}

/** Between two pieces of output only a sentence, or what speaks as a person does, was typed. */
function markBetween(lines: readonly string[], marks: Mark[]): void {
  const isTyped = (at: number): boolean =>
    marks[at] === 'fenced' || WHOLE_SENTENCE.test(lines[at] as string) || OWN_WORDS.test(lines[at] as string);
  let last = -1;
  for (let at = 0; at < marks.length; at += 1) {
    if (marks[at] !== 'output') continue;
    const between = Array.from({ length: at - last - 1 }, (_, by) => last + 1 + by);
    if (last >= 0 && !between.some(isTyped)) marks.fill('output', last, at);
    last = at;
  }
}

const OPENING = /<([a-z]+(?:[-_][a-z]+)+)(?:\s[^<>]{0,300})?>/g;
const MOST_UNCLOSED = 20;
/** Colors of a terminal. */
const ESCAPES = /(?!\s)\p{Cc}\[[0-9;]{0,12}[A-Za-z]/gu;

/** The user's text without markup of the client, code blocks, quotes, and lines that a program wrote: `…` for each. */
export function typedText(text: string): string {
  const lines = withoutMarkup(text).replace(ESCAPES, '').replaceAll('’', "'").split(/\r?\n/);
  let fence: string | undefined;
  const signs = lines.length === 1 || text.length <= SURELY_TYPED ? OUTPUT : [...OUTPUT, UNSURE];
  const marks = lines.map((whole): Mark => {
    const line = whole.slice(0, LINE_CHARS);
    const mark = FENCE.exec(line)?.[1];
    if (fence !== undefined || mark !== undefined) {
      if (fence === undefined || mark === fence) fence = fence === undefined ? mark : undefined;
      return 'fenced';
    }
    if (line.trim() === '') return 'blank';
    if (QUOTE_LINE.test(line)) return 'fenced';
    return signs.some((sign) => sign.test(line)) ? 'output' : 'typed';
  });
  const items = markParagraphs(lines, marks);
  markBetween(lines, marks);
  if (marks.some((mark, at) => mark === 'typed' && !COMMAND_LINE.test(lines[at] as string))) {
    for (const [at, line] of lines.entries()) if (COMMAND_LINE.test(line)) marks[at] = 'blank';
  }
  const isLeft = (at: number): boolean => marks[at] === 'output' || marks[at] === 'fenced';
  const kept = lines.flatMap((line, at) =>
    isLeft(at) ? (isLeft(at - 1) ? [] : [GAP]) : marks[at] === 'blank' ? [''] : [items.has(at) ? `- ${line}` : line],
  );
  const isSaid = (line: string): boolean => line !== '' && line !== GAP;
  return kept
    .slice(Math.max(kept.findIndex(isSaid), 0), kept.findLastIndex(isSaid) + 1)
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
    .replace(ONE_HEADING, '')
    .replace(/[:：]$/, `$& ${GAP}`);
}

/** Client tags such as `<task-notification>` have a hyphen or an underscore in their name; what is in them was not typed. */
export function withoutMarkup(text: string): string {
  const pieces: string[] = [];
  const unclosed = new Set<string>();
  let at = 0;
  for (const match of text.matchAll(OPENING)) {
    const [opening, name = ''] = match;
    if (match.index < at || unclosed.has(name) || unclosed.size > MOST_UNCLOSED) continue;
    const close = `</${name}>`;
    const end = text.indexOf(close, match.index + opening.length);
    if (end < 0) {
      unclosed.add(name);
      continue;
    }
    pieces.push(text.slice(at, match.index));
    at = end + close.length;
  }
  return [...pieces, text.slice(at)].join('');
}

/** So short a prompt is typed, and so short a line. */
const SURELY_TYPED = 120;
const TYPED_LINE = 180;
/** Of a longer one only the first and the last paragraph decide. */
const TYPED_CHARS = 700;
/** Words of the answer before that a prompt repeats. */
const REPEATED_LETTERS = 30;
const LEAD = /^([^:：`]{12,200}[:：])\s(.{40,})$/s;
/** A lead-in to what somebody else wrote: all that follows it is theirs. */
const REPORTS =
  /\b(?:got|received|this|these|following|his|her|their|from|[a-z]+'s) (?:code )?(?:feedback|comments?|review|message|mail|reply|answer)\b[^:：]{0,120}[:：]\s*$|\b(?!i\b|we\b)[a-z]+ (?:also )?(?:wrote|said|says|writes|replied|commented)[^:：]{0,60}[:：]\s*$/i;
/** The user may end a report with a word of their own. */
const LAST_WORD_CHARS = 120;
/** An id, a date with an id. */
const RECORD = /^\d[\w-]{9,}\s/;
const SPEAKS_OF_SELF =
  /\b(?:i|i'(?:m|d|ll|ve)|me|my|let'?s|hmm|ich|mir|mein\p{L}{0,2}|yo|\p{L}{2,12}[aei]mos|necesito|quiero|creo|je)\b|[?？]$/iu;
const OWN_WORDS =
  /\b(?:i|i'(?:m|d|ll|ve)|we|you|us|me|our|my|your|let'?s|please|pls|hmm|ok|okay|yes|yeah|thanks|ich|wir|mir|uns|(?:mein|unser)\p{L}{0,2}|bitte|yo|nos|nuestr[oa]s?|\p{L}{2,12}[aei]mos|por favor|puedes|necesito|quiero|creo|hola|gracias|je|nous|merci)\b|^(?:great|good|nice|perfect|cool|super|gut|prima|genial|perfecto|vale|bien|parfait)[.,!]|[?？]$|[\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}]/iu;
const STARTS_SMALL = /^\p{Ll}+[ ,'] ?\p{L}/u;

/** A statement of a prompt, divided into what the user says and what they only show; either may be ''. */
export interface SpokenStatement {
  readonly statement: Statement;
  readonly own: string;
  readonly shown: string;
}

/** The statements that the user says, and shows nothing in. */
export const getOwn = (spoken: readonly SpokenStatement[]): Statement[] =>
  spoken.flatMap(({ statement, shown }) => (shown === '' ? [statement] : []));

/**
 * Whose words the statements of a prompt are, by paragraphs: one that speaks as a person does is the user's, one that is
 * led in, copied from a terminal or repeats the answer before is shown.
 * @param typed  the text of all statements
 * @param heard  what the assistant said before
 */
export function findSpoken(statements: readonly Statement[], typed: string, heard: string): SpokenStatement[] {
  const heardLetters = getLetters(heard);
  const repeats = (text: string): boolean => {
    const letters = getLetters(text);
    return letters.length >= REPEATED_LETTERS && heardLetters.includes(letters);
  };
  const isShort = typed.length <= SURELY_TYPED;
  const isLine = typed.length <= TYPED_LINE && !typed.includes('\n');
  const edges = [statements[0]?.block, statements.at(-1)?.block];
  const speaking = isLine ? new Set(edges) : speakingBlocks(statements);
  let shownBlock = -1;
  let isReported = false;
  return statements.map((statement): SpokenStatement => {
    const { text, block, isCopied, items } = statement;
    const own = { statement, own: text, shown: '' };
    const shown = { statement, own: '', shown: text };
    if (repeats(text) || RECORD.test(text)) return shown;
    const lead = statement.lead || (LEAD.exec(text)?.[1] ?? '');
    if (isReported) return block === edges[1] && text.length <= LAST_WORD_CHARS && isPersonal(text) ? own : shown;
    isReported = REPORTS.test(lead);
    if (isReported) return { statement, own: lead.trim(), shown: text.slice(lead.length).trim() };
    if (isShort) return isExcerpt(statement, statements) ? shown : own;
    const isOfSelf = SPEAKS_OF_SELF.test(text);
    if ((block === shownBlock && !isOfSelf) || (isCopied && lead === '') || !speaking.has(block)) return shown;
    if (typed.length > TYPED_CHARS && !edges.includes(block) && !isOfSelf) return shown;
    const rest = text.slice(lead.length).trim();
    if (lead === '' || (!isCopied && !repeats(rest) && (items.length > 0 || isPersonal(rest)))) return own;
    shownBlock = block;
    return { statement, own: lead.trim(), shown: rest };
  });
}

/** An item of a list that does not begin in the prompt. */
function isExcerpt({ text, number, block }: Statement, [first]: readonly Statement[]): boolean {
  const isLater = (first?.number ?? 0) > 1 && block === first?.block && number !== null;
  return isLater && getLetters(text).length >= REPEATED_LETTERS && !isPersonal(text);
}

/**
 * Paragraphs that begin like speech, ask a question, or mention the speaker. A paragraph that begins with a lower-case
 * name and continues with capitalized sentences is not casual typing.
 */
function speakingBlocks(statements: readonly Statement[]): Set<number> {
  const capitals = tally(statements.flatMap(({ text, block }) => (/^\p{Lu}/u.test(text) ? [block] : [])));
  const speaking = statements.filter(({ text, lead, items, block }, at) => {
    if (block === statements[at - 1]?.block) return SPEAKS_OF_SELF.test(text) || REVISES.test(text);
    if (OWN_WORDS.test(lead || text) || REVISES.test(text) || STARTS_SMALL.test(items[0]?.text ?? '')) return true;
    return STARTS_SMALL.test(lead || text) && (capitals.get(block) ?? 0) < 2;
  });
  return new Set(speaking.map(({ block }) => block));
}

const isPersonal = (text: string): boolean => OWN_WORDS.test(text) || STARTS_SMALL.test(text);

export const getLetters = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
