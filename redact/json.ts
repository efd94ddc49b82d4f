export interface Literal {
  /** Offsets of the characters between the quotes. */
  readonly start: number;
  readonly end: number;
  readonly value: string;
  /** The literal is the name of a member. */
  readonly isKey: boolean;
}

/** The string literals of valid JSON text, in order. */
export function* stringLiterals(json: string): Generator<Literal> {
  let open = json.indexOf('"');
  while (open !== -1) {
    const close = closingQuote(json, open + 1);
    const raw = json.slice(open + 1, close);
    const value = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
    yield { start: open + 1, end: close, value, isKey: /^\s*:/.test(json.slice(close + 1, close + 65)) };
    open = json.indexOf('"', close + 1);
  }
}

/** The values of all string literals, joined by line breaks. */
export function literalValues(json: string): string {
  return Array.from(stringLiterals(json), ({ value }) => value).join('\n');
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Maps ascending indices in a literal's value to offsets in its escaped form. */
export function escapedOffsets(raw: string, indices: readonly number[]): number[] {
  const found: number[] = [];
  let at = 0;
  let index = 0;
  for (const wanted of indices) {
    for (; index < wanted; index += 1) at += raw[at] !== '\\' ? 1 : raw[at + 1] === 'u' ? 6 : 2;
    found.push(at);
  }
  return found;
}

function closingQuote(json: string, from: number): number {
  for (let quote = json.indexOf('"', from); ; quote = json.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (json[quote - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return quote;
  }
}
