import { describe, expect, it } from 'vitest';
import {
  type BufferedTurn,
  createSessionCache,
  type SessionCacheOptions,
} from '../../../../memory/ingest/session-cache.ts';

const turn: BufferedTurn = { turnId: 'e', atMs: 0, origin: 'user', user: 'hello', parts: [], project: '/shop' };
const nothing = async (): Promise<void> => {};

function make(over: Partial<SessionCacheOptions> = {}) {
  const away: string[] = [];
  const sessions = createSessionCache({
    mayEvictBuffered: false,
    onError: () => {},
    onEvict: (id) => away.push(id),
    limit: 2,
    ...over,
  });
  return { sessions, away };
}

describe('sessions in memory', () => {
  it('are no more than may be, those used last', async () => {
    const { sessions, away } = make();
    for (const id of ['a', 'b', 'a', 'c', 'd']) await sessions.run(sessions.restore(id), nothing);
    expect(sessions.all().map(({ id }) => id)).toEqual(['c', 'd']);
    expect(away).toEqual(['b', 'a']);
    expect(sessions.evictedWithTurns()).toEqual([]);
  });

  it('stay where others are only read', async () => {
    const { sessions, away } = make();
    for (const id of ['a', 'b', 'c', 'd']) await sessions.run(sessions.restore(id), nothing, true);
    expect(sessions.all().map(({ id }) => id)).toEqual(['a', 'b']);
    expect(away).toEqual(['c', 'd']);
  });

  it('stay while they work, are read, or wait for their time', async () => {
    const { sessions } = make();
    let finish = (): void => {};
    const busy = sessions.run(
      sessions.restore('busy'),
      () =>
        new Promise((resolve) => {
          finish = resolve;
        }),
    );
    sessions.restore('read').sensing = true;
    sessions.restore('waits').buffer.push(turn);
    for (const id of ['a', 'b', 'c']) await sessions.run(sessions.restore(id), nothing);
    expect(sessions.all().map(({ id }) => id)).toEqual(['busy', 'read', 'waits']);
    finish();
    await busy;
    expect(sessions.has('busy')).toBe(false);
  });

  it('are named while turns of theirs wait for a node, and come back empty', async () => {
    const { sessions } = make({ mayEvictBuffered: true });
    const first = sessions.restore('a');
    first.buffer.push(turn, { ...turn, turnId: 'f', project: '/docs' });
    first.hydration = nothing();
    for (const id of ['b', 'c', 'd']) await sessions.run(sessions.restore(id), nothing);
    expect(sessions.has('a')).toBe(false);
    expect([
      sessions.evictedWithTurns(),
      sessions.evictedWithTurns('/shop'),
      sessions.evictedWithTurns('/docs'),
      sessions.evictedWithTurns('/other'),
    ]).toEqual([['a'], ['a'], ['a'], []]);
    const again = sessions.restore('a');
    expect(again).toMatchObject({ buffer: [], hydration: null });
    expect(sessions.evictedWithTurns()).toEqual([]);
    // It could not be read: what waits in it is not forgotten for that.
    for (const id of ['b', 'c', 'd']) await sessions.run(sessions.restore(id), nothing);
    expect(sessions.evictedWithTurns()).toEqual(['a']);
    const read = sessions.restore('a');
    read.hydration = nothing();
    for (const id of ['b', 'c', 'd']) await sessions.run(sessions.restore(id), nothing);
    expect(sessions.evictedWithTurns()).toEqual([]);
  });
});
