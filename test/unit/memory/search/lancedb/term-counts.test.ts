import { expect, it } from 'vitest';
import { type CountedRow, createTermCounts } from '../../../../../memory/search/lancedb/term-counts.ts';

it('does not take a scope for counted that others replaced while it was', async () => {
  const counts = createTermCounts();
  const scope = { project: 'first' };
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  async function* rows(waits: Promise<void> | null): AsyncGenerator<CountedRow> {
    await waits;
    yield { kind: 'turn', project: 'first', sessionId: 's', tokens: 'harbor', pieces: new Uint16Array() };
  }
  const first = counts.in(scope, () => rows(gate));
  for (const sessionId of ['1', '2', '3', '4', '5', '6']) await counts.in({ sessionId }, () => rows(null));
  open();
  await first;
  expect(counts.has(scope)).toBe(false);
  await counts.in(scope, () => rows(null));
  expect(counts.has(scope)).toBe(true);
});
