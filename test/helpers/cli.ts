import { AsyncLocalStorage } from 'node:async_hooks';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createContext } from '../../bin/context.ts';
import { runProgram } from '../../bin/program.ts';
import { loadConfig } from '../../common/config.ts';
import { getHome, homePaths } from '../../common/paths.ts';
import { getEngine, statusReport } from '../../engine/api/index.ts';
import { guardStatus } from '../../engine/lifecycle/index.ts';

export const CLI = fileURLToPath(new URL('../../dist/bin/comet-cc.js', import.meta.url));

/** Between two looks at a status that a test waits for. */
export const LOOK_MS = 50;

interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunningCli {
  readonly child: ChildProcess;
  readonly result: Promise<CliResult>;
  /** Resolves once stdout holds `text`. */
  printed(text: string): Promise<void>;
}

export interface TestHome {
  /** `COMET_CC_HOME`. */
  readonly home: string;
  /** `HOME`, empty at first. */
  readonly user: string;
  readonly env: NodeJS.ProcessEnv;
  /** The built program: in this process where it only starts or asks the daemon and prints, else in one of its own. */
  run(args: readonly string[], options?: CliOptions): Promise<CliResult>;
  spawn(args: readonly string[], options?: CliOptions): RunningCli;
  /** Parsed stdout of a run that has to end with 0. */
  json(args: readonly string[], options?: CliOptions): Promise<unknown>;
  /** What `status --json` prints, without a process for each look. */
  status(): Promise<unknown>;
  /** What `flush` does, in this process. */
  flush(): Promise<void>;
  /** Stops the daemon if one runs and removes everything. */
  close(): Promise<void>;
}

