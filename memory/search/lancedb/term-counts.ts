import { hashText } from '../../text/repetition.ts';
import type { IndexFilter } from '../search-index.ts';

export interface CountedRow {
  readonly kind: 'turn' | 'node';
  readonly project: string;
  readonly sessionId: string;
  /** Space-separated. */
  readonly tokens: string;
  /** `Embedding.pieces`; empty for a node, which repeats the words of its turns. */
  readonly pieces: Uint16Array;
}

/** LanceDB tells no document frequencies, so the scopes that are asked are counted here. */
export type TermCounts = ReturnType<typeof createTermCounts>;

/** The scopes asked last; a large one takes some megabytes. */
const SCOPES = 6;
const PIECES = 65_536;

export type Scope = ReturnType<typeof createScope>;

export function createTermCounts() {
  const scopes = new Map<string, Promise<Scope>>();
  const counted = new Map<string, Scope>();

  function change(row: CountedRow, step: 1 | -1): void {
    for (const scope of counted.values()) if (isIn(scope.filter, row)) scope.count(row, step);
  }

  async function count(key: string, filter: IndexFilter, rows: AsyncIterable<CountedRow>): Promise<Scope> {
    const scope = createScope(filter);
    for await (const row of rows) scope.count(row, 1);
    if (scopes.has(key)) counted.set(key, scope);
    return scope;
  }

  return {
    has: (filter: IndexFilter): boolean => counted.has(getKey(filter)),
    /** @param rows  every turn and node of the scope; read only where it is not counted yet */
    in(filter: IndexFilter, rows: () => AsyncIterable<CountedRow>): Promise<Scope> {
      const key = getKey(filter);
      const counts = scopes.get(key) ?? count(key, filter, rows());
      scopes.delete(key);
      scopes.set(key, counts);
      counts.catch(() => scopes.delete(key));
      for (const oldest of scopes.keys()) {
        if (scopes.size <= SCOPES) break;
        scopes.delete(oldest);
        counted.delete(oldest);
      }
      return counts;
    },
    add: (row: CountedRow): void => change(row, 1),
    remove: (row: CountedRow): void => change(row, -1),
    clear(): void {
      scopes.clear();
      counted.clear();
    },
  };
}

function createScope(filter: IndexFilter) {
  const terms = new Map<number, number>();
  const pieces = new Uint32Array(PIECES);
  let rows = 0;
  let turns = 0;
  return {
    filter,
    count(row: CountedRow, step: 1 | -1): void {
      rows += step;
      for (const term of new Set(row.tokens.split(' ').map(getHash))) terms.set(term, (terms.get(term) ?? 0) + step);
      if (row.kind === 'node') return;
      turns += step;
      for (const piece of row.pieces) pieces[piece] = Math.max(0, (pieces[piece] as number) + step);
    },
    /** See `SearchIndex.termWeights`. */
    ofTerms: (tokens: readonly string[]) =>
      new Map(tokens.map((token) => [token, idf(rows, terms.get(getHash(token)) ?? 0)])),
    /** The same of the embedder's pieces, over turns. */
    ofPieces: (ids: readonly number[]) => new Map(ids.map((id) => [id, idf(turns, pieces[id] ?? 0)])),
  };
}

/** 30 bits in place of the text: a collision makes a word seem more frequent. */
const getHash = (token: string): number => hashText(token) >>> 2;

const getKey = ({ project, sessionId }: IndexFilter): string => JSON.stringify([project, sessionId]);

const idf = (rows: number, df: number): number => Math.log(1 + (rows - df + 0.5) / (df + 0.5));

function isIn({ project, sessionId }: IndexFilter, row: CountedRow): boolean {
  return (project === undefined || project === row.project) && (sessionId === undefined || sessionId === row.sessionId);
}
