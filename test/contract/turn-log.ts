import { expect, test } from 'vitest';
import type { JournalTurn } from '../../memory/model/turn.ts';
import type { Journal } from '../../memory/storage/turn-log.ts';

export function turn(sessionId: string, turnId: string, text = `text of ${turnId}`): Omit<JournalTurn, 'seq'> {
  return {
    key: `key-${turnId}`,
    turnId,
    sessionId,
    projectDir: '/home/dev/shop',
    model: 'claude-sonnet-5-5',
    atMs: 1_760_000_000_000,
    project: 'shop',
    redacted: false,
    messages: [
      { role: 'user', content: JSON.stringify(text), sha256: 'aa' },
      { role: 'assistant', content: '[{"type":"text","text":"\\ud800 lone, 9007199254740993"}]', sha256: 'bb' },
    ],
  };
}

/** What every Journal must keep. */
export function journalContract(make: () => Promise<Journal>): void {
  test('what was appended is read back in order, numbered from 0', async () => {
    const journal = await make();
    const first = await journal.append(turn('s-1', 'a'));
    const second = await journal.append(turn('s-1', 'b', 'naïve 데이터 \u0000 \u2028'));
    expect([first.seq, second.seq]).toEqual([0, 1]);
    expect(await journal.read('s-1')).toEqual([first, second]);
    expect(await journal.read('unknown')).toEqual([]);
    await journal.close();
  });

  test('the order is that of arrival, whatever the clock says', async () => {
    const journal = await make();
    const yearMs = 365 * 86_400_000;
    const at = (turnId: string, shiftMs: number) => ({ ...turn('s-1', turnId), atMs: 1_760_000_000_000 + shiftMs });
    for (const [end, shiftMs] of [
      ['a', 0],
      ['b', yearMs],
      ['c', -yearMs],
      ['d', 0],
    ] as const) {
      await journal.append(at(end, shiftMs));
    }
    const read = await journal.read('s-1');
    expect(read.map(({ turnId, seq }) => [turnId, seq])).toEqual([
      ['a', 0],
      ['b', 1],
      ['c', 2],
      ['d', 3],
    ]);
    await journal.close();
  });

  test('many appends at once all arrive, each with a number of its own', async () => {
    const journal = await make();
    const written = await Promise.all(Array.from({ length: 40 }, (_, at) => journal.append(turn('s-1', `e${at}`))));
    expect(written.map(({ seq }) => seq)).toEqual(Array.from({ length: 40 }, (_, at) => at));
    expect(await journal.read('s-1')).toEqual(written);
    await journal.close();
  });

  test('of two records with one turn id the later is read, in the place of the earlier', async () => {
    const journal = await make();
    await journal.append(turn('s-1', 'a', 'old'));
    await journal.append(turn('s-1', 'b'));
    await journal.append(turn('s-1', 'a', 'new'));
    const read = await journal.read('s-1');
    expect(read.map(({ turnId }) => turnId)).toEqual(['a', 'b']);
    expect(read[0]?.messages[0]?.content).toBe('"new"');
    await journal.close();
  });

  test('sessions are listed with the newest write first, however they are called', async () => {
    const journal = await make();
    const odd = '../../etc/Passwd\n';
    for (const session of ['s-1', odd, 's-2', 's-1']) await journal.append(turn(session, `${session}${Math.random()}`));
    expect(await journal.sessions()).toEqual(['s-1', 's-2', odd]);
    await journal.close();
  });

  test('sessions whose names differ only in case are two', async () => {
    const journal = await make();
    await journal.append(turn('abc', 'a'));
    await journal.append(turn('ABC', 'b'));
    expect((await journal.read('abc')).map(({ turnId }) => turnId)).toEqual(['a']);
    expect((await journal.read('ABC')).map(({ turnId }) => turnId)).toEqual(['b']);
    await journal.close();
  });

  test('removed turns are gone, the others stay, and writing goes on', async () => {
    const journal = await make();
    for (const turnId of ['a', 'b', 'a', 'c']) await journal.append(turn('s-1', turnId));
    await journal.remove('s-1', ['a', 'nowhere']);
    expect((await journal.read('s-1')).map(({ turnId }) => turnId)).toEqual(['b', 'c']);
    const next = await journal.append(turn('s-1', 'd'));
    expect(next.seq).toBe(4);
    await journal.remove('s-1', ['b', 'c', 'd']);
    expect(await journal.read('s-1')).toEqual([]);
    expect(await journal.sessions()).toEqual([]);
    await journal.remove('never', ['a']);
    await journal.close();
  });

  test('nothing is taken after close, which may be called twice', async () => {
    const journal = await make();
    const pending = journal.append(turn('s-1', 'a'));
    await journal.close();
    await journal.close();
    expect((await pending).seq).toBe(0);
    await expect(journal.append(turn('s-1', 'b'))).rejects.toMatchObject({ code: 'journal_failed' });
  });
}
