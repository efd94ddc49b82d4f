import type { ChildProcess } from 'node:child_process';
import { setTimeout as after } from 'node:timers/promises';
import { CometError } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { PLATFORM, type Platform } from '../../common/paths.ts';
import { askGuard, type GuardStatus, guardStatus, waitHealthy } from './control.ts';
import { type Spawned, spawnGuard } from './spawn-guard.ts';

/** How long a competing daemon that took the port may need until its control socket answers. */
const RIVAL_MS = 2_000;
const DRAIN_MS = 32_000;
const SECOND_STOP_MS = 3_000;

export interface DaemonSetup {
  readonly paths: HomePaths;
  /** The daemon's whole environment, `COMET_CC_*` included. */
  readonly env: NodeJS.ProcessEnv;
  readonly port: number;
  /** A start without a healthy engine by then fails. */
  readonly startMs: number;
  readonly token: string;
  /** PEM file that Claude Code must trust. */
  readonly bundle: string;
  readonly foreground?: boolean;
}

export interface Started {
  readonly status: GuardStatus;
  /** False when it ran before. */
  readonly fresh: boolean;
  /** Why memory does not work although the guard runs; null when all is well. */
  readonly problem: string | null;
  /** The guard, where it stays in the foreground. */
  readonly child: ChildProcess | null;
}

/**
 * Makes sure that the daemon of this home runs. Two racing calls leave one daemon, and both succeed.
 *
 * @throws CometError `port_in_use` when another program has the port, `daemon_unhealthy` when no guard came up
 */
export async function startDaemon(setup: DaemonSetup): Promise<Started> {
  const deadline = performance.now() + setup.startMs;
  const running = await guardStatus(setup.paths.guardSocket);
  if (running !== null) return settled(setup.paths, { fresh: false, child: null, deadline });
  const tooLong = socketTooLong(setup.paths);
  if (tooLong !== null) throw new CometError('config_invalid', `${tooLong.detail}: ${tooLong.fix}`);
  const spawned = await spawnGuard({
    paths: setup.paths,
    env: setup.env,
    foreground: setup.foreground ?? false,
    timeoutMs: setup.startMs,
  });
  if (spawned.kind === 'listening') {
    const child = setup.foreground ? spawned.child : null;
    return settled(setup.paths, { fresh: true, child, deadline });
  }
  if (await rivalAnswers(setup.paths)) return settled(setup.paths, { fresh: false, child: null, deadline });
  throw startFailure(setup, spawned);
}

/**
 * Asks the guard to drain and waits until it ends; never sends a signal.
 *
 * @returns the status of the stopped daemon, null when none ran
 * @throws CometError `daemon_unhealthy` when it does not end
 */
export async function stopDaemon(paths: HomePaths): Promise<GuardStatus | null> {
  const running = await guardStatus(paths.guardSocket);
  if (running === null) return null;
  await askGuard(paths.guardSocket, { op: 'stop' }, 5_000);
  if (await gone(paths, running, DRAIN_MS)) return running;
  // On the second request the guard closes open connections.
  await askGuard(paths.guardSocket, { op: 'stop' }, 5_000);
  if (await gone(paths, running, SECOND_STOP_MS)) return running;
  throw new CometError(
    'daemon_unhealthy',
    `the daemon (process ${running.pid}) does not stop; see comet-cc logs, then end it`,
  );
}

async function settled(
  paths: HomePaths,
  start: { readonly fresh: boolean; readonly child: ChildProcess | null; readonly deadline: number },
): Promise<Started> {
  let status: GuardStatus | null = null;
  while (performance.now() < start.deadline) {
    status = await waitHealthy(
      paths.guardSocket,
      Math.min(1_000, Math.max(1, Math.ceil(start.deadline - performance.now()))),
    );
    if (status === null) await after(50);
    else if (status.engine.state === 'healthy' || status.engine.state === 'crash_loop') break;
  }
  if (status === null)
    throw new CometError('daemon_unhealthy', 'the daemon went away as it started; see comet-cc logs');
  return { status, fresh: start.fresh, child: start.child, problem: problemOf(status) };
}

function problemOf({ engine }: GuardStatus): string | null {
  if (engine.state === 'healthy') return null;
  const what = engine.state === 'crash_loop' ? 'ends again and again' : `is not healthy (${engine.state})`;
  return `the engine ${what}: Claude Code continues without memory; see comet-cc doctor and comet-cc logs`;
}

async function rivalAnswers(paths: HomePaths): Promise<boolean> {
  for (const deadline = performance.now() + RIVAL_MS; performance.now() < deadline; await after(50)) {
    if ((await guardStatus(paths.guardSocket)) !== null) return true;
  }
  return false;
}

function startFailure(setup: DaemonSetup, spawned: Exclude<Spawned, { kind: 'listening' }>): CometError {
  if (spawned.kind === 'failed')
    return new CometError('daemon_unhealthy', `the daemon could not start: ${spawned.message}`);
  const port = spawned.port || setup.port;
  if (port < 1024 && /EACCES/.test(spawned.message)) {
    return new CometError(
      'port_in_use',
      `port ${port} needs more rights; choose one above 1023: comet-cc start --port N`,
    );
  }
  // The unknown listener is not identified, because that would show it our token.
  return new CometError(
    'port_in_use',
    `port ${port} is used by another program, which is left alone; choose another: comet-cc start --port ${port + 1}, or set COMET_CC_PORT`,
  );
}

/** Identified by socket and nonce, never by process id: those are reused, and remain in containers. */
async function gone(paths: HomePaths, running: GuardStatus, timeoutMs: number): Promise<boolean> {
  for (const deadline = performance.now() + timeoutMs; performance.now() < deadline; await after(25)) {
    const now = await guardStatus(paths.guardSocket).catch(() => running);
    if (now === null || now.nonce !== running.nonce) return true;
  }
  return false;
}

/** Why the home's path leaves too little room for a socket's path; null where it fits. */
export function socketTooLong(
  paths: HomePaths,
  platform: Platform = PLATFORM,
): { readonly detail: string; readonly fix: string } | null {
  const longest = Math.max(Buffer.byteLength(paths.guardSocket), Buffer.byteLength(paths.engineSocket));
  const most = platform.longestAddress;
  if (most === null || longest <= most) return null;
  const room = most - (longest - Buffer.byteLength(paths.home));
  return {
    detail: `COMET_CC_HOME is too long for a Unix socket (${longest} of ${most} bytes)`,
    fix: `choose a folder whose path has at most ${room} bytes and set COMET_CC_HOME to it`,
  };
}
