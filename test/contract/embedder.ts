import { afterEach, expect, test } from 'vitest';
import type { Embedder } from '../../memory/ports.ts';

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
    const vectors = await embed(texts);
    expect(vectors).toHaveLength(3);
    for (const vector of vectors) {
      expect(vector).toHaveLength(dimensions);
      expect(cosine(vector, vector)).toBeCloseTo(1, 5);
    }
    const [second] = await embed([texts[1] as string]);
    expect(second).toEqual(vectors[1]);
  });

  test('a text without words is all zeros', async () => {
    const { embed } = await open();
    const [empty, marks] = await embed(['', '… --- !!!']);
    expect([...(empty ?? []), ...(marks ?? [])].every((value) => value === 0)).toBe(true);
  });

  test('texts that share words lie nearer than texts that do not', async () => {
    const { embed } = await open();
    const [query, near, far] = (await embed([
      'which port does the staging database use',
      'the staging database was moved to another port',
      'paint the bicycle shed green',
    ])) as [Float32Array, Float32Array, Float32Array];
    expect(cosine(query, near)).toBeGreaterThan(cosine(query, far) + 0.2);
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

function cosine(left: Float32Array, right: Float32Array): number {
  return left.reduce((sum, value, at) => sum + value * (right[at] ?? 0), 0);
}
