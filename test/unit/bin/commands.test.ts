import { describe, expect, it } from 'vitest';
import { checkLines, countLine } from '../../../bin/commands/doctor.ts';
import { explained, headline } from '../../../bin/commands/explain.ts';
import { itemLines } from '../../../bin/commands/items.ts';
import { inOrder, logLine } from '../../../bin/commands/log.ts';
import { showLines, whyLines } from '../../../bin/commands/memory/detail.ts';
import { badges, listLines, parseFilter } from '../../../bin/commands/memory/list.ts';
import { aboutLines } from '../../../bin/commands/memory/overview.ts';
import { hitJson, hitLines, searchLines } from '../../../bin/commands/memory/search.ts';
import { isTold, namedSession } from '../../../bin/commands/run.ts';
import { sessionLines } from '../../../bin/commands/session.ts';
import { internalLines, statusLines } from '../../../bin/commands/status.ts';
import { getExitCode } from '../../../bin/context.ts';
import { checkModel, checkStore } from '../../../bin/doctor/daemon.ts';
import type { Check } from '../../../bin/doctor/index.ts';
import { checkUpstream } from '../../../bin/doctor/upstream.ts';
import { displayWidth } from '../../../bin/terminal/table.ts';
import { createTerm } from '../../../bin/terminal/term.ts';
import { loadConfig } from '../../../common/config.ts';
import { CometError, type ErrorCode } from '../../../common/errors.ts';
import { EMPTY_COSTS } from '../../../engine/api/cost.ts';
import { contentText, nodeLines, type Paint } from '../../../engine/api/render.ts';
import { overrideLine } from '../../../engine/api/status-report.ts';
import type { NamedReceipt } from '../../../engine/api/summary.ts';
import { endLine, offerLine, startLine } from '../../../engine/api/summary.ts';
import { idleModel } from '../../../engine/deferred.ts';
import { hitsText } from '../../../engine/mcp/index.ts';
import { NO_PAUSES } from '../../../engine/policy/pause.ts';
import { type Item, type ProjectView, type PublicHit, type PublicNode, publicNode } from '../../../memory/index.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const ASKED = { query: 'which port has staging', explain: true, nowMs: NOW };
const plain: Paint = (_, text) => text;

const NODE: PublicNode = publicNode({
  node_id: 'mem_20261121_110000_a1b2c3',
  session_id: 's1',
  project: 'github.com/o/r',
  depth_level: 1,
  recall_mode: 'both',
  topic_tags: ['deploy', 'ports'],
  importance: 'HIGH',
  summary: 'Staging listens on 4711;\nthe \u001b[31mfirewall allows it',
  detailed_summary: null,
  trigger: 'When I deploy to staging',
  parent_node_id: null,
  links: [],
  source_links: [],
  capsule: null,
  origin: 'user',
  valid_from: '2026-11-21T11:00:00Z',
  valid_to: null,
  superseded_by: null,
  compaction_reason: 'topic_shift',
  created_at: '2026-11-21T11:00:00Z',
  turns: ['e1'],
  kind: 'turn',
  author: { by: 'rules' },
  status: 'draft',
  facts: [{ concept: 'staging port', value: '4711', polarity: 'positive', evidence: ['e1'] }],
});

const HIT: PublicHit = {
  node: NODE,
  score: 0.91,
  line: { nodeId: NODE.node_id, text: 'line', origin: 'user' },
  raw: { text: 'use port 4711 for staging', turn: 'e1' },
  lanes: { fts: { rank: 1, score: 7.25 }, summary: { rank: 2, score: 0.4 } },
};

describe('exitCodeOf', () => {
  it.each<[ErrorCode, number]>([
    ['usage', 2],
    ['ambiguous_id', 2],
    ['input_invalid', 2],
    ['not_allowed', 1],
    ['daemon_down', 3],
    ['not_found', 4],
    ['port_in_use', 1],
    ['config_invalid', 1],
    ['daemon_unhealthy', 1],
  ])('%s ends with %i', (code, exit) => {
    expect(getExitCode(new CometError(code, 'message'))).toBe(exit);
  });

  it('anything unexpected ends with 1', () => {
    expect(getExitCode(new Error('message'))).toBe(1);
  });
});

