import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { Config } from '../../../../common/config.ts';
import type { RecallRequest } from '../../../../memory/index.ts';
import type { MemoryNode } from '../../../../memory/model/node.ts';
import { spokenText, type TurnText } from '../../../../memory/model/turn.ts';
import { createRecaller, type Recaller, type RecallerDeps } from '../../../../memory/recall/recall.ts';
import { FILTER_RULES } from '../../../../memory/recall/relevance-filter.ts';
import { dateAgreement, type NamedDate, namedDate } from '../../../../memory/search/dates.ts';
import { openLanceIndex } from '../../../../memory/search/lancedb/search-index.ts';
import type { SearchIndex, TurnWords } from '../../../../memory/search/search-index.ts';
import { ANSWERABLE, EPISODES, type Episode, UNANSWERABLE } from '../../../fixtures/coding-history.ts';
import { codingMemory, PROJECT, rowsOf } from '../../../helpers/coding-memory.ts';
import { createHashEmbedder } from '../../../helpers/hash-embedder.ts';
import { createInMemorySearchIndex } from '../../../helpers/in-memory-search-index.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const live = (): AbortSignal => new AbortController().signal;

function ask(prompt: string, over: Partial<RecallRequest> = {}): RecallRequest {
  const nothing = { recent: [], visibleTurns: new Set<string>(), shown: new Set<string>() };
  return { sessionId: 'new', projectDir: PROJECT, prompt, ...nothing, ...over };
}

const inMemory = async (): Promise<SearchIndex> => createInMemorySearchIndex(createHashEmbedder());
const inLance = async (): Promise<SearchIndex> => {
  const dir = path.join(await tempDir(), 'index');
  return (await openLanceIndex({ dir, embedder: createHashEmbedder(), now: Date.now, report: () => {} })).index;
};

describe.each([
  ['in memory', inMemory],
  ['in LanceDB', inLance],
])('recall over a coding history %s', (_, makeIndex) => {
  test('questions find their memory, questions without an answer find nothing', async () => {
    const index = await makeIndex();
    const { recaller, getId } = await codingMemory(index);
    const missed: string[] = [];
    for (const [question, name] of ANSWERABLE) {
      const hits = await recaller.recall(ask(question), live());
      if (!hits.slice(0, 5).some(({ node }) => node.node_id === getId(name))) missed.push(question);
    }
    expect(missed.length, missed.join('\n')).toBeLessThanOrEqual(2);
    const answered: string[] = [];
    for (const question of UNANSWERABLE) {
      if ((await recaller.recall(ask(question), live())).length > 0) answered.push(question);
    }
    expect(answered.length, answered.join('\n')).toBeLessThanOrEqual(2);
    await index.close();
  });

  test.each(['yesterday', 'on Sunday', 'in march 2026'])(
    'a memory of the date that a question names needs no word of it: %s',
    async (date) => {
      const index = await makeIndex();
      const { deps, getId } = await codingMemory(index);
      // A Monday, the day after most of the history was said.
      const recaller = createRecaller({ ...deps, now: () => new Date(2026, 2, 2, 12).getTime() });
      const [first] = await recaller.recall(ask(`which staging port did we decide on ${date}?`), live());
      expect(first?.node.node_id).toBe(getId('pg-port'));
      await index.close();
    },
  );

  test('a linked memory surfaces beside its neighbor if the question names its subject', async () => {
    const index = await makeIndex();
    const moved = {
      ...{ name: 'move', summary: 'the machines stand in Frankfurt', trigger: '', tags: [] },
      turns: ['User: where are the machines now?\nAssistant: Since the move they are in Frankfurt, rack seven.'],
    };
    const { deps, getId } = await codingMemory(index, [...EPISODES, moved]);
    const [port, move] = [getId('pg-port'), getId('move')];
    const found = async (links: readonly string[], question: string): Promise<boolean> => {
      const getNode = (id: string): MemoryNode | null => {
        const node = deps.getNode(id);
        return node?.node_id === port ? { ...node, links: [...links] } : node;
      };
      const hits = await createRecaller({ ...deps, getNode }).recall(ask(question), live());
      expect(hits[0]?.node.node_id).toBe(port);
      return hits.some(({ node }) => node.node_id === move);
    };
    const question = 'which port has staging Postgres beside the legacy CRM';
    expect(await found([move], `${question}, with machines in Frankfurt?`)).toBe(true);
    expect(await found([], `${question}, with machines in Frankfurt?`)).toBe(false);
    expect(await found([move], `${question}?`)).toBe(false);
    await index.close();
  });

  test('a prompt without words of its own is answered from the turns before it', async () => {
    const index = await makeIndex();
    const { recaller, getId } = await codingMemory(index);
    const recent = ['the stock sync fails', 'Shall I look at the ERP certificate chain error?'];
    const [first] = await recaller.recall(ask('yes, do it', { recent }), live());
    expect(first?.node.node_id).toBe(getId('tls-error'));
    expect(await recaller.recall(ask('yes, do it'), live())).toEqual([]);
    await index.close();
  });
});

