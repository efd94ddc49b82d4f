/** Zero-width, bidi controls, soft hyphens, tag characters: they hide or reorder text. */
const INVISIBLE = /\p{Cf}/gu;
const BREAKS = /[\s\p{Cc}]+/gu;
const LOOKS_LIKE_TAG = /<(?=[/!?]?[\p{L}_])/gu;
const ROLE_MARK = /^(?:\s*(?:human|user|assistant|system)\s*:\s*)+/i;

/**
 * One line that cannot be taken for markup, a role or a fence. Longer than `maxChars`: cut at the end of a word.
 */
export function neutralLine(text: string, maxChars: number): string {
  const flat = text.replace(INVISIBLE, '').replace(BREAKS, ' ').trim();
  const plain = flat
    .replace(ROLE_MARK, '')
    .replace(LOOKS_LIKE_TAG, '‹')
    .replaceAll('comet-cc-memory', 'comet-cc memory');
  return clip(plain, maxChars);
}

/** At most `maxChars`, cut at the end of a word and marked with `…`. */
export function clip(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = text.slice(0, Math.max(0, maxChars - 1));
  const space = head.lastIndexOf(' ');
  const whole = space > maxChars / 2 ? head.slice(0, space) : head.replace(/[\ud800-\udbff]$/, '');
  return `${whole}…`;
}
