import { describe, expect, test } from 'vitest';
import type { Corpus } from '../../../../memory/embeddings/embedder.ts';
import { createStaticEmbedder } from '../../../../memory/embeddings/static-encoder.ts';
import { embedderContract } from '../../../contract/embedder.ts';

const { embed, embedQuery } = createStaticEmbedder();

describe('the static embedder', () => {
  embedderContract(async () => createStaticEmbedder());
});

function dot(left: Float32Array, right: Float32Array | null | undefined): number {
  return left.reduce((sum, value, at) => sum + value * (right?.[at] ?? 0), 0);
}

test('what a question weighs is what the corpus says of its pieces', async () => {
  const [port, database] = await embed(['port', 'database']);
  const worth = (rare: number): Corpus => ({
    pieceWeights: (pieces) => new Map(pieces.map((piece) => [piece, piece === port?.pieces[0] ? rare : 1])),
    mean: async () => null,
  });
  const plain = await embedQuery('database port', worth(1));
  const rare = await embedQuery('database port', worth(5));
  expect(dot(rare.vector, port?.vector)).toBeGreaterThan(dot(plain.vector, port?.vector) + 0.1);
  expect(dot(rare.vector, database?.vector)).toBeLessThan(dot(plain.vector, database?.vector) - 0.1);
});

test('pieces are distinct and ascending', async () => {
  const [embedding] = await embed(['the port of the staging port']);
  const pieces = [...(embedding?.pieces ?? [])];
  expect(pieces.length).toBeGreaterThanOrEqual(4);
  expect(pieces).toEqual([...new Set(pieces)].sort((left, right) => left - right));
});

test('only a text with Hangul, kana or Han has a script vector', async () => {
  const [latin, mixed] = await embed(['the port', 'the label says 水']);
  expect(latin?.scriptVector).toBeNull();
  expect(mixed?.scriptVector).toHaveLength(1_024);
});