describe('memory ls', () => {
  it('turns flags into a filter; JSON has no limit unless one is given', () => {
    expect(parseFilter({}, NOW)).toEqual({ limit: 50 });
    expect(parseFilter({ json: true }, NOW)).toEqual({});
    expect(
      parseFilter(
        {
          ...{ session: 's1', project: '/tmp/x/../y', tag: 't', importance: 'med', since: '1d', all: true, limit: '3' },
          json: true,
        },
        NOW,
      ),
    ).toEqual({
      sessionId: 's1',
      projectDir: '/tmp/y',
      tag: 't',
      importance: 'MED',
      sinceMs: NOW - 86_400_000,
      all: true,
      limit: 3,
    });
  });

  it('gives each memory one line that moves no cursor', () => {
    expect(listLines([NODE], { width: 80, nowMs: NOW })[1]).toBe('1  a1b2c3  1 h  Staging listens on 4711');
    const hostile = { ...NODE, title: 'the \u001b[31mfirewall\nallows it' };
    expect(listLines([hostile], { width: 80, nowMs: NOW })[1]).toContain('the [31mfirewall allows it');
  });
});

describe('memory show', () => {
  it('tells what is done or dropped apart from what is left and holds', () => {
    const item = { text: 'renew the key', origin: 'user', turn: 'e1' } as const;
    const closed = { at: '2026-03-02T10:00:00.000Z', as: 'done' } as const;
    const open = [item, { ...item, text: 'ask Ada', closed }];
    const dropped = { ...item, text: 'deploy on Fridays', by: 'user', closed: { ...closed, as: 'dropped' } } as const;
    const node = { ...NODE, open, decisions: [dropped] };
    const text = showLines(node, { paint: plain, width: 80, nowMs: NOW }).join('\n');
    expect(text).toMatch(/, 1 to-do {2}a1b2c3\n/);
    expect(text).toContain(
      'To do\n- renew the key\n\nDone or dropped\n- ask Ada (done, 2026-03-02)\n- deploy on Fridays (',
    );
    expect(text).not.toContain('Decided');
    expect(badges({ ...node, open: open.slice(1) })).toEqual([]);
  });

  it.each([60, 80, 120, 200])('shows what was done, decided and left, without codes, in %i columns', (width) => {
    const item = {
      text: '배포는 금요일에 합니다 🚀 and the changelog is written before that by Ilse',
      origin: 'user',
      turn: 'e1',
    } as const;
    const node = {
      ...NODE,
      title: 'Staging port',
      outcome: 'Staging listens on 4711.',
      open: [item],
      decisions: [{ ...item, by: 'user' as const }],
      values: ['4711'],
    };
    const lines = showLines({ ...node, session_title: 'set up staging' }, { paint: plain, width, nowMs: NOW });
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
    const text = lines.join('\n');
    expect(text).toMatch(
      /^Staging port\n[\d: -]+\(1 h ago\), r, 1 to-do, decision {2}a1b2c3\nin “set up staging”\n\nStaging/,
    );
    expect(text.replace(/\s+/g, ' ')).toContain(
      `Decided - ${item.text} (you) To do - ${item.text} Facts - staging port: 4711 Values - 4711`,
    );
    expect(text).not.toMatch(/mem_|O:USER|HIGH|both/);
  });

  it('shows more with each depth', () => {
    const raw = [{ seq: 1, role: 'user', content: 'use port 4711', sha256: 'x' }];
    expect(nodeLines(NODE, 0, plain, NOW)).toHaveLength(3);
    expect(nodeLines(NODE, 1, plain, NOW).join('\n')).toContain('- staging port: 4711');
    expect(nodeLines({ ...NODE, raw }, 2, plain, NOW).join('\n')).toContain('1 user\nuse port 4711');
    const ruled = { concept: 'ORM or SQL', value: 'Never use an ORM, only SQL', evidence: ['e1'] };
    const denied = nodeLines({ ...NODE, facts: [{ ...ruled, polarity: 'negative' }] }, 1, plain, NOW);
    expect(denied).toContain('- Never use an ORM, only SQL');
  });

  it('renders each kind of block', () => {
    expect(
      contentText([
        { type: 'text', text: 'hello' },
        { type: 'tool_use', name: 'Bash', input: { command: 'ls' } },
        { type: 'tool_result', content: [{ type: 'text', text: 'a.ts' }] },
        { type: 'image', source: {} },
        { type: 'novel', x: 1 },
      ]),
    ).toEqual(['hello', '[Bash] {"command":"ls"}', '[result] a.ts', '[image]', '{"type":"novel","x":1}']);
  });
});