describe('questions in other languages find what was said in them, and nothing where nothing answers', () => {
  test.each([
    [
      'German',
      [
        'Skonto: 2 % bei 10 Tagen statt bisher 3 %, steht in terms.yaml.',
        'Den Zugang zu Peppol besorgt Frau Yilmaz bis Ende November.',
        'Die Schwelle für den Alarm ist jetzt 29 Grad, meinte der Betriebsrat.',
        'Gutschriften fangen mit GS an, Rechnungen mit RE.',
      ],
      ['wie hoch ist das Skonto?', 'wer besorgt den Zugang zu Peppol?', 'ab wie viel Grad gibt es einen Alarm?'],
      ['wie hoch ist die Mehrwertsteuer in der Schweiz?', 'wer ist für den Datenschutz zuständig?'],
    ],
    [
      'Spanish',
      [
        'El proveedor de CDN será Bunny en vez de Cloudflare, por precio.',
        'El bucket de las fotos ocupa 612 GiB.',
        'Marta configura las copias de seguridad nocturnas, a las 3:30.',
        'Las miniaturas tienen 320 píxeles de ancho y formato WebP.',
      ],
      ['¿qué CDN usamos?', '¿cuánto ocupa el bucket?', '¿quién configura las copias de seguridad?'],
      ['¿quién lleva la contabilidad?', '¿cómo se calcula el IVA en Canarias?'],
    ],
    [
      'French',
      [
        'Le serveur de test est sur resa-test.exemple.fr, port 8446.',
        "La durée maximale d'une réservation est de 4 heures.",
        'Jamais de SMS, la direction refuse le coût.',
        'Claire livre la maquette mobile avant vendredi.',
      ],
      ['où est le serveur de test ?', "quelle est la durée maximale d'une réservation ?", 'pourquoi pas de SMS ?'],
      ['qui gère la comptabilité ?', 'comment calcule-t-on la TVA ?'],
    ],
  ])('%s', async (_, said, questions, strange) => {
    const history = said.map((text, at) => ({ name: `${at}`, summary: text, trigger: '', tags: [], turns: [text] }));
    const { recaller, getId } = await codingMemory(await inMemory(), history);
    const getFirst = async (prompt: string) => (await recaller.recall(ask(prompt), live()))[0]?.node.node_id;
    for (const [at, question] of questions.entries()) expect(await getFirst(question), question).toBe(getId(`${at}`));
    for (const question of strange) expect(await getFirst(question), question).toBeUndefined();
  });
});

