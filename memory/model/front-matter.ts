import YAML from 'yaml';
import { isRecord } from '../../common/text.ts';

/** A string as it is where it reads back the same, everything else as JSON: the values of claims, and of schema 1. */
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

/** Of the files that this version writes; schema 1 had no such key, and its values were no YAML. */
const FILE_SCHEMA = 2;

export function renderFrontMatter(values: Readonly<Record<string, unknown>>): string {
  return `---\n${renderYaml({ schema: FILE_SCHEMA, ...values })}---\n`;
}

/** Null where `text` does not begin with a closed front matter, or it cannot be read. */
export function parseFrontMatter(text: string): FrontMatter | null {
  const lines = text.split('\n');
  const bare = (line: string | undefined): string => (line ?? '').trimEnd();
  if (bare(lines[0]) !== '---') return null;
  const end = lines.findIndex((line, at) => at > 0 && bare(line) === '---');
  if (end === -1) return null;
  const own = lines.slice(1, end).map(bare);
  const rest = lines.slice(end + 1).join('\n');
  if (!own.some((line) => /^schema:/.test(line))) return { values: schema1Values(own), rest };
  const values = parseYaml(own.join('\n'));
  return typeof values === 'string' ? null : { values, rest };
}

function schema1Values(lines: readonly string[]): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon > 0) values[line.slice(0, colon).trim()] = readValue(line.slice(colon + 1));
  }
  return values;
}

/** Strings that YAML reads as themselves without quotes. */
const PLAIN = /^[A-Za-z/_][\w./-]*(?::[\w./-]+)*$|^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/** One line a key; values other than plain strings as JSON, which YAML contains. */
export function renderYaml(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}: ${renderYamlValue(value)}\n`)
    .join('');
}

function renderYamlValue(value: unknown): string {
  if (typeof value === 'string' && PLAIN.test(value) && !RESERVED.test(value)) return value;
  return JSON.stringify(value).replace(
    /[\x7f-\x9f\u2028\u2029\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** @returns the mapping, or what is wrong with it */
export function parseYaml(text: string): Record<string, unknown> | string {
  return parsePlainYaml(text) ?? parseAnyYaml(text);
}

/** The lines that `renderYaml` writes: a full parser takes 20 times as long for each of thousands of nodes. */
function parsePlainYaml(text: string): Record<string, unknown> | null {
  const values: Record<string, unknown> = {};
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const [, key, value = ''] = /^([a-z_]+): (\S.*)$/.exec(line) ?? [];
    if (key === undefined || key in values) return null;
    if (PLAIN.test(value) && !RESERVED.test(value)) values[key] = value;
    else {
      try {
        values[key] = JSON.parse(value);
      } catch {
        // Written by hand, in some other form of YAML.
        return null;
      }
    }
  }
  return values;
}

function parseAnyYaml(text: string): Record<string, unknown> | string {
  try {
    const value: unknown = YAML.parse(text, { schema: 'core' });
    if (value === null || value === undefined) return {};
    return isRecord(value) ? value : 'expected `key: value` lines';
  } catch (error) {
    return (error as Error).message.split('\n', 1)[0] ?? 'not YAML';
  }
}
