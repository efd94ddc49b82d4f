import { splitSentences } from './sentences.ts';

/** The least text that may stand alone: sentences with those that turn them, a lead-in with what follows it. */
export interface Statement {
  readonly text: string;
  /** The heading above it; '' without one. */
  readonly heading: string;
  /** Counts the paragraphs of the text from 0. */
  readonly paragraph: number;
}

/** Only this much of a text is read: its beginning and its end. */
const READ_CHARS = 60_000;
const LINE_CHARS = 2_000;
/** A lead-in takes this much of the list, table or code that follows it. */
const FOLLOWING_CHARS = 400;
const CODE_CHARS = 160;
const TABLE_ROWS = 8;

const FENCE = /^\s{0,6}(```|~~~)/;
const HEADING = /^\s{0,3}#{1,6}\s+(\S.*)$/;
const BOLD_LINE = /^\s*\*\*([^*]{1,100})\*\*:?\s*$/;
const ITEM = /^\s{0,12}(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?/;
const TABLE_ROW = /^\s*\|.*\|\s*$/;
const RULE = /^\s*(?:[-=_*]\s*){3,}$/;
const LEAD_IN = /[:：]$/;
/** A sentence that begins so corrects or limits the one before it. */
const TURN =
  /^(?:but|however|though|although|actually|instead|except|unless|otherwise|that said|on second thought|still,|yet\b|not\b|i(?:'d| would) rather|aber|allerdings|jedoch|doch|stattdessen|sondern|pero|sin embargo|mais|cependant|但|不过|然而|하지만|그러나|그런데|しかし|でも)(?![\p{L}\p{N}_-])|^(?:但|不过|然而|하지만|그러나)/iu;

type Block =
  | { readonly kind: 'prose' | 'item'; readonly text: string }
  | { readonly kind: 'code'; readonly lines: readonly string[] }
  | { readonly kind: 'table'; readonly rows: readonly string[][] }
  | { readonly kind: 'heading'; readonly text: string };

/** Statements of a markdown text in order. Code blocks and tables appear only after a lead-in, and short. */
export function statementsIn(text: string): readonly Statement[] {
  const found: Statement[] = [];
  const blocks = blocksOf(ends(text));
  let heading = '';
  let paragraph = 0;
  for (let at = 0; at < blocks.length; at += 1) {
    const block = blocks[at] as Block;
    if (block.kind === 'heading') heading = plain(block.text).replace(/[:：]$/, '');
    if (block.kind !== 'prose' && block.kind !== 'item') continue;
    const sentences = withTurns(splitSentences(plain(block.text)));
    const last = sentences.at(-1) ?? '';
    if (LEAD_IN.test(last)) {
      const { text: following, taken } = followingOf(blocks, at + 1);
      at += taken;
      sentences.pop();
      if (following !== '') sentences.push(`${last} ${following}`);
    }
    for (const sentence of sentences) found.push({ text: sentence, heading, paragraph });
    if (blocks[at + 1]?.kind !== 'item') paragraph += 1;
  }
  return found;
}

function ends(text: string): string {
  if (text.length <= READ_CHARS) return text;
  const half = READ_CHARS / 2;
  return `${text.slice(0, half)}\n\n${text.slice(-half)}`;
}

/** Joins a sentence that turns the one before it to that sentence. */
function withTurns(sentences: readonly string[]): string[] {
  const joined: string[] = [];
  for (const sentence of sentences) {
    if (joined.length > 0 && TURN.test(sentence)) joined.push(`${joined.pop()} ${sentence}`);
    else joined.push(sentence);
  }
  return joined;
}

/** What a lead-in announces, as one text, and the number of blocks that it takes. */
function followingOf(blocks: readonly Block[], from: number): { text: string; taken: number } {
  const first = blocks[from];
  if (first?.kind === 'code') {
    const code = first.lines.map((line) => line.trim()).filter((line) => line !== '');
    const text = code.length <= 2 ? code.join('; ') : '';
    return { text: text.length > CODE_CHARS ? '' : text && `\`${text}\``, taken: 1 };
  }
  if (first?.kind === 'table') return { text: tableText(first.rows), taken: 1 };
  if (first?.kind === 'prose') {
    const [sentence = ''] = withTurns(splitSentences(plain(first.text)));
    return LEAD_IN.test(sentence) ? { text: '', taken: 0 } : { text: plain(first.text), taken: 1 };
  }
  const items: string[] = [];
  let taken = 0;
  for (let at = from; blocks[at]?.kind === 'item'; at += 1) {
    taken += 1;
    const item = plain((blocks[at] as { text: string }).text).replace(/[.;,:：]$/, '');
    if (items.join('; ').length + item.length <= FOLLOWING_CHARS) items.push(item);
  }
  const left = taken - items.length;
  return { text: items.join('; ') + (left > 0 && items.length > 0 ? `; and ${left} more` : ''), taken };
}

/** Each row with the head's words, so that no cell stands without them. */
function tableText([head = [], ...rows]: readonly string[][]): string {
  if (rows.length === 0 || rows.length > TABLE_ROWS) return '';
  const lines = rows.map(([name = '', ...cells]) => {
    const named = cells.flatMap((cell, at) => (cell === '' ? [] : [`${head[at + 1] ?? ''} ${cell}`.trim()]));
    return named.length === 0 ? name : `${name}: ${named.join(', ')}`;
  });
  const text = plain(lines.join('; '));
  return text.length > FOLLOWING_CHARS ? '' : text;
}

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let code: { mark: string; lines: string[] } | null = null;
  let open = false;
  for (const whole of text.split(/\r?\n/)) {
    const line = whole.slice(0, LINE_CHARS);
    const fence = FENCE.exec(line)?.[1];
    if (code !== null) {
      if (fence === code.mark) {
        blocks.push({ kind: 'code', lines: code.lines });
        code = null;
      } else code.lines.push(line);
      continue;
    }
    if (fence !== undefined) {
      code = { mark: fence, lines: [] };
      open = false;
      continue;
    }
    open = takeLine(blocks, line, open);
  }
  return blocks;
}

/** @returns whether the next line may continue the last block */
function takeLine(blocks: Block[], line: string, open: boolean): boolean {
  if (line.trim() === '' || RULE.test(line)) return false;
  const heading = HEADING.exec(line)?.[1] ?? BOLD_LINE.exec(line)?.[1];
  if (heading !== undefined) {
    blocks.push({ kind: 'heading', text: heading });
    return false;
  }
  const last = blocks.at(-1);
  if (TABLE_ROW.test(line)) {
    const row = line
      .trim()
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim());
    const isRule = row.every((cell) => /^:?-+:?$/.test(cell));
    if (last?.kind === 'table') blocks.splice(-1, 1, { kind: 'table', rows: isRule ? last.rows : [...last.rows, row] });
    else blocks.push({ kind: 'table', rows: [row] });
    return false;
  }
  const item = ITEM.exec(line)?.[0];
  const text = line
    .slice(item?.length ?? 0)
    .replace(/^\s*>\s?/, '')
    .trim();
  if (item !== undefined) blocks.push({ kind: 'item', text });
  else if (open && last !== undefined && (last.kind === 'prose' || last.kind === 'item')) {
    blocks.splice(-1, 1, { kind: last.kind, text: `${last.text} ${text}` });
  } else blocks.push({ kind: 'prose', text });
  return true;
}

/** Without the marks of markdown. */
function plain(text: string): string {
  return text
    .replace(/\*\*|__(?=\S)|(?<=\S)__/g, '')
    .replace(/\[([^\][]{1,200})\]\((?:[^()\s]{1,400})\)/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();
}
