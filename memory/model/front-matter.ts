/** `key: value` lines: strings stand bare where they read back the same, everything else is JSON. */
export function writeValue(value: unknown): string {
  if (typeof value === 'string' && isOneLine(value) && !isJson(value)) return value;
  return JSON.stringify(value);
}

/** Few values are JSON, and having the parser fail costs a hundred times this. */
const MAY_BE_JSON = /^(?:["{[]|(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null)$)/i;

export function readValue(text: string): unknown {
  const trimmed = text.trim();
  if (!MAY_BE_JSON.test(trimmed)) return trimmed;
  try {
    return JSON.parse(trimmed);
  } catch {
    // Not JSON, so it is what it says.
    return trimmed;
  }
}

/** Whether `text` can stand as lines of their own and be read back by trimming. */
export function isPlainText(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text !== '' && text === text.trim() && !/[\0-\x08\x0b-\x1f\x7f]|\p{Surrogate}/u.test(text);
}

export function isOneLine(text: string): boolean {
  return isPlainText(text) && !text.includes('\n');
}

/** Lines that would read as headings get a backslash; those that had one already get one more. */
export function escapeHeadings(text: string): string {
  return text
    .split('\n')
    .map((line) => (/^\\*#/.test(line) ? `\\${line}` : line))
    .join('\n');
}

export function unescapeHeadings(text: string): string {
  return text
    .split('\n')
    .map((line) => (/^\\+#/.test(line) ? line.slice(1) : line))
    .join('\n');
}

function isJson(text: string): boolean {
  if (!MAY_BE_JSON.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    // Thrown for every ordinary word: that is the answer.
    return false;
  }
}

export interface FrontMatter {
  readonly values: Readonly<Record<string, unknown>>;
  /** All after the closing mark. */
  readonly rest: string;
}

export function renderFrontMatter(values: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(values).map(([key, value]) => `${key}: ${writeValue(value)}`);
  return ['---', ...lines, '---', ''].join('\n');
}

/** Null where `text` does not begin with a closed front matter. */
export function parseFrontMatter(text: string): FrontMatter | null {
  const lines = text.split('\n');
  const bare = (line: string | undefined): string => (line ?? '').trimEnd();
  if (bare(lines[0]) !== '---') return null;
  const end = lines.findIndex((line, at) => at > 0 && bare(line) === '---');
  if (end === -1) return null;
  const values: Record<string, unknown> = {};
  for (const line of lines.slice(1, end)) {
    const colon = line.indexOf(':');
    if (colon > 0) values[line.slice(0, colon).trim()] = readValue(line.slice(colon + 1));
  }
  return { values, rest: lines.slice(end + 1).join('\n') };
}
