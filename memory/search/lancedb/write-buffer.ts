import type { IndexRow, TurnWords } from '../node-index.ts';

type TurnRow = Pick<IndexRow, 'row_id' | 'kind' | 'node_id' | 'turn' | 'text' | 'origin'>;

/** Texts of the turns that were written since the table was tidied, which its index does not know yet. */
export interface RecentTurns {
  /** All rows are in the index now. */
  begin(): void;
  /** Some rows are neither here nor in the index. */
  giveUp(): void;
  /** Whether every row is either here or in the index. */
  isWhole(): boolean;
  put(rows: readonly TurnRow[]): void;
  removeNodes(nodeIds: readonly string[]): void;
  words(turnIds: readonly string[]): Map<string, TurnWords>;
}

/** About as much memory as that of the texts of a thousand turns. */
const MOST_CHARS = 2_000_000;

export function createRecentTurns(): RecentTurns {
  const rows = new Map<string, TurnRow>();
  let chars = 0;
  let whole = false;

  function empty(isWhole: boolean): void {
    rows.clear();
    chars = 0;
    whole = isWhole;
  }

  return {
    begin: () => empty(true),
    giveUp: () => empty(false),
    isWhole: () => whole,
    put(fresh) {
      for (const { row_id, kind, node_id, turn, text, origin } of fresh) {
        if (!whole || kind !== 'turn') continue;
        chars += text.length - (rows.get(row_id)?.text.length ?? 0);
        rows.set(row_id, { row_id, kind, node_id, turn, text, origin });
        if (chars > MOST_CHARS) empty(false);
      }
    },
    removeNodes(nodeIds) {
      const removed = new Set(nodeIds);
      for (const { row_id, node_id, text } of [...rows.values()]) {
        if (!removed.has(node_id)) continue;
        rows.delete(row_id);
        chars -= text.length;
      }
    },
    words(turnIds) {
      const asked = new Set(turnIds);
      const found = new Map<string, TurnWords>();
      for (const { turn, text, origin } of rows.values()) if (asked.has(turn)) found.set(turn, { text, origin });
      return found;
    },
  };
}
