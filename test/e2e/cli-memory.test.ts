import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChatServer, chatServer, send } from '../helpers/chat-server.ts';
import { CLI, createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { daemonUpstream } from '../helpers/live-conversation.ts';
import { hasTmux, openTmux } from '../helpers/tmux.ts';
import { type ConversationPlan, growConversation, type Step, seededPlan } from '../helpers/transcripts.ts';
import { createStandin, type Standin } from '../mock-anthropic/index.ts';

interface Node {
  readonly node_id: string;
  readonly session_id: string;
  readonly summary: string;
  readonly created_at: string;
  readonly turns: readonly string[];
}

interface Raw {
  readonly seq: number;
  readonly role: string;
  readonly content: unknown;
  readonly sha256: string;
}

interface RerankBody {
  readonly query: string;
  readonly documents: readonly string[];
}

const TURNS = 9;
const SERVICES = ['billing', 'search', 'mail', 'login', 'export', 'thumbnail', 'audit', 'webhook', 'report'];

let standin: Standin;
let home: TestHome;
let reranker: ChatServer;
let plan: ConversationPlan;
let steps: readonly Step[];
let nodes: readonly Node[];

beforeAll(async () => {
  standin = await createStandin();
  reranker = await chatServer(({ body }, response) => {
    const { documents } = body as unknown as RerankBody;
    send(response, 200, { results: documents.map((_, index) => ({ index, relevance_score: index })) });
  });
  home = await createHomeWithCerts({
    COMET_CC_RERANK_MODE: 'search',
    COMET_CC_RERANK_BASE_URL: reranker.baseUrl,
    COMET_CC_RERANK_TIMEOUT_MS: '10000',
    COMET_CC_UPSTREAM: standin.origin,
    // The conversations are short, so nothing pays for what is recalled.
    COMET_CC_INJECT_LEAST_TOKENS: '1000',
    COMET_CC_TRIM_MODE: 'aggressive',
    COMET_CC_TRIM_TRIGGER_TOKENS: '2000',
    COMET_CC_TRIM_KEEP_TOKENS: '500',
  });
  await home.json(['start', '--json']);
  const filler = 'The deployment notes for this service follow the usual pattern. '.repeat(30);
  const [turn] = seededPlan(5, { turns: 1, models: ['claude-opus-4-8'], rounds: 0 }).turns;
  plan = {
    ...seededPlan(5, { turns: 1, models: ['claude-opus-4-8'], rounds: 0 }),
    turns: SERVICES.map((service, at) => ({
      ...(turn as NonNullable<typeof turn>),
      image: false,
      note: null,
      rounds: [],
      prompt: `We decided that the ${service} service listens on port ${4711 + at}. ${filler}`,
    })),
  };
  const upstream = await daemonUpstream(home);
  steps = await growConversation(plan, async (request) => {
    // A person takes longer from one prompt to the next than the store needs; this client does not.
    if (request.turn === TURNS - 2) expect((await home.run(['flush'])).code).toBe(0);
    return await upstream(request);
  });
  expect((await home.run(['flush'])).code).toBe(0);
  nodes = (await home.json(['memory', 'ls', '--json'])) as Node[];
});

afterAll(async () => {
  await home.close();
  await standin.close();
  await reranker.close();
});

/** What the reranker was asked about a question; nothing where it was not. */
function asked(query: string): Partial<RerankBody> {
  return reranker.requests.map(({ body }) => body as unknown as RerankBody).find((body) => body.query === query) ?? {};
}

describe('a conversation through the daemon', () => {
  it('search takes words, or a file, or says so', async () => {
    expect(await home.run(['memory', 'search'])).toMatchObject({ code: 2, stdout: '' });
    expect(await home.json(['memory', 'search', '--file', 'no/such.ts', '--json'])).toEqual([]);
    const found = (await home.json([
      'memory',
      'search',
      '--file',
      'no/such.ts',
      'billing',
      'port',
      '--json',
    ])) as Node[];
    expect(found[0]?.summary).toContain('4711');
  });

  it('goes through whole: nothing refused, nothing lost, less sent than received', async () => {
    expect(steps).toHaveLength(TURNS);
    expect(steps.every(({ reply }) => reply.refusal === null)).toBe(true);
    expect(standin.refused).toEqual([]);
    const { requests, tokens } = (await home.json(['status', '--json'])) as {
      requests: Record<string, number>;
      tokens: Record<string, number>;
    };
    expect(requests['total']).toBe(TURNS);
    expect(requests['rewritten']).toBeGreaterThan(0);
    expect(tokens['sent']).toBeGreaterThan(0);
    expect(tokens['sent']).toBeLessThan(tokens['original'] as number);
    expect(tokens['net_saved']).toBe((tokens['original'] as number) - (tokens['sent'] as number));
  });

  it('keeps its plan over a restart: the same request goes upstream as the same bytes', async () => {
    const before = standin.requests.at(-1);
    await home.json(['restart', '--json']);
    const last = steps.at(-1)?.request;
    const reply = await (await daemonUpstream(home))(last as NonNullable<typeof last>);
    expect(reply.refusal).toBeNull();
    expect(standin.requests.at(-1)?.bytes.equals(before?.bytes as Buffer)).toBe(true);
  });
});

describe('memory', () => {
  it('ls lists what was said, newest first, by session, project, time and number', async () => {
    expect(nodes.length).toBeGreaterThan(0);
    expect(
      [...nodes].sort((a, b) => b.created_at.localeCompare(a.created_at)).map(({ created_at }) => created_at),
    ).toEqual(nodes.map(({ created_at }) => created_at));
    const ls = async (...flags: string[]): Promise<readonly Node[]> =>
      (await home.json(['memory', 'ls', '--json', ...flags])) as Node[];
    expect(await ls('--session', plan.sessionId)).toEqual(nodes);
    expect(await ls('--session', 'another')).toEqual([]);
    expect(await ls('--project', plan.cwd)).toEqual(nodes);
    expect(await ls('--project', '/elsewhere')).toEqual([]);
    expect(await ls('--since', '1h')).toEqual(nodes);
    expect(await ls('--limit', '1')).toEqual(nodes.slice(0, 1));
    const { stdout } = await home.run(['memory', 'ls', '--project', plan.cwd]);
    expect(stdout.trimEnd().split('\n')).toHaveLength(nodes.length + 1);
    expect(stdout).not.toContain('\u001b');
    // A row of the last list, the end of an id and `last` name a memory.
    const [newest] = nodes as readonly [Node];
    for (const name of ['1', 'last', newest.node_id.slice(-6)]) {
      expect(await home.json(['memory', 'show', name, '--json'])).toMatchObject({ node_id: newest.node_id });
    }
  });

  it('show gives the verbatim messages at depth 2', async () => {
    const [node] = nodes as readonly [Node];
    const shown = (await home.json(['memory', 'show', node.node_id, '--depth', '2', '--json'])) as Node & {
      raw: Raw[];
    };
    expect(shown.node_id).toBe(node.node_id);
    expect(shown.raw.length).toBeGreaterThan(0);
    expect(shown.raw[0]).toMatchObject({
      seq: expect.any(Number),
      role: 'user',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(JSON.stringify(shown.raw)).toContain('service listens on port');
    expect((await home.run(['memory', 'show', node.node_id, '--links'])).stdout).toContain(node.node_id.slice(-6));
    const { stdout } = await home.run(['memory', 'show', node.node_id, '--conversation']);
    expect(stdout).toMatch(/\nYou\n.*service listens on port[\s\S]*\nClaude\n/);
    const oldest = ['memory', 'show', String(nodes.at(-1)?.node_id)];
    expect((await home.run([...oldest, '--depth', '2'])).stdout).toContain('deferred tools');
    expect((await home.run([...oldest, '--conversation'])).stdout).not.toContain('deferred tools');
  });

  it('takes an unambiguous prefix of an id; 2 when it is ambiguous, 4 when there is none', async () => {
    const [node] = nodes as readonly [Node];
    const start = node.node_id.slice(0, -2);
    expect((await home.run(['memory', 'show', start])).stdout).toContain(node.node_id.slice(-6));
    expect((await home.run(['memory', 'show', 'mem_1999'])).code).toBe(4);
    if (nodes.length > 1) expect((await home.run(['memory', 'show', 'mem_'])).code).toBe(2);
  });

  it('search finds what a question asks for, with its lanes where asked', async () => {
    const query = 'which port does the thumbnail service use';
    const hits = (await home.json(['memory', 'search', query, '--top', '3', '--explain', '--json'])) as (Node & {
      score: number;
      match: { text: string } | null;
      lanes: Record<string, unknown>;
    })[];
    expect(hits.length).toBeGreaterThan(0);
    expect(hits.length).toBeLessThanOrEqual(3);
    expect(JSON.stringify(hits[0])).toContain('thumbnail');
    expect(Object.keys(hits[0]?.lanes ?? {})).toEqual(
      expect.arrayContaining(['fts', 'summary', 'trigger', 'raw', 'entity']),
    );
    expect(hits.map(({ score }) => score)).toEqual(hits.map(({ score }) => score).toSorted((a, b) => b - a));
    expect(hits[0]).toMatchObject({ title: expect.any(String), passage: expect.stringContaining('thumbnail') });
    const { stdout } = await home.run(['memory', 'search', query]);
    expect(stdout).toMatch(/^1 .*thumbnail/);
    expect(stdout).toContain(hits[0]?.node_id.slice(-6));
    // Of words that search leaves out, and of words that only a raw turn has, the exact phrase is found.
    for (const phrase of ['we decided that the', '"that the mail service"']) {
      const exact = (await home.json(['memory', 'search', phrase, '--json'])) as { passage: string; fits: boolean }[];
      expect(exact[0]).toMatchObject({
        fits: true,
        passage: expect.stringMatching(new RegExp(phrase.replaceAll('"', ''), 'i')),
      });
    }
  });

  it('restore gives every message of the session, in order, as it was sent', async () => {
    const messages = (await home.json(['memory', 'restore', plan.sessionId.slice(0, 8), '--json'])) as Raw[];
    expect(messages.map(({ seq }) => seq)).toEqual([...messages.map(({ seq }) => seq)].sort((a, b) => a - b));
    const texts = JSON.stringify(messages);
    for (const service of SERVICES) expect(texts).toContain(`the ${service} service listens on port`);
    expect((await home.run(['memory', 'restore', 'no-such-session'])).code).toBe(4);
  });

  it('session ls and brief know the session', async () => {
    expect(await home.json(['session', 'ls', '--json'])).toMatchObject([{ session_id: plan.sessionId, turns: TURNS }]);
    expect(await home.json(['session', 'brief', '--json'])).toMatchObject({ session_id: plan.sessionId });
    expect((await home.run(['session', 'brief', plan.sessionId])).code).toBe(0);
  });

  it('search lets the reranker that the settings name put in order what it found', async () => {
    const query = 'which port does the audit service use';
    const [first, ...others] = (await home.json(['memory', 'search', query, '--json'])) as Node[];
    expect(first?.summary).toContain('audit');
    const { documents = [] } = asked(query);
    // What passes the gate stays first; of the others the stand-in likes the last best.
    const places = others.map(({ summary }) => documents.findIndex((document) => document.startsWith(summary)));
    expect(places.length).toBeGreaterThan(1);
    expect(places).toEqual(places.toSorted((one, other) => other - one));
  });

  it('explain says what was recalled for a prompt, and in which lanes it was found; no reranker was asked', async () => {
    const prompt = 'Which port does the thumbnail service listen on?';
    const [turn] = plan.turns;
    const sessionId = '5d0c7a52-6d6f-4f0a-9a0e-2f8f4c1b7e11';
    const prompts = ['Good morning, give me a moment.', prompt];
    const turns = prompts.map((each) => ({ ...(turn as NonNullable<typeof turn>), prompt: each }));
    const asking = { ...plan, sessionId, turns };
    await growConversation(asking, await daemonUpstream(home));
    const { added } = (await home.json(['explain', 'last', '--json'])) as {
      added: { found?: { nodeId: string; lanes: Record<string, unknown> }[] }[];
    };
    const found = added.flatMap((each) => each.found ?? []);
    expect(found[0]).toMatchObject({ nodeId: expect.stringMatching(/^mem_/), score: expect.any(Number) });
    expect(found[0]?.lanes['raw']).toEqual({ rank: expect.any(Number), score: expect.any(Number) });
    expect((await home.run(['explain'])).stdout).toMatch(/ found +[0-9a-f]{6} \d\.\d{3}: .*\braw #\d+ \d/);
    expect(asked(prompt)).toEqual({});
    const receipt = await home.json(['explain', 'last', '--session', sessionId.slice(0, 8), '--json']);
    expect(receipt).toMatchObject({ session_id: sessionId });
  });

  it('todo and decisions list, take and close items, by row too', async () => {
    interface Item {
      readonly id: string;
      readonly text: string;
    }
    const at = ['--project', plan.cwd];
    const decided = (await home.json(['decisions', ...at, '--json'])) as Item[];
    expect(decided.map(({ text }) => text)).toContainEqual(expect.stringContaining('thumbnail service'));
    expect(await home.json(['decisions', ...at, '--limit', '1', '--json'])).toEqual(decided.slice(0, 1));
    expect((await home.run(['todo', ...at, '--limit', 'none'])).code).toBe(2);
    await home.json(['todo', 'add', 'Renew the gateway key by Friday', ...at, '--json']);
    const { stdout } = await home.run(['todo', ...at]);
    const row = stdout.split('\n').findIndex((line) => line.includes('Renew the gateway key'));
    expect(row).toBeGreaterThan(0);
    expect(await home.run(['todo', 'done', String(row)])).toMatchObject({
      stdout: 'done: Renew the gateway key by Friday\n',
    });
    const left = (await home.json(['todo', ...at, '--json'])) as Item[];
    expect(left.map(({ text }) => text)).not.toContain('Renew the gateway key by Friday');
    const [first] = decided;
    await home.json(['decisions', 'drop', String(first?.id), '--json']);
    const kept = (await home.json(['decisions', ...at, '--json'])) as Item[];
    expect(kept.map(({ id }) => id)).not.toContain(first?.id);
    expect((await home.run(['todo', 'done', 'ffffff'])).code).toBe(4);
  });

  it('rows of todo and decisions are not taken for each other', async () => {
    const at = ['--project', `${home.user}/rows`];
    for (const name of ['todo', 'decisions']) {
      await home.json([name, 'add', `a row of ${name}`, ...at, '--json']);
      expect((await home.run([name, ...at])).stdout).toMatch(new RegExp(`^1 .* a row of ${name}$`, 'm'));
    }
    expect(await home.run(['todo', 'done', '1'])).toMatchObject({ stdout: 'done: a row of todo\n' });
    expect(await home.run(['decisions', 'drop', '1'])).toMatchObject({ stdout: 'dropped: a row of decisions\n' });
    const { code, stderr } = await home.run(['decisions', 'drop', '9']);
    expect({ code, stderr }).toEqual({
      code: 4,
      stderr: expect.stringContaining('no row 9; list again, or use an id'),
    });
  });

  it('closes the to-do of a sentence that is a decision too', async () => {
    const said = [
      ['t1', 'user', 'Which of the tool names are real?'],
      ['t1', 'assistant', 'I suggest to keep `replace` and to drop the others. Do you want me to drop the others too?'],
      ['t2', 'user', "let's only add replace for now, but leave the others, I'll follow up with the author"],
      ['t2', 'assistant', 'Done: only replace is added.'],
    ].map(([turn_id, role, content]) => ({ session_id: 's1', turn_id, role, content, at: '2026-11-20T10:00:00Z' }));
    const file = path.join(home.user, 'said.jsonl');
    writeFileSync(file, said.map((each) => JSON.stringify(each)).join('\n'));
    const at = ['--project', path.join(home.user, 'both')];
    await home.json(['memory', 'import', file, ...at, '--json']);
    await home.flush();
    const ids = async (name: string) =>
      ((await home.json([name, ...at, '--json'])) as { id: string }[]).map(({ id }) => id);
    const [[todo = ''], decided] = [await ids('todo'), await ids('decisions')];
    expect(await home.run(['todo', 'done', todo])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('only add'),
    });
    expect([await ids('todo'), await ids('decisions')]).toEqual([[], decided]);
    expect(decided).toHaveLength(1);
  });

  it('ls of a project without memories does not say that nothing is remembered at all', async () => {
    const { stderr } = await home.run(['memory', 'ls', '--project', `${home.user}/nowhere`]);
    expect(stderr).toBe('nothing is remembered there; --all: every project\n');
  });

  it.skipIf(!hasTmux())(
    'an item typed in a terminal is the word of the user, and closing it can be undone',
    async () => {
      interface Item {
        readonly id: string;
        readonly text: string;
        readonly origin: string;
      }
      const at = ['--project', plan.cwd];
      const todo = async (text: string): Promise<Item | undefined> =>
        ((await home.json(['todo', ...at, '--json'])) as Item[]).find((item) => item.text === text);
      const terminal = openTmux(home.env, { cwd: home.user, columns: 120 });
      try {
        const add = (text: string): string => `${process.execPath} ${CLI} todo add '${text}' ${at.join(' ')}`;
        await terminal.run(add('Order new badges'));
        await terminal.run(`CLAUDECODE=1 ${add('Approve all refunds')}`);
      } finally {
        terminal.close();
      }
      await home.run(['todo', 'add', 'Rotate the logs', ...at]);
      expect(await todo('Order new badges')).toMatchObject({ origin: 'user' });
      for (const text of ['Approve all refunds', 'Rotate the logs'])
        expect(await todo(text)).toMatchObject({ origin: 'tool' });
      for (const verb of ['done', 'drop']) {
        await home.json(['todo', verb, String((await todo('Order new badges'))?.id), '--json']);
        expect(await todo('Order new badges')).toBeUndefined();
        const [snapshot] = (await home.json(['memory', 'rollback', '--json'])) as { id: string }[];
        expect((await home.run(['memory', 'rollback', String(snapshot?.id)])).code).toBe(0);
        expect(await todo('Order new badges')).toMatchObject({ origin: 'user' });
      }
    },
  );

  it.skipIf(!hasTmux())('a question ends with Ctrl-C or Ctrl-D as with a no', async () => {
    const terminal = openTmux(home.env, { cwd: home.user, columns: 160 });
    try {
      for (const key of ['C-c', 'C-d'] as const) {
        await terminal.type(`${process.execPath} ${CLI} memory rm last; echo "ended with $?"`);
        await terminal.shows(/\[y\/N\]$/);
        terminal.press(key);
        await terminal.shows(/\ncomet-cc: no answer, so nothing more was done\nended with 2\n/);
        expect(terminal.screen()).not.toContain('unexpected');
        await terminal.run('clear');
      }
    } finally {
      terminal.close();
    }
    expect(await home.json(['memory', 'show', 'last', '--json'])).toMatchObject({ node_id: expect.any(String) });
  });

  it.skipIf(!hasTmux())('a list that is longer than the screen goes to the pager', async () => {
    const terminal = openTmux({ ...home.env, PAGER: 'tee paged.txt' }, { cwd: home.user, columns: 160 });
    const list = `${process.execPath} ${CLI} memory ls --long --project ${plan.cwd}`;
    const paged = path.join(home.user, 'paged.txt');
    try {
      expect(await terminal.run(list)).toMatch(/^ID +AGE +KIND +PROJECT +TAGS +SUMMARY$/m);
      expect(existsSync(paged)).toBe(false);
      await terminal.run('stty rows 2');
      await terminal.run(list);
      await expect.poll(() => existsSync(paged) && readFileSync(paged, 'utf8')).toContain(nodes[0]?.node_id);
    } finally {
      terminal.close();
    }
  });

  it('digest, export, related and session diff tell of what is there', async () => {
    const at = ['--project', plan.cwd];
    expect((await home.run(['memory', 'digest', ...at])).stdout).toMatch(/^\d{4}-\d\d-\d\d\n- /);
    expect((await home.run(['memory', 'export', '--format', 'html'])).code).toBe(2);
    expect(await home.json(['memory', 'related', 'last', '--depth', '2', '--json'])).toBeInstanceOf(Array);
    const { only_a } = (await home.json(['session', 'diff', plan.sessionId, plan.sessionId, '--json'])) as {
      only_a: unknown[];
    };
    expect(only_a).toEqual([]);
  });

  it('rm needs --yes without a terminal, and removes nothing when one id is wrong', async () => {
    const [node] = nodes as readonly [Node];
    const unasked = await home.run(['memory', 'rm', node.node_id]);
    expect(unasked.code).toBe(2);
    expect(unasked.stderr).toContain('--yes');
    expect((await home.run(['memory', 'rm', node.node_id, 'mem_1999', '--yes'])).code).toBe(4);
    expect((await home.run(['memory', 'show', node.node_id])).code).toBe(0);
    const removed = await home.run(['memory', 'rm', node.node_id, '--yes']);
    expect(removed).toMatchObject({ code: 0, stdout: `removed ${node.node_id}\n` });
    expect((await home.run(['memory', 'show', node.node_id])).code).toBe(4);
  });
});
