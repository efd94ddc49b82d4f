import { accessSync, constants, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../common/log.ts';
import { readTurn } from '../../memory/ingest/turn-trust.ts';
import { parseTask, type Task } from '../../memory/model/task.ts';
import { createClaudeCli } from '../../memory/models/claude-code.ts';
import { topicDetectorPrompt } from '../../memory/models/prompts/topic-detector.ts';
import { interruptionPrompt, reviewPrompt } from '../../memory/tasks/prompts.ts';
import { talk } from '../helpers/turns.ts';
import {
  createStandin,
  echoBrain,
  type ServedRequest,
  type Standin,
  structuredBrain,
} from '../mock-anthropic/index.ts';
import { estimateTokens } from '../mock-anthropic/tokens.ts';

const cache = process.env['XDG_CACHE_HOME'] ?? path.join(os.homedir(), '.cache');
const root = process.env['COMET_CC_TEST_CLAUDE_DIR'] ?? path.join(cache, 'comet-cc-test', 'claude-2.1.197');
const bin = path.join(root, `node_modules/@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`);
const dirs: string[] = [];
const standins: Standin[] = [];
afterEach(async () => {
  for (const standin of standins.splice(0)) await standin.close();
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

function isThere(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function modelOver(standin: Standin) {
  standins.push(standin);
  const home = mkdtempSync(path.join(os.tmpdir(), 'comet-cc-client-'));
  dirs.push(home);
  mkdirSync(path.join(home, 'neutral'), { mode: 0o700 });
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    ANTHROPIC_API_KEY: 'dummy-key',
    ANTHROPIC_BASE_URL: standin.origin,
  };
  return createClaudeCli({
    bin,
    models: {
      sensor: 'haiku',
      summarizer: 'sonnet',
      sensorTimeoutMs: 25_000,
      summarizerTimeoutMs: 25_000,
      detail: 'haiku',
      detailTimeoutMs: 20_000,
      bundle: 'haiku',
      bundleTimeoutMs: 20_000,
      maxChildren: 2,
    },
    environment: { env, bundleFile: '/none', userCa: '', userProxy: {} },
    cwd: path.join(home, 'neutral'),
    redact: (text) => text,
    now: () => Date.now(),
    log: silentLog,
  });
}

const inference = (standin: Standin): ServedRequest[] => standin.requests.filter(({ body }) => body?.['messages']);
/** Thinking is off, or where the model refuses that, its effort is low. */
const thinksLittle = (request: ServedRequest | undefined): boolean => {
  const { thinking, output_config: output } = (request?.body ?? {}) as {
    thinking?: { type: string };
    output_config?: { effort: string };
  };
  return thinking?.type === 'disabled' || output?.effort === 'low';
};
const turn = readTurn(talk('The staging database listens on port 5433.', 'Noted.'));
const calm = new AbortController().signal;

describe.skipIf(!isThere(bin))('the real client as sensor and compacter', () => {
  test('answers in our schema, in one small request without tools of its own, marked as ours', async () => {
    const reading = { logic_flow: 'MAINTAIN', load_level: 2, redundancy_detected: false };
    const standin = await createStandin({ brain: structuredBrain(() => reading, echoBrain) });
    const model = await modelOver(standin);
    expect(await model.detectTopicShift({ buffer: [], turn }, calm)).toEqual(reading);
    const [first] = inference(standin);
    expect(first?.bytes.length).toBeLessThan(8_000);
    // bench/memory-cost.ts counts 310 tokens that the client adds to a prompt; 2.1.197 adds fewer.
    const { system, user, schema } = topicDetectorPrompt({ buffer: [], turn }, '0'.repeat(16));
    const prompt = [system, user, JSON.stringify(schema)].map(estimateTokens).reduce((sum, each) => sum + each, 0);
    expect((first?.usage?.input ?? 0) - prompt).toBeLessThan(325);
    expect(first?.usage).toMatchObject({ cacheWrite5m: 0, cacheWrite1h: 0 });
    expect(JSON.stringify(first?.body)).not.toContain('cache_control');
    expect(thinksLittle(first)).toBe(true);
    expect(inference(standin)).toHaveLength(1);
    expect(standin.refused).toEqual([]);
    expect(JSON.stringify(first?.headers)).toContain('x-comet-cc-child');
    expect(model.health()).toMatchObject({ callsToday: 1, lastError: '' });
    expect(model.health().tokensToday).toBeGreaterThan(0);
  });

  test('reads no file that the conversation names', async () => {
    const standin = await createStandin({ brain: structuredBrain(() => ({}), echoBrain) });
    const model = await modelOver(standin);
    const dir = dirs.at(-1) as string;
    writeFileSync(path.join(dir, 'keys.txt'), 'the-word-in-the-file');
    const naming = readTurn(talk(`Look at @${dir}/keys.txt please.`, 'Noted.'));
    await model.detectTopicShift({ buffer: [], turn: naming }, calm).catch(() => undefined);
    const sent = inference(standin).map(({ bytes }) => bytes.toString());
    expect(sent[0]).toContain(`@${dir}/keys.txt`);
    expect(sent.join()).not.toContain('the-word-in-the-file');
  });

  test('compacts with nodes, facts and a brief', async () => {
    const node = {
      title: 'Port of the staging database',
      summary: 'staging database listens on port 5433',
      outcome: 'It listens on port 5433.',
      decisions: [],
      open: [{ text: 'Mara moves production by Friday', turn: 't1', bucket: 'task' }],
      values: ['5433'],
      trigger: 'When I connect to the staging database',
      topic_tags: ['database'],
      importance: 'HIGH',
      recall_mode: 'active',
      turns: ['t1'],
      revises: [],
      facts: [{ concept: 'staging database port', value: '5433', polarity: 'positive', bucket: '', evidence: ['t1'] }],
    };
    const brief = { active: [{ text: 'staging on 5433', sources: ['t1'] }], hints: [] };
    const answer = { nodes: [node], skip: [], brief };
    const standin = await createStandin({ brain: structuredBrain(() => answer, echoBrain) });
    const result = await (await modelOver(standin)).summarize({ turns: [turn], knownTags: [], brief: '' }, calm);
    expect(result.nodes[0]?.turns).toEqual([turn.turnId]);
    expect(result.nodes[0]?.open).toMatchObject([{ text: 'Mara moves production by Friday', turn: turn.turnId }]);
    expect(result.brief.active).toEqual([{ text: 'staging on 5433', sources: [turn.turnId] }]);
    expect(standin.refused).toEqual([]);
  });

  test('reviews a due task and judges whether it interrupts, once each and without tools of its own', async () => {
    const task = parseTask('---\ntitle: Check dispenser 47\n---\n\nIt leaks.\n', '2026-11-24-check') as Task;
    const answers: Record<string, unknown>[] = [{ review: 'The valve is old.' }, { interrupt: false }];
    const standin = await createStandin({ brain: structuredBrain(() => answers.shift() ?? {}, echoBrain) });
    const model = await modelOver(standin);
    expect(await model.ask(reviewPrompt(task, 'Dispenser 47 is in Ghent.', 'f00d'), calm)).toBe('The valve is old.');
    const moment = { answering: 1, lastRequestMs: 0, nowMs: 5_000 };
    expect(await model.ask(interruptionPrompt(task, moment, 'f00d'), calm)).toBe(false);
    const sent = inference(standin).map(({ body }) => JSON.stringify(body));
    expect(sent).toHaveLength(2);
    for (const text of sent) expect(text).toContain('It leaks.');
    expect(sent[0]).toContain('in Ghent');
    expect(standin.refused).toEqual([]);
  });

  test.each([
    ['its quota is spent', 429, 'rate_limit_error', 'This request would exceed the limit'],
    ['the API is overloaded', 529, 'overloaded_error', 'Overloaded'],
  ])('is recognised when %s', async (_, status, type, message) => {
    const standin = await createStandin({ brain: () => ({ kind: 'error', status, type, message }) as never });
    const model = await modelOver(standin);
    await expect(model.detectTopicShift({ buffer: [], turn }, calm)).rejects.toMatchObject({ code: 'model_failed' });
    expect(model.health().lastError).toMatch(/^rate_limited: /);
  });

  test('is recognised when it is not logged in', async () => {
    const error = { kind: 'error', status: 401, type: 'authentication_error', message: 'invalid x-api-key' };
    const standin = await createStandin({ brain: () => error as never });
    const model = await modelOver(standin);
    await expect(model.detectTopicShift({ buffer: [], turn }, calm)).rejects.toMatchObject({ code: 'model_failed' });
    expect(model.health().lastError).toMatch(/^not_logged_in: /);
  });
});