describe('memory search', () => {
  it('adds score, match and, where asked for, every lane to the node', () => {
    expect(hitJson(HIT, false)).toMatchObject({ node_id: NODE.node_id, score: 0.91, match: { turn: 'e1' } });
    expect(hitJson(HIT, false)).not.toHaveProperty('lanes');
    expect(hitJson(HIT, true)).toMatchObject({
      lanes: {
        fts: { rank: 1, score: 7.25 },
        summary: { rank: 2, score: 0.4 },
        trigger: null,
        raw: null,
        entity: null,
      },
    });
  });

  it('says which files changed since, and what is about the file that was asked for', () => {
    const stale: PublicHit = { ...HIT, changed: [{ path: 'src/db.ts', state: 'changed' }], anchored: true };
    expect(hitJson(stale, false)).toMatchObject({ changed: [{ path: 'src/db.ts', state: 'changed' }], anchored: true });
    expect(hitJson(HIT, false)).toMatchObject({ changed: [], anchored: false });
    const lines = hitLines([stale], { ...ASKED, explain: false }, { paint: plain, width: 80 });
    expect(lines.at(-1)).toBe('[file changed since: src/db.ts]');
    expect(hitLines([stale], { ...ASKED, query: '' }, { paint: plain, width: 80 }).at(-1)).toMatch(
      /about the file; fts/,
    );
  });

  it('says what no prompt would be given', () => {
    const far: PublicHit = { ...HIT, isFar: true };
    expect([hitJson(HIT, false)['fits'], hitJson(far, false)['fits']]).toEqual([true, false]);
    expect(hitLines([far], ASKED, { paint: plain, width: 80 }).join(' ')).toContain('below the relevance filter');
    expect(hitsText([far], 'port').text).toContain('Nothing fits well');
    expect(hitsText([far, HIT], 'port').text).not.toContain('Nothing fits well');
    const linked = { ...HIT, node: { ...NODE, links: ['mem_1', 'mem_2'] } };
    expect(hitsText([linked], 'port').text).toContain(
      '  when: When I deploy to staging\n  tags: deploy, ports\n  links: mem_1, mem_2',
    );
  });

  it('prints the answer, then title, age and short id, and how it was found where asked for', () => {
    const raw = { text: 'First we looked around for a long while.\nUse port 4711 for staging. It works.', turn: 'e1' };
    const asked = { ...ASKED, explain: false };
    expect(searchLines([{ ...HIT, raw }], asked, { paint: plain, width: 80 })).toEqual([
      '1  Use port 4711 for staging. It works.',
      '   Staging listens on 4711, 1 h ago  a1b2c3',
    ]);
    expect(hitLines([HIT], ASKED, { paint: plain, width: 80 }).slice(1)).toEqual([
      'Staging listens on 4711, 1 h ago  mem_20261121_110000_a1b2c3',
      '0.910 (O:USER I:H S:s1); words: staging, port; fts #1 7.250, summary #2 0.400',
    ]);
    const title = 'staging, port and hosts of it, until the move to the other…';
    const summary = 'user says: staging, port and hosts of it, until the move to the other cluster: 4711';
    const moved = { ...HIT, raw: { text: 'Done: 4711.', turn: 'e1' }, node: { ...HIT.node, title, summary } };
    expect(searchLines([moved], asked, { paint: plain, width: 100 })[0]).toBe(`1  ${summary}`);
    // Items of one memory stand under one name.
    const items = ['Deploy on Friday', 'Deploy to staging'].map((text) => ({ ...HIT, raw: { text, turn: 'e1' } }));
    expect(searchLines(items, asked, { paint: plain, width: 80 })).toHaveLength(3);
  });
});

describe('session ls', () => {
  it('counts turns and nodes', () => {
    const session = {
      session_id: 's1',
      title: 'Set up staging',
      project: '/home/ada/shop',
      status: 'active',
      created_at: '',
      updated_at: '2026-11-21T11:00:00Z',
      closed_at: null,
      turns: 12,
      node_ids: ['a', 'b'],
    } as const;
    expect(sessionLines([session], 80, NOW)[1]).toBe('s1       1 h ago  active     12         2  Set up staging  shop');
    // A narrow terminal wraps no line.
    expect(sessionLines([session], 40, NOW)).toEqual([
      'SESSION  WHEN     STATUS  TITLE',
      's1       1 h ago  active  Set up staging',
    ]);
  });
});

