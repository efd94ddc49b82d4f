import { clip } from '../../common/text.ts';
import { contentTokens } from './keywords.ts';
import { splitSentences } from './sentences.ts';

/** The least text that may stand alone: sentences with those that turn them, a lead-in with what follows it. */
export interface Statement {
  readonly text: string;
  /** The heading above it; '' without one. */
  readonly heading: string;
  /** Of the list that it leads in, whole. */
  readonly items: readonly Item[];
  /** The text with its outer items cut, so that all have room; the text itself without items. */
  readonly short: string;
  /** Its own number where it is an item; null where it has none. */
  readonly number: number | null;
  /** What of the text leads in the rest; '' where nothing does. */
  readonly lead: string;
  /** Paragraph or item, counted from the start of the text: statements of one have the same. */
  readonly block: number;
  /** It, or what it leads in, is indented or padded as text of a terminal is. */
  readonly isCopied: boolean;
}

interface Item {
  readonly text: string;
  readonly number: number | null;
  /** Of a row of a table, its first and last cell; '' of others. */
  readonly short: string;
  /** Of an item above it. */
  readonly isNested?: boolean;
}

/** Of a longer text the beginning and the end are read. */
const READ_CHARS = 60_000;
const LINE_CHARS = 2_000;
/** A lead-in takes this much of the list, table or code that follows it. */
const FOLLOWING_CHARS = 300;
const CODE_CHARS = 160;
const CODE_LINES = 2;
const TABLE_ROWS = 8;
const LEAD_CHARS = 90;
/** A lead-in with this many words of content says something without what follows. */
const TELLING_WORDS = 5;
/** A lead-in that says only that something follows. */
const ANNOUNCES =
  /^(?:there (?:are|is)|here|compare|for example|based on|found|across)\b|\b(?:here(?:'s| is| are)|(?:the )?following|below|examples?|looking at)\b|\b(?:like|such as|is|are|be|to|in|at|from|with|for|as|that|this|runs?|because|approach(?:es)?|options?|follows|include[sd]?|contain(?:s|ing)|see|shows?|returns?|summary|structure)[:：]$|\)[:：]$/iu;

const FENCE = /^\s{0,6}(```|~~~)/;
const HEADING = /^\s{0,3}#{1,6}\s+(\S.*)$/;
const BOLD_LINE = /^\s{0,8}\*\*([^*]{1,100})\*\*\s{0,3}:?\s{0,3}\p{Extended_Pictographic}?\s*$/u;
/** A letter stays in the text. */
const ITEM = /^\s{0,12}(?:(?:[-*+•]|(?:\*\*)?(\d{1,3})[.)])\s+|(?=(?:\*\*)?[A-H][.)](?:\*\*)?\s))/;
/** A paragraph that begins so, or is filled up to the width of a terminal. */
const INDENTED = /^(?: {2,}|\t)\S/;
const PADDED = /\S {8,}(?:\S|$)/;
const LEAD_IN = /[:：]$/;
/** A heading that says what it announces: `Recommendation: keep one table`. */
const STATES =
  /^(?:[\p{L}'-]+ ){0,3}(?:recommend\w{2,7}|verdict|conclusion|decision|answer|cause|fix|solution|problem|issue|bottom line|tl;?dr|fazit|empfehlung|entscheidung|antwort|ursache|lösung|recomendación|conclusión|decisión|respuesta|causa|solución)(?: \([^)]{1,30}\))?: \S+ \S/iu;
/** A sentence that begins so corrects or limits the one before it. */
const TURN =
  /^(?:(?:but|however|though|although|actually|instead|except|unless|otherwise|that said|on second thought|(?:and )?not|i(?:'d| would) rather|aber|allerdings|jedoch|doch|stattdessen|sondern|pero|sin embargo|mais|cependant)(?![\p{L}\p{N}_-])|但|不过|然而|하지만|그러나|그런데|しかし|でも)/iu;
const EMOJI = /\p{Emoji_Presentation}|\u26A0|\u2713|\u2714|\uFE0F/gu;

type Block =
  | { readonly kind: 'prose'; readonly text: string; readonly isCopied: boolean }
  | {
      readonly kind: 'item';
      readonly text: string;
      readonly number: number | null;
      readonly indent: number;
      readonly isCopied: boolean;
    }
  | { readonly kind: 'code'; readonly lines: readonly string[] }
  | { readonly kind: 'table'; readonly rows: readonly string[][] }
  | { readonly kind: 'heading'; readonly text: string };

/** Statements of a markdown text in order. Code blocks and tables appear only after a lead-in, and short. */
export function findStatements(text: string): readonly Statement[] {
  const statements: Statement[] = [];
  const blocks = getBlocks(bothEnds(text));
  let heading = '';
  for (let at = 0; at < blocks.length; at += 1) {
    const block = blocks[at] as Block;
    const leads = block.kind === 'heading' && /^(?:item|table)$/.test(blocks[at + 1]?.kind ?? '');
    if (block.kind === 'heading') heading = plain(block.text).replace(LEAD_IN, '');
    const states = block.kind === 'heading' && !leads && STATES.test(heading);
    if (!leads && !states && block.kind !== 'prose' && block.kind !== 'item') continue;
    const sentences = leads ? [`${heading}:`] : states ? [heading] : withTurns(splitSentences(plain(block.text)));
    const last = sentences.at(-1) ?? '';
    const follows = LEAD_IN.test(last) ? getFollowing(blocks, at + 1) : null;
    if (follows !== null) sentences.pop();
    const number = block.kind === 'item' ? block.number : null;
    const place = { heading, number, block: at, isCopied: isCopied(block) };
    for (const sentence of sentences)
      statements.push({ ...place, text: sentence, short: sentence, items: [], lead: '' });
    if (follows === null) continue;
    const lead = leads && last.length > LEAD_CHARS ? '' : `${last} `;
    if (follows.text !== '') {
      const { text, items } = follows;
      const short = `${lead}${items.length === 0 ? text : showItems(shortItems(items))}`;
      statements.push({ ...place, text: `${lead}${text}`, short, items, lead, isCopied: isCopied(blocks[at + 1]) });
    } else if (contentTokens(last).length >= TELLING_WORDS && !ANNOUNCES.test(last)) {
      const text = last.replace(LEAD_IN, ' …');
      statements.push({ ...place, text, short: text, items: [], lead: '' });
    }
    at += follows.taken;
  }
  return statements;
}

function bothEnds(text: string): string {
  if (text.length <= READ_CHARS) return text;
  const half = READ_CHARS / 2;
  return `${text.slice(0, half)}\n\n${text.slice(-half)}`;
}

/** What ends so is no sentence: a number, an abbreviation. */
const UNENDED =
  /(?:(?:^|[:;] )(?:\d{1,3}|[A-H])[.)]|(?<!\p{L})(?:e\.g|i\.e|etc|vs|z\.B|ca|nr|approx|resp|incl|excl|esp|max|min|bzw|usw|evtl|ggf|vgl|inkl|aprox|pág|núm)\.)$/iu;

/** Joins a sentence that turns the one before it to that sentence. */
function withTurns(sentences: readonly string[]): string[] {
  const joined: string[] = [];
  for (const sentence of sentences) {
    if (joined.length > 0 && (TURN.test(sentence) || UNENDED.test((joined.at(-1) as string).slice(-10))))
      joined.push(`${joined.pop()} ${sentence}`);
    else joined.push(sentence);
  }
  return joined;
}

const isCopied = (block: Block | undefined): boolean => block !== undefined && 'isCopied' in block && block.isCopied;

/** What a lead-in announces, as one text, and the number of blocks that it takes. */
function getFollowing(blocks: readonly Block[], from: number): { text: string; taken: number; items: Item[] } {
  const first = blocks[from];
  if (first?.kind === 'code') {
    const code = first.lines.map((line) => line.trim()).filter((line) => line !== '');
    const text = code.join('; ');
    const isShort = code.length > 0 && code.length <= CODE_LINES && text.length <= CODE_CHARS;
    return { text: isShort ? `\`${text}\`` : '', taken: 1, items: [] };
  }
  if (first?.kind === 'table') {
    const rows = tableItems(first.rows);
    return { text: showItems(rows), taken: 1, items: rows.filter(({ number }) => number !== null) };
  }
  if (first?.kind === 'prose') {
    const text = plain(first.text);
    return LEAD_IN.test(text) ? { text: '', taken: 0, items: [] } : { text, taken: 1, items: [] };
  }
  return listText(blocks, from);
}

