import { afterEach, expect, test } from 'vitest';
import type { Corpus, Embedder } from '../../memory/embeddings/embedder.ts';

const corpus: Corpus = { pieceWeights: (pieces) => new Map(pieces.map((piece) => [piece, 1])), mean: async () => null };

/** What every Embedder must keep; call it inside a describe block. */
export function embedderContract(make: () => Promise<Embedder>): void {
  let embedder: Embedder | undefined;
  const open = async (): Promise<Embedder> => {
    embedder = await make();
    return embedder;
  };
  afterEach(async () => {
    await embedder?.close();
    embedder = undefined;
  });

  test('gives one vector of length 1 for each text, in order', async () => {
    const { embed, dimensions } = await open();
    const texts = ['the staging database listens on port 5433', '데이터베이스 연결', 'npm run build --silent'];
    const embeddings = await embed(texts);
    const vectors = embeddings.map(({ vector }) => vector);
    expect(vectors).toHaveLength(3);
    for (const vector of vectors) {
      expect(vector).toHaveLength(dimensions);
      expect(cosine(vector, vector)).toBeCloseTo(1, 5);
    }
    const [second] = await embed([texts[1] as string]);
    expect(second).toEqual(embeddings[1]);
  });

  test('a text without words is all zeros', async () => {
    const { embed } = await open();
    const [empty, marks] = await embed(['', '… --- !!!']);
    expect([...(empty?.vector ?? []), ...(marks?.vector ?? [])].every((value) => value === 0)).toBe(true);
  });

  test('texts that share words lie nearer than texts that do not', async () => {
    const { embed, embedQuery } = await open();
    const { vector, comparedWith } = await embedQuery('which port does the staging database use', corpus);
    const [near, far] = await embed(['the staging database was moved to another port', 'paint the bicycle shed green']);
    expect(comparedWith).toBe('vector');
    expect(cosine(vector, near?.vector)).toBeGreaterThan(cosine(vector, far?.vector) + 0.2);
  });

  test('a question in Korean finds its text and not another', async () => {
    const { embed, embedQuery } = await open();
    const { vector, comparedWith } = await embedQuery('데이터베이스 포트가 뭐였지', corpus);
    const [near, far] = await embed(['스테이징 데이터베이스 포트는 5433', '자전거 창고를 초록색으로 칠한다']);
    expect(cosine(vector, near?.[comparedWith])).toBeGreaterThan(cosine(vector, far?.[comparedWith]) + 0.2);
  });

  test('questions are answered while documents are in work', async () => {
    const { embed, embedQuery } = await open();
    const documents = embed(Array.from({ length: 200 }, (_, at) => `document ${at} of many`));
    const asked = await Promise.all([embedQuery('one', corpus), embedQuery('other', corpus)]);
    const alone = await embedQuery('one', corpus);
    expect(asked[0]).toEqual(alone);
    expect(await documents).toHaveLength(200);
  });

  test('many calls at once each get their own answer', async () => {
    const { embed } = await open();
    const texts = Array.from({ length: 50 }, (_, at) => `topic number ${at} alpha${at}`);
    const alone = await embed(texts);
    const together = await Promise.all(texts.map((text) => embed([text])));
    expect(together.map(([vector]) => vector)).toEqual(alone);
  });

  test('no texts give no vectors', async () => {
    const { embed } = await open();
    expect(await embed([])).toEqual([]);
  });

  test('close may be called twice', async () => {
    const { close } = await open();
    await close();
    await close();
  });
}

function cosine(left: Float32Array, right: Float32Array | null | undefined): number {
  return left.reduce((sum, value, at) => sum + value * (right?.[at] ?? 0), 0);
}
