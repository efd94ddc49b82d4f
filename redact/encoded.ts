import type { Steps } from '../common/async.ts';
import { getMatches, isMixedKey, mergeSpans, type Span } from './patterns.ts';
import { randomness } from './randomness.ts';

/** Base64: lines of one width, whatever is in front of each, between a shorter first and a shorter last one. */
interface Block {
  readonly start: number;
  readonly end: number;
  /** What is in front of the first line. */
  readonly prefix: string;
  readonly lines: readonly string[];
}

const RUN = /(?<![\w+/](?<!\\[nr]))(?!(?<=\\)[nr])[\w+/]{24,}={0,2}/g;
const SHORT_RUN = /(?!(?<=\\)[nr])=?\+?[A-Za-z0-9/][A-Za-z0-9+/]{1,75}={0,2}(?=["'\\,\s-]|$)/g;
const [GAP, SHORTEST_LINE] = [120, 56];

export function* findBlocks(text: string): Steps<Block[]> {
  const blocks: (Block & { start: number; end: number; lines: string[] })[] = [];
  for (const { 0: line, index: start } of yield* getMatches(RUN, text)) {
    yield;
    const open = blocks.at(-1);
    const width = open?.lines.at(-1)?.length ?? 0;
    const isNext = width === line.length || (open?.lines.length === 1 && width < line.length);
    if (open !== undefined && isNext && areLines(text.slice(open.end, Math.min(start, open.end + GAP)), open.prefix)) {
      open.lines.push(line);
      open.end = start + line.length;
    } else {
      const prefix = lastLine(text.slice(Math.max(0, start - GAP), start));
      blocks.push({ start, end: start + line.length, prefix, lines: [line] });
    }
  }
  for (const block of blocks) {
    yield;
    const { start, end, prefix, lines } = block;
    if ((lines.at(-1)?.length ?? 0) < SHORTEST_LINE) continue;
    const [before, after] = [text.slice(Math.max(0, start - GAP), start), text.slice(end, end + GAP)];
    const last = shortRuns(after).find(({ index }) => areLines(after.slice(0, index), prefix));
    const first = shortRuns(before).findLast(({ 0: line, index }) =>
      [before.slice(index + line.length), `\n${lastLine(before.slice(0, index))}`].every((gap) =>
        areLines(gap, prefix),
      ),
    );
    block.end += last === undefined ? 0 : last.index + last[0].length;
    block.start -= first === undefined ? 0 : before.length - first.index;
    block.lines = [...(first ?? []), ...lines, ...(last ?? [])];
  }
  return blocks.filter(({ end }, i) => end > (blocks[i - 1]?.end ?? 0));
}

function shortRuns(text: string): RegExpExecArray[] {
  const isPart = (run: string): boolean => /[\d+/=]/.test(run) || randomness(run) >= 0.45;
  return [...text.matchAll(SHORT_RUN)].filter(([run]) => !/^\d{1,6}$/.test(run) && isPart(run));
}

/** Whether the text between two runs is a line break and what lines begin with, such as `12→` or `key.pem:12:`. */
function areLines(gap: string, prefix: string): boolean {
  if (gap.length === GAP || gap.includes('----')) return false;
  const line = lastLine(gap);
  if (line === gap) return /^[\s"',]+$/.test(gap);
  // Nothing but the end of a line, as in strings of code, and empty lines.
  if (!/^(?:\\[nr]|[^A-Za-z0-9])*$/.test(gap.slice(0, gap.length - line.length))) return false;
  return (
    !/[A-Za-z]/.test(line) ||
    [line, prefix].map((each) => each.replace(/\s{0,12}\d+/g, '0')).every((each, _, [one]) => each === one)
  );
}

const lastLine = (text: string): string => text.split(/\\[nr]|[\n\r]/).at(-1) ?? '';

/** First characters of private keys in DER: PKCS 1 and 8, elliptic curves, Ed25519; of OpenSSH. */
const KEY =
  /^.{0,6}?(?:MII[A-Za-z0-9+/]{3}IBA(?:AKC|DAN)|MHcCAQEE|MIG[A-Za-z0-9+/]AgEAM|MC4CAQAw|b3BlbnNzaC1rZXktdjE|MII.{5,8}BgkqhkiG9w0BBQ0w)/;
/** Of a certificate, a public key in DER, a public key of SSH. */
const PUBLIC = /^\+?(?:MIGfMA0G|MFkwEwYH|MCowBQYDK2V|MII.{5,8}gAwIBAg|MII.{4,8}ANBgkqhkiG9w0BAQEFAAOC|AAAA[BEC])/;
const LABEL = /-{4,5} ?(BEGIN|END) ([A-Z0-9 ]{2,40}?) ?-{4}|Private-Lines: \d/g;

/** Blocks that are private keys, also without their first or last lines, and those that are public by their labels. */
export function* findKeys(text: string, blocks: readonly Block[]): Steps<{ keys: Span[]; open: Span[] }> {
  const found: { keys: Span[]; open: Span[] } = { keys: [], open: [] };
  for (const [i, { start, end, prefix, lines }] of blocks.entries()) {
    yield;
    // No label beyond another block: `head -3 cert.pem; cat .env`.
    const before = text.slice(Math.max(0, start - 2 * GAP, blocks[i - 1]?.end ?? 0), start);
    const after = text.slice(end, Math.min(end + GAP, blocks[i + 1]?.start ?? text.length));
    const [begin] = [...before.matchAll(LABEL)].slice(-1);
    const [close] = after.matchAll(LABEL);
    const label = begin !== undefined && begin[1] !== 'END' ? begin[0] : close?.[1] === 'END' ? close[0] : undefined;
    const [first = ''] = lines;
    const isValue = /=|: /.test(prefix);
    const isPublic = label === undefined ? PUBLIC.test(first) : !isValue && !/private/i.test(label);
    if (isPublic) found.open.push({ start, end, type: 'public' });
    else if (KEY.test(first) || isKeyPart(lines, label !== undefined, text.slice(Math.max(0, start - 8), start)))
      found.keys.push({ start, end, type: 'private-key' });
  }
  return found;
}

/** Random lines between labels, or as wide as in PEM (64) or OpenSSH (70) without. */
function isKeyPart(lines: readonly string[], isLabeled: boolean, before: string): boolean {
  const body = lines.join('');
  if (isLabeled) return randomness(body) >= 0.45;
  const width = lines[Math.floor(lines.length / 2)]?.length ?? 0;
  const isWide = [64, 65, 70, 71].includes(width) && lines.filter(({ length }) => length === width).length >= 2;
  return isWide && isMixedKey(body) && randomness(body) >= 0.55 && !/sha\d+[-:=]$/.test(before);
}

const READABLE = /^(?:[\t\n\r\x20-\x7e]\0?){12,}$/;

/** Base64 of text in which `find` finds a secret, as of a whole `.env` or `name:password@host`. */
export function* findEncoded(blocks: readonly Block[], find: (text: string) => Steps<Span[]>): Steps<Span[]> {
  const readable: (Span & { readonly from: number; readonly to: number })[] = [];
  let decoded = '';
  for (const { start, end, lines } of blocks) {
    yield;
    // The first line may be the end of one that was cut.
    const bare = lines.map((line) => line.replace(/^\+/, ''));
    const decodings = [bare, bare.slice(1)].map((each) => Buffer.from(each.join(''), 'base64'));
    const bytes = decodings.find((each) => READABLE.test(each.subarray(0, 36).toString('latin1')));
    if (bytes === undefined) continue;
    const from = decoded.length;
    decoded += bytes.toString().replaceAll('\0', '');
    readable.push({ start, end, type: 'secret', from, to: decoded.length });
    decoded += '\n\n';
  }
  if (readable.length === 0) return [];
  const found = mergeSpans(yield* find(decoded));
  let next = 0;
  return readable.filter(({ from, to }) => {
    while ((found[next]?.start ?? to) < from) next += 1;
    return (found[next]?.start ?? to) < to;
  });
}

/** Escapes that a terminal, a URL or HTML puts into a text, and characters that are not seen. */
const ESC = String.fromCharCode(27);
const ESCAPES = new RegExp(
  String.raw`((?:${ESC}|\\(?:u00|x)1b|\\033|\\e|\^\[)\[[\d;]{0,16}[A-Za-z]|%(?:[2-7][\dA-Fa-f]|0[AaDd])|&(?:quot|amp|apos|lt|gt|#\d{2,3});|\\{1,4}[nrt"']|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\udb40[\udc00-\udc7f])`,
);
const CHARACTERS: Readonly<Record<string, string>> = {
  ...{ '&quot;': '"', '&amp;': '&', '&apos;': "'", '&lt;': '<', '&gt;': '>' },
  ...{ n: '\n', r: '\r', t: '\t', '"': '"', "'": "'" },
};

/** Secrets in the lines that have escapes, read without them. */
export function* findEscaped(text: string, find: (text: string) => Steps<Span[]>): Steps<Span[]> {
  if (!ESCAPES.test(text)) return [];
  // Where each character of `plain` begins and ends in `text`; objects would take ten times the memory.
  const [starts, ends] = [new Uint32Array(text.length), new Uint32Array(text.length)];
  const plain: string[] = [];
  let size = 0;
  for (let at = 0; at < text.length; ) {
    yield;
    const lineEnd = text.indexOf('\n', at) + 1 || text.length;
    const parts = text.slice(at, lineEnd).split(ESCAPES);
    for (const [i, part] of (parts.length > 1 ? parts : []).entries()) {
      const by = i % 2 === 0 ? part : readEscape(part);
      for (let k = 0; k < by.length; k += 1, size += 1) {
        starts[size] = by === part ? at + k : at;
        ends[size] = by === part ? at + k + 1 : at + part.length;
      }
      plain.push(by);
      at += part.length;
    }
    at = lineEnd;
  }
  const found = yield* find(plain.join(''));
  return found.map(({ start, end, type }) => ({ type, start: starts[start] ?? 0, end: ends[end - 1] ?? text.length }));
}

function readEscape(written: string): string {
  const code = written.startsWith('%') ? Number.parseInt(written.slice(1), 16) : Number(/^&#(\d+)/.exec(written)?.[1]);
  return code > 0 ? String.fromCharCode(code) : (CHARACTERS[written.replace(/^\\+/, '')] ?? '');
}
