import { describe, expect, it } from 'vitest';
import { LEADS, READERS, type Read, UNITS } from '../helpers/text-readers.ts';

const [SMALL, STEP] = [2_048, 8];
/** A quadratic reader takes seconds at the default; `COMET_LONG_TEXT=1048576` reads a megabyte of each. */
const LARGE = Number(process.env['COMET_LONG_TEXT']) || 16_384;
/** Linear growth is the size of a step; quadratic growth its square. */
const MOST_GROWTH = 20;
/** Less is within the noise of the clock and of the collector. */
const LEAST_MS = 6;
const REPEATS = 4;

/** CPU time, ms: others who use the machine do not count. */
async function getTime(read: Read, text: string): Promise<number> {
  const before = process.cpuUsage();
  await read(text);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Sizes at which a step took more than its share, however often it was repeated. */
async function excess(read: Read, getText: (size: number) => string): Promise<string[]> {
  let before = LEAST_MS;
  for (let size = SMALL; size <= LARGE; size *= STEP) {
    const text = getText(size);
    let spent = await getTime(read, text);
    for (let again = 0; again < REPEATS && size > SMALL && spent > MOST_GROWTH * before; again += 1) {
      spent = Math.min(spent, await getTime(read, text));
    }
    if (size > SMALL && spent > MOST_GROWTH * before)
      return [`${size} chars: ${before.toFixed()} ms, then ${spent.toFixed()}`];
    before = Math.max(spent, LEAST_MS);
  }
  return [];
}

describe('a long text is read in time that grows with its length alone', () => {
  for (const [name, read] of Object.entries(READERS)) {
    it(name, { timeout: 120_000 }, async () => {
      const found: string[] = [];
      for (const [unit, text] of Object.entries(UNITS)) {
        for (const lead of LEADS) {
          const getText = (size: number): string => `${lead}${text.repeat(Math.ceil(size / text.length))}x`;
          for (const each of await excess(read, getText)) found.push(`${unit}${lead && ' after words'}: ${each}`);
        }
      }
      expect(found).toEqual([]);
    });
  }
});
