/** Words of the inside, which tell a user nothing. */
export const INSIDE = /\b(?:sensor|compacter|epochs?|replay(?:ed|s)?|stand-ins?|nodes?|failed open)\b/i;

/** Codes of the inside: `(O:TOOL I:M)`, long ids, and values of fields. */
export const CODES =
  /\([A-Z]:[A-Z][^)]*\)|\bmem_\d{8}|\b(?:topic_shift|high_load|buffer_overflow|HIGH|MED|LOW|EXTERNAL)\b/;

/** Prose of an output: without paths, addresses, names of settings and that of the runtime. */
export function getProse(text: string): string {
  return text.replace(/\S*\/\S*|\bmodels\.\w+|\bNode\.js\b/g, ' ');
}
