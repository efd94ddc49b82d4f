import { expect, test } from 'vitest';
import type { Reranker } from '../../memory/recall/reranking.ts';

/** What every Reranker must keep; call it inside a describe block. It must tell the port of staging from two others. */
export function rerankerContract(make: () => Promise<Reranker>): void {
  const live = (): AbortSignal => new AbortController().signal;
  const TEXTS = ['the garden needs water', 'staging listens on port 5433', 'labels are 6 modules wide'];

  test('gives a number for each text in their order, most for the one that answers', async () => {
    const { score } = await make();
    const scores = await score('which port has staging', TEXTS, live());
    expect(scores).toHaveLength(3);
    expect(scores.indexOf(Math.max(...scores))).toBe(1);
    const turned = await score('which port has staging', TEXTS.toReversed(), live());
    expect(turned).toEqual(scores.toReversed());
  });

  test('an abort before it is asked is its reason', async () => {
    const { score } = await make();
    await expect(score('port', TEXTS, AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
  });
}
