import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { ensureCerts, userCaFile } from '../../certs/index.ts';
import type { Config } from '../../common/config.ts';
import { CometError } from '../../common/errors.ts';
import { ensureDir, readOrCreateSecret } from '../../common/files.ts';
import { rotateLarge } from '../../common/log.ts';
import { builtFile, type HomePaths, homePaths, PLATFORM } from '../../common/paths.ts';
import { withoutOurs } from './client-env.ts';
import {
  askGuard,
  type GuardStatus,
  guardStatus,
  heldOpen,
  otherBuild,
  socketPresent,
  waitHealthy,
} from './control.ts';
import { claudeEnv, STRAIGHT, userProxy } from './user-proxy.ts';

/** The environment of a command. Nothing is read or created before it is needed. */
export interface Context {
  readonly env: NodeJS.ProcessEnv;
  readonly paths: HomePaths;
  /** For messages to the user. */
  readonly term: { say(text: string): void };
  /** Validated configuration; a flag overrides the environment. @throws CometError `config_invalid` */
  config(flags?: Partial<Config>): Promise<Config>;
}

/** Creates certificates, bundle and token where they are missing. @throws CometError `config_invalid`: see `homeProblem` */
export async function prepareAccess({ paths, env, term }: Context) {
  const unfit = homeProblem(paths);
  if (unfit !== null) throw new CometError('config_invalid', `${unfit.detail}: ${unfit.fix}`);
  const { NODE_EXTRA_CA_CERTS: userCa } = await claudeEnv(env, paths);
  const certs = await ensureCerts(paths, { nowMs: Date.now(), userExtraCaFile: userCa || null });
  for (const problem of certs.bundle.problems) term.say(`comet-cc: ${problem}`);
  return { token: await proxyToken(paths), bundle: certs.bundle.file, certs };
}

/**
 * The token that the proxy requires of its clients: 256 bits as base64url, created on first use.
 * @throws CometError `unsafe_file` when its file is not private
 */
export async function proxyToken(paths: HomePaths): Promise<string> {
  return readOrCreateSecret(paths.proxyTokenFile, () => randomBytes(32).toString('base64url'));
}

/** Prepares a start: configuration, folders, certificates, and the daemon's environment. */
export async function prepareDaemon(context: Context, flags: Partial<Config>) {
  const { paths } = context;
  const config = await context.config(flags);
  const { token, bundle } = await prepareAccess(context);
  await ensureDir(paths.logsDir);
  // A daemon that inherits our proxy variables would connect to itself.
  const userCa = await userCaFile(paths);
  // The daemon also serves sessions of other shells. With NODE_DEBUG it would log its environment, keys included.
  const { NODE_TLS_REJECT_UNAUTHORIZED: checks, NODE_DEBUG: _, ...env } = withoutOurs(context.env, bundle, userCa);
  // VS Code sets it in its terminals: every user of the machine can debug, and an update removes the program it loads.
  if (env['NODE_OPTIONS']) env['NODE_OPTIONS'] = env['NODE_OPTIONS'].replace(DEBUGGERS, '').trim();
  if (checks === '0') context.term.say('comet-cc: the daemon ignores NODE_TLS_REJECT_UNAUTHORIZED=0');
  const { url, noProxy, problem } = await userProxy(paths, config, await claudeEnv(context.env, paths));
  if (problem !== '') context.term.say(`comet-cc: ${problem}`);
  return {
    paths,
    port: config.port,
    /** A start without a healthy engine by then fails. */
    startMs: config.startMs,
    token,
    bundle,
    /** The daemon's whole environment, `COMET_CC_*` included. */
    env: {
      ...env,
      // Also for the claude -p children, which use the user's own proxy.
      ...(url === '' ? {} : { HTTPS_PROXY: url, NO_PROXY: noProxy, no_proxy: noProxy }),
      ...(userCa === null || env['NODE_EXTRA_CA_CERTS'] ? {} : { NODE_EXTRA_CA_CERTS: userCa }),
      COMET_CC_HOME: paths.home,
      COMET_CC_PORT: String(config.port),
      COMET_CC_HOLD_MS: String(config.holdMs),
      COMET_CC_UPSTREAM: config.upstream,
      COMET_CC_UPSTREAM_CA: config.upstreamCa,
      ...(env['COMET_CC_CLAUDE_BIN'] ? { COMET_CC_CLAUDE_BIN: config.claudeBin } : {}),
      COMET_CC_UPSTREAM_PROXY: url === '' ? STRAIGHT : url,
    } as NodeJS.ProcessEnv,
  };
}

