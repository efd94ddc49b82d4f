import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import type { Socket } from 'node:net';
import { killGroup } from '../../common/run-process.ts';

export type EngineState = 'starting' | 'healthy' | 'late' | 'backoff' | 'crash_loop' | 'stopped';

export interface EngineOptions {
  readonly path: string;
  readonly secret: string;
  readonly env: () => NodeJS.ProcessEnv;
  readonly onOutput: (bytes: Buffer) => void;
  /** Five exits within this time are a crash loop, which ends once an engine has lived for as long. */
  readonly crashWindowMs: number;
  /** Kill an engine that is silent for this long. */
  readonly hungMs: number;
}

/**
 * Request bodies die young: with V8's default 16 MB semi-space, up to 25 MB more stays resident before it is freed.
 * The growing limit bounds old garbage, which otherwise reaches 100 MB with large bodies on a busy machine. What is
 * left of it the engine collects when requests pause. A start fills 40 MB: the initial size spares it collections.
 */
const HEAP = ['--max-semi-space-size=4', '--initial-old-space-size=48', '--heap-growing-percent=30'];
export const ENGINE_FLAGS = [...HEAP, '--expose-gc'];
/**
 * glibc gives each of the index's many threads an arena and rarely returns memory. Allocations as large as a body are
 * mapped separately, because among small ones they leave holes that nothing else fits into.
 */
const MAPPED_BYTES = { MALLOC_MMAP_THRESHOLD_: '262144', MALLOC_TRIM_THRESHOLD_: '1048576' };
const ARENAS: NodeJS.ProcessEnv = process.platform === 'linux' ? { MALLOC_ARENA_MAX: '2', ...MAPPED_BYTES } : {};
/**
 * LanceDB's read-ahead when it compacts a table: the default of 2 GB would load a large table whole, and the default
 * batch of 8,192 rows, a few per processor, takes 60 MB more.
 */
const READ_AHEAD: NodeJS.ProcessEnv = { LANCE_DEFAULT_IO_BUFFER_SIZE: '16777216', LANCE_DEFAULT_BATCH_SIZE: '1024' };
/** Where a disk hangs, each write holds a thread; looking up a name needs one, too. */
export const ENGINE_ENV: NodeJS.ProcessEnv = { ...ARENAS, ...READ_AHEAD, UV_THREADPOOL_SIZE: '16' };

const LATE_MS = 1_000;
const CHECK_MS = LATE_MS / 4;
const STARTS = 5;
const FIRST_BACKOFF_MS = 50;
const MAX_EXITS = 5;
/** The first pause in a crash loop, as a share of its window; each further one is twice as long, up to the window. */
const PAUSE_SHARE = 0.1;
const PENDING: readonly EngineState[] = ['starting', 'late', 'backoff'];