describe('memory about', () => {
  const known = { origin: 'user', importance: 'MED', at: '2026-11-21T11:00:00Z', text: '' } as const;
  const view: ProjectView = {
    project: '/p',
    counts: { sessions: 2, turns: 1_200, nodes: 30, facts: 1 },
    since: '2026-01-02T00:00:00.000Z',
    until: '2026-11-21T11:00:00Z',
    brief: { session_id: 's1', updated_at: '2026-11-21T11:00:00Z', text: '## Hints\n\n- one' },
    nodes: [
      { ...known, node_id: 'mem_1', importance: 'HIGH', summary: 'the \u001b[2Jport' },
      { ...known, node_id: 'mem_2', summary: 'Redis is out' },
    ],
    decisions: [{ ...known, node_id: 'mem_2', summary: 'Redis is out' }],
    tasks: ['write the changelog (to do)'],
    tags: [{ tag: 'deploy', nodes: 3 }],
    names: [{ name: 'Ilse', nodes: 2 }],
    files: [
      { path: 'src/db.ts', nodes: 4, state: 'changed' },
      { path: 'src/a.ts', nodes: 1, state: 'unknown' },
    ],
    facts: [{ concept: 'cache', value: 'never redis', polarity: 'negative', origin: 'user', node_id: 'mem_1' }],
  };

  it('tells what is open, decided, weighty and named, with nothing that a terminal would obey', () => {
    expect(aboutLines(view, { paint: plain, width: 100, nowMs: NOW })).toEqual([
      '/p',
      '2 sessions, 1,200 turns, 30 memories, 1 statement, from 2026-01-02 to 1 h ago',
      'tags   deploy 3',
      'names  Ilse 2',
      'files  src/db.ts (changed since) 4, src/a.ts 1',
      '',
      'Left to do',
      '- write the changelog (to do)',
      '',
      'Brief of session s1, 1 h ago',
      '## Hints',
      '- one',
      '',
      'Decided, the newest first (1)',
      'mem_2  1 h ago',
      '  Redis is out',
      '',
      'Other memories, the largest first (1 of 29)',
      'mem_1  1 h ago  important',
      '  the [2Jport',
      '',
      'Statements, the newest first (1)',
      '- cache: never redis (from you)',
    ]);
  });

  it('leaves out a concept that only repeats its value', () => {
    const told = {
      concept: 'VAT or cents',
      value: 'VAT is counted in cents',
      polarity: 'positive',
      origin: 'user',
      node_id: 'mem_1',
    } as const;
    const lines = aboutLines({ ...view, facts: [told] }, { paint: plain, width: 100, nowMs: NOW });
    expect(lines.at(-1)).toBe('- VAT is counted in cents (from you)');
  });

  it('keeps to the width, wide characters too', () => {
    const wide = {
      ...view,
      tasks: ['결제 재시도를 세 번으로 '.repeat(9)],
      names: [{ name: '記憶'.repeat(40), nodes: 2 }],
    };
    const lines = aboutLines(wide, { paint: plain, width: 40, nowMs: NOW });
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(40);
    expect(lines.filter((line) => line.includes('결제')).length).toBe(3);
    expect(lines.filter((line) => line.endsWith('…')).length).toBeGreaterThanOrEqual(2);
  });
});

describe('logs', () => {
  it('reads a record, and leaves a foreign line alone but for what a terminal would obey', () => {
    const record =
      '{"at":"2026-11-21T11:00:00.000Z","level":"warn","process":"engine","message":"slow","durationMs":7}';
    expect(logLine(record, plain)).toBe('2026-11-21T11:00:00.000Z warn  engine slow durationMs=7');
    expect(logLine('Error: \u001b[2Jboom', plain)).toBe('Error: [2Jboom');
    expect(logLine('{"at":', plain)).toBe('{"at":');
    expect(logLine(record, (_, text) => `\u001b[2m${text}\u001b[22m`)).toContain('\u001b[2mengine\u001b[22m slow');
  });

  it('merges files by time, and a stack stays behind its record', () => {
    const at = (time: string): string => `{"at":"${time}"}`;
    expect(inOrder([[at('1'), 'stack', at('3')], [at('2')]])).toEqual([at('1'), 'stack', at('2'), at('3')]);
  });
});

const report = {
  running: true,
  pid: 7,
  version: '0.1.0',
  proxy: { url: 'http://127.0.0.1:8443', port: 8443 },
  engine: { state: 'healthy', pid: 8, restarts: 0 },
  upstream: 'https://api.anthropic.com',
  uptime_ms: 61_000,
  other_build: '',
  requests: { total: 1_200, rewritten: 1_000, passed_through: 200, failed_open: 0 },
  recalls: {
    asked: 12,
    in_time: 9,
    late_delivered: 2,
    late_empty: 0,
    late_lost: 1,
    late_waiting: 0,
    failed: 0,
    others_missed: 2,
  },
  ...EMPTY_COSTS,
  tokens: { original: 100_000, sent: 40_000, own: 0, net_saved: 60_000 },
  queue: { sensor: 1, compacter: 0, indexer: 0 },
  sensor: { turns: 40, in_doubt: 4, asked: 2 },
  llm: {
    ...idleModel('claude'),
    calls_today: 3,
    tokens_today: 4_500,
    cost_usd_today: 0.0312,
  },
  nodes: 12,
  context: { at: '2026-11-21T11:58:00Z', received: 56_000, sent: 41_000 },
  cuts: { count: 1, newest: '2026-11-21T11:58:00Z' },
  sessions: ['s1'],
  budget: { daily_tokens: 500_000, session_tokens: 0, sessions: [] },
  environment: [],
  share: null,
  project: {
    dir: '/code/shop',
    mode: 'on',
    nodes: 3,
    open: 1,
    newest: { node_id: 'mem_1', title: 'Staging listens on \u001b[2J4711', at: '2026-11-21T11:00:00Z' },
  },
  reindex: null,
  importing: null,
  dream: null,
  paused: NO_PAUSES,
  problems: [],
  notes: [],
  tunnels: { open: 0, total: 0, failed_open: 0, bypassing: 0 },
  pass_through: null,
  other_proxy: '',
} as const;