function listText(blocks: readonly Block[], from: number): { text: string; taken: number; items: Item[] } {
  const items: Item[] = [];
  let outer = Number.POSITIVE_INFINITY;
  for (let at = from; ; at += 1) {
    const block = blocks[at];
    if (block?.kind !== 'item') break;
    outer = Math.min(outer, block.indent);
    // Points below a number stand at its indent where the number is bold.
    const isNested = block.indent > outer || (block.number === null && (items[0]?.number ?? null) !== null);
    items.push({ number: block.number, text: plain(block.text), short: '', isNested });
  }
  return { text: showItems(items), taken: items.length, items };
}

/** The least that an item is cut to. */
const ITEM_CHARS = 40;
const CLAUSE_ENDS = [' - ', ' – ', ' — ', ' (', ', ', '; ', ': ', '. '];

/** Outer items, with the first one below each, cut after a clause so that all have room. */
function shortItems(items: readonly Item[]): Item[] {
  const outer = items.flatMap((item, at) => {
    const { text, isNested } = item;
    const below = LEAD_IN.test(text) && items[at + 1]?.isNested ? ` ${items[at + 1]?.text}` : '';
    return isNested ? [] : [{ ...item, text: text + below }];
  });
  const room = Math.max(ITEM_CHARS, Math.floor(FOLLOWING_CHARS / outer.length) - 5);
  return outer.map((item) => {
    const { text, short } = item;
    return { ...item, text: text.length <= room ? text : short || shorten(text, room) };
  });
}

