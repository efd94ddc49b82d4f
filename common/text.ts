// C0 and C1 controls except tab and newline, zero-width, bidi and tag characters: remembered text comes from anywhere and
// must neither control the terminal nor contain text that a reader cannot see.
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\udb40[\udc00-\udc7f]/g;

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The message of an error without the text that JSON.parse quotes in it: that text may be anything. */
export function unquoted({ name, message }: Error): string {
  if (name !== 'SyntaxError') return message;
  return message.replace(/(?:^|,? )(?:\.\.\.)?".*/s, '') || 'not valid JSON';
}

/** `text` without characters that a terminal would obey. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '');
}

/** `json` with those characters escaped. */
export function escaped(json: string): string {
  return json.replace(UNPRINTABLE, (found) =>
    found
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** `printable`, on one line. */
export function oneLine(text: string): string {
  return printable(text).replace(/\s+/g, ' ').trim();
}