describe('status', () => {
  const text = (over: object = {}): string => statusLines({ ...report, ...over }, plain, NOW).join('\n');

  it('answers on or off, for which project, what it holds and what it saved, in a few lines', () => {
    const today = { ...EMPTY_COSTS.savings.today, original: 1_000, sent: 730, own: 40 };
    const week = { ...EMPTY_COSTS.savings.week, original: 1_200_000, sent: 888_000, own: 4_500 };
    const lines = text({ savings: { ...EMPTY_COSTS.savings, today, week } });
    expect(lines).toMatch(/^memory {4}on for \/code\/shop, since .*\d\d:\d\d$/m);
    expect(lines).toMatch(/^memories {2}3 of this project, 12 in all; the newest, .*: "Staging listens on \[2J4711"$/m);
    expect(lines).toContain('1 open item\n');
    expect(lines).toContain("saved 27 % of the context today (270 of 1k tokens); memory's own model calls used 40");
    expect(lines).toContain('saved 26 % of the context this week (312k of 1.2M tokens)');
    expect(lines).toContain('claude: 3 calls today, 4.5k of 500k tokens');
    expect(lines.split('\n')).toHaveLength(6);
    expect(text({ project: { ...report.project, mode: 'off', newest: null, nodes: 0 } })).toMatch(
      /paused for \/code\/shop\n.*none of this project yet, 12 in all/,
    );
  });

  it('shows what a session may use, and what to do when one used it', () => {
    const session = (session_id: string, tokens: number) => ({
      session_id,
      title: '',
      tokens,
      spent: tokens >= 200_000,
    });
    const budget = { daily_tokens: 500_000, session_tokens: 200_000, sessions: [session('s1', 34_000)] };
    expect(text({ budget })).toContain(
      '(models.dailyTokens), 34k of 200k in the newest session (models.sessionTokens)',
    );
    expect(text({ budget })).not.toContain('rules write');
    const sessions = [
      session('s1', 1_000),
      { ...session('s2', 201_000), title: 'Set up staging' },
      session('s3', 200_000),
    ];
    expect(text({ budget: { ...budget, sessions } })).toContain(
      'session "Set up staging" and 1 other session used the 200k tokens allowed for a session; rules write its memories now\n' +
        '  more: comet-cc config set models.sessionTokens NUMBER && comet-cc restart',
    );
  });

  it('says that a model call is running', () => {
    expect(text()).not.toContain('running');
    expect(text({ llm: { ...report.llm, running: 2 } })).toMatch(
      /^model +claude: 3 calls today, 2 running now, 4\.5k/m,
    );
  });

  it('shows no count that it does not know', () => {
    const restarting = text({ engine: { ...report.engine, state: 'backoff' }, project: null, nodes: 0 });
    const silent = text({ project: null, nodes: 0, problems: [{ file: 'engine', message: 'no answer in time' }] });
    for (const lines of [restarting, silent]) expect(lines).not.toMatch(/^(?:memories|context|model)/m);
    expect(restarting).toContain("the engine's state is backoff");
  });

  it('says which connections are still without memory after a stop and a start', () => {
    const open = (bypassing: number) => ({ ...report.tunnels, bypassing });
    expect(text()).not.toContain('without it');
    expect(text({ tunnels: open(1) })).toContain(
      '1 connection opened while memory was off: without it until two minutes after an answer\n  sooner: ',
    );
    expect(text({ tunnels: open(2) })).toContain('2 connections opened while memory was off');
  });

  it('keeps the internals for --long', () => {
    const dream = { at: '2026-11-22T03:00:00.000Z', merged: 2, groups: 1, pruned: 0, left: 7, running: false };
    const off = { session_id: 's1', title: 'Set up staging', at: '', because: '3 requests in a row' };
    const long = internalLines(
      { ...report, dream, trimming_off: [off], environment: ['COMET_CC_LLM'] },
      plain,
      NOW,
    ).join('\n');
    expect(long).toContain('settings  COMET_CC_LLM from the shell that started it');
    expect(long).toContain('up 1 min');
    expect(long).toContain('1,200: 1,000 rewritten, 200 passed through, 0 passed through unchanged after an error');
    expect(long).toContain(
      '12: 9 in time, 2 late and sent with the next request, 1 late and not sent; 2 other lookups late or failed',
    );
    expect(long).toContain('100,000 received, 40,000 sent');
    expect(long).toContain('asked about 2 of 40 turns');
    expect(long).toContain(': 2 merged, 1 grouped, 0 pruned, 7 memories left for the next');
    expect(long).toContain('trimming is off in session "Set up staging": 3 requests in a row');
  });

  it('says what waits and what is wrong, each with what to do', () => {
    const off = { session_id: 's1', at: '', because: '3 requests in a row ended with a loss' };
    const lines = text({
      engine: { ...report.engine, state: 'crash_loop' },
      reindex: { done: 1_200, total: 5_000 },
      importing: { file: 'runbook.md', done: 3, total: 8 },
      llm: { ...report.llm, last_error: 'not_logged_in: run claude', deferred: 1, deferred_because: 'the limit' },
      problems: [{ file: 'memory/nodes/x.md', message: 'importance: HIGH, MED or LOW' }],
      trimming_off: [off],
    });
    expect(lines).toContain('rebuilding the index: 1,200 of 5,000 memories; recall continues');
    expect(lines).toContain('importing: 37 %');
    expect(lines).toContain('1 summary waits for the model: the limit');
    expect(lines).toContain(
      "problem: the engine's state is crash loop; Claude Code continues without memory\n  fix: comet-cc doctor",
    );
    expect(lines).toContain('problem: last model error: not_logged_in: run claude\n  fix: comet-cc doctor');
    expect(lines).toContain('problem: trimming is off in 1 session: 3 requests in a row');
    expect(lines).toContain('problem: memory/nodes/x.md: importance');
  });
});