const FOLDERS = /(?<![\w./-])(?:[\w.@-]{1,80}\/){2,20}(?=[\w-]+\.\w)/g;

/** Cut after a clause, without the folders of paths. */
export function shorten(whole: string, maxChars: number): string {
  const text = whole.replace(FOLDERS, '…/');
  if (text.length <= maxChars) return text;
  const end = Math.max(...CLAUSE_ENDS.map((mark) => text.slice(0, maxChars).lastIndexOf(mark)));
  const clause = end > maxChars / 3 ? text.slice(0, end) : clip(text, maxChars);
  return clause.split('(').length > clause.split(')').length ? clause.replace(/ ?\([^(]*$/, '') || clause : clause;
}

function showItems(items: readonly Item[]): string {
  const shown: string[] = [];
  let left = FOLLOWING_CHARS;
  for (const { number, text } of items) {
    left -= text.length + 2;
    if (left < 0 && shown.length > 0) break;
    shown.push(`${number === null ? '' : `${number}. `}${text.replace(/[.;,]$/, '')}`);
  }
  const more = items.length > shown.length && shown.length > 0 ? ` … (${items.length} in all)` : '';
  const whole = shown.join('; ').replace(/([:：]);/g, '$1');
  return `${whole.replace(LEAD_IN, '')}${more}`;
}

/** Each row with the words of the head, so that no cell stands without them; rows that are numbered are a list. */
function tableItems([head = [], ...rows]: readonly string[][]): Item[] {
  if (rows.length > TABLE_ROWS) return [];
  const items = rows.map(([first = '', ...cells]): Item => {
    const named = cells.flatMap((cell, at) => (cell === '' ? [] : [`${head[at + 1] ?? ''} ${cell}`.trim()]));
    const [name, text] = [plain(first), plain(named.join(', '))];
    const number = /^#?(\d{1,2})$/.exec(name)?.[1];
    const last = plain(cells.findLast((cell) => cell !== '') ?? '');
    const [whole = '', short = ''] = [text, last].map((each) => (each === '' ? name : `${name}: ${each}`));
    return number === undefined ? { number: null, text: whole, short } : { number: Number(number), text, short: last };
  });
  const isList = items.every(({ number }) => number !== null);
  return isList || items.map(({ short }) => short).join('; ').length <= FOLLOWING_CHARS ? items : [];
}

function getBlocks(text: string): Block[] {
  const blocks: Block[] = [];
  let code: { readonly mark: string; readonly lines: string[] } | null = null;
  let isOpen = false;
  let isIndented = false;
  let isBlank = true;
  for (const whole of text.split(/\r?\n/)) {
    const line = whole.slice(0, LINE_CHARS);
    const fence = FENCE.exec(line)?.[1];
    if (isBlank) isIndented = INDENTED.test(line);
    isBlank = line.trim() === '';
    if (code !== null) {
      if (fence === code.mark) code = null;
      else code.lines.push(line);
    } else if (fence !== undefined) {
      code = { mark: fence, lines: [] };
      blocks.push({ kind: 'code', lines: code.lines });
      isOpen = false;
    } else isOpen = takeLine(blocks, line, { isOpen, isCopied: isIndented || PADDED.test(line) });
  }
  return blocks;
}

/** @returns whether the next line may continue the last block */
function takeLine(
  blocks: Block[],
  line: string,
  { isOpen, isCopied }: Readonly<Record<'isOpen' | 'isCopied', boolean>>,
): boolean {
  if (line.trim() === '' || /^\s*[-=_*]{3,}\s*$/.test(line)) return false;
  const heading = HEADING.exec(line)?.[1] ?? BOLD_LINE.exec(line)?.[1];
  if (heading !== undefined) {
    blocks.push({ kind: 'heading', text: heading });
    return false;
  }
  const last = blocks.at(-1);
  if (line.trimStart().startsWith('|') && line.trimEnd().endsWith('|')) {
    const cells = line.trim().slice(1, -1).split('|');
    const row = cells.map((cell) => cell.trim());
    if (row.every((cell) => /^:?-+:?$/.test(cell))) return false;
    if (last?.kind === 'table') (last.rows as string[][]).push(row);
    else blocks.push({ kind: 'table', rows: [row] });
    return false;
  }
  const item = ITEM.exec(line);
  const rest = line.slice(item?.[0].length ?? 0);
  const text = rest.replace(/^\s*>\s?/, '').trim();
  if (item !== null)
    blocks.push({
      ...{ kind: 'item', text, indent: line.search(/\S/), isCopied },
      number: item[1] === undefined ? null : Number(item[1]),
    });
  else if (isOpen && (last?.kind === 'prose' || last?.kind === 'item')) {
    blocks.splice(-1, 1, { ...last, text: `${last.text} ${text}` });
  } else blocks.push({ kind: 'prose', text, isCopied });
  return true;
}

function plain(text: string): string {
  return text
    .replace(/\*\*|(?<![\p{L}\p{N}_])__|__(?![\p{L}\p{N}_])/gu, '')
    .replace(/\[([^\][]{1,200})\]\([^()\s]{1,400}\)/g, '$1')
    .replace(EMOJI, '')
    .replaceAll('’', "'")
    .replace(/\s+/g, ' ')
    .trim();
}

/** No block of one text continues in another. */
const MOST_BLOCKS = 100_000;

export const placed = (each: Statement, text: number) => ({ ...each, block: each.block + text * MOST_BLOCKS });
export const isOf = (text: number) => (each: Statement) => Math.floor(each.block / MOST_BLOCKS) === text;
