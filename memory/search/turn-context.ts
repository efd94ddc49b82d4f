export interface WindowedTurn {
  readonly nodeId: string;
  readonly turnId: string;
  readonly place: number;
  /** Space-separated. */
  readonly tokens: string;
}

/** One long turn must not drown the others. */
const HEAD_TOKENS = 300;
const TURNS_BEFORE = 5;

/** For each turn its first words with those of the turns before it, as far as these are among `turns`. */
export function getWindows<T extends WindowedTurn>(turns: readonly T[]): Map<T, string> {
  const heads = new Map(turns.map(({ place, tokens }) => [place, getHead(tokens)]));
  return new Map(
    turns.map((turn) => {
      const earlier = Array.from({ length: TURNS_BEFORE }, (_, nth) => heads.get(turn.place - nth - 1) ?? '');
      return [turn, [getHead(turn.tokens), ...earlier].filter((head) => head !== '').join(' ')];
    }),
  );
}

function getHead(tokens: string): string {
  let end = -1;
  for (let words = 0; words < HEAD_TOKENS; words += 1) {
    end = tokens.indexOf(' ', end + 1);
    if (end < 0) return tokens;
  }
  return tokens.slice(0, end);
}