/** The engine as a child process, watched by heartbeat and restarted behind the guard's port. */
export class EngineProcess {
  readonly #options: EngineOptions;
  readonly #settled = new EventEmitter().setMaxListeners(0);
  #watch: NodeJS.Timeout | undefined;
  #state: EngineState = 'stopped';
  #child: ChildProcess | null = null;
  /** Process groups that the engine started, which outlive one that is killed. */
  readonly #groups = new Set<number>();
  #isLeaving = false;
  #isReplaced = false;
  #port = 0;
  #restarts = 0;
  #lastHeartbeat = 0;
  #lastCheck = performance.now();
  #startedAt = 0;
  /** How long the last starts took, ms. */
  #starts: number[] = [];
  #exits: number[] = [];
  /** Exits in the crash loop so far, 0 outside of one. */
  #loops = 0;
  #respawn: NodeJS.Timeout | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
  }

  #setState(next: EngineState): void {
    this.#state = next;
    if (!PENDING.includes(next)) this.#settled.emit('settled');
  }

  start(): void {
    const { path, secret, onOutput } = this.#options;
    const env = this.#options.env();
    this.#watch ??= setInterval(() => this.#checkHeartbeat(), CHECK_MS);
    const child = fork(path, [], {
      env: { ...ENGINE_ENV, ...env },
      execArgv: ENGINE_FLAGS,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    child.stderr?.on('data', onOutput);
    this.#child = child;
    this.#isLeaving = false;
    this.#isReplaced = false;
    this.#startedAt = performance.now();
    this.#lastHeartbeat = this.#startedAt;
    // Clients do not wait for another try.
    if (this.#loops === 0) this.#setState('starting');
    child.on('message', (message) => this.#onMessage(child, (message ?? {}) as Record<string, unknown>));
    child.once('exit', () => this.#onExit(child));
    // Without a process there is no exit event; every other error is followed by one.
    child.on('error', () => child.pid === undefined && this.#onExit(child));
    const onlyHere = Object.keys(ENGINE_ENV).filter((name) => env[name] === undefined);
    this.#send({ type: 'init', secret, onlyHere });
  }

  #send(message: object): void {
    // A message that cannot be delivered means that the child is exiting, which its exit event handles.
    if (this.#child?.connected) this.#child.send(message, () => {});
  }

  #onMessage(from: ChildProcess, message: Record<string, unknown>): void {
    if (from !== this.#child) return;
    if (typeof message['started'] === 'number') this.#groups.add(message['started']);
    if (typeof message['ended'] === 'number') this.#groups.delete(message['ended']);
    if (this.#isLeaving) return;
    this.#lastHeartbeat = performance.now();
    if (message['type'] === 'ready' && typeof message['port'] === 'number') {
      this.#port = message['port'];
      this.#starts = [...this.#starts, performance.now() - this.#startedAt].slice(-STARTS);
      this.#setState('healthy');
    } else if (message['type'] === 'heartbeat' && this.#state === 'late') this.#setState('healthy');
    else if (message['type'] === 'replaced' && this.#state === 'healthy') this.#replace();
  }

  /** The program's files are those of another build, whose engine new connections wait for. */
  #replace(): void {
    this.#isReplaced = true;
    this.#port = 0;
    this.#setState('starting');
    this.#send({ type: 'drain', restarts: true });
  }

  #onExit(from: ChildProcess): void {
    if (from !== this.#child) return;
    this.#child = null;
    this.#port = 0;
    for (const pid of this.#groups) killGroup(pid, 'SIGTERM');
    this.#groups.clear();
    if (this.#isLeaving) return void this.#setState('stopped');
    if (this.#isReplaced) return void this.start();
    this.#restarts += 1;
    const { crashWindowMs } = this.#options;
    const now = performance.now();
    this.#exits = [...this.#exits.filter((at) => now - at < crashWindowMs), now];
    const isLoop = this.#exits.length >= MAX_EXITS || (this.#loops > 0 && now - this.#startedAt < crashWindowMs);
    this.#loops = isLoop ? this.#loops + 1 : 0;
    this.#setState(isLoop ? 'crash_loop' : 'backoff');
    const pauseMs = isLoop
      ? Math.min(crashWindowMs, crashWindowMs * PAUSE_SHARE * 2 ** (this.#loops - 1))
      : FIRST_BACKOFF_MS * 2 ** (this.#exits.length - 1);
    this.#respawn = setTimeout(() => this.start(), pauseMs);
  }

  #checkHeartbeat(): void {
    const now = performance.now();
    // Time that this process itself was suspended (sleep, SIGSTOP) does not count as silence of the engine.
    const suspendedMs = now - this.#lastCheck - CHECK_MS;
    this.#lastCheck = now;
    if (suspendedMs > LATE_MS) this.#lastHeartbeat += suspendedMs;
    const silentMs = now - this.#lastHeartbeat;
    if (this.#child === null || this.#isLeaving || silentMs < LATE_MS) return;
    if (this.#state === 'healthy') this.#setState('late');
    if (silentMs > this.#options.hungMs) this.#child.kill('SIGKILL');
  }

  status(): { readonly state: EngineState; readonly pid: number | null; readonly restarts: number } {
    return { state: this.#state, pid: this.#child?.pid ?? null, restarts: this.#restarts };
  }

  /** 0 while the engine is not healthy. */
  port(): number {
    return this.#state === 'healthy' ? this.#port : 0;
  }

  /** Transfers a client's connection to the engine; calls `onLost` when that fails. */
  handOver(name: string, client: Socket, onLost: () => void): void {
    const onSent = (error: Error | null): void => {
      client.destroy();
      if (error !== null) onLost();
    };
    if (this.#child?.connected) this.#child.send({ type: 'client', name }, client, {}, onSent);
    else onSent(new Error('engine exited'));
  }

  /** Asks the child to drain and exit, and kills it after `graceMs`; resolves when it is gone. */
  async stop(graceMs: number, restarts = false): Promise<void> {
    this.#isLeaving = true;
    clearTimeout(this.#respawn);
    clearInterval(this.#watch);
    this.#watch = undefined;
    this.#loops = 0;
    this.#exits = [];
    const child = this.#child;
    this.#setState('stopped');
    if (child === null) return;
    this.#send({ type: 'drain', restarts });
    const kill = setTimeout(() => child.kill('SIGKILL'), graceMs);
    await once(child, 'exit');
    clearTimeout(kill);
  }

  /**
   * How long a connection waits for the engine: `mostMs` while it starts, as a busy machine takes several times as long
   * as before; `leastMs` for one that hangs; else twice as long as its slowest start of late. 0 stays 0.
   */
  patienceMs(leastMs: number, mostMs: number): number {
    if (leastMs === 0 || this.#state === 'late') return leastMs;
    const isStarting = this.#state === 'starting' || this.#state === 'backoff';
    return Math.max(leastMs, isStarting ? mostMs : Math.min(mostMs, 2 * Math.max(0, ...this.#starts)));
  }

  /** False after `timeoutMs`, or at once in a crash loop and when stopped. */
  async whenHealthy(timeoutMs: number): Promise<boolean> {
    const signal = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
    if (PENDING.includes(this.#state)) await once(this.#settled, 'settled', { signal }).catch(() => 'late');
    return this.#state === 'healthy';
  }
}
