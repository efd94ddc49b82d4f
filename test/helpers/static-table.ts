import type { StaticTable } from '../../memory/embeddings/static-embedder.ts';

const HEADER_BYTES = 16;

/** Inverse of `parseStaticTable`. */
export function encodeStaticTable(
  { dimensions, rows, scales }: Pick<StaticTable, 'dimensions' | 'rows' | 'scales'>,
  vocabulary: readonly string[],
): Uint8Array<ArrayBuffer> {
  const words = new TextEncoder().encode(vocabulary.join('\n'));
  const rowsAt = HEADER_BYTES + scales.length * 4;
  const bytes = new Uint8Array(rowsAt + rows.length + words.length);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode('CCSTATIC'));
  view.setUint32(8, scales.length, true);
  view.setUint32(12, dimensions, true);
  for (const [at, scale] of scales.entries()) view.setFloat32(HEADER_BYTES + at * 4, scale, true);
  bytes.set(new Uint8Array(rows.buffer, rows.byteOffset, rows.length), rowsAt);
  bytes.set(words, rowsAt + rows.length);
  return bytes;
}
