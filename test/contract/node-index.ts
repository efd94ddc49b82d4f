import { expect, test } from 'vitest';
import type { FoundRow, IndexRow, NodeIndex } from '../../memory/search/node-index.ts';
import { NOTHING, searched } from '../helpers/lane-hits.ts';

export function nodeRow(id: string, summary: string, over: Partial<IndexRow> = {}): IndexRow {
  return {
    row_id: `node:${id}`,
    kind: 'node',
    node_id: id,
    session_id: 's-1',
    project: 'shop',
    turn: '',
    origin: 'user',
    created_at_ms: 1_760_000_000_000,
    digest: `digest of ${id}`,
    text: summary,
    summary,
    trigger: '',
    before: [],
    sources: [],
    ...over,
  };
}

export function turnRow(nodeId: string, turn: string, text: string, over: Partial<IndexRow> = {}): IndexRow {
  return nodeRow(nodeId, text, { row_id: `turn:${turn}`, kind: 'turn', turn, digest: '', origin: 'tool', ...over });
}

const everything = { filter: {}, limit: 10 };
const idsOf = (hits: readonly { row: FoundRow }[]): string[] => hits.map(({ row }) => row.row_id);

/** What a search gives of a row. */
function found(row: IndexRow, timed = false): FoundRow {
  const { row_id, kind, node_id, session_id, project, turn, origin, created_at_ms, before, sources } = row;
  return { row_id, kind, node_id, session_id, project, turn, origin, created_at_ms, before, sources, timed };
}

function factRow(nodeId: string, at: number, text: string, sources: readonly string[]): IndexRow {
  return nodeRow(nodeId, text, { row_id: `${nodeId}#${at}`, kind: 'fact', digest: '', sources });
}

