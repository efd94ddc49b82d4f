import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { createUsageCounter } from '../../../../memory/models/quota.ts';
import { languageModelContract } from '../../../contract/language-model.ts';
import { ANSWERS, type StubClaude, stubClaude } from '../../../helpers/stub-claude.ts';
import { talk } from '../../../helpers/turns.ts';

const stubs: StubClaude[] = [];
const stub = (body: string): StubClaude => {
  const made = stubClaude(body);
  stubs.push(made);
  return made;
};
afterEach(() => {
  for (const made of stubs.splice(0)) made.dispose();
});

const turn = readTurn(talk('secret-word-in-prompt', 'fine'));
const sensing = { buffer: [], turn };
const compacting = { project: 'p', turns: [turn], knownTags: [], brief: '' };
const calm = new AbortController().signal;
const models = {
  sensor: 'haiku',
  summarizer: 'sonnet',
  sensorTimeoutMs: 20_000,
  summarizerTimeoutMs: 20_000,
  detail: 'haiku',
  detailTimeoutMs: 20_000,
  bundle: 'haiku',
  bundleTimeoutMs: 20_000,
  maxChildren: 2,
};

languageModelContract('claude -p', () => stub(ANSWERS).model());

describe('a call of claude -p', () => {
  test('is as cheap as it can be, and the conversation is on stdin only', async () => {
    const made = stub(ANSWERS);
    await made.model().detectTopicShift(sensing, calm);
    const [call] = made.calls();
    const argv = call?.argv ?? [];
    expect(argv.slice(0, 3)).toEqual(['-p', '--model', 'haiku']);
    const flags = ['--strict-mcp-config', '--disable-slash-commands', '--no-session-persistence'];
    expect(argv).toEqual(expect.arrayContaining(flags));
    for (const [flag, value] of [
      ['--tools', ''],
      ['--setting-sources', ''],
      ['--output-format', 'json'],
      ['--effort', 'low'],
    ]) {
      expect(argv[argv.indexOf(flag as string) + 1]).toBe(value);
    }
    expect(JSON.parse(argv[argv.indexOf('--json-schema') + 1] as string)).toMatchObject({ type: 'object' });
    expect(argv.join(' ')).not.toContain('secret-word-in-prompt');
    expect(call?.prompt).toContain('secret-word-in-prompt');
    expect(call?.env['MAX_THINKING_TOKENS']).toBe('0');
    expect(call?.env['CLAUDE_CODE_DISABLE_ATTACHMENTS']).toBe('1');
    expect(call?.env['CLAUDE_CODE_MAX_RETRIES']).toBe('1');
    expect(call?.cwd).toContain('neutral');
  });

  test('inherits the user’s environment less proxy and session, marked as ours', async () => {
    const made = stub(ANSWERS);
    const env = {
      PATH: process.env['PATH'],
      HOME: '/home/dev',
      ANTHROPIC_API_KEY: 'dummy',
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:1',
      ANTHROPIC_CUSTOM_HEADERS: 'x-own: 1',
      CLAUDE_CONFIG_DIR: '/home/dev/.config/claude',
      https_proxy: 'http://a',
      HTTPS_PROXY: 'http://b',
      http_proxy: 'c',
      HTTP_PROXY: 'd',
      ALL_PROXY: 'e',
      CLAUDECODE: '1',
      CLAUDE_CODE_EFFORT_LEVEL: 'max',
      CLAUDE_CODE_CHILD_SESSION: '1',
      CLAUDE_CODE_ENTRYPOINT: 'cli',
      CLAUDE_CODE_SESSION_ID: 'x',
      CLAUDE_ENV_FILE: '/x',
      COMET_CC_PORT: '8443',
      API_TIMEOUT_MS: '3000000',
      NODE_EXTRA_CA_CERTS: '/home/dev/.comet-cc/certs/bundle.pem',
    };
    const environment = { env, bundleFile: env.NODE_EXTRA_CA_CERTS, userCa: '/corp.pem', userProxy: {} };
    await made.model({ environment }).summarize(compacting, calm);
    const seen = made.calls()[0]?.env ?? {};
    const { HOME, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, CLAUDE_CONFIG_DIR } = env;
    expect(seen).toMatchObject({ HOME, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, CLAUDE_CONFIG_DIR });
    expect(seen).toMatchObject({ COMET_CC_CHILD: '1', NODE_EXTRA_CA_CERTS: '/corp.pem' });
    expect(seen['ANTHROPIC_CUSTOM_HEADERS']).toBe('x-own: 1\nx-comet-cc-child: 1');
    expect(seen['CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC']).toBe('1');
    // Of the call: nothing else ends a child whose engine and guard were killed.
    expect(seen['API_TIMEOUT_MS']).toBe('20000');
    const gone = /proxy|^CLAUDECODE$|CHILD_SESSION|ENTRYPOINT|SESSION_ID|ENV_FILE|COMET_CC_PORT|MAX_THINKING|EFFORT/i;
    expect(Object.keys(seen).filter((name) => gone.test(name))).toEqual([]);
  });

  test.each([
    ['an array', 'print([{ type: "system" }, result({ structured_output: answer() })]);'],
    ['JSON in the result text', 'print(result({ result: JSON.stringify(answer()) }));'],
    ['a fenced result text', 'print(result({ result: "```json\\n" + JSON.stringify(answer()) + "\\n```" }));'],
    ['a warning before the result', 'console.log("warning: old"); print(result({ structured_output: answer() }));'],
  ])('reads %s', async (_, body) => {
    const model = stub(body).model();
    expect(await model.detectTopicShift(sensing, calm)).toMatchObject({ logic_flow: 'BROKEN' });
    expect(model.health()).toMatchObject({ callsToday: 1, tokensToday: 125, lastError: '' });
  });

  test('is counted with what Claude Code says it cost, where the counting is given too', async () => {
    const ledger = createUsageCounter(() => 0);
    const made = stub('print(result({ total_cost_usd: nth === 1 ? 0.0123 : "odd", structured_output: answer() }));');
    const model = made.model({ ledger });
    await model.detectTopicShift(sensing, calm);
    await model.detectTopicShift(sensing, calm);
    expect(ledger.today()).toEqual({ day: '1970-01-01', calls: 2, tokens: 250, costUsd: 0.0123 });
    expect(model.health()).toMatchObject({ callsToday: 2, costUsdToday: 0.0123 });
  });

  test('is repeated once when the answer does not fit', async () => {
    const made = stub('print(result({ structured_output: nth === 1 ? { odd: true } : answer() }));');
    expect(await made.model().detectTopicShift(sensing, calm)).toMatchObject({ load_level: 3 });
    expect(made.calls()).toHaveLength(2);
  });

  test.each([
    ['garbage', 'process.stdout.write("<html>nope</html>");', 'failed', 2],
    ['exit code 1', 'process.stderr.write("boom"); process.exit(1);', 'failed', 2],
    [
      'no login',
      'print(result({ is_error: true, result: "Invalid API key · Please run /login" }));',
      'not_logged_in',
      1,
    ],
    [
      'a spent quota',
      'print(result({ is_error: true, result: "You have hit your session limit · resets 3pm" }));',
      'rate_limited',
      1,
    ],
    [
      'answers in another form, several times',
      'print(result({ subtype: "error_max_structured_output_retries", is_error: true, errors: ["no call"] }));',
      'unstructured',
      1,
    ],
    ['too many turns', 'print(result({ subtype: "error_max_turns", is_error: true, errors: [] }));', 'failed', 2],
  ])('that ends with %s fails and is named', async (_, body, kind, calls) => {
    const made = stub(body);
    const model = made.model();
    await expect(model.detectTopicShift(sensing, calm)).rejects.toMatchObject({ code: 'model_failed' });
    expect(model.health().lastError.split(': ')[0]).toBe(kind);
    expect(made.calls()).toHaveLength(calls);
  });

  test('whose program is missing says so', async () => {
    const model = stub('').model({ bin: '/nowhere/claude' });
    await expect(model.detectTopicShift(sensing, calm)).rejects.toMatchObject({ code: 'model_missing' });
    expect(model.health().callsToday).toBe(0);
  });

  test('that prints a secret while failing does not put it into the status or the error', async () => {
    const model = stub('process.stderr.write("key sk-test-1234 refused"); process.exit(1);').model({
      redact: (text) => text.replaceAll('sk-test-1234', '[REDACTED]'),
    });
    await expect(model.detectTopicShift(sensing, calm)).rejects.toThrow(/key \[REDACTED\] refused/);
    expect(model.health().lastError).toBe('failed: key [REDACTED] refused');
  });

  test('that ends with a list of errors gives them as text', async () => {
    const output = '{ subtype: "error_during_execution", is_error: true, errors: ["no disk", "no net"] }';
    const model = stub(`print(result(${output}));`).model();
    await expect(model.detectTopicShift(sensing, calm)).rejects.toThrow(/failed: no disk · no net/);
  });

  test('that ends with an error of the API gives its message', async () => {
    const body = { type: 'error', error: { type: 'authentication_error', message: 'invalid x-api-key' } };
    const output = { is_error: true, result: `API Error: 401 ${JSON.stringify({ ...body, request_id: 'r1' })}` };
    const model = stub(`print(result(${JSON.stringify(output)}));`).model();
    await expect(model.detectTopicShift(sensing, calm)).rejects.toThrow(
      /not_logged_in: API Error: 401 invalid x-api-key$/,
    );
  });

  test('that answers in prose is named without what it says', async () => {
    const model = stub('print(result({ result: "The topic of Ines continues." }));').model();
    await expect(model.detectTopicShift(sensing, calm)).rejects.toThrow(/failed: no JSON in the answer$/);
  });

  test('that floods stdout is ended', async () => {
    const made = stub('const loud = () => process.stdout.write("x".repeat(65536), loud); loud();');
    const model = made.model();
    await expect(model.detectTopicShift(sensing, calm)).rejects.toThrow(/flooded/);
    expect(made.calls().every((call) => isGone(call.pid))).toBe(true);
  });
});

