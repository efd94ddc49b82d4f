/** Signs of a line that a program wrote. */
const OUTPUT: readonly RegExp[] = [
  /^\s*(?:[$%❯➜]\s|>>> |\+{3} |-{3} |@@ |diff --git |index [0-9a-f]{6,})/,
  /^\s*(?:at\s\S{1,200}\s?\(|File "[^"]{1,300}", line \d|Traceback |goroutine \d|Caused by: |\d{1,6}\s*[|│]|[├└│┌╭╰])/,
  /^\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d/,
  /^\s*\[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|PASS|FAIL|ok|not ok|npm ERR!|error\[E\d+\])\b[\]: \t]/,
  /^\s*(?:[{}[\]](?:,|\s|$)|"[^"]{1,80}"\s*:|<\/?[a-z][\w-]{0,40}[^>]{0,200}>\s*$)/,
  /^\s*(?:={3,}|-{3,}|\*{3,}|_{3,})/,
  /^\s*\|.*\|\s*$/,
  /^[^\s]{200,}/,
];
const FENCE = /^\s{0,6}(```|~~~)/;
const LINE_CHARS = 1_000;
/** A pasted block may have a few lines without a sign between lines with one. */
const GAP = 2;

/** The user's text without code blocks and without lines that a program wrote. */
export function typedText(text: string): string {
  const lines = text.split(/\r?\n/);
  let fence: string | undefined;
  const marks = lines.map((whole): 'typed' | 'output' | 'blank' => {
    const line = whole.slice(0, LINE_CHARS);
    const mark = FENCE.exec(line)?.[1];
    if (fence !== undefined) {
      if (mark === fence) fence = undefined;
      return 'output';
    }
    if (mark !== undefined) {
      fence = mark;
      return 'output';
    }
    if (line.trim() === '') return 'blank';
    return OUTPUT.some((sign) => sign.test(line)) ? 'output' : 'typed';
  });
  for (let at = 0, last = -1; at < marks.length; at += 1) {
    if (marks[at] !== 'output') continue;
    if (last >= 0 && at - last - 1 <= GAP) marks.fill('output', last, at);
    last = at;
  }
  return lines
    .filter((_, at) => marks[at] !== 'output')
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}
