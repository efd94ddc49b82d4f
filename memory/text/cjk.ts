const WRITTEN = /[^\s]/gu;
const PAIRED = /[\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}]/gu;
/** Of every `scriptVector`: hashed words and character pairs, compared where words are not set apart by spaces. */
export const SCRIPT_DIMENSIONS = 1_024;
/** Above this share a question is asked in that script. */
const MOSTLY = 0.3;

export function hasPairedScript(text: string): boolean {
  return text.search(PAIRED) >= 0;
}

export function isPairedScript(text: string): boolean {
  const written = text.match(WRITTEN)?.length ?? 0;
  return written > 0 && (text.match(PAIRED)?.length ?? 0) > MOSTLY * written;
}
