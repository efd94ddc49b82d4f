const NEAR = 0.8;
/** Where one text has such a word more than the other, they do not say the same. */
const TELLING = /\d|^(?:not|no|never|without|don|doesn|isn|instead|nor|none)$/u;

export function isNearDuplicate(left: string, right: string): boolean {
  const [fewer, more] = [wordsOf(left), wordsOf(right)].sort((a, b) => a.size - b.size) as [Set<string>, Set<string>];
  if (fewer.size < NEAR * more.size) return false;
  for (const word of fewer) if (!more.has(word)) return false;
  return [...more].every((word) => fewer.has(word) || !TELLING.test(word));
}

function wordsOf(text: string): Set<string> {
  return new Set(
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}_]+/gu) ?? [],
  );
}
