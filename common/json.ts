export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The message of an error without the text that JSON.parse quotes in it: that text may be anything. */
export function unquoted({ name, message }: Error): string {
  if (name !== 'SyntaxError') return message;
  return message.replace(/(?:^|,? )(?:\.\.\.)?".*/s, '') || 'not valid JSON';
}
