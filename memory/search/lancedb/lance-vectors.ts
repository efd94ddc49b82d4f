import { Index, type Table } from '@lancedb/lancedb';

/** Comparing so many vectors one by one is fast, and exact. */
const FEW_ROWS = 8_000;
const ROWS_FOR_VECTOR_INDEX = 20_000;
const COLUMN = 'summary_vector';
const NAME = /^near_(\d+)$/;
const LEAST_PARTITIONS = 64;
/** Partitions are looked into until this share of the rows was compared: enough for 97 of the 100 nearest. */
const SHARE_COMPARED = 0.2;
const LEAST_PROBES = 20;
/** Each tidying of the table leaves the index one or two milliseconds slower to search; one made anew is as fast as ever. */
const MOST_TIDYINGS = 8;

/** The index of vectors that many rows need: exact vectors in partitions, of which a search looks into the nearest. */
export interface VectorIndex {
  /** Partitions that a search among so many rows should look into; null where it should compare all of them. */
  probes(rows: number): number | null;
  exists(): boolean;
  /** Reads from the table which index it has. */
  load(table: Table): Promise<void>;
  /** The table was tidied with the index in it. */
  tidied(): void;
  /** Whether one should be made, or made anew because the table has outgrown it or was often tidied. */
  isDue(rows: number): boolean;
  /** Searches go on meanwhile, on what there was before. */
  build(table: Table, rows: number): Promise<void>;
  drop(table: Table): Promise<void>;
}

export function createVectorIndex(leastRows = ROWS_FOR_VECTOR_INDEX): VectorIndex {
  let partitions = 0;
  let tidyings = 0;

  async function names(table: Table): Promise<string[]> {
    return (await table.listIndices()).map(({ name }) => name).filter((name) => NAME.test(name));
  }

  return {
    probes(rows) {
      // Few rows of many may all lie in partitions that are not looked into.
      if (partitions === 0 || rows < Math.min(FEW_ROWS, leastRows)) return null;
      return Math.max(LEAST_PROBES, Math.ceil(partitions * SHARE_COMPARED));
    },
    exists: () => partitions > 0,
    async load(table) {
      const held = (await names(table)).map((name) => Number(NAME.exec(name)?.[1]));
      partitions = Math.max(0, ...held);
    },
    tidied() {
      if (partitions > 0) tidyings += 1;
    },
    isDue: (rows) => rows >= leastRows && (partitionsFor(rows) >= 2 * partitions || tidyings >= MOST_TIDYINGS),
    async build(table, rows) {
      const wanted = partitionsFor(rows);
      const before = await names(table);
      const name = `near_${wanted}`;
      const config = Index.ivfFlat({ numPartitions: wanted, distanceType: 'cosine' });
      await table.createIndex(COLUMN, { config, name, replace: true });
      partitions = wanted;
      tidyings = 0;
      for (const old of before) if (old !== name) await table.dropIndex(old);
    },
    async drop(table) {
      if (partitions === 0) return;
      partitions = 0;
      for (const name of await names(table)) await table.dropIndex(name);
    },
  };
}

/** About the square root, in steps of two. */
function partitionsFor(rows: number): number {
  return Math.max(LEAST_PARTITIONS, 2 ** Math.round(Math.log2(Math.sqrt(rows))));
}