describe('what is recalled', () => {
  const QUESTION = 'which port does the staging database listen on?';

  async function memory(): Promise<{ recaller: Recaller; id: string }> {
    const { recaller, getId } = await codingMemory(await inMemory());
    return { recaller, id: getId('pg-port') };
  }

  test('carries the passage with its turn, and what each lane said', async () => {
    const { recaller, id } = await memory();
    const [hit] = await recaller.recall(ask(QUESTION), live());
    expect(hit?.line.text).toContain(`- [${id}] 2026-03-01 (O:ASSISTANT I:M S:s-0) “`);
    expect(hit?.line.text).toContain('staging Postgres listens on 5433 from now on.');
    expect(hit?.raw?.turn).toBe('pg-port-0');
    expect(hit?.lanes.fts).toMatchObject({ rank: 1 });
    expect(hit?.lanes.raw).toMatchObject({ rank: 1 });
    expect(hit?.score).toBeGreaterThan(0.5);
  });

  test('leaves out passive memories, of searches too, unless they were pinned', async () => {
    const { deps, getId } = await codingMemory(await inMemory());
    const found = async (over: Partial<MemoryNode>): Promise<boolean[]> => {
      const getNode = (id: string) => {
        const node = deps.getNode(id);
        return node?.node_id === getId('pg-port') ? ({ ...node, ...over } as MemoryNode) : node;
      };
      const recaller = createRecaller({ ...deps, getNode });
      const hits = [await recaller.recall(ask(QUESTION), live()), await recaller.search(QUESTION, { top: 50 })];
      return hits.map((each) => each.some(({ node }) => node.node_id === getId('pg-port')));
    };
    expect(await found({ recall_mode: 'passive' })).toEqual([false, false]);
    expect(await found({ recall_mode: 'both' })).toEqual([true, true]);
    expect(await found({ recall_mode: 'active' })).toEqual([true, true]);
    expect(await found({ recall_mode: 'passive', pinned_from: 'active' })).toEqual([true, true]);
    expect(await found({ recall_mode: 'passive', pinned_from: 'passive' })).toEqual([false, false]);
  });

  test('omits nodes whose turns are all visible, and lines that were shown', async () => {
    const { recaller, id } = await memory();
    const [hit] = await recaller.recall(ask(QUESTION), live());
    const ids = async (over: Partial<RecallRequest>): Promise<string[]> =>
      (await recaller.recall(ask(QUESTION, over), live())).map(({ node }) => node.node_id);
    expect(await ids({})).toContain(id);
    expect(await ids({ visibleTurns: new Set(['pg-port-0']) })).not.toContain(id);
    expect(await ids({ shown: new Set([hit?.line.text ?? '']) })).not.toContain(id);
  });

  test('tells of a memory only the turns that are not visible', async () => {
    const told = async (later: string, visible: string): Promise<string[]> => {
      const isAsked = ({ name }: Episode): boolean => name === 'pg-port';
      const episodes = EPISODES.map((each) => (isAsked(each) ? { ...each, turns: [...each.turns, later] } : each));
      const { recaller, getId } = await codingMemory(await inMemory(), episodes);
      const hits = await recaller.recall(ask(QUESTION, { visibleTurns: new Set([visible]) }), live());
      return hits.flatMap(({ node, raw }) => (node.node_id === getId('pg-port') ? [raw?.turn ?? 'summary'] : []));
    };
    const [other, near] = [
      'user: And the weather?\n\nassistant: It rains.',
      'user: The staging database listens on another port?',
    ];
    expect(await told(other, 'pg-port-1')).toEqual(['pg-port-0']);
    expect(await told(other, 'pg-port-0')).toEqual([]);
    expect(await told(near, 'pg-port-0')).toEqual(['pg-port-1']);
  });

  test('stays within the project; without a project, within the session', async () => {
    const { recaller, id } = await memory();
    expect(await recaller.recall(ask(QUESTION, { projectDir: '/home/dev/blog' }), live())).toEqual([]);
    expect(await recaller.recall(ask(QUESTION, { projectDir: null }), live())).toEqual([]);
    const [own] = await recaller.recall(ask(QUESTION, { projectDir: null, sessionId: 's-0' }), live());
    expect(own?.node.node_id).toBe(id);
  });

  test('a search shows the nearest there is, up to `top`, and nothing for no words', async () => {
    const { recaller } = await memory();
    const hits = await recaller.search('run the tests', { top: 3, projectDir: PROJECT });
    expect(hits.length).toBeGreaterThan(0);
    expect(hits.length).toBeLessThanOrEqual(3);
    expect(await recaller.search('… ?', { top: 3 })).toEqual([]);
    const elsewhere = await recaller.search('staging database port', { top: 3, sessionId: 's-3' });
    expect(elsewhere.every(({ node }) => node.session_id === 's-3')).toBe(true);
  });
});

