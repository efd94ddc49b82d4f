import { Index } from '@lancedb/lancedb';
import { Binary, Bool, type DataType, Field, FixedSizeList, Float32, Float64, Schema, Utf8 } from 'apache-arrow';
import { SCRIPT_DIMENSIONS } from '../../text/cjk.ts';
import type { IndexRow } from '../search-index.ts';

export type Kind = IndexRow['kind'];
export type TableRecord = Readonly<Record<string, unknown>>;

/** Raise it when a column changes: an index of another format is rebuilt. */
export const FORMAT = 3;

interface TableShape {
  /** Columns of text, besides `node_id`, `session_id` and `origin`. */
  readonly texts: readonly string[];
  /** Columns of space-separated tokens with a full-text index. */
  readonly words: readonly string[];
  readonly others: readonly (readonly [name: string, type: () => DataType])[];
  /** Columns that rows are looked up by. */
  readonly lookups: readonly string[];
  /** What a hit is made of. */
  readonly hit: readonly string[];
}

export const SHAPES: Readonly<Record<Kind, TableShape>> = {
  turn: {
    texts: ['turn_id', 'text'],
    words: ['tokens', 'window'],
    others: [
      ['place', () => new Float64()],
      ['timed', () => new Bool()],
      ['pieces', () => new Binary()],
    ],
    lookups: ['turn_id', 'session_id'],
    hit: ['node_id', 'created_at_ms', 'turn_id', 'place', 'timed'],
  },
  node: {
    texts: ['digest'],
    words: ['tokens', 'trigger'],
    others: [],
    lookups: [],
    hit: ['node_id', 'created_at_ms'],
  },
  fact: {
    texts: ['sources'],
    words: ['tokens'],
    others: [],
    lookups: [],
    hit: ['node_id', 'created_at_ms', 'sources'],
  },
};

export function schemaOf(kind: Kind, dimensions: number): Schema {
  const { texts, words, others } = SHAPES[kind];
  const vector = (name: string, size: number): Field =>
    new Field(name, new FixedSizeList(size, new Field('item', new Float32(), true)), true);
  return new Schema([
    ...['node_id', 'session_id', 'origin', ...texts, ...words].map((name) => new Field(name, new Utf8(), false)),
    new Field('created_at_ms', new Float64(), false),
    ...others.map(([name, type]) => new Field(name, type(), false)),
    vector('vector', dimensions),
    vector('script_vector', SCRIPT_DIMENSIONS),
  ]);
}

/** The tokenizer is ours: LanceDB only splits at spaces. */
export function wordsIndex(): Index {
  return Index.fts({
    baseTokenizer: 'whitespace',
    lowercase: false,
    stem: false,
    removeStopWords: false,
    asciiFolding: false,
    withPosition: false,
    maxTokenLength: 512,
  });
}

/** Lists of ids are stored as lines. */
export function joinIds(ids: readonly string[]): string {
  return ids.join('\n');
}

export function splitIds(lines: string): string[] {
  return lines === '' ? [] : lines.split('\n');
}

export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function isIn(column: string, values: readonly string[]): string {
  return `${column} IN (${values.map(quoted).join(', ')})`;
}
