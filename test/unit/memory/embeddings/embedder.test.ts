import { expect, test } from 'vitest';
import { type Corpus, createEmbedderWithTimeout, type Embedder } from '../../../../memory/embeddings/embedder.ts';
import { createHashEmbedder } from '../../../helpers/hash-embedder.ts';

const corpus: Corpus = { pieceWeights: () => new Map(), mean: async () => null };

function patient(embedQuery: Embedder['embedQuery'], queryMs = 1_000): { embedder: Embedder; reports: string[] } {
  const reports: string[] = [];
  const inner: Embedder = { ...createHashEmbedder(), embedQuery };
  return {
    embedder: createEmbedderWithTimeout(inner, { queryMs, report: (message) => reports.push(message) }),
    reports,
  };
}

const nothing = { vector: new Float32Array(256), comparedWith: 'vector' };

test('a question that fails has a vector of zeros; it is told once until one works again', async () => {
  const works = createHashEmbedder();
  let fails = true;
  const { embedder, reports } = patient((text, known) =>
    fails ? Promise.reject(new Error('refused')) : works.embedQuery(text, known),
  );
  expect(await embedder.embedQuery('port', corpus)).toEqual(nothing);
  expect(await embedder.embedQuery('port', corpus)).toEqual(nothing);
  expect(reports).toEqual([expect.stringContaining('refused')]);
  fails = false;
  expect(await embedder.embedQuery('port', corpus)).toEqual(await works.embedQuery('port', corpus));
  fails = true;
  await embedder.embedQuery('port', corpus);
  expect(reports).toHaveLength(2);
});

test('a query waits no longer than its limit', async () => {
  const { embedder, reports } = patient(() => new Promise(() => {}), 10);
  expect(await embedder.embedQuery('port', corpus)).toEqual(nothing);
  expect(reports).toEqual([expect.stringContaining('after 10 ms')]);
});