const DEBUGGERS = /(^|\s)(?:--inspect(?!-port)\S*|(?:-r|--require|--(?:experimental-)?loader)[\s=]+(?:"[^"]*"|\S+))/g;

/** How long a competing daemon that took the port may need until its control socket answers. */
const RIVAL_MS = 2_000;
const DRAIN_MS = 32_000;
const SECOND_STOP_MS = 3_000;

export interface DaemonSetup extends Readonly<Awaited<ReturnType<typeof prepareDaemon>>> {
  /** Stays a child of this process and writes to its terminal, instead of running in the background. */
  readonly foreground?: boolean;
}

export type StartResult = Awaited<ReturnType<typeof settled>>;

/**
 * Makes sure that the daemon of this home runs. Two racing calls leave one daemon, and both succeed.
 * @throws CometError `port_in_use` when another program has the port, `daemon_unhealthy` when no guard came up
 */
export async function startDaemon(setup: DaemonSetup): Promise<StartResult> {
  const deadline = performance.now() + setup.startMs;
  const settle = (fresh: boolean, child: ChildProcess | null = null): Promise<StartResult> =>
    settled(setup.paths, deadline, { fresh, child });
  const running = await guardStatus(setup.paths.guardSocket);
  // An update, or another version of Node, may have removed its files.
  const isGone = running !== null && !existsSync(running.program ?? GUARD);
  if (running !== null && running.engine.state !== 'stopped' && !isGone) return settle(false);
  if (running !== null && (await startAgain(setup, running, isGone))) return settle(true);
  let spawned = await spawnGuard(setup);
  if (spawned.type !== 'listening' && (await rivalAnswers(setup.paths))) return settle(false);
  // A guard whose home was gone leaves the port once there is one again.
  if (spawned.type === 'port_in_use') spawned = await spawnGuard(setup);
  if (spawned.type !== 'listening') throw startFailure(setup, spawned);
  if (!setup.foreground) return settle(true);
  const { child } = spawned;
  return settle(true, child).catch((error: unknown) => {
    child.kill();
    throw error;
  });
}

/** Starts memory in a guard that only passes sessions through; false where a new guard has to replace it. */
async function startAgain(setup: DaemonSetup, running: GuardStatus, isGone: boolean): Promise<boolean> {
  const { paths, env, foreground } = setup;
  if (!foreground && !isGone && otherBuild(running) === '') {
    if (Object(await askGuard(paths.guardSocket, { op: 'start', env }, DRAIN_MS)).ok === true) return true;
  }
  await stopDaemon(paths);
  return false;
}

/**
 * Asks the guard to drain and waits until it ends; never sends a signal.
 * @param keepsPort  while sessions use the port, the guard stays and passes them through without memory
 * @param restarts  it is started again at once, which open pages are told
 * @returns the status of the stopped daemon, null when none ran; with `pass_through` where its guard stays
 * @throws CometError `daemon_unhealthy` when it does not end
 */
export async function stopDaemon(paths: HomePaths, { keepsPort = false, restarts = false } = {}) {
  const running = await guardStatus(paths.guardSocket);
  if (running === null || (keepsPort && running.pass_through)) return running;
  await askGuard(paths.guardSocket, { op: 'stop', now: !keepsPort, restarts }, 5_000);
  const stopped = await whenStopped(paths, running, DRAIN_MS);
  if (stopped !== null) return stopped;
  // On the second request the guard closes open connections.
  await askGuard(paths.guardSocket, { op: 'stop', now: true }, 5_000);
  if ((await whenStopped(paths, running, SECOND_STOP_MS)) !== null) return running;
  const next = 'see comet-cc logs, then end it';
  throw new CometError('daemon_unhealthy', `the daemon (process ${running.pid}) does not stop; ${next}`);
}

/**
 * `problem`: why memory does not work although the guard runs; null when all is well.
 * @param start  `fresh` is false when it ran before; `child` is the guard, where it stays in the foreground
 */
async function settled(paths: HomePaths, deadline: number, start: { fresh: boolean; child: ChildProcess | null }) {
  let status: GuardStatus | null = null;
  while (performance.now() < deadline) {
    const leftMs = Math.max(1, Math.ceil(deadline - performance.now()));
    status = await waitHealthy(paths.guardSocket, Math.min(1_000, leftMs));
    if (status === null) await after(50);
    else if (status.engine.state === 'healthy' || status.engine.state === 'crash_loop') break;
  }
  if (status === null)
    throw new CometError('daemon_unhealthy', 'the daemon went away as it started; see comet-cc logs');
  const { state } = status.engine;
  const what = state === 'crash_loop' ? 'ends again and again' : `is not healthy (${state})`;
  const problem = `the engine ${what}: Claude Code continues without memory; see comet-cc doctor and comet-cc logs`;
  return { status, ...start, problem: state === 'healthy' ? null : problem };
}

async function rivalAnswers(paths: HomePaths): Promise<boolean> {
  for (const deadline = performance.now() + RIVAL_MS; performance.now() < deadline; await after(50)) {
    if ((await guardStatus(paths.guardSocket)) !== null) return true;
  }
  return false;
}

function startFailure(setup: DaemonSetup, spawned: Spawned): CometError {
  if (spawned.type === 'failed')
    return new CometError('daemon_unhealthy', `the daemon could not start: ${spawned.message}`);
  const port = spawned.port || setup.port;
  const needsRights = port < 1024 && /EACCES/.test(spawned.message ?? '');
  const why = needsRights ? 'needs more rights' : 'is used by another program, which is left alone';
  const next = `set another one: comet-cc config set port ${(port % 60_000) + 1_000}`;
  return new CometError('port_in_use', `port ${port} ${why}; ${next}`);
}

/**
 * The last status of a guard that is gone, or passes sessions through; null after `timeoutMs`. Identified by socket
 * and nonce, never by process id: those are reused, and remain in containers.
 */
async function whenStopped(paths: HomePaths, running: GuardStatus, timeoutMs: number): Promise<GuardStatus | null> {
  for (const deadline = performance.now() + timeoutMs; performance.now() < deadline; await after(25)) {
    const now = await guardStatus(paths.guardSocket).catch(() => running);
    if (now === null || now.nonce !== running.nonce) return running;
    if (now.pass_through && !running.pass_through) return now;
  }
  return null;
}

/** Why nothing can work in a home of that name; null where it can. */
export function homeProblem(paths: HomePaths) {
  if (/\p{Cc}/u.test(paths.home))
    return {
      detail: `COMET_CC_HOME has a line break or another control character: ${JSON.stringify(paths.home)}`,
      fix: 'set it to a folder whose name has none',
    };
  const longest = Math.max(Buffer.byteLength(paths.guardSocket), Buffer.byteLength(paths.engineSocket));
  const most = PLATFORM.longestAddress;
  if (most === null || longest <= most) return null;
  const room = most - (longest - Buffer.byteLength(paths.home));
  return {
    detail: `COMET_CC_HOME is too long for a Unix socket (${longest} of ${most} bytes)`,
    fix: `choose a folder whose path has at most ${room} bytes and set COMET_CC_HOME to it`,
  };
}

/** The first message of a guard to its parent. */
interface Spawned {
  readonly type: 'listening' | 'port_in_use' | 'failed';
  readonly port?: number;
  readonly message?: string;
}

/** The guard holds little but sockets, and by default V8 collects their garbage only after tens of megabytes. */
const FLAGS = ['--max-semi-space-size=2', '--optimize-for-size'];
const GUARD = builtFile('bin', 'guard.js');

const guardLogFile = (paths: HomePaths): string => path.join(paths.logsDir, 'guard.log');

/** Resolves as soon as it is known whether the new guard owns its port. */
async function spawnGuard(setup: DaemonSetup): Promise<Spawned & { readonly child: ChildProcess }> {
  const child = launch(setup);
  const spawned = await firstWord(child, setup);
  if (setup.foreground && spawned.type === 'failed') child.kill();
  if (setup.foreground) return { ...spawned, child };
  if (child.connected) child.disconnect();
  child.unref();
  return { ...spawned, child };
}

function launch({ paths, env, foreground }: Pick<DaemonSetup, 'paths' | 'env' | 'foreground'>): ChildProcess {
  if (foreground) {
    const child = fork(GUARD, [], { env, execArgv: FLAGS, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    passSignals(child);
    return child;
  }
  const file = guardLogFile(paths);
  rotateLarge(file);
  const log = openSync(file, 'a', 0o600);
  try {
    return fork(GUARD, [], {
      env: { ...env, COMET_CC_GUARD_LOG: file },
      execArgv: FLAGS,
      // The daemon outlives the directory that it was started from.
      cwd: paths.home,
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
    });
  } finally {
    closeSync(log);
  }
}

/** From its first moment on: a signal never ends this process and leaves the guard. Ctrl-C reaches both by itself. */
function passSignals(child: ChildProcess): void {
  const pass = (signal: NodeJS.Signals): void => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  child.once('exit', onSignals(['SIGTERM', 'SIGINT'], pass));
}

/** @returns takes the listener away */
export function onSignals(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void {
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}

function firstWord(child: ChildProcess, { paths, startMs, foreground }: DaemonSetup): Promise<Spawned> {
  return new Promise((resolve, reject) => {
    const where = foreground ? 'see above' : `see ${guardLogFile(paths)}`;
    const settle = (spawned: Spawned): void => {
      clearTimeout(timer);
      child.removeAllListeners('message');
      child.off('disconnect', onEnd);
      resolve(spawned);
    };
    const fail = (what: string): void => settle({ type: 'failed', message: `the guard ${what}; ${where}` });
    // Its exit may be seen before its last message.
    const onEnd = (): void => fail('ended as it started');
    const timer = setTimeout(() => fail(`did not listen within ${startMs} ms`), startMs);
    child.once('disconnect', onEnd);
    child.once('error', (error) => {
      reject(new CometError('daemon_unhealthy', `the guard could not be started; ${where}`, { cause: error }));
    });
    child.on('message', (message) => settle(message as Spawned));
  });
}

const PAUSE_MS = 1_000;

/**
 * Registers a session with the guard for as long as this runs, and calls `revive` when the guard crashes: its socket
 * then remains without a listener, while a stopped guard removes it.
 * @returns when `signal` is aborted
 */
export async function watchGuard(socket: string, revive: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const since = performance.now();
    // A guard of another build may answer at once instead of staying connected.
    if ((await heldOpen(socket, signal, { op: 'session' })) && performance.now() - since > PAUSE_MS) continue;
    if (signal.aborted) return;
    if (await socketPresent(socket).catch(() => false)) await revive().catch(() => undefined);
    await after(PAUSE_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

const REVIVALS = 'COMET_CC_GUARD_REVIVALS';
const MOST_REVIVALS = 5;
const REVIVALS_MS = 600_000;

/**
 * Starts a guard with the environment of one that died, in the background. One in the foreground has a service manager
 * or a terminal for that, and one that dies again and again stays down.
 */
export function reviveGuard(env: NodeJS.ProcessEnv, nowMs: number): void {
  if (!env['COMET_CC_GUARD_LOG']) return;
  const recent = (env[REVIVALS] ?? '').split(',').filter((at) => nowMs - Number(at) < REVIVALS_MS);
  if (recent.length >= MOST_REVIVALS) return;
  const paths = homePaths(env['COMET_CC_HOME'] as string);
  const child = launch({ paths, env: { ...env, [REVIVALS]: [...recent, nowMs].join(',') } });
  // The one that starts first has the port, where others try too.
  child.on('error', () => {});
  child.disconnect();
  child.unref();
}