describe('a call that does not end', () => {
  const HANGS = `process.on('SIGTERM', () => {});
const grand = spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)'], { stdio: 'inherit' });
fs.writeFileSync(__dirname + '/grand.pid', String(grand.pid));
setInterval(() => {}, 1000);`;

  test('is killed at its timeout, grandchildren too, though they ignore SIGTERM', async () => {
    const made = stub(HANGS);
    // Long enough for both of them to have started.
    const model = made.model({ models: { ...models, sensorTimeoutMs: 8_000 } });
    await expect(model.detectTopicShift(sensing, calm)).rejects.toMatchObject({ code: 'model_timeout' });
    expect(isGone(made.calls()[0]?.pid ?? 0)).toBe(true);
    const file = path.join(made.dir, 'grand.pid');
    // A process that is killed ends a moment later.
    await expect.poll(() => existsSync(file) && isGone(Number(readFileSync(file, 'utf8')))).toBe(true);
    expect(model.health().lastError).toMatch(/^timeout: /);
  });

  test('ends when the caller gives up, and when the model is closed', async () => {
    const made = stub(HANGS);
    const model = made.model();
    const giveUp = new AbortController();
    const first = model.detectTopicShift(sensing, giveUp.signal);
    const second = model.summarize(compacting, calm);
    const ended = Promise.allSettled([first, second]);
    await until(() => made.calls().length === 2);
    giveUp.abort(new Error('late'));
    await expect(first).rejects.toThrow('late');
    await model.close();
    expect((await ended).map((each) => each.status)).toEqual(['rejected', 'rejected']);
    expect(made.calls().every((call) => isGone(call.pid))).toBe(true);
  });

  test('never has more company than allowed', async () => {
    const made = stub(`const fd = fs.openSync(__dirname + '/busy', 'wx'); fs.closeSync(fd);
setTimeout(() => { fs.unlinkSync(__dirname + '/busy'); print(result({ structured_output: answer() })); }, 50);`);
    const model = made.model({ models: { ...models, maxChildren: 1 } });
    await Promise.all([1, 2, 3].map(() => model.detectTopicShift(sensing, calm)));
    expect(made.calls()).toHaveLength(3);
  });
});

function isGone(pid: number): boolean {
  try {
    const state = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0];
    return state === 'Z';
  } catch {
    return true;
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
