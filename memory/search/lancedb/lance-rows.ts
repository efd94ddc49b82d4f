import {
  Binary,
  Bool,
  type DataType,
  Field,
  FixedSizeList,
  Float32,
  Float64,
  type RecordBatch,
  Schema,
  Utf8,
  type Vector,
} from 'apache-arrow';
import { SCRIPT_DIMENSIONS } from '../../text/cjk.ts';
import type { CountedRow } from '../in-memory-index.ts';
import type { IndexRow } from '../node-index.ts';

/** A row as it is stored: what `IndexRow` says, its words, the vectors and who made them. */
export interface StoredRow extends Omit<IndexRow, 'summary' | 'trigger'> {
  readonly timed: boolean;
  /** Words that full text sees, parted by spaces. */
  readonly tokens: string;
  readonly embedder_id: string;
  readonly summary_vector: Float32Array | null;
  readonly trigger_vector: Float32Array | null;
  /** See `Embedding.scriptVector`, of what the summary vector is made of. */
  readonly script_vector: Float32Array | null;
  /** `Embedding.pieces` of the same, as bytes. */
  readonly pieces: Uint8Array;
}

export type ScannedRow = CountedRow & Pick<StoredRow, 'embedder_id'>;

/** What is read of each row when the index opens. */
export const SCANNED =
  'row_id kind node_id session_id project turn origin created_at_ms before sources timed digest tokens pieces embedder_id'.split(
    ' ',
  );

export function schemaFor(dimensions: number): Schema {
  const text = (name: string): Field => new Field(name, new Utf8(), false);
  const vector = (name: string, size = dimensions): Field =>
    new Field(name, new FixedSizeList(size, new Field('item', new Float32(), true)), true);
  const texts =
    'row_id kind node_id session_id project turn origin digest text before sources tokens embedder_id'.split(' ');
  return new Schema([
    ...texts.map((name) => text(name)),
    new Field('created_at_ms', new Float64(), false),
    new Field('timed', new Bool(), false),
    vector('summary_vector'),
    vector('trigger_vector'),
    vector('script_vector', SCRIPT_DIMENSIONS),
    new Field('pieces', new Binary(), false),
  ]);
}

export function asRecord(row: StoredRow): Record<string, unknown> {
  return { ...row, before: row.before.join('\n'), sources: row.sources.join('\n') };
}

/** Rows of a batch from one place to before another, read by column; nothing of them keeps the batch alive. */
export function scannedRows(batch: RecordBatch, from: number, to: number): ScannedRow[] {
  const column = <T extends DataType>(name: string): Vector<T> | null => batch.getChild(name) as Vector<T> | null;
  const texts = (name: string): ((at: number) => string) => {
    const held = column<Utf8>(name);
    return (at) => held?.get(at) ?? '';
  };
  const [rowIds, kinds, nodes, sessions] = [texts('row_id'), texts('kind'), texts('node_id'), texts('session_id')];
  const [projects, turns, origins, digests] = [texts('project'), texts('turn'), texts('origin'), texts('digest')];
  const [befores, sources, tokens, embedders] = [
    texts('before'),
    texts('sources'),
    texts('tokens'),
    texts('embedder_id'),
  ];
  const [times, timed] = [column<Float64>('created_at_ms'), column<Bool>('timed')];
  const [pieces, vectors] = [column<Binary>('pieces'), column<FixedSizeList<Float32>>('summary_vector')];
  return Array.from({ length: Math.min(to, batch.numRows) - from }, (_, nth) => {
    const at = from + nth;
    return {
      row_id: rowIds(at),
      kind: kinds(at) as IndexRow['kind'],
      node_id: nodes(at),
      session_id: sessions(at),
      project: projects(at),
      turn: turns(at),
      origin: origins(at) as IndexRow['origin'],
      created_at_ms: times?.get(at) ?? 0,
      timed: timed?.get(at) ?? false,
      digest: digests(at),
      before: endsIn(befores(at)),
      sources: endsIn(sources(at)),
      tokens: tokens(at),
      embedder_id: embedders(at),
      pieces: pieces?.get(at)?.slice() ?? new Uint8Array(0),
      summary_vector: vectors?.get(at)?.toArray() ?? null,
    };
  });
}

function endsIn(joined: string): string[] {
  return joined === '' ? [] : joined.split('\n');
}
