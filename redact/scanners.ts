import { isPlaceholder } from './assignments.ts';
import type { Span } from './span.ts';

const PEM_BEGIN = '-----BEGIN ';
const PEM_HEADER = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/y;
const PEM_FOOTER = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const PEM_LINE = /[A-Za-z0-9+/]{40}/g;
// Line breaks (also escaped), line numbers and quote marks, followed by letters of the key or the end.
const PEM_OPENING = /^(?:\\[nrt]|[\s>|+:→0-9])*(?:Proc-Type|[A-Za-z0-9+/=]{16}|[A-Za-z0-9+/=]{0,15}$)/;

/** PEM private keys, also with escaped line breaks. A key without an end extends to the end of the text. */
export function findPrivateKeys(text: string): Span[] {
  const spans: Span[] = [];
  const footerAfter = nextMatch(text, PEM_FOOTER);
  const lineAfter = nextMatch(text, PEM_LINE);
  let at = text.indexOf(PEM_BEGIN);
  while (at !== -1) {
    PEM_HEADER.lastIndex = at;
    const header = PEM_HEADER.exec(text);
    const end = header === null ? null : endOfKey(at + header[0].length);
    if (end !== null) spans.push({ start: at, end, type: 'private-key' });
    at = text.indexOf(PEM_BEGIN, end ?? at + PEM_BEGIN.length);
  }
  return spans;

  function endOfKey(from: number): number | null {
    const footer = footerAfter(from);
    if (footer === null) return PEM_OPENING.test(text.slice(from, from + 256)) ? text.length : null;
    // In code that only names the header, a closing quote follows and no line of a key.
    const isNamed =
      /["'`)]/.test(text.charAt(from)) && (lineAfter(from)?.start ?? Number.POSITIVE_INFINITY) > footer.start;
    return isNamed ? null : footer.end;
  }
}

type Range = { readonly start: number; readonly end: number };

// With ascending positions, it scans each character once.
function nextMatch(text: string, pattern: RegExp): (from: number) => Range | null {
  let found: Range | null = { start: -1, end: 0 };
  return (from) => {
    if (found !== null && found.start < from) {
      pattern.lastIndex = from;
      const match = pattern.exec(text);
      found = match === null ? null : { start: match.index, end: match.index + match[0].length };
    }
    return found;
  };
}

/** `header.payload.signature`; the first two start with `{"` in base64. */
export function findJwts(text: string): Span[] {
  const spans: Span[] = [];
  for (let dot = text.indexOf('.eyJ'); dot !== -1; dot = text.indexOf('.eyJ', dot + 1)) {
    let runStart = dot;
    while (runStart > 0 && isBase64Url(text.charCodeAt(runStart - 1))) runStart -= 1;
    const start = text.slice(runStart, dot).indexOf('eyJ');
    if (start === -1 || dot - runStart - start < 8) continue;
    let end = dot + 1;
    while (end < text.length && (isBase64Url(text.charCodeAt(end)) || text[end] === '.')) end += 1;
    spans.push({ start: runStart + start, end, type: 'jwt' });
    dot = end - 1;
  }
  return spans;
}

function isBase64Url(code: number): boolean {
  return (
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    (code >= 48 && code <= 57) ||
    code === 45 ||
    code === 95
  );
}

const URL_END = /[\s"'`<>\\]|:\/\//g;

/** Shorter ones are examples in manuals. */
const MIN_PASSWORD_LENGTH = 4;

/** The password in a URL, between the first colon and the host. */
export function findUrlPasswords(text: string): Span[] {
  const spans: Span[] = [];
  for (let at = text.indexOf('://'); at !== -1; at = text.indexOf('://', at + 3)) {
    if (at === 0 || !/[A-Za-z0-9]/.test(text.charAt(at - 1))) continue;
    URL_END.lastIndex = at + 3;
    const run = text.slice(at + 3, URL_END.exec(text)?.index ?? text.length);
    const password = passwordIn(run);
    if (password === null || password.text.length < MIN_PASSWORD_LENGTH || isPlaceholder(password.text)) continue;
    const start = at + 3 + password.at;
    spans.push({ start, end: start + password.text.length, type: 'password' });
  }
  return spans;
}

function passwordIn(run: string): { readonly at: number; readonly text: string } | null {
  const colon = run.indexOf(':');
  if (colon === -1 || run.slice(0, colon).endsWith('[REDACTED')) return null;
  const authority = run.slice(0, run.search(/[/?#]|$/));
  // A password may contain a raw / ? or #, but then no port precedes it.
  const isHostAndPort = /^[^/?#]*:\d*$/.test(authority);
  const sign = authority.includes('@') || isHostAndPort ? authority.lastIndexOf('@') : run.lastIndexOf('@');
  return sign > colon + 1 && colon < authority.length ? { at: colon + 1, text: run.slice(colon + 1, sign) } : null;
}

const PRIVATE_TAG = /<\s{0,8}(\/?)\s{0,8}private(?=[\s/>])[^<>]{0,200}>/gi;

/**
 * Text in private tags, with the tags. Tags nest; without an end tag the span extends to the end of the text.
 *
 * @param depth  tags still open from the previous text
 */
export function findPrivate(text: string, depth: number): { readonly spans: Span[]; readonly depth: number } {
  const spans: Span[] = [];
  let open = depth;
  let start = 0;
  for (const match of text.matchAll(PRIVATE_TAG)) {
    const closes = match[1] === '/';
    if (closes && open === 0) continue;
    if (!closes && open === 0) start = match.index;
    open += closes ? -1 : 1;
    if (open === 0) spans.push({ start, end: match.index + match[0].length, type: 'private' });
  }
  if (open > 0 && start < text.length) spans.push({ start, end: text.length, type: 'private' });
  return { spans, depth: open };
}

/** The texts in private tags, without the tags. */
export function findPrivateTexts(text: string): string[] {
  return findPrivate(text, 0).spans.map(({ start, end }) => text.slice(start, end).replace(PRIVATE_TAG, '\n'));
}