describe('explain', () => {
  const EMPTY = { bytes: 100, sha256: '' };
  const receipt: NamedReceipt = {
    request_id: '5f3a0000-0000',
    session_id: 's1',
    session_title: 'Set up staging',
    prompt: 'Where does staging \u001b[2Jlisten?',
    at: '2026-11-21T11:58:00Z',
    class: 'main',
    turn: 'key',
    epoch: 2,
    received: EMPTY,
    sent: EMPTY,
    dropped: [{ from: 1, to: 43, messages: 43, tokens: 17_500, nodes: ['mem_1', 'mem_2'] }],
    added: [
      {
        channel: 'preamble',
        position: 'messages.2',
        text: '<f>\nhead\n- one\n- two\n</f>',
        nodes: [],
        reason: 'in place',
      },
      { channel: 'user-block', position: 'messages.4', text: '- old', nodes: ['mem_8'], reason: 'earlier' },
      { channel: 'user-block', position: 'messages.9', text: '- new', nodes: ['mem_9'], reason: 'this', current: true },
    ],
    thinking_stripped: 1,
    economics: {
      received_tokens: 56_000,
      sent_tokens: 40_880,
      saved_tokens: 15_120,
      decision: 'replay',
      billed: null,
      untouched: null,
      saved_equivalents: 0,
      saved_usd: 0,
      conversation_saved_usd: 0,
      trimming_off: null,
    },
    status: 200,
    refusal: '',
    edits: [{ start: 0, end: 0, text: '' }],
  };

  it('says in one line what was left out, put in its place, recalled and saved', () => {
    expect(headline(receipt)).toBe(
      'This prompt: 43 old messages (17.5k tokens) left out, 2 memory lines in their place, 1 recalled; saved 27 %',
    );
    const grown = { ...receipt.economics, sent_tokens: 58_000 };
    expect(headline({ ...receipt, dropped: [], economics: grown })).toBe(
      'This prompt: nothing left out, 1 recalled; memory added 4 %',
    );
    expect(headline({ ...receipt, edits: [] })).toContain('sent as it came');
  });

  it('names the prompt and the session, then what and why, and nothing that a terminal would obey', () => {
    const [first, second, ...rest] = explained(receipt, NOW);
    expect(first).toMatch(/^"Where does staging \[2Jlisten\?", .*\d\d:\d\d, session "Set up staging"$/);
    expect(second).toBe(headline(receipt));
    const text = rest.join('\n');
    expect(text).toContain('left out  messages 1 to 43 (17.5k tokens), kept verbatim in:\n            mem_1');
    expect(text).toContain('left out  1 old thinking block');
    expect(text).toContain('why       the same as in the request before');
  });
});

