/** Not indexed and not searched for. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    'a an the of to in on at for and or is are was were be been do does did has have had i you he she it we they ' +
    'his her their my your our me him them this that these those with as by from what when where who which how why ' +
    'will would can could should if then than so not no about into'
  ).split(' '),
);

const ASCII = /^[\0-\x7f]*$/;
const PLAIN_RUN = /\w+/g;
const RUN = /[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*/gu;
const SCRIPT_RUN =
  /[\p{sc=Hangul}]+|[\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}ー]+|[^\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}ー]+/gu;
const CJK = /[\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}]/u;
const PART_EDGE =
  /_+|(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})|(?<=[\p{L}\p{M}])(?=\p{N})|(?<=\p{N})(?=\p{L})/u;
/** A run without a case, digit or script boundary. */
const PLAIN = /^(?:[A-Za-z][a-z]*|[0-9]+)$/;
/** LanceDB's tokenizer drops longer tokens. */
const MAX_TOKEN_POINTS = 64;
/** Longer runs are encoded data. */
const MAX_SPLIT_UNITS = 200;
/** Words recur, and splitting is the expensive part. */
const REMEMBERED_RUNS = 8_192;
/** Longer substrings would keep their whole source string in memory. */
const REMEMBERED_UNITS = 12;
const remembered = new Map<string, readonly string[]>();

/**
 * The tokenizer of both index and queries.
 *
 * Latin runs are split at case, digit and underscore boundaries and stemmed; runs of several parts are also kept whole.
 * Hangul, kana and Han become overlapping pairs.
 */
export function tokenize(text: string): string[] {
  const tokens: string[] = [];
  for (const run of getRuns(text)) for (const token of getTokens(run)) tokens.push(token);
  return tokens;
}

/** The runs of letters and digits of a text, to be passed to `getTokens`. */
export function getRuns(text: string): readonly string[] {
  return (ASCII.test(text) ? text.match(PLAIN_RUN) : text.normalize('NFKC').match(RUN)) ?? [];
}

export function getTokens(run: string): readonly string[] {
  const cached = remembered.get(run);
  if (cached !== undefined) return cached;
  const tokens: string[] = [];
  if (PLAIN.test(run)) pushPart(run, tokens);
  else {
    for (const [piece] of run.matchAll(SCRIPT_RUN)) {
      if (CJK.test(piece)) pushPairs(piece, tokens);
      else pushWord(piece, tokens);
    }
  }
  if (run.length > REMEMBERED_UNITS) return tokens;
  if (remembered.size === REMEMBERED_RUNS) remembered.clear();
  remembered.set(run, tokens);
  return tokens;
}

export const uniqueTokens = (text: string): string[] => [...new Set(tokenize(text))];

function pushPairs(run: string, tokens: string[]): void {
  const points = [...run];
  if (points.length === 1) tokens.push(run);
  for (let at = 0; at + 1 < points.length; at += 1) tokens.push(`${points[at]}${points[at + 1]}`);
}

function pushWord(run: string, tokens: string[]): void {
  const parts = run.length > MAX_SPLIT_UNITS ? [run] : run.split(PART_EDGE).filter((part) => part !== '');
  if (parts.length > 1) tokens.push(capped(run.toLowerCase()));
  for (const part of parts) pushPart(part, tokens);
}

function pushPart(part: string, tokens: string[]): void {
  const word = part.toLowerCase();
  if (!STOP_WORDS.has(word)) tokens.push(capped(stem(word)));
}

function capped(token: string): string {
  if (token.length <= MAX_TOKEN_POINTS) return token;
  return [...token].slice(0, MAX_TOKEN_POINTS).join('');
}

/** Light English stemming: plural; then -ing, -ed or -ly; then a final e. */
function stem(word: string): string {
  if (word.length < 4) return word;
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  const bare = withoutSuffix(singular(word));
  return bare.length > 4 && bare.endsWith('e') ? bare.slice(0, -1) : bare;
}

function singular(word: string): string {
  if (word.endsWith('sses')) return word.slice(0, -2);
  return /(?:[^suiSUI])s$/u.test(word) ? word.slice(0, -1) : word;
}

function withoutSuffix(word: string): string {
  if (word.length > 5 && word.endsWith('ing')) return undouble(word.slice(0, -3));
  if (word.length > 4 && word.endsWith('ed')) return undouble(word.slice(0, -2));
  if (word.length > 5 && word.endsWith('ly')) return word.slice(0, -2);
  return word;
}

function undouble(word: string): string {
  const last = word.at(-1);
  if (last === undefined || last !== word.at(-2) || 'lsz'.includes(last)) return word;
  return word.slice(0, -1);
}

const WRITTEN = /[^\s]/gu;
const PAIRED = /[\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}]/gu;
/** Of every `scriptVector`: hashed words and character pairs, compared where words are not set apart by spaces. */
export const SCRIPT_DIMENSIONS = 1_024;
/** Above this share a question is asked in that script. */
const MOSTLY = 0.3;

export const hasPairedScript = (text: string): boolean => text.search(PAIRED) >= 0;

export function isPairedScript(text: string): boolean {
  const written = text.match(WRITTEN)?.length ?? 0;
  return written > 0 && (text.match(PAIRED)?.length ?? 0) > MOSTLY * written;
}

/** Paths, options, identifiers of several parts, codes, and names that do not begin a sentence. */
const ENTITY =
  /(?<![\w/])--?[a-z][\w-]+|(?<![\w.@-])[\w.@-]*[\w@][/\\][\w./\\@-]+|\b\w+(?:[._]\w+)+\b|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}\w*\b|\b[A-Za-z]+\d\w*\b|(?<=[\p{Ll},] )\p{Lu}\p{Ll}+/gu;

export function entityTokens(question: string): string[] {
  return [...new Set([...question.matchAll(ENTITY)].flatMap(([name]) => uniqueTokens(name)))];
}
