import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../common/config.ts';
import { createLiveRig, type LiveRig, openTerminal } from '../helpers/live-rig.ts';
import { ANSWERS, type StubClaude, stubClaude } from '../helpers/stub-claude.ts';

const SAID = {
  result: (text: string) => `print(result({ is_error: true, result: ${JSON.stringify(text)} })); process.exit(1);`,
};
/** So long may a model take: longer than a request does on a busy machine. */
const MODEL_MS = 8_000;
/** For a program that never ends, its process id. */
const PID = "fs.appendFileSync(__dirname + '/pids', process.pid + '\\n');";
const FILLER = 'The notes for this service follow the usual pattern. '.repeat(30);

/** What `claude` does, and what a user reads about it. */
const FAULTS: readonly (readonly [string, string | null, RegExp])[] = [
  ['is missing', null, /not found; install Claude Code or set COMET_CC_CLAUDE_BIN/],
  ['is logged out', SAID.result('Invalid API key · Please run /login'), /logged.in.*\/login/i],
  ['is rate-limited', SAID.result("You've hit your session limit · resets 5pm"), /rate.limited.*resets 5pm/i],
  ['hangs', `${PID} setInterval(() => {}, 1000); process.on("SIGTERM", () => {});`, /timeout.*killed after 8000 ms/],
  ['floods stdout', `${PID} for (;;) fs.writeSync(1, "x".repeat(65536));`, /flooded.*killed after/],
  ['prints nonsense', 'process.stdout.write("\\u0000{]");', /failed/],
];

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('a user waits 30 s for the sensor and 180 s for the summarizer', () => {
  expect(loadConfig({ COMET_CC_HOME: os.tmpdir() }).config.models).toMatchObject({
    sensorTimeoutMs: 30_000,
    summarizerTimeoutMs: 180_000,
  });
});

describe('while claude', () => {
  let rig: LiveRig;
  let stub: StubClaude;
  let bin: string;

  beforeAll(async () => {
    stub = stubClaude(ANSWERS);
    bin = path.join(await mkdtemp(path.join(os.tmpdir(), 'cc-bin-')), 'claude');
    rig = await createLiveRig({
      COMET_CC_LLM: 'claude',
      COMET_CC_CLAUDE_BIN: bin,
      COMET_CC_MODELS_SENSOR_TIMEOUT_MS: String(MODEL_MS),
      COMET_CC_MODELS_SUMMARIZER_TIMEOUT_MS: String(MODEL_MS),
    });
  });

  afterAll(async () => {
    await rig.close();
    await rm(path.dirname(bin), { recursive: true, force: true });
    stub.dispose();
  });

  /** In one step: a call in between must never find half a program. */
  async function install(body: string | null): Promise<void> {
    for (const file of [bin, pidFile()]) await rm(file, { force: true });
    if (body === null) return;
    const prelude = (await readFile(stub.bin, 'utf8')).replace(ANSWERS, '');
    const version = "if (process.argv.includes('--version')) { console.log('2.1.197 (stub)'); process.exit(0); }";
    await writeFile(`${bin}.new`, prelude.replace('\n', `\n${version}\n`) + body);
    await chmod(`${bin}.new`, 0o700);
    await rename(`${bin}.new`, bin);
  }

  const pidFile = (): string => path.join(path.dirname(bin), 'pids');
  const pids = (): number[] =>
    existsSync(pidFile()) ? readFileSync(pidFile(), 'utf8').trim().split('\n').map(Number) : [];

  it.each(FAULTS)(
    '%s, requests continue, rules write the nodes, and status and doctor name it',
    async (fault, body, says) => {
      await install(body);
      // The pause after a failure is over with a restart.
      await rig.home.json(['restart', '--json']);
      const before = await rig.status();
      const terminal = openTerminal(rig);
      let slowestMs = 0;
      for (let turn = 0; turn < 4; turn += 1) {
        const startMs = performance.now();
        await terminal.say(`The service of a claude that ${fault} listens on port ${4711 + turn}. ${FILLER}`);
        slowestMs = Math.max(slowestMs, performance.now() - startMs);
      }
      // Nobody may have waited for a model, nor for what comes after it.
      expect(slowestMs).toBeLessThan(MODEL_MS);
      await rig.flush();
      const status = await rig.statusUntil(({ llm, nodes }) => says.test(llm.last_error) && nodes > before.nodes);
      expect(status.engine).toMatchObject({ state: 'healthy', restarts: 0 });
      expect((await rig.home.run(['status'])).stdout).toMatch(says);
      const doctor = await rig.home.run(['doctor']);
      // What is tried again by itself is no problem.
      expect(doctor.code).toBe(/rate-limited|hangs/.test(fault) ? 0 : 1);
      expect(doctor.stdout).toMatch(says);
      const nodes = (await rig.home.json(['memory', 'ls', '--session', terminal.sessionId, '--json'])) as object[];
      expect(nodes.map((node) => (node as { written_by: string }).written_by)).toContain('local');
      await expect.poll(() => pids().filter(lives)).toEqual([]);
      if (body?.includes(PID)) expect(pids()).not.toEqual([]);
      expect(rig.standin.refused).toEqual([]);
    },
  );

  it('runs and the engine is killed, its call ends as well', async () => {
    await install(`${PID} setInterval(() => {}, 1000);`);
    await rig.home.json(['restart', '--json']);
    const terminal = openTerminal(rig);
    for (const port of [1, 2, 3]) await terminal.say(`The billing service listens on port 471${port}. ${FILLER}`);
    void rig.flush().catch(() => {});
    await expect.poll(() => pids().filter(lives)).not.toEqual([]);
    const left = pids().filter(lives);
    process.kill((await rig.status()).engine.pid, 'SIGKILL');
    await expect.poll(() => left.filter(lives)).toEqual([]);
  });

  it('works again, what stood in is rewritten by the model, and the error is gone', async () => {
    await install(ANSWERS);
    await rig.home.json(['restart', '--json']);
    const status = await rig.statusUntil(({ llm, queue }) => llm.last_error === '' && queue.compacter === 0);
    expect(status.llm.deferred).toBe(0);
    await rig.flush();
    const nodes = (await rig.home.json(['memory', 'ls', '--all', '--json'])) as { written_by: string }[];
    expect(nodes.length).toBeGreaterThan(0);
    expect(nodes.filter(({ written_by }) => written_by === 'local')).toEqual([]);
  });

  it('writes a summary and the daemon is stopped, that summary is kept and not paid for again', async () => {
    // A call takes longer than the rest of a stop.
    await install(`if (/logic_flow/.test(system)) ${ANSWERS} else { ${PID} setTimeout(() => { ${ANSWERS} }, 2_000); }`);
    const terminal = openTerminal(rig);
    for (const port of [1, 2, 3]) await terminal.say(`The lighthouse service listens on port 471${port}. ${FILLER}`);
    expect((await rig.home.run(['session', 'close', terminal.sessionId])).code).toBe(0);
    await expect.poll(() => pids()).toHaveLength(1);
    expect((await rig.home.run(['stop'])).code).toBe(0);
    await rig.home.json(['start', '--json']);
    await rig.flush();
    expect(pids()).toHaveLength(1);
    const nodes = (await rig.home.json(['memory', 'ls', '--session', terminal.sessionId, '--json'])) as object[];
    expect(nodes.map((node) => (node as { written_by: string }).written_by)).not.toContain('local');
  });
});