describe('variables of the shell', () => {
  it('that override settings are said in one line with the way out', () => {
    expect(overrideLine({ environment: [] })).toBe('');
    expect(overrideLine({ environment: ['COMET_CC_LLM'] })).toBe(
      'COMET_CC_LLM of the shell that started it overrides config.json; to end that: unset COMET_CC_LLM, then comet-cc restart',
    );
    expect(overrideLine({ environment: ['COMET_CC_LLM', 'COMET_CC_PRESET', 'COMET_CC_EMBEDDER'] })).toMatch(
      /^COMET_CC_LLM and 2 more variables of the shell .* override config.json; .*status --long names them/,
    );
  });
});

describe('the lines of run', () => {
  it('go to a person only', () => {
    expect(isTold(['--continue'], false)).toBe(true);
    expect([isTold(['-p', 'hello'], true), isTold(['-p', 'hello'], false)]).toEqual([true, false]);
    expect(isTold(['-p', 'hello', '--output-format', 'stream-json'], true)).toBe(false);
    expect(isTold(['--print', '--output-format=json', 'hello'], true)).toBe(false);
    // As the Agent SDK and editors start it.
    expect(isTold(['--output-format', 'stream-json', '--verbose', '--input-format', 'stream-json'], true)).toBe(false);
  });

  it('know the session that the arguments name, unless it is forked', () => {
    const id = '5f3a0000-0000-4000-8000-000000000000';
    expect(namedSession(['--resume', id])).toBe(id);
    expect(namedSession(['--verbose', `--session-id=${id}`])).toBe(id);
    expect(namedSession(['--resume', id, '--fork-session'])).toBeUndefined();
    expect(namedSession(['--resume', 'staging'])).toBeUndefined();
  });

  it('say what is known before, and what was kept after', () => {
    expect(startLine({ mode: 'on', nodes: 12, open: 2 })).toBe(
      'memory on · 12 memories of this project · 2 open items',
    );
    expect(startLine({ mode: 'on', nodes: 1, open: 0, brief: '/l/inbox/2026-11-24.md' })).toBe(
      'memory on · 1 memory of this project · brief: /l/inbox/2026-11-24.md (comet-cc inbox)',
    );
    expect(startLine({ mode: 'on', nodes: 1, open: 1 })).toBe('memory on · 1 memory of this project · 1 open item');
    expect(startLine({ mode: 'off', nodes: 0, open: 0 })).toBe('memory paused · no memories of this project yet');
    const session = { session_id: '5f3a', kept: 6, recalled: 3, received: 56_000, sent: 41_000, own: 0 };
    expect(endLine(session)).toBe(
      'kept 6 · recalled 3 · context 41k instead of 56k · resume: comet-cc run claude --resume 5f3a',
    );
    expect(endLine({ ...session, sent: 56_100, own: 2_200 })).toContain(
      "context 56.1k · memory's own calls 2.2k tokens",
    );
  });

  it('offers what was left open as a task', () => {
    expect([offerLine({}), offerLine({ left: [] })]).toEqual(['', '']);
    const left = [
      { id: '3f2a91', text: 'renew the key' },
      { id: '77aa00', text: 'rotate the logs' },
    ];
    expect(offerLine({ left })).toBe(
      'left open: renew the key and 1 more (comet-cc todo) · a task of it: comet-cc task add --from 3f2a91 --at "tomorrow 9:00"',
    );
  });
});

