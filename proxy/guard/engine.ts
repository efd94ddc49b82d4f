import { type ChildProcess, fork } from 'node:child_process';

export type EngineState = 'starting' | 'healthy' | 'late' | 'backoff' | 'crash_loop' | 'stopped';

export interface EngineOptions {
  /** Script that is forked. */
  readonly path: string;
  /** Given to the engine once, over IPC. */
  readonly secret: string;
  readonly env: NodeJS.ProcessEnv;
  readonly onHealthy: () => void;
  /** A pause after five exits in the same span. */
  readonly crashWindowMs: number;
  /** Without a heartbeat for so long it is killed. */
  readonly hungMs: number;
}

export interface EngineStatus {
  readonly state: EngineState;
  readonly pid: number | null;
  readonly restarts: number;
}

/** The engine as a child: watched by heartbeat, restarted behind the guard's port. */
export interface Engine {
  start(): void;
  status(): EngineStatus;
  /** 0 while it cannot take work. */
  port(): number;
  /** Resolves false at once in a crash loop or when stopped, else after `timeoutMs`. */
  whenHealthy(timeoutMs: number): Promise<boolean>;
  restart(): void;
  /** Asks it to finish and exit; kills it after `timeoutMs`. Resolves when it is gone. */
  stop(timeoutMs: number): Promise<void>;
}

const LATE_MS = 1_000;
const CHECK_MS = 250;
const RESTART_GRACE_MS = 5_000;
const CRASHES = 5;

export function createEngine(options: EngineOptions): Engine {
  let state: EngineState = 'stopped';
  let child: ChildProcess | null = null;
  let port = 0;
  let restarts = 0;
  let beatAt = 0;
  let exits: number[] = [];
  let leaving: 'stop' | 'restart' | null = null;
  let respawn: NodeJS.Timeout | undefined;
  const waiters = new Set<(healthy: boolean) => void>();
  const watch = setInterval(check, CHECK_MS);

  function setState(next: EngineState): void {
    state = next;
    if (next === 'healthy' || next === 'crash_loop' || next === 'stopped') {
      for (const waiter of waiters) waiter(next === 'healthy');
      waiters.clear();
    }
    if (next === 'healthy') options.onHealthy();
  }

  function spawn(): void {
    const started = fork(options.path, [], {
      env: options.env,
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    child = started;
    beatAt = performance.now();
    setState('starting');
    started.on('message', (message) => onMessage(started, message));
    started.once('exit', () => onExit(started));
    // Without a process there is no exit to wait for; a failed send to a dying one is followed by its exit.
    started.on('error', () => started.pid === undefined && onExit(started));
    if (started.connected) started.send({ type: 'init', secret: options.secret }, ignore);
  }

  function onMessage(from: ChildProcess, message: unknown): void {
    if (from !== child || leaving !== null) return;
    const { type, port: ready } = (message ?? {}) as { type?: unknown; port?: unknown };
    beatAt = performance.now();
    if (type === 'ready' && typeof ready === 'number' && ready > 0) {
      port = ready;
      setState('healthy');
    } else if (type === 'heartbeat' && state === 'late') setState('healthy');
  }

  function onExit(from: ChildProcess): void {
    if (from !== child) return;
    const now = performance.now();
    child = null;
    port = 0;
    if (leaving === 'stop') setState('stopped');
    else if (leaving === 'restart') restartNow();
    else afterCrash(now);
  }

  function afterCrash(now: number): void {
    restarts += 1;
    exits = [...exits.filter((at) => now - at < options.crashWindowMs), now];
    const looping = exits.length >= CRASHES;
    setState(looping ? 'crash_loop' : 'backoff');
    const backoffMs = Math.min(5_000, 50 * 2 ** (exits.length - 1));
    respawn = setTimeout(spawn, looping ? options.crashWindowMs : backoffMs);
  }

  function check(): void {
    if (child === null || leaving !== null) return;
    const silentMs = performance.now() - beatAt;
    if (state === 'healthy' && silentMs > LATE_MS) setState('late');
    if (silentMs > options.hungMs) child.kill('SIGKILL');
  }

  function dismiss(why: 'stop' | 'restart', graceMs: number): void {
    leaving = why;
    port = 0;
    clearTimeout(respawn);
    const leaver = child;
    if (leaver === null) {
      if (why === 'restart') restartNow();
      else setState('stopped');
      return;
    }
    if (why === 'restart') setState('starting');
    if (leaver.connected) leaver.send({ type: 'drain' }, ignore);
    if (graceMs === 0) leaver.kill('SIGKILL');
    const kill = setTimeout(() => leaver.kill('SIGKILL'), graceMs);
    leaver.once('exit', () => clearTimeout(kill));
  }

  function restartNow(): void {
    leaving = null;
    exits = [];
    restarts += 1;
    spawn();
  }

  return {
    start: spawn,
    status: () => ({ state, pid: child?.pid ?? null, restarts }),
    port: () => (state === 'healthy' ? port : 0),
    restart: () => leaving === null && dismiss('restart', RESTART_GRACE_MS),
    whenHealthy(timeoutMs) {
      if (state === 'healthy' || state === 'crash_loop' || state === 'stopped' || leaving === 'stop') {
        return Promise.resolve(state === 'healthy' && leaving === null);
      }
      return new Promise((resolve) => {
        const settle = (healthy: boolean): void => {
          clearTimeout(timer);
          waiters.delete(settle);
          resolve(healthy);
        };
        const timer = setTimeout(() => settle(false), timeoutMs);
        waiters.add(settle);
      });
    },
    async stop(timeoutMs) {
      clearInterval(watch);
      const leaver = child;
      dismiss('stop', timeoutMs);
      if (leaver !== null) await new Promise((resolve) => leaver.once('exit', resolve));
    },
  };
}

function ignore(): void {
  // A message that cannot be delivered means the child is going; its exit is what is acted upon.
}
