import { expect, test } from 'vitest';
import type { Bus } from '../../memory/share/bus.ts';
import type { Row } from '../../memory/share/row.ts';

const [DESKTOP, LAPTOP] = ['a'.repeat(32), 'b'.repeat(32)];
const rowsFrom = (first: number, count: number): Row[] =>
  Array.from({ length: count }, (_, at) => ({
    sequence: first + at,
    payload: `payload ${first + at} of "it's" 서버`,
    signature: `signature ${first + at}`,
  }));

/**
 * What every Bus must keep; call it inside a describe block.
 *
 * @param open  a bus at a fresh place; a second call with the same place sees the same logs
 * @param isStored  whether bytes are found anywhere at that place
 */
export function busContract(
  open: (place: string) => Promise<Bus>,
  isStored?: (place: string, text: string) => Promise<boolean>,
): void {
  let places = 0;
  const fresh = (): string => {
    places += 1;
    return `place-${places}`;
  };

  test('has nothing at first', async () => {
    const bus = await open(fresh());
    expect(await bus.machines()).toEqual([]);
    expect(await bus.read(DESKTOP, 0, 10)).toEqual([]);
    expect(await bus.last(DESKTOP)).toBeNull();
    await bus.erase(DESKTOP, [1]);
    await bus.drop(DESKTOP);
    bus.close();
  });

  test('gives rows back in order, from any number, to every machine', async () => {
    const place = fresh();
    const [writer, reader] = [await open(place), await open(place)];
    await writer.append(DESKTOP, rowsFrom(0, 3));
    await writer.append(DESKTOP, []);
    await writer.append(LAPTOP, rowsFrom(0, 1));
    expect(await reader.read(DESKTOP, 0, 10)).toEqual(rowsFrom(0, 3));
    await writer.append(DESKTOP, rowsFrom(3, 2));
    expect(await reader.read(DESKTOP, 2, 2)).toEqual([...rowsFrom(0, 1), ...rowsFrom(2, 2)]);
    expect(await reader.read(DESKTOP, 5, 10)).toEqual(rowsFrom(0, 1));
    expect(await reader.last(DESKTOP)).toEqual(rowsFrom(4, 1)[0]);
    expect((await reader.machines()).sort()).toEqual([DESKTOP, LAPTOP]);
    writer.close();
    reader.close();
  });

  test('has another stamp after each change, also of another machine', async () => {
    const place = fresh();
    const [writer, reader] = [await open(place), await open(place)];
    expect(await reader.stamp(DESKTOP)).toBeNull();
    const seen = new Set<string | null>();
    const look = async (): Promise<void> => {
      const stamp = await reader.stamp(DESKTOP);
      expect(await reader.stamp(DESKTOP)).toBe(stamp);
      expect(seen.has(stamp)).toBe(false);
      seen.add(stamp);
    };
    for (const at of [0, 1, 2]) {
      await writer.append(DESKTOP, rowsFrom(at, 1));
      await look();
    }
    expect(await reader.read(DESKTOP, 2, 10)).toEqual([...rowsFrom(0, 1), ...rowsFrom(2, 1)]);
    await writer.erase(DESKTOP, [1]);
    await look();
    await writer.drop(DESKTOP);
    expect(await reader.stamp(DESKTOP)).toBeNull();
    expect(await reader.machines()).toEqual([]);
    // Shorter than the one that was read, and like one of its beginnings.
    await writer.append(DESKTOP, rowsFrom(0, 1));
    expect(await reader.read(DESKTOP, 0, 10)).toEqual(rowsFrom(0, 1));
    expect(await reader.last(DESKTOP)).toEqual(rowsFrom(0, 1)[0]);
    await look();
    expect(await reader.machines()).toEqual([DESKTOP]);
    writer.close();
    reader.close();
  });

  test('erases rows and their bytes, and keeps the others', async () => {
    const place = fresh();
    const bus = await open(place);
    await bus.append(DESKTOP, rowsFrom(0, 2));
    await bus.append(DESKTOP, rowsFrom(2, 2));
    await bus.append(LAPTOP, rowsFrom(0, 1));
    expect(await isStored?.(place, 'signature 1')).not.toBe(false);
    await bus.erase(DESKTOP, [1, 2, 99]);
    expect(await bus.read(DESKTOP, 0, 10)).toEqual([...rowsFrom(0, 1), ...rowsFrom(3, 1)]);
    await bus.append(DESKTOP, rowsFrom(4, 1));
    expect(await bus.read(DESKTOP, 3, 10)).toEqual([...rowsFrom(0, 1), ...rowsFrom(3, 2)]);
    expect(await isStored?.(place, 'signature 1')).not.toBe(true);
    expect(await isStored?.(place, 'signature 2')).not.toBe(true);
    bus.close();
  });

  test('drops a log and no other', async () => {
    const bus = await open(fresh());
    await bus.append(DESKTOP, rowsFrom(0, 1));
    await bus.append(LAPTOP, rowsFrom(0, 1));
    await bus.drop(DESKTOP);
    expect(await bus.machines()).toEqual([LAPTOP]);
    await bus.append(DESKTOP, rowsFrom(0, 2));
    expect(await bus.read(DESKTOP, 0, 10)).toEqual(rowsFrom(0, 2));
    bus.close();
  });
}
