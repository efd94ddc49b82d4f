/** Signs of a line that a program wrote. */
const OUTPUT: readonly RegExp[] = [
  /^\s*(?:[$%❯➜]\s|>>> |\+{3} |-{3} |@@ |diff --git |index [0-9a-f]{6,})/,
  /^\s*(?:at\s\S{1,200}\s?\(|File "[^"]{1,300}", line \d|Traceback |goroutine \d|Caused by: |\d{1,6}\s*[|│]|[├└│┌╭╰])/,
  /^\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d/,
  /^\s*\[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|PASS|FAIL|ok|not ok|npm ERR!|error\[E\d+\])\b[\]: \t]/,
  /^\s*(?:[{}[\]](?:,|\s|$)|"[^"]{1,80}"\s*:|<\/?[a-z][\w-]{0,40}[^>]{0,200}>\s*$)/,
  /^\s*(?:={3,}|-{3,}|\*{3,}|_{3,})/,
  /^\s*\|/,
  /^\s*>\s/,
  /^[^\s]{200,}/,
  /^[+-](?:\s{2,}|\t)|[{};]\s*$|^\s*(?:\/\/|[)}\]])/,
  /^\s*(?:create mode|\d+ files? changed|[✓✗×✔✖] )|:\s+(?:\/[\w.-]+){2,}\S*$/,
];
/** A paragraph with this share of such lines, or of this many lines that are no sentences, is output as a whole. */
const OUTPUT_SHARE = 0.3;
const OUTPUT_LINES = 5;
const SENTENCE = /[.?!,;:。？！，]["')\]]?\s*$|^\s*(?:[-*•]|\d{1,2}[.)])\s/;
const COMMAND_LINE = /^\/[\w:-]{1,60}\s*$/;
const FENCE = /^\s{0,6}(```|~~~)/;
const LINE_CHARS = 1_000;
/** A pasted block may have a few lines without a sign between lines with one. */
const GAP = 2;

type Mark = 'typed' | 'output' | 'blank' | 'fenced';

function markParagraphs(lines: readonly string[], marks: Mark[]): void {
  for (let from = 0; from < marks.length; ) {
    let to = from;
    while (to < marks.length && marks[to] !== 'blank' && marks[to] !== 'fenced') to += 1;
    const own = lines.slice(from, to);
    const output = marks.slice(from, to).filter((mark) => mark === 'output').length;
    const isLog =
      own.length >= OUTPUT_LINES && own.filter((line) => SENTENCE.test(line)).length < own.length * OUTPUT_SHARE;
    // The first line may introduce what was pasted.
    const start = SENTENCE.test(own[0] ?? '') && marks[from] === 'typed' ? from + 1 : from;
    if (own.length > 2 && (isLog || output >= own.length * OUTPUT_SHARE)) marks.fill('output', start, to);
    from = to + 1;
  }
}

const OPENING = /<([a-z]+(?:[-_][a-z]+)+)(?:\s[^<>]{0,300})?>/g;
const MOST_UNCLOSED = 20;
/** Colors of a terminal. */
const ESCAPES = /\p{Cc}\[[0-9;]{0,12}[A-Za-z]/gu;

/** The user's text without markup of the client, code blocks, quotes, and lines that a program wrote. */
export function typedText(text: string): string {
  const lines = withoutMarkup(text).replace(ESCAPES, '').replaceAll('’', "'").split(/\r?\n/);
  let fence: string | undefined;
  const marks = lines.map((whole): Mark => {
    const line = whole.slice(0, LINE_CHARS);
    const mark = FENCE.exec(line)?.[1];
    if (fence !== undefined) {
      if (mark === fence) fence = undefined;
      return 'fenced';
    }
    if (mark !== undefined) {
      fence = mark;
      return 'fenced';
    }
    if (line.trim() === '') return 'blank';
    return OUTPUT.some((sign) => sign.test(line)) ? 'output' : 'typed';
  });
  markParagraphs(lines, marks);
  if (marks.some((mark, at) => mark === 'typed' && !COMMAND_LINE.test(lines[at] as string))) {
    for (const [at, line] of lines.entries()) if (COMMAND_LINE.test(line)) marks[at] = 'blank';
  }
  for (let at = 0, last = -1; at < marks.length; at += 1) {
    if (marks[at] !== 'output') continue;
    if (last >= 0 && at - last - 1 <= GAP) marks.fill('output', last, at);
    last = at;
  }
  return lines
    .map((line, at) => (marks[at] === 'blank' ? '' : line))
    .filter((_, at) => marks[at] !== 'output' && marks[at] !== 'fenced')
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

/** Client tags such as `<task-notification>` have a hyphen or an underscore in their name; what is in them was not typed. */
export function withoutMarkup(text: string): string {
  const kept: string[] = [];
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
    kept.push(text.slice(at, match.index));
    at = end + close.length;
  }
  return [...kept, text.slice(at)].join('');
}