interface CliOptions {
  /** Added to the clean environment; undefined takes a variable out. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly stdin?: string;
  readonly cwd?: string;
}

/** Tests share their cores, so memory gets more time than a user's daemon; each is less than a test may take. */
const PATIENT = {
  COMET_CC_TRIM_DEADLINE_MS: '30000',
  COMET_CC_RECALL_DEADLINE_MS: '25000',
  COMET_CC_EMBEDDING_QUERY_MS: '15000',
  COMET_CC_HOLD_MS: '30000',
  COMET_CC_HOOK_MS: '30000',
  COMET_CC_START_MS: '60000',
};

/**
 * The built program in a home of its own, with nothing of the caller's environment but PATH: a free port, no model,
 * an upstream on loopback that refuses connections unless `env` names another, and more patience than a user has.
 */
export async function createTestHome(env: Readonly<Record<string, string>> = {}): Promise<TestHome> {
  return createHome(env, null);
}

/** The same with certificates that the run made once: a test of something else need not wait for its own. */
export async function createHomeWithCerts(env: Readonly<Record<string, string>> = {}): Promise<TestHome> {
  return createHome(env, process.env['COMET_TEST_CERTS'] ?? null);
}

async function createHome(env: Readonly<Record<string, string>>, certs: string | null): Promise<TestHome> {
  if (!existsSync(CLI)) throw new Error('dist/bin/comet-cc.js is missing; run npm run build');
  const root = await mkdtemp(path.join(os.tmpdir(), 'cc-'));
  const [home, user] = [path.join(root, 'h'), path.join(root, 'u')];
  await mkdir(user);
  if (certs !== null) {
    await mkdir(home, { mode: 0o700 });
    await cp(certs, path.join(home, 'certs'), { recursive: true, preserveTimestamps: true });
  }
  const clean: NodeJS.ProcessEnv = {
    PATH: process.env['PATH'],
    HOME: user,
    TMPDIR: os.tmpdir(),
    COMET_CC_HOME: home,
    COMET_CC_PORT: String(await freePort()),
    COMET_CC_UPSTREAM: 'http://127.0.0.1:9',
    COMET_CC_LLM: 'local',
    // A pass of the night would come in between a test that runs at that time.
    COMET_CC_DREAM_AT: '',
    ...PATIENT,
    ...env,
  };
  const merged = (options: CliOptions): NodeJS.ProcessEnv =>
    Object.fromEntries(Object.entries({ ...clean, ...options.env }).filter(([, value]) => value !== undefined));
  const start = (args: readonly string[], options: CliOptions = {}): RunningCli => {
    const child = spawn(process.execPath, [CLI, ...args], { env: merged(options), cwd: options.cwd ?? user });
    return started(child, options.stdin);
  };
  const run = (args: readonly string[], options: CliOptions = {}): Promise<CliResult> => {
    if (!runsHere(args) || options.stdin !== undefined) return start(args, options).result;
    return runHere(args, merged(options), options.cwd ?? user);
  };
  const paths = homePaths(getHome(clean));
  const term = { say() {} };
  const config = async (flags = {}) => loadConfig(clean, flags).config;
  return {
    home,
    user,
    env: clean,
    run,
    spawn: start,
    async json(args, options) {
      const result = await run(args, options);
      if (result.code !== 0) throw new Error(`${args.join(' ')} ended with ${result.code}: ${result.stderr}`);
      return JSON.parse(result.stdout) as unknown;
    },
    async status() {
      for (;;) {
        const report = await statusReport({ env: clean, paths, term, config }, await guardStatus(paths.guardSocket));
        if (!report.running) throw new Error('the daemon does not run');
        // On a busy machine the engine may answer later than a status waits for it.
        if (!report.problems.some(({ message }) => message.startsWith('no answer in time'))) return report;
      }
    },
    async flush() {
      const timeoutMs = 120_000;
      if (await getEngine(paths).call('flush', { timeoutMs }, { timeoutMs: timeoutMs + 5_000 })) return;
      throw new Error('not idle after two minutes');
    },
    async close() {
      const stopped = await run(['stop', '--now']);
      await rm(root, { recursive: true, force: true });
      if (stopped.code !== 0) throw new Error(`the daemon did not stop: ${stopped.stderr}`);
    },
  };
}

const HERE = new Set(
  (
    'start stop restart status logs doctor pause resume config env memory session explain flush dream todo decisions ' +
    'task inbox project library facts ontology hooks editor ui share completion savings install-ca'
  ).split(' '),
);
/** These write relative to the folder of the process, read its input, or end with a signal. */
const OWN_PROCESS = ['export', 'import', 'open', '--follow', '--foreground', '--help'];

function runsHere(args: readonly string[]): boolean {
  return HERE.has(args[0] ?? '') && !OWN_PROCESS.some((word) => args.includes(word));
}

const place = new AsyncLocalStorage<{ readonly cwd: string; readonly home: string }>();
const [cwdOfProcess, homeOfProcess] = [process.cwd, os.homedir];
const cwdHere = (): string => place.getStore()?.cwd ?? cwdOfProcess();
const homeHere = (): string => place.getStore()?.home ?? homeOfProcess();
// What hooks and services are told to start.
process.argv[1] = CLI;

async function runHere(args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<CliResult> {
  const [out, err]: [string[], string[]] = [[], []];
  const stream = (into: string[]) => ({ write: (text: string) => into.push(text) });
  const context = createContext({ env, stdout: stream(out), stderr: stream(err) });
  // Each time: playwright-core, which another file of the worker may load, replaces the first of them.
  process.cwd = cwdHere;
  os.homedir = homeHere;
  const code = await place.run({ cwd, home: env['HOME'] ?? homeOfProcess() }, () =>
    runProgram([process.execPath, CLI, ...args], context),
  );
  return { code, signal: null, stdout: out.join(''), stderr: err.join('') };
}

/** Ports of this worker, below those that systems give to outgoing connections: nobody takes one before it is used. */
const OWN_PORTS = 500;
const RANGE = Number(process.env['VITEST_POOL_ID'] ?? 0) + Number(process.env['COMET_TEST_RANGE'] ?? 0);
const FIRST_PORT = 10_000 + (RANGE % 40) * OWN_PORTS;
let taken = Math.floor(Math.random() * OWN_PORTS);

/** A port that stays free until the caller uses it. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < OWN_PORTS; tries += 1) {
    taken = (taken + 1) % OWN_PORTS;
    const port = FIRST_PORT + taken;
    if (await isFree(port)) return port;
  }
  throw new Error(`no port from ${FIRST_PORT} on is free`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Somebody else's server on a port. */
export async function createStranger(port: number): Promise<{ close(): Promise<void>; readonly requests: number }> {
  let requests = 0;
  const server = http.createServer((_, response) => {
    requests += 1;
    response.end('not comet-cc');
  });
  await new Promise<void>((resolve) => {
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    get requests() {
      return requests;
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function started(child: ChildProcess, stdin: string | undefined): RunningCli {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  // A program that ends without reading it is no error of the test.
  child.stdin?.on('error', () => {}).end(stdin ?? '');
  const result = new Promise<CliResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return {
    child,
    result,
    printed: (text) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (stdout.includes(text)) resolve();
        };
        child.stdout?.on('data', look);
        child.once('close', () => reject(new Error(`"${text}" was not printed: ${stdout}${stderr}`)));
        look();
      }),
  };
}
