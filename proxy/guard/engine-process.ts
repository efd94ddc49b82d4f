import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import type { Socket } from 'node:net';

export type EngineState = 'starting' | 'healthy' | 'late' | 'backoff' | 'crash_loop' | 'stopped';

export interface EngineOptions {
  readonly path: string;
  readonly secret: string;
  readonly env: NodeJS.ProcessEnv;
  readonly onHealthy: () => void;
  /** What the engine writes to stderr. */
  readonly onOutput: (bytes: Buffer) => void;
  /** Five exits within it pause the restarts for as long. */
  readonly crashWindowMs: number;
  readonly hungMs: number;
}

/**
 * Bodies die young: with V8's own 16 MB they would pile up to 25 MB more of resident memory before they are freed. And
 * left to itself it lets old garbage become twice what is in use, of large bodies on a busy machine 100 MB.
 */
export const ENGINE_FLAGS = ['--max-semi-space-size=4', '--heap-growing-percent=30'];
/**
 * glibc gives each of the index's many threads a heap of its own, and hardly ever gives one back. What is as large as
 * a body has to be mapped by itself: among small things it leaves holes that nothing else fits into.
 */
const MAPPED_BYTES = { MALLOC_MMAP_THRESHOLD_: '262144', MALLOC_TRIM_THRESHOLD_: '1048576' };
const ARENAS: NodeJS.ProcessEnv = process.platform === 'linux' ? { MALLOC_ARENA_MAX: '2', ...MAPPED_BYTES } : {};
/**
 * LanceDB reads so far ahead when it tidies its table, in bytes; with its own two gigabytes a large one is all in memory
 * at once. And so many rows at a time, a few times for each processor: with its own 8,192 that are 60 MB more.
 */
const READ_AHEAD: NodeJS.ProcessEnv = { LANCE_DEFAULT_IO_BUFFER_SIZE: '16777216', LANCE_DEFAULT_BATCH_SIZE: '1024' };
export const ENGINE_ENV: NodeJS.ProcessEnv = { ...ARENAS, ...READ_AHEAD };
const LATE_MS = 1_000;
const CHECK_MS = LATE_MS / 4;
const RESTART_GRACE_MS = 30_000;
const PENDING: readonly EngineState[] = ['starting', 'late', 'backoff'];

/** The engine as a child: watched by heartbeat, restarted behind the guard's port. */
export function createEngineProcess(options: EngineOptions) {
  const settled = new EventEmitter().setMaxListeners(0);
  let state: EngineState = 'stopped';
  let child: ChildProcess | null = null;
  let leaving: 'stop' | 'restart' | null = null;
  let port = 0;
  let restarts = 0;
  let beatAt = 0;
  let checkedAt = performance.now();
  let exits: number[] = [];
  let respawn: NodeJS.Timeout | undefined;
  const watch = setInterval(check, CHECK_MS);

  function setState(next: EngineState): void {
    state = next;
    if (!PENDING.includes(next)) settled.emit('settled');
    if (next === 'healthy') options.onHealthy();
  }

  function spawn(): void {
    const { path, secret } = options;
    const env = { ...ENGINE_ENV, ...options.env };
    const started = fork(path, [], { env, execArgv: ENGINE_FLAGS, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    started.stderr?.on('data', options.onOutput);
    child = started;
    leaving = null;
    beatAt = performance.now();
    setState('starting');
    started.on('message', (message) => onMessage(started, (message ?? {}) as Record<string, unknown>));
    started.once('exit', () => onExit(started));
    // Without a process there will be no exit; all else that fails is followed by one.
    started.on('error', () => started.pid === undefined && onExit(started));
    tell({ type: 'init', secret, onlyHere: Object.keys(ENGINE_ENV).filter((name) => options.env[name] === undefined) });
  }

  function tell(message: object): void {
    // One that cannot be delivered means the child is going; its exit is what is acted upon.
    if (child?.connected) child.send(message, () => {});
  }

  function onMessage(from: ChildProcess, message: Record<string, unknown>): void {
    if (from !== child || leaving !== null) return;
    beatAt = performance.now();
    if (message['type'] === 'ready' && typeof message['port'] === 'number') {
      port = message['port'];
      setState('healthy');
    } else if (message['type'] === 'heartbeat' && state === 'late') setState('healthy');
  }

  function onExit(from: ChildProcess): void {
    if (from !== child) return;
    child = null;
    port = 0;
    if (leaving === 'stop') return void setState('stopped');
    restarts += 1;
    if (leaving === 'restart') return void spawn();
    const now = performance.now();
    exits = [...exits.filter((at) => now - at < options.crashWindowMs), now];
    setState(exits.length < 5 ? 'backoff' : 'crash_loop');
    const pauseMs = exits.length < 5 ? 50 * 2 ** (exits.length - 1) : options.crashWindowMs;
    respawn = setTimeout(spawn, pauseMs);
  }

  function check(): void {
    const now = performance.now();
    // What this process slept through (a suspended machine, SIGSTOP) is no silence of the engine.
    const sleptMs = now - checkedAt - CHECK_MS;
    checkedAt = now;
    if (sleptMs > LATE_MS) beatAt += sleptMs;
    const silentMs = now - beatAt;
    if (child === null || leaving !== null || silentMs < LATE_MS) return;
    if (state === 'healthy') setState('late');
    if (silentMs > options.hungMs) child.kill('SIGKILL');
  }

  /** Asks the child to finish and exit, and sees to it; resolves when it is gone. */
  async function dismiss(why: 'stop' | 'restart', graceMs: number): Promise<void> {
    leaving = why;
    clearTimeout(respawn);
    if (why === 'stop') clearInterval(watch);
    const leaver = child;
    setState(why === 'stop' ? 'stopped' : 'starting');
    if (leaver === null) return why === 'stop' ? undefined : spawn();
    tell({ type: 'drain' });
    const kill = setTimeout(() => leaver.kill('SIGKILL'), graceMs);
    await once(leaver, 'exit');
    clearTimeout(kill);
  }

  return {
    start: spawn,
    status: () => ({ state, pid: child?.pid ?? null, restarts }),
    port: () => (state === 'healthy' ? port : 0),
    /** Hands a silent client's connection over, for good; without a child it ends. */
    give(name: string, client: Socket, onLost: () => void): void {
      const given = (error: Error | null): void => {
        client.destroy();
        if (error !== null) onLost();
      };
      if (child?.connected) child.send({ type: 'client', name }, client, {}, given);
      else given(new Error('the engine has gone'));
    },
    restart: () => (leaving === null ? dismiss('restart', RESTART_GRACE_MS) : Promise.resolve()),
    stop: (timeoutMs: number) => dismiss('stop', timeoutMs),
    /** False at once in a crash loop or when stopped, else when `timeoutMs` are over. */
    async whenHealthy(timeoutMs: number): Promise<boolean> {
      const signal = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
      if (PENDING.includes(state)) await once(settled, 'settled', { signal }).catch(() => 'late');
      return state === 'healthy';
    },
  };
}
