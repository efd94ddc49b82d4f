import { readFileSync } from 'node:fs';
import { CometError } from '../../common/errors.ts';
import { parseStaticTable, type StaticTable } from './word-vectors.ts';

const FILE = new URL('./data/static-table.bin', import.meta.url);

let loaded: StaticTable | null = null;

/**
 * The table that comes with the package; read once a thread.
 *
 * @throws CometError `index_failed`
 */
export function loadStaticTable(): StaticTable {
  if (loaded !== null) return loaded;
  try {
    // A small file would come as a view of a shared pool; the table lives as long as the thread and owns its bytes.
    loaded = parseStaticTable(new Uint8Array(readFileSync(FILE)));
  } catch (cause) {
    throw new CometError('index_failed', 'the table of word vectors cannot be read; install comet-cc again', { cause });
  }
  return loaded;
}