describe('doctor', () => {
  it('gives what to do below what failed, and counts', () => {
    const node: Check = { id: 'node', ok: true, state: 'ok', detail: 'Node.js v20', fix: '' };
    const port: Check = { id: 'port', ok: false, state: 'problem', detail: 'taken', fix: 'another' };
    expect(checkLines(node, plain)).toEqual(['ok      runtime    Node.js v20']);
    expect(checkLines(port, plain)).toEqual(['problem port       taken', expect.stringContaining('fix: another')]);
    expect(countLine([node, port, { state: 'unknown' }])).toBe('1 ok, 1 problem, 1 unknown');
  });

  it('names a request that did not reach the API', async () => {
    const config = loadConfig({}).config;
    expect(await checkUpstream(config, {}, null)).toMatchObject({ state: 'ok' });
    const detail = 'https://api.anthropic.com has no address';
    expect(await checkUpstream(config, {}, null, detail)).toMatchObject({ state: 'problem', detail });
  });

  it('does not alarm for what heals by itself, and does not know the store without an engine', () => {
    const [problems, reindex] = [[{ file: 'index', message: 'recall is off: gone' }], { done: 3, total: 9 }];
    expect(checkStore({ ...report, problems, reindex })).toMatchObject({ state: 'ok' });
    expect(checkStore({ ...report, problems })).toMatchObject({ state: 'problem' });
    const silent = [{ file: 'engine', message: 'no answer in time' }];
    expect(checkStore({ ...report, problems: silent })).toMatchObject({ state: 'unknown' });
    const opening = [{ file: 'memory', message: 'the store is still opening' }];
    expect(checkStore({ ...report, problems: opening })).toMatchObject({ state: 'unknown' });
    expect(checkStore(null)).toMatchObject({ state: 'unknown' });
    const unreached = [{ file: 'upstream', message: 'https://api.anthropic.com has no address' }];
    expect(checkStore({ ...report, problems: unreached })).toMatchObject({ state: 'ok' });
    const failing = (last_error: string) => checkModel({ ...report, llm: { ...report.llm, last_error } }).state;
    expect([failing('rate_limited: later'), failing('failed: no such model')]).toEqual(['ok', 'problem']);
  });

  it.each([
    'failed: no JSON in the answer',
    'failed: the answer does not match the schema',
    'unstructured: Failed to provide valid structured output after 5 attempts',
  ])('advises another model after "%s", as claude -p itself has no error to show', (last_error) => {
    const { state, fix } = checkModel({ ...report, llm: { ...report.llm, last_error } });
    expect(state).toBe('problem');
    expect(fix).toContain('set another model');
    expect(fix).not.toContain('claude -p');
  });

  it.each(['failed: status 404: model "qwen3" not found', 'not_logged_in: status 401'])(
    'advises the settings of an endpoint after "%s", not a login of Claude Code',
    (last_error) => {
      const { fix } = checkModel({ ...report, llm: { ...report.llm, backend: 'openai', last_error } });
      expect(fix).toContain('correct openai.baseUrl, model, keyEnv or keyCommand');
      expect(fix).not.toContain('claude');
    },
  );
});

it('a list of to-dos keeps words whole on a terminal of 20 columns', () => {
  const item = { id: '038427', text: 'Renew the carrier key', at: '2026-11-21T11:00:00Z', origin: 'user' } as Item;
  const lines = itemLines([item], 'TO DO', { width: 20, nowMs: NOW, paint: plain, projects: false });
  expect(lines.slice(1).map((line) => line.slice(16).trim())).toEqual(['Renew the', 'carrier key']);
});

describe('createTerm', () => {
  const written: string[] = [];
  const terminal = { isTTY: true, columns: 100, write: (text: string) => written.push(text) };
  const pipe = { write: (text: string) => written.push(text) };

  it('colours on a terminal, never with NO_COLOR, in a pipe or on a dumb terminal', () => {
    expect(createTerm(terminal, terminal, {}).paint('red', 'x')).toBe('\u001b[31mx\u001b[39m');
    for (const term of [
      createTerm(terminal, terminal, { NO_COLOR: '1' }),
      createTerm(terminal, terminal, { TERM: 'dumb' }),
      createTerm(pipe, terminal, {}),
    ]) {
      expect(term.paint('red', 'x')).toBe('x');
    }
  });

  it('shows progress only where stderr is a terminal, and cuts no line in a pipe', () => {
    written.length = 0;
    createTerm(terminal, pipe, {}).progress('…');
    expect(written).toEqual([]);
    const term = createTerm(pipe, terminal, {});
    term.progress('…');
    expect(written).toEqual(['\r\u001b[2K…']);
    // The next line takes its place.
    term.out('done');
    expect(written).toEqual(['\r\u001b[2K…', '\r\u001b[2K', 'done\n']);
    expect(createTerm(pipe, pipe, {}).width).toBe(Number.POSITIVE_INFINITY);
    expect(createTerm(terminal, pipe, {}).width).toBe(100);
    const unsized = createTerm({ ...terminal, columns: 0, rows: 0 }, pipe, {});
    expect(unsized.width).toBe(80);
  });
});

it('why quotes no prompt of a document, which has none', () => {
  const turn = { turn_id: 't', at: '2026-03-01T11:00:00.000Z', origin: 'tool', prompt: '', tools: [] } as const;
  const reason = {
    ...{ node_id: 'mem_20260301_110000_abcdef', session_id: 'doc-1', summary: 'The port is 5433', origin: 'tool' },
    ...{ written_by: 'document', compaction_reason: 'external', turns: [turn], facts: [], replaced: [] },
    ...{ replaces: [], aliases: [] },
  } as unknown as Parameters<typeof whyLines>[0];
  expect(whyLines(reason, (_, text) => text, Date.parse(turn.at)).join('\n')).not.toContain('""');
});