describe('a recaller over single nodes', () => {
  const filler = Array.from({ length: 48 }, (_, at) =>
    makeNode({
      node_id: `mem_20260301_101500_0001${at + 10}`,
      summary: `unrelated note number ${at} about gardening`,
      trigger: '',
      topic_tags: [],
      turns: [],
    }),
  );

  async function getRecaller(nodes: readonly MemoryNode[], over: Partial<RecallerDeps> = {}): Promise<Recaller> {
    const index = await inMemory();
    const all = [...nodes, ...filler];
    await index.put(all.flatMap((node) => rowsOf(node, new Map())));
    return createRecaller({
      index,
      getNode: (id) => all.find((node) => node.node_id === id) ?? null,
      turnText: () => null,
      getProject: (directory) => directory ?? '',
      config: Config.parse({}).recall,
      now: Date.now,
      ...over,
    });
  }
  const one = makeNode({ turns: [] });
  const QUESTION = 'staging database port';

  test('near duplicates are shown once, contradictions both', async () => {
    const again = makeNode({ ...one, node_id: 'mem_20260302_101500_00000b', summary: `again: ${one.summary}` });
    const moved = makeNode({
      ...one,
      node_id: 'mem_20260303_101500_00000c',
      summary: 'staging database listens on port 6000',
    });
    const hits = await (await getRecaller([one, again, moved])).recall(ask(QUESTION), live());
    expect(hits).toHaveLength(2);
    expect(hits.map(({ node }) => node.summary).join()).toContain('6000');
  });

  test('superseded nodes and rows without a node are passed over', async () => {
    const old = { ...one, superseded_by: 'mem_20260303_101500_00000c' };
    expect(await (await getRecaller([old])).recall(ask(QUESTION), live())).toEqual([]);
    expect(await (await getRecaller([one], { getNode: () => null })).recall(ask(QUESTION), live())).toEqual([]);
  });

  test('a line of unmarked text has the origin of its turn', async () => {
    const node = makeNode({ turns: ['t'] });
    const turnText = async (): Promise<{ text: string; origin: 'external' }> => ({
      text: 'the staging database port is 5433, says the wiki page',
      origin: 'external',
    });
    const index = await inMemory();
    await index.put([node, ...filler].flatMap((each) => rowsOf(each, new Map()).filter(({ kind }) => kind === 'node')));
    const recaller = await getRecaller([node], { index, turnText });
    const [hit] = await recaller.recall(ask(QUESTION), live());
    expect(hit?.line.origin).toBe('external');
    expect(hit?.line.text).toContain('(O:EXTERNAL ');
    expect(hit?.raw?.turn).toBe('t');
  });

  test.each(['user', 'assistant'] as const)(
    'a passage of the %s has its own origin, whatever entered the turn',
    async (by) => {
      const said = 'the staging database port is 5433';
      const parts: TurnText['parts'] = [
        by === 'assistant'
          ? { kind: 'assistant', origin: 'assistant', tool: '', text: said }
          : { kind: 'assistant', origin: 'external', tool: '', text: 'Noted.' },
        { kind: 'tool_use', origin: 'external', tool: 'Bash', text: '{"command":"curl x"}' },
      ];
      const turn: TurnText = { turnId: 't', atMs: 0, origin: 'external', user: by === 'user' ? said : 'well?', parts };
      const node = makeNode({ turns: ['t'], summary: 'which database staging has' });
      const turnText = (): TurnWords => ({ text: spokenText(turn), origin: 'external' });
      const [hit] = await (await getRecaller([node], { turnText })).recall(ask(QUESTION), live());
      expect(hit?.line).toMatchObject({ origin: by, text: expect.stringContaining('5433') });
    },
  );

  test('no more than maxResults are recalled', async () => {
    const many = Array.from({ length: 12 }, (_, at) =>
      makeNode({
        node_id: `mem_20260301_101500_00002${at.toString(16)}`,
        summary: `staging database port of tenant ${at}`,
      }),
    );
    const config = { ...Config.parse({}).recall, maxResults: 3, minCoverage: 0.35 };
    expect(await (await getRecaller(many, { config })).recall(ask(QUESTION), live())).toHaveLength(3);
  });

  const tenants = Array.from({ length: 12 }, (_, at) =>
    makeNode({
      node_id: `mem_20260301_101500_00002${at.toString(16)}`,
      summary: `staging database port of tenant ${at}`,
      turns: [`t-${at}`],
    }),
  );
  const defaults = { ...Config.parse({}).recall, minCoverage: 0.35 };

  test('what a recall gives stays within its tokens; a line that does not fit is left out whole', async () => {
    const all = await (await getRecaller(tenants, { config: { ...defaults, maxResults: 12 } })).recall(
      ask(QUESTION),
      live(),
    );
    const chars = all.map(({ line }) => line.text.length);
    const config = { ...defaults, maxResults: 12, maxContextChars: Math.ceil((chars[0] ?? 0) * 2.5) };
    const some = await (await getRecaller(tenants, { config })).recall(ask(QUESTION), live());
    expect(some.map(({ line }) => line.text)).toEqual(all.slice(0, 2).map(({ line }) => line.text));
  });

  test('nothing is found below the least score', async () => {
    const at = async (minScore: number, question = QUESTION): Promise<number> => {
      const recaller = await getRecaller([one], { config: { ...defaults, minSimilarity: 0, minScore } });
      return (await recaller.search(question, { top: 5 })).length;
    };
    expect(await at(0.4)).toBeGreaterThan(0);
    expect(await at(1)).toBe(0);
    const far = 'Which lagrangian has quantum chromodynamics?';
    expect(await at(0, far)).toBeGreaterThan(0);
    expect(await at(0.4, far)).toBe(0);
  });

  test('a search tells what a prompt would be given from what is only near', async () => {
    const recaller = await getRecaller([one], { config: { ...defaults, minSimilarity: 0 } });
    const far = 'Which lagrangian has quantum chromodynamics?';
    for (const [question, fits] of [
      [QUESTION, true],
      [far, false],
    ] as const) {
      const [hit] = await recaller.search(question, { top: 1 });
      expect(hit?.isFar).toBe(fits ? undefined : true);
      expect(await recaller.recall(ask(question), live())).toHaveLength(fits ? 1 : 0);
    }
  });

  test('a second turn of a memory follows the best turns of all', async () => {
    const texts: Readonly<Record<string, string>> = {
      a: 'the staging database has port 5433 since March',
      b: 'nobody else may use the port of the staging database, it is ours',
      c: 'a firewall keeps the staging database port closed from outside',
    };
    const nodes = [
      makeNode({ turns: ['a', 'b'] }),
      makeNode({ turns: ['c'], node_id: 'mem_20260302_101500_00000b', summary: 'a firewall' }),
    ];
    const turnText = (id: string): TurnWords => ({ text: texts[id] ?? '', origin: 'user' });
    const hits = await (await getRecaller(nodes, { turnText })).recall(ask(QUESTION), live());
    expect(hits.map(({ raw }) => raw?.turn)).toEqual(['a', 'c', 'b']);
  });

  test('fewer words suffice in a turn that is about the same', async () => {
    const node = makeNode({ turns: ['t'], summary: 'postgres', trigger: '', topic_tags: [] });
    const passes = async (text: string): Promise<boolean> => {
      const recaller = await getRecaller([node], { turnText: () => ({ text, origin: 'user' }) });
      return (await recaller.recall(ask('how do we restore the postgres database after a crash?'), live())).length > 0;
    };
    expect(await passes('to recover postgres, load the last dump into an empty database and replay the log')).toBe(
      true,
    );
    expect(
      await passes(
        'for the party: a cake with the database logo, blue balloons, and a postgres elephant for the children',
      ),
    ).toBe(false);
  });

  test.each([
    [0, 0],
    [1, 1],
  ])('what follows the %i best memories does not decide whether anything is shown', async (deciding, shown) => {
    const recaller = await getRecaller([one], { filter: { ...FILTER_RULES, deciding } });
    expect(await recaller.recall(ask(QUESTION), live())).toHaveLength(shown);
  });

  test('an index that failed three times in a row is left alone for half a minute', async () => {
    let [asked, nowMs, broken] = [0, 0, true];
    const sound = await inMemory();
    await sound.put([one, ...filler].flatMap((node) => rowsOf(node, new Map())));
    const index: SearchIndex = {
      ...sound,
      search: async (...args) => {
        asked += 1;
        if (broken) throw new Error('the index is broken');
        return sound.search(...args);
      },
    };
    const recaller = await getRecaller([one], { index, now: () => nowMs });
    for (let nth = 0; nth < 3; nth += 1) await expect(recaller.recall(ask(QUESTION), live())).rejects.toThrow('broken');
    expect(await recaller.recall(ask(QUESTION), live())).toEqual([]);
    expect(asked).toBe(3);
    broken = false;
    nowMs += 30_000;
    expect(await recaller.recall(ask(QUESTION), live())).toHaveLength(1);
  });

  test('lanes that weigh nothing, as names and identifiers do, are not asked', async () => {
    const asked: (readonly string[])[] = [];
    const sound = await inMemory();
    const index: SearchIndex = {
      ...sound,
      search: (query, filter, limit, lanes) => {
        asked.push(lanes);
        return sound.search(query, filter, limit, lanes);
      },
    };
    await (await getRecaller([one], { index })).search(QUESTION, { top: 1 });
    const weights = { ...defaults.weights, entity: 0.5 };
    await (await getRecaller([one], { index, config: { ...defaults, weights } })).search(QUESTION, { top: 1 });
    const usual = ['raw', 'window', 'meaning', 'fact', 'factMeaning', 'fts', 'summary'];
    expect(asked.map((lanes) => [...lanes].sort())).toEqual([usual.toSorted(), [...usual, 'entity'].sort()]);
  });

  test.each(['score', 'rrf', 'comet'] as const)('joined by %s, what answers is found and passes', async (fusion) => {
    const [hit] = await (await getRecaller([one], { config: { ...defaults, fusion } })).recall(ask(QUESTION), live());
    expect(hit?.node.node_id).toBe(one.node_id);
  });

  test('a reranker orders the results; without its answer the order stays', async () => {
    const found = async (worth: (texts: readonly string[]) => readonly number[] | null): Promise<string[]> => {
      const reranking = { candidates: () => 40, worth: async (_: string, texts: readonly string[]) => worth(texts) };
      const hits = await (await getRecaller(tenants, { config: defaults, reranking })).search(QUESTION, { top: 3 });
      return hits.map(({ node }) => node.summary);
    };
    const order = await found(() => null);
    const ninth = await found((texts) => texts.map((text) => Number(text.includes('tenant 9'))));
    expect(ninth).toEqual(['staging database port of tenant 9', ...order.slice(0, 2)]);
  });

  test('an abort ends the wait at once, also while the index hangs', async () => {
    const hanging: SearchIndex = { ...(await inMemory()), search: () => new Promise(() => {}) };
    const recaller = await getRecaller([one], { index: hanging });
    const controller = new AbortController();
    const waiting = recaller.recall(ask(QUESTION), controller.signal);
    controller.abort(new Error('late'));
    await expect(waiting).rejects.toThrow('late');
    await expect(recaller.recall(ask(QUESTION), controller.signal)).rejects.toThrow('late');
  });
});

test('a question names the days of this machine', () => {
  vi.stubEnv('TZ', 'America/Los_Angeles');
  try {
    const evening = Date.parse('2026-11-01T03:30:00Z');
    const agrees = (question: string) => dateAgreement(namedDate(question, evening) as NamedDate, evening);
    expect(['what broke on October 31?', 'in october', 'in november'].map(agrees)).toEqual([1, 1, 0]);
  } finally {
    vi.unstubAllEnvs();
  }
});