/** What every NodeIndex must keep; `make` gives an empty one. */
export function nodeIndexContract(make: () => Promise<NodeIndex>): void {
  async function filled(rows: readonly IndexRow[]): Promise<NodeIndex> {
    const index = await make();
    await index.upsert(rows);
    return index;
  }

  test('an empty index finds nothing and says so', async () => {
    const index = await make();
    expect(await searched(index, 'anything', everything)).toEqual(NOTHING);
    expect(await index.count()).toBe(0);
    expect(await index.nodeIds()).toEqual(new Set());
    await index.close();
  });

  test('each lane sees the rows it is for', async () => {
    const node = nodeRow('a', 'staging database listens on port 5433', { trigger: 'When I connect to staging' });
    const turn = turnRow('a', 't1', 'psql: 데이터베이스 o\'clock "5433"\nsecond line');
    const index = await filled([node, turn]);
    const { fts, raw, summary, meaning, trigger } = await searched(index, 'staging 데이터베이스', everything);
    expect(fts.map(({ row }) => row)).toEqual([found(node)]);
    expect(raw.map(({ row }) => row)).toEqual([found(turn)]);
    expect([idsOf(summary), idsOf(meaning)]).toEqual([['node:a'], ['turn:t1']]);
    expect(trigger.map(({ row }) => row)).toEqual([found(node)]);
    await index.close();
  });

  test('the best match comes first, however few of many rows are asked for', async () => {
    const noise = Array.from({ length: 30 }, (_, at) => nodeRow(`n${at}`, `the port number of service ${at}`));
    const index = await make();
    for (const row of noise) await index.upsert([row]);
    await index.upsert([nodeRow('x', 'reconnectTimeout of the websocket port is 4500 ms')]);
    const { fts, summary } = await searched(index, 'reconnect timeout port', { filter: {}, limit: 3 });
    expect(fts).toHaveLength(3);
    expect(idsOf(fts)[0]).toBe('node:x');
    expect(idsOf(summary)[0]).toBe('node:x');
    const scores = fts.map(({ score }) => score);
    expect(scores).toEqual([...scores].sort((left, right) => right - left));
    await index.close();
  });

  test('facts lead to the turns they rest on, and stay out of the lanes of nodes', async () => {
    const fact = factRow('a', 0, 'staging port: 5433', ['t1', 't2']);
    const index = await filled([nodeRow('a', 'databases'), turnRow('a', 't1', 'moved it'), fact]);
    const { fts, raw, summary, fact: told, factMeaning } = await searched(index, 'staging port', everything);
    expect(told.map(({ row }) => row)).toEqual([found(fact)]);
    expect(idsOf(factMeaning)).toEqual(['a#0']);
    expect([idsOf(fts), idsOf(raw), idsOf(summary)].flat()).not.toContain('a#0');
    expect(await index.entries()).toEqual(new Map([['a', { digest: 'digest of a', turns: ['t1'] }]]));
    await index.removeNodes(['a']);
    expect((await searched(index, 'staging port', everything)).fact).toEqual([]);
    await index.close();
  });

  test('facts are as many as turns, and what nodes say makes no word of them common', async () => {
    const told = (at: number): IndexRow => factRow('a', at, at === 0 ? 'copper kettle' : `tin kettle ${at}`, ['t1']);
    const facts = Array.from({ length: 80 }, (_, at) => told(at));
    const asked = { filter: {}, limit: 80 };
    const index = await filled([nodeRow('a', 'copper'), ...facts]);
    const { fact, factMeaning } = await searched(index, 'copper kettle', asked);
    expect([fact.length, factMeaning.length]).toEqual([80, 80]);
    await index.upsert(Array.from({ length: 40 }, (_, at) => nodeRow(`n${at}`, 'copper copper copper')));
    const [first] = (await searched(index, 'copper kettle', asked)).fact;
    expect(first?.row.row_id).toBe('a#0');
    expect(first?.score).toBeCloseTo(fact[0]?.score ?? 0, 5);
    await index.close();
  });

  test('a turn is found by what was said before it, and says which turns those were', async () => {
    const index = await filled([
      turnRow('a', 't1', 'shall we rename the warehouse table?'),
      turnRow('a', 't2', 'yes, go ahead', { before: ['t1'] }),
    ]);
    const { raw, window } = await searched(index, 'warehouse', everything);
    expect(idsOf(raw)).toEqual(['turn:t1']);
    expect(new Set(idsOf(window))).toEqual(new Set(['turn:t1', 'turn:t2']));
    expect(window.find(({ row }) => row.turn === 't2')?.row.before).toEqual(['t1']);
    await index.close();
  });

  test('other words for the same thing are asked for too', async () => {
    const index = await filled([turnRow('a', 't1', 'the lawyer called'), turnRow('b', 't2', 'a green bicycle')]);
    const { raw, expanded } = await searched(index, 'attorney', everything);
    expect([idsOf(raw), idsOf(expanded)]).toEqual([[], ['turn:t1']]);
    await index.close();
  });

  test('lanes that nobody wants stay empty', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', 't1', 'alpha yesterday')]);
    const without = new Set(['fts', 'fact', 'meaning', 'expanded'] as const);
    const { fts, meaning, raw } = await searched(index, 'alpha', { ...everything, without });
    expect([fts, meaning]).toEqual([[], []]);
    expect(raw[0]?.row.timed).toBe(true);
    await index.close();
  });

  test('the words of turns are given by their ids', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', "t'1", 'said so')]);
    expect(await index.turnWords(["t'1", 'unknown'])).toEqual(new Map([["t'1", { text: 'said so', origin: 'tool' }]]));
    expect(await index.turnWords([])).toEqual(new Map());
    await index.close();
  });

  test('cosines stand on the vector lanes: the very same text scores 1', async () => {
    const index = await filled([nodeRow('a', 'prefer pnpm over npm', { trigger: 'When I install packages' })]);
    const { summary } = await searched(index, 'prefer pnpm over npm', everything);
    expect(summary[0]?.score).toBeCloseTo(1, 4);
    await index.close();
  });

  test('a filter keeps other projects and sessions out, whatever their names hold', async () => {
    const names = ["o'brien", "x' OR '1'='1", 'shop'];
    const index = await filled(
      names.map((project, at) => nodeRow(`n${at}`, 'deploy key', { project, session_id: `s'${at}` })),
    );
    for (const [at, project] of names.entries()) {
      const { fts, summary } = await searched(index, 'deploy key', { filter: { project }, limit: 10 });
      expect([idsOf(fts), idsOf(summary)]).toEqual([[`node:n${at}`], [`node:n${at}`]]);
    }
    const { fts } = await searched(index, 'deploy key', { filter: { sessionId: "s'1" }, limit: 10 });
    expect(idsOf(fts)).toEqual(['node:n1']);
    expect((await searched(index, 'deploy key', { filter: { project: 'none' }, limit: 10 })).fts).toEqual([]);
    await index.close();
  });

  test('a row of a known id replaces the old one', async () => {
    const index = await filled([nodeRow('a', 'cache lives in redis'), nodeRow('b', 'queue lives in rabbit')]);
    await index.upsert([nodeRow('a', 'cache lives in kafka'), nodeRow('c', 'mail goes through postfix')]);
    expect(await index.count()).toBe(3);
    expect((await searched(index, 'redis', everything)).fts).toEqual([]);
    expect(idsOf((await searched(index, 'kafka', everything)).fts)).toEqual(['node:a']);
    expect(index.termWeights(['redis', 'kafka'], {}).get('redis')).toBeGreaterThan(
      index.termWeights(['kafka'], {}).get('kafka') as number,
    );
    await index.close();
  });

  test('removing a node removes its turns too', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', 't1', 'alpha raw'), nodeRow('b', 'alpha beta')]);
    await index.removeNodes(['a', 'unknown', "o'x"]);
    expect(await index.nodeIds()).toEqual(new Set(['b']));
    expect(await index.count()).toBe(1);
    const { fts, raw, summary } = await searched(index, 'alpha', everything);
    expect([idsOf(fts), idsOf(raw), idsOf(summary)]).toEqual([['node:b'], [], ['node:b']]);
    await index.removeNodes([]);
    await index.close();
  });

  test('entries name the digest of each node and the ids of its turns', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', 't1', 'raw one'), turnRow('b', 't2', 'raw two')]);
    await index.upsert([nodeRow('a', 'alpha', { digest: 'newer' })]);
    expect(await index.entries()).toEqual(
      new Map([
        ['a', { digest: 'newer', turns: ['t1'] }],
        ['b', { digest: '', turns: ['t2'] }],
      ]),
    );
    await index.close();
  });

  test('a purge changes nothing that is there', async () => {
    const index = await filled([nodeRow('a', 'alpha'), turnRow('a', 't1', 'alpha raw'), nodeRow('b', 'beta')]);
    await index.removeNodes(['b']);
    const before = await searched(index, 'alpha beta', everything);
    const [after] = await Promise.all([searched(index, 'alpha beta', everything), index.purge()]);
    expect(after).toEqual(before);
    const later = await searched(index, 'alpha beta', everything);
    expect([idsOf(later.fts), idsOf(later.raw)]).toEqual([idsOf(before.fts), idsOf(before.raw)]);
    await index.upsert([nodeRow('c', 'alpha gamma')]);
    expect(idsOf((await searched(index, 'gamma', everything)).fts)).toEqual(['node:c']);
    await index.removeNodes(['a', 'c']);
    await index.purge();
    expect(await index.count()).toBe(0);
    await index.close();
  });

  test('after all that was indexed first is gone, the best still comes first', async () => {
    const index = await filled([nodeRow('old', 'port of old')]);
    for (let at = 0; at < 20; at += 1) await index.upsert([nodeRow(`n${at}`, `port ${at === 17 ? 'needle' : at}`)]);
    await index.removeNodes(['old']);
    expect(idsOf((await searched(index, 'needle port', { filter: {}, limit: 3 })).fts)[0]).toBe('node:n17');
    await index.close();
  });

  test('term weights are inverse document frequencies over the rows of the filter', async () => {
    const index = await filled([
      nodeRow('a', 'port host', { project: 'one' }),
      nodeRow('b', 'port port', { project: 'one', session_id: 's-2' }),
      nodeRow('c', 'host', { project: 'two' }),
    ]);
    const idf = (rows: number, df: number): number => Math.log(1 + (rows - df + 0.5) / (df + 0.5));
    expect([...index.termWeights(['port', 'host', 'nowhere'], { project: 'one' })]).toEqual([
      ['port', idf(2, 2)],
      ['host', idf(2, 1)],
      ['nowhere', idf(2, 0)],
    ]);
    expect(index.termWeights(['port'], { sessionId: 's-2' }).get('port')).toBe(idf(1, 1));
    expect(index.termWeights(['port'], {}).get('port')).toBe(idf(3, 2));
    await index.close();
  });

  test('upserts at the same time all arrive', async () => {
    const index = await make();
    await Promise.all(
      Array.from({ length: 60 }, (_, at) =>
        index.upsert([nodeRow(`n${at}`, `word${'abcdefgh'[at % 8]}${'klmnopqr'[at >> 3]} common`)]),
      ),
    );
    expect(await index.count()).toBe(60);
    expect(idsOf((await searched(index, 'wordcp', everything)).fts)).toEqual(['node:n42']);
    await index.close();
  });

  test('a query without words finds nothing, a very long one finds its rarest', async () => {
    const index = await filled([
      nodeRow('a', 'zebrafish config'),
      ...['b', 'c'].map((id) => nodeRow(id, 'common words')),
    ]);
    expect(await searched(index, '… !!!', everything)).toEqual(NOTHING);
    const long = `${'common words again and again '.repeat(300)} zebrafish`;
    expect(idsOf((await searched(index, long, everything)).fts)).toContain('node:a');
    await index.close();
  });

  test('clear empties it, and it can be filled again', async () => {
    const index = await filled([nodeRow('a', 'alpha')]);
    await index.clear();
    expect(await index.count()).toBe(0);
    expect((await searched(index, 'alpha', everything)).fts).toEqual([]);
    await index.upsert([nodeRow('b', 'alpha')]);
    expect(idsOf((await searched(index, 'alpha', everything)).fts)).toEqual(['node:b']);
    await index.close();
    await index.close();
  });
}
