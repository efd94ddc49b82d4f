import { expect, test } from 'vitest';
import type { IndexRow, SearchIndex } from '../../memory/search/search-index.ts';
import { EVERY_LANE, getIds, searched } from '../helpers/lane-hits.ts';

export function nodeRow(nodeId: string, text: string, over: Partial<IndexRow> = {}): IndexRow {
  return {
    kind: 'node',
    nodeId,
    sessionId: 's',
    project: 'p',
    turnId: '',
    origin: 'user',
    atMs: 1_800_000_000_000,
    digest: `digest of ${nodeId}`,
    text,
    embedded: text,
    trigger: '',
    place: null,
    sources: [],
    ...over,
  };
}

export function turnRow(nodeId: string, turnId: string, text: string, over: Partial<IndexRow> = {}): IndexRow {
  return nodeRow(nodeId, text, { kind: 'turn', turnId, digest: '', origin: 'tool', ...over });
}

function factRow(nodeId: string, text: string, sources: readonly string[]): IndexRow {
  return nodeRow(nodeId, text, { kind: 'fact', digest: '', sources });
}

/** What every SearchIndex must keep; `make` gives an empty one. */
export function searchIndexContract(make: () => Promise<SearchIndex>): void {
  async function filled(rows: readonly IndexRow[]): Promise<SearchIndex> {
    const index = await make();
    await index.put(rows);
    return index;
  }

  test('an empty index finds nothing', async () => {
    const index = await make();
    expect(await index.search('anything', {}, 10, EVERY_LANE)).toEqual([]);
    expect(await index.size()).toEqual({ nodes: 0, rows: 0 });
    expect(await index.entries()).toEqual(new Map());
    await index.close();
  });

  test('each lane searches the rows it is for', async () => {
    const node = nodeRow('a', 'staging database listens on port 5433', { trigger: 'When I connect to staging' });
    const turn = turnRow('a', 't1', 'psql: 데이터베이스 o\'clock "5433"\nsecond line');
    const index = await filled([node, turn]);
    const { fts, raw, summary, meaning, trigger } = await searched(index, 'staging 데이터베이스');
    expect([fts, raw, summary, meaning, trigger].map(getIds)).toEqual([['a'], ['t1'], ['a'], ['t1'], ['a']]);
    await index.close();
  });

  test('a hit says whose turn it is, when it was said and where it stands in its session', async () => {
    const index = await filled([
      turnRow('a', 't1', 'the kettle broke yesterday', { atMs: 5, place: 7 }),
      nodeRow('b', 'kettle'),
    ]);
    const hits = await index.search('kettle', {}, 10, ['raw', 'fts']);
    const shared = { atMs: 5, tellsTime: true, place: 7 };
    expect(hits).toContainEqual({
      nodeId: 'a',
      turnId: 't1',
      ...shared,
      lanes: { raw: { rank: 1, score: expect.any(Number) } },
    });
    expect(hits).toContainEqual(expect.objectContaining({ nodeId: 'b', turnId: null, place: null }));
    expect(hits).toHaveLength(2);
    await index.close();
  });

  test('only the lanes that are asked answer', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', 't1', 'alpha yesterday')]);
    const hits = await index.search('alpha', {}, 10, ['raw']);
    expect(hits.map(({ turnId, lanes }) => [turnId, Object.keys(lanes)])).toEqual([['t1', ['raw']]]);
    await index.close();
  });

  test('the best match comes first, however few of many rows are asked for', async () => {
    const index = await make();
    for (let at = 0; at < 30; at += 1) await index.put([nodeRow(`n${at}`, `the port number of service ${at}`)]);
    await index.put([nodeRow('x', 'reconnectTimeout of the websocket port is 4500 ms')]);
    const { fts, summary } = await searched(index, 'reconnect timeout port', { limit: 3 });
    expect(fts).toHaveLength(3);
    expect([fts[0]?.id, summary[0]?.id]).toEqual(['x', 'x']);
    const scores = fts.map(({ score }) => score);
    expect(scores).toEqual(scores.toSorted((left, right) => right - left));
    await index.close();
  });

  test('facts lead to the turns they rest on, and stay out of the lanes of nodes', async () => {
    const fact = factRow('a', 'staging port: 5433', ['t1', 't2']);
    const index = await filled([nodeRow('a', 'databases'), turnRow('a', 't1', 'moved it'), fact]);
    const found = await searched(index, 'staging port');
    expect(getIds(found.fact)).toEqual(['t1', 't2']);
    expect(getIds(found.factMeaning)).toEqual(['t1', 't2']);
    expect([getIds(found.fts), getIds(found.raw)]).toEqual([[], []]);
    expect(await index.entries()).toEqual(new Map([['a', { digest: 'digest of a', sessionId: 's', turns: ['t1'] }]]));
    await index.remove(['a']);
    expect((await searched(index, 'staging port')).fact).toEqual([]);
    await index.close();
  });

  test('words of nodes do not make words of facts common', async () => {
    const facts = Array.from({ length: 80 }, (_, at) =>
      factRow('a', at === 0 ? 'copper kettle' : `tin kettle ${at}`, [`t${at}`]),
    );
    const index = await filled([nodeRow('a', 'copper'), ...facts]);
    const { fact } = await searched(index, 'copper kettle', { limit: 80 });
    expect(fact).toHaveLength(80);
    await index.put(Array.from({ length: 40 }, (_, at) => nodeRow(`n${at}`, 'copper copper copper')));
    const [first] = (await searched(index, 'copper kettle', { limit: 80 })).fact;
    expect(first?.id).toBe('t0');
    expect(first?.score).toBeCloseTo(fact[0]?.score ?? 0, 5);
    await index.close();
  });

  test('a turn is found by what was said before it', async () => {
    const index = await filled([turnRow('a', 't1', 'shall we rename the warehouse table?', { place: 1 })]);
    await index.put([turnRow('b', 't2', 'yes, go ahead', { place: 2 })]);
    const { raw, window } = await searched(index, 'warehouse');
    expect(getIds(raw)).toEqual(['t1']);
    expect(new Set(getIds(window))).toEqual(new Set(['t1', 't2']));
    await index.close();
  });

  test('windows forget removed turns, and know turns that come back', async () => {
    const later = turnRow('b', 't2', 'yes, go ahead', { place: 2 });
    const index = await filled([turnRow('a', 't1', 'shall we rename the warehouse table?', { place: 1 }), later]);
    await index.remove(['a']);
    expect((await searched(index, 'warehouse')).window).toEqual([]);
    await index.put([turnRow('c', 't1', 'shall we rename the warehouse table?', { place: 1 })]);
    expect(new Set(getIds((await searched(index, 'warehouse')).window))).toEqual(new Set(['t1', 't2']));
    await index.close();
  });

  test('a hit says in every search what its turn is now, and how that query found it', async () => {
    const turn = (atMs: number) => turnRow('a', 't1', 'the kettle broke', { atMs, place: 7 });
    const other = turnRow('b', 't2', 'the mirror broke', { atMs: 1, place: 2 });
    const index = await filled([turn(5), other]);
    const find = async (query: string) => {
      const hits = await index.search(query, {}, 10, ['raw']);
      return hits.map(({ turnId, atMs, place, lanes }) => [turnId, atMs, place, lanes.raw?.rank]);
    };
    const isSecond = ['t2', 1, 2, 2];
    expect(await find('kettle broke')).toEqual([['t1', 5, 7, 1], isSecond]);
    expect(await find('mirror broke')).toEqual([
      ['t2', 1, 2, 1],
      ['t1', 5, 7, 2],
    ]);
    await index.remove(['a']);
    expect(await find('kettle broke')).toEqual([['t2', 1, 2, 1]]);
    await index.put([turn(6)]);
    expect(await find('kettle broke')).toEqual([['t1', 6, 7, 1], isSecond]);
    await index.close();
  });

  test('texts of turns are read by their ids', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', "t'1", 'said so')]);
    const texts = await index.turnTexts(['a', 'unknown'], ["t'1", 'unknown']);
    expect(texts).toEqual(new Map([["t'1", { text: 'said so', origin: 'tool' }]]));
    expect(await index.turnTexts([], [])).toEqual(new Map());
    await index.close();
  });

  test('lanes of vectors score by cosine: the same text scores 1', async () => {
    const index = await filled([nodeRow('a', 'prefer pnpm over npm', { trigger: 'When I install packages' })]);
    expect((await searched(index, 'prefer pnpm over npm')).summary[0]?.score).toBeCloseTo(1, 4);
    await index.close();
  });

  test('a filter keeps other projects and sessions out, whatever their names hold', async () => {
    const names = ["o'brien", "x' OR '1'='1", 'shop'];
    const rows = names.map((project, at) => nodeRow(`n${at}`, 'deploy key', { project, sessionId: `s'${at}` }));
    const index = await filled(rows);
    for (const [at, project] of names.entries()) {
      const { fts, summary } = await searched(index, 'deploy key', { filter: { project } });
      expect([getIds(fts), getIds(summary)]).toEqual([[`n${at}`], [`n${at}`]]);
    }
    const { fts } = await searched(index, 'deploy key', { filter: { sessionId: "s'1" } });
    expect(getIds(fts)).toEqual(['n1']);
    expect((await searched(index, 'deploy key', { filter: { project: 'none' } })).fts).toEqual([]);
    expect(new Set(getIds((await searched(index, 'deploy key')).fts))).toEqual(new Set(['n0', 'n1', 'n2']));
    await index.close();
  });

  test('the rows of a node replace those it had', async () => {
    const index = await filled([nodeRow('a', 'cache lives in redis'), nodeRow('b', 'queue lives in rabbit')]);
    await index.put([nodeRow('a', 'cache lives in kafka'), nodeRow('c', 'mail goes through postfix')]);
    expect(await index.size()).toEqual({ nodes: 3, rows: 3 });
    expect((await searched(index, 'redis')).fts).toEqual([]);
    expect(getIds((await searched(index, 'kafka')).fts)).toEqual(['a']);
    const weights = await index.termWeights(['redis', 'kafka'], {});
    expect(weights.get('redis')).toBeGreaterThan(weights.get('kafka') as number);
    await index.close();
  });

  test('removing a node removes its turns too', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', 't1', 'alpha raw'), nodeRow('b', 'alpha beta')]);
    await index.remove(['a', 'unknown', "o'x"]);
    expect(await index.size()).toEqual({ nodes: 1, rows: 1 });
    const { fts, raw, summary } = await searched(index, 'alpha');
    expect([fts, raw, summary].map(getIds)).toEqual([['b'], [], ['b']]);
    await index.remove([]);
    await index.close();
  });

  test('entries name the digest of each node and its turns', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', 't1', 'raw one'), turnRow('b', 't2', 'raw two')]);
    await index.put([nodeRow('c', 'gamma', { digest: 'newer' })]);
    expect(await index.entries()).toEqual(
      new Map([
        ['a', { digest: 'digest of a', sessionId: 's', turns: ['t1'] }],
        ['b', { digest: '', sessionId: 's', turns: ['t2'] }],
        ['c', { digest: 'newer', sessionId: 's', turns: [] }],
      ]),
    );
    await index.close();
  });

  test('optimizing changes nothing that is found', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', 't1', 'alpha raw'), nodeRow('b', 'beta')]);
    await index.remove(['b']);
    const before = await searched(index, 'alpha beta');
    const [during] = await Promise.all([searched(index, 'alpha beta'), index.optimize()]);
    expect(getIds(during.fts)).toEqual(getIds(before.fts));
    const after = await searched(index, 'alpha beta');
    expect([getIds(after.fts), getIds(after.raw)]).toEqual([getIds(before.fts), getIds(before.raw)]);
    await index.put([nodeRow('c', 'alpha gamma')]);
    expect(getIds((await searched(index, 'gamma')).fts)).toEqual(['c']);
    await index.remove(['a', 'c']);
    await index.optimize();
    expect(await index.size()).toEqual({ nodes: 0, rows: 0 });
    await index.close();
  });

  test('after a rest the same is found, and what is written meanwhile', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', 't1', 'alpha raw')]);
    const before = await searched(index, 'alpha raw');
    const [during] = await Promise.all([
      searched(index, 'alpha raw'),
      index.rest(),
      index.put([nodeRow('b', 'gamma')]),
    ]);
    expect(during).toEqual(before);
    expect(getIds((await searched(index, 'gamma')).fts)).toEqual(['b']);
    await index.rest();
    expect(getIds((await searched(index, 'alpha raw')).raw)).toEqual(getIds(before.raw));
    await index.close();
  });

  test('after all that was indexed first is gone, the best still comes first', async () => {
    const index = await filled([nodeRow('old', 'port of old')]);
    for (let at = 0; at < 20; at += 1) await index.put([nodeRow(`n${at}`, `port ${at === 17 ? 'needle' : at}`)]);
    await index.remove(['old']);
    expect(getIds((await searched(index, 'needle port', { limit: 3 })).fts)[0]).toBe('n17');
    await index.close();
  });

  test('term weights are inverse document frequencies over the turns and nodes of the filter', async () => {
    const index = await filled([
      nodeRow('a', 'port host', { project: 'one' }),
      nodeRow('b', 'port port', { project: 'one', sessionId: 's-2' }),
      nodeRow('c', 'host', { project: 'two' }),
    ]);
    const idf = (rows: number, df: number): number => Math.log(1 + (rows - df + 0.5) / (df + 0.5));
    expect([...(await index.termWeights(['port', 'host', 'nowhere'], { project: 'one' }))]).toEqual([
      ['port', idf(2, 2)],
      ['host', idf(2, 1)],
      ['nowhere', idf(2, 0)],
    ]);
    expect((await index.termWeights(['port'], { sessionId: 's-2' })).get('port')).toBe(idf(1, 1));
    expect((await index.termWeights(['port'], {})).get('port')).toBe(idf(3, 2));
    await index.put([nodeRow('d', 'port', { project: 'one' })]);
    await index.remove(['b']);
    expect((await index.termWeights(['port', 'host'], { project: 'one' })).get('port')).toBe(idf(2, 2));
    expect((await index.termWeights(['port'], {})).get('port')).toBe(idf(3, 2));
    await index.close();
  });

  test('rows that are put at the same time all arrive', async () => {
    const index = await make();
    await Promise.all(
      Array.from({ length: 60 }, (_, at) =>
        index.put([nodeRow(`n${at}`, `word${'abcdefgh'[at % 8]}${'klmnopqr'[at >> 3]} common`)]),
      ),
    );
    expect(await index.size()).toEqual({ nodes: 60, rows: 60 });
    expect(getIds((await searched(index, 'wordcp')).fts)).toEqual(['n42']);
    await index.close();
  });

  test('a query without words finds nothing, a very long one finds its rarest', async () => {
    const index = await filled([
      nodeRow('a', 'zebrafish config'),
      ...['b', 'c'].map((id) => nodeRow(id, 'common words')),
    ]);
    expect(await index.search('… !!!', {}, 10, EVERY_LANE)).toEqual([]);
    const long = `${'common words again and again '.repeat(300)} zebrafish`;
    expect(getIds((await searched(index, long)).fts)).toContain('a');
    await index.close();
  });

  test('a cleared index can be filled again', async () => {
    const index = await filled([nodeRow('a', 'alpha')]);
    await index.clear();
    expect(await index.size()).toEqual({ nodes: 0, rows: 0 });
    expect((await searched(index, 'alpha')).fts).toEqual([]);
    await index.put([nodeRow('b', 'alpha')]);
    expect(getIds((await searched(index, 'alpha')).fts)).toEqual(['b']);
    await index.close();
    await index.close();
  });
}
