interface Item {
  /** An atom as written, or the opening of a group. */
  readonly text: string;
  readonly branches?: readonly (readonly Item[])[];
  /** `*`, `+`, `?`, `{m,n}`, or nothing. */
  readonly times: string;
}
type Branch = readonly Item[];

const TOKEN =
  /\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u[\da-fA-F]{4}|\\x[\da-fA-F]{2}|\\k<\w+>|\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]|\(\?(?:<[=!]|<\w+>|[:=!])|(?:[*+?]|\{\d+(?:,\d*)?\})\??|[\s\S]/gu;
const QUANTIFIER = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??$/;
const LOOKS = /^\(\?<?[=!]/;
const UNBOUNDED = /^(?:[*+]|\{\d+,\})/;
/** A few of each kind of character: enough that sets which meet in a pattern meet here too. */
const SAMPLES: Readonly<Record<string, string>> = {
  L: 'a-zA-Zéß中あ한',
  Ll: 'a-zéß',
  Lu: 'A-ZÉ',
  Lm: 'ʰ',
  Lo: '中あ한',
  N: '0-9',
  M: '\\u0301',
  Mn: '\\u0301',
  Cc: '\\0-\\x1f',
  Cf: '\\u200b',
  ASCII: '\\0-\\x7f',
  Surrogate: '\\ud800',
  Emoji_Presentation: '☺',
  Extended_Pictographic: '☺',
  'sc=Han': '中',
  'sc=Hangul': '한',
  'sc=Hiragana': 'あ',
  'sc=Katakana': 'ア',
};
/** More variants than this stay together in a group. */
const MOST_VARIANTS = 64;

/**
 * The patterns that a regular expression consists of: one for each way through its alternatives, because `a|b` takes the
 * time of `a` and that of `b`. Ways without an unbounded repetition are left out: each takes constant time per start.
 * Words, bounds and Unicode sets become small, which changes no growth and lets a checker finish.
 */
export function growingParts({ source, flags }: RegExp): RegExp[] {
  // Of a text without capitals, `i` changes nothing once the pattern has none.
  const foldCase = (token: string): string =>
    token.replaceAll(/\\[\s\S]|[A-Z]/g, (each) => (each.startsWith('\\') ? each : each.toLowerCase()));
  const tokens = [...source.matchAll(TOKEN)].map(([token]) =>
    flags.includes('i') ? foldCase(atom(token)) : atom(token),
  );
  let at = 0;
  const parse = (): Branch[] => {
    const branches: Item[][] = [[]];
    for (; at < tokens.length && tokens[at] !== ')'; at += 1) {
      const text = tokens[at] as string;
      if (text === '|') {
        branches.push([]);
        continue;
      }
      let inner: Branch[] | undefined;
      if (text === '(' || text.startsWith('(?')) {
        at += 1;
        inner = parse();
      }
      const next = tokens[at + 1] ?? '';
      const times = QUANTIFIER.test(next) ? next : '';
      if (times) at += 1;
      (branches.at(-1) as Item[]).push({ text, times, ...(inner && { branches: inner }) });
    }
    return branches;
  };
  const ways = parse().map(consumed).flatMap(waysThrough).filter(grows);
  const variants = ways.filter((way) => !isPlain(way, flags.includes('m')));
  const kept = flags.replaceAll(/[dgiuy]/g, '');
  return [...new Set(variants.map((variant) => atEdges(written(variant))))].map((part) => new RegExp(part, kept));
}

/** What must stand before or after a match takes as long as if it belonged to it. */
function consumed(branch: Branch): Branch {
  const last = branch.length - 1;
  return branch.map((item, at) =>
    (at === 0 && item.text === '(?<=') || (at === last && item.text === '(?=') ? { ...item, text: '(?:' } : item,
  );
}

const grows = (branch: Branch): boolean =>
  branch.some(({ times, branches = [] }) => UNBOUNDED.test(times) || branches.some(grows));

/** Sets in a row after which nothing can fail, or one loop over a set that is tried at the start of the text alone. */
function isPlain(way: Branch, hasLines: boolean): boolean {
  const first = way.findIndex((item) => grows([item]));
  const rest = way.slice(first + 1);
  if (way[first]?.branches !== undefined) return false;
  if (rest.every(({ branches, times }) => branches === undefined && times.startsWith('*'))) return true;
  return way[0]?.text === '^' && !hasLines && !grows(rest);
}

function waysThrough(branch: Branch): Branch[] {
  let ways: Branch[] = [[]];
  for (const item of branch) {
    const splits = item.branches !== undefined && !item.times && !LOOKS.test(item.text) && item.branches.some(grows);
    const inner = splits ? (item.branches ?? []).flatMap(waysThrough) : [[item]];
    const options = inner.length * ways.length > MOST_VARIANTS ? [[item]] : inner;
    ways = ways.flatMap((way) => options.map((option) => [...way, ...option]));
  }
  return ways;
}

/** @param isRepeated  within a repetition a shorter word could be taken for another */
function written(branch: Branch, isRepeated = false): string {
  let [text, word] = ['', 0];
  for (const item of branch) {
    word = /^[a-z]$/i.test(item.text) && !item.times ? word + 1 : 0;
    if (word > 1 && !isRepeated) continue;
    text += item.branches ? `${item.text}${alternatives(item, isRepeated)})` : item.text;
    text += shortTimes(item.times);
  }
  return text;
}

function alternatives({ branches = [], times }: Item, isRepeated: boolean): string {
  const within = isRepeated || (times !== '' && times !== '?');
  const texts = (within ? distinct(branches) : branches).map((branch) => written(branch, within));
  return (within ? texts : withoutLists([...new Set(texts)])).join('|');
}

/** Two of many words stand for all: no repetition tells them apart. */
function withoutLists(texts: readonly string[]): string[] {
  let words = 0;
  return texts.filter((text) => !/^[\p{L} ]+$/u.test(text) || ++words <= 2);
}

/** Of the word that a branch begins with, as much as tells it from the others. */
function distinct(branches: readonly Branch[]): Branch[] {
  const words = branches.map((branch) => {
    const end = branch.findIndex(({ text, times }) => times !== '' || !/^[\p{L} ]$/u.test(text));
    return branch.slice(0, end < 0 ? branch.length : end).map(({ text }) => text);
  });
  const isTaken = (prefix: string, own: number): boolean =>
    words.some((word, at) => at !== own && word.join('').startsWith(prefix));
  return branches.map((branch, own) => {
    const word = words[own] ?? [];
    const length = word.findIndex((_, at) => !isTaken(word.slice(0, at + 1).join(''), own)) + 1;
    return length === 0 ? branch : [...branch.slice(0, length), ...branch.slice(Math.max(length, word.length - 1))];
  });
}

const shortTimes = (times: string): string =>
  times.replace(/\{(\d+)(,?)(\d*)\}/, (_, least: string, comma: string, most: string) => {
    const low = Math.min(Number(least), 2);
    return `{${low}${comma}${most && Math.min(Number(most), 2)}}`;
  });

function atom(text: string): string {
  const isSet = text.startsWith('[');
  return text.replaceAll(/\\([pP])\{([^}]*)\}/g, (_, kind: string, name: string) => {
    const sample = SAMPLES[name];
    if (sample === undefined) throw new Error(`no sample of \\p{${name}}`);
    if (kind === 'p') return isSet ? sample : `[${sample}]`;
    if (isSet) throw new Error(`\\P within a set: ${text}`);
    return `[^${sample}]`;
  });
}

const SET = String.raw`(\\[wdsWDS]|\[(?:\\.|[^\]\\])*\])`;
/** What may not stand beside a match, said by what may: the checker's quick method knows no looking around. */
function atEdges(text: string): string {
  const other = (set: string): string =>
    set.startsWith('[^') ? `[${set.slice(2)}` : set.startsWith('[') ? `[^${set.slice(1)}` : `[^${set}]`;
  return text
    .replace(/^\\b(?=[\w(]|\\[wd])/, String.raw`(?:^|\W)`)
    .replace(/(?<!\\)\\b$/, String.raw`(?:$|\W)`)
    .replace(new RegExp(String.raw`^\(\?<!${SET}\)`), (_, set: string) => `(?:^|${other(set)})`)
    .replace(new RegExp(String.raw`\(\?!${SET}\)$`), (_, set: string) => `(?:$|${other(set)})`);
}
