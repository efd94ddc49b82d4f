// The engine process. The guard forks it, gives it a secret, listens to its heartbeat and asks it to drain.
import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import {
  composeEngine,
  lowerWorkerPriority,
  type RunningEngine,
  retryStore,
  reviveGuard,
  watchBuild,
} from '../engine/index.ts';

process.umask(0o077);
lowerWorkerPriority();

const HEARTBEAT_MS = 250;
const ZONE_MS = 1_000;
/** A drained engine has nothing left to lose; what still hangs then must not hold up a restart. */
const CLOSE_MS = 5_000;

let engine: RunningEngine | null = null;
/** Of children too: as it was at the start. */
let env = process.env;
let leaving = false;

if (process.send === undefined) {
  process.stderr.write('the engine is started by comet-cc start, not by hand\n');
  process.exit(2);
}
// Before anything is loaded: the first message may already be here.
process.on('message', (message: Readonly<Record<string, unknown>>, handle: unknown) => {
  if (message.type === 'client') take(String(message.name), handle);
  else if (message.type === 'init' && typeof message.secret === 'string') {
    // What was set for this process's own start is nothing for the children it starts.
    for (const name of (message.onlyHere ?? []) as readonly unknown[]) delete process.env[String(name)];
    env = { ...process.env };
    void begin(message.secret);
  } else if (message.type === 'drain') void leave(0, true, message.restarts !== true);
});
// The guard died, as one that stops asks to drain first. The next guard's engine needs the home.
process.on('disconnect', () => {
  const revived = leaving ? Promise.resolve() : reviveGuard(env);
  void revived
    .catch((error: unknown) => engine?.log.error('the guard could not be started again', { error }))
    .then(() => leave(0, false));
});
process.on('SIGTERM', () => void (leaving ? process.exit(1) : leave(0, true)));
// A terminal's Ctrl-C is for the guard, which then asks to drain.
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
process.stderr.on('error', () => {
  // The guard that read it has gone, which 'disconnect' deals with.
});
process.on('uncaughtException', (error) => fail('uncaught exception', error));
process.on('unhandledRejection', (error) => fail('unhandled rejection', error));
// The guard ends those that run on when this process is killed.
subscribe('child_process', (message) => {
  const { process: child } = message as { readonly process: ChildProcess };
  child.once('spawn', () => tell({ started: child.pid }));
  child.once('exit', () => tell({ ended: child.pid }));
});
setInterval(() => tell({ type: 'heartbeat' }), HEARTBEAT_MS);
// Node keeps the time zone that the machine had first; it reads that again whenever this variable changes or goes.
if (process.env['TZ'] === undefined) setInterval(() => delete process.env['TZ'], ZONE_MS);
watchBuild(
  () => {
    if (engine?.isIdle()) return true;
    engine?.log.debug('an update waits for requests and commands');
    return false;
  },
  () => tell({ type: 'replaced' }),
);
retryStore(
  () => engine !== null && engine.isStoreless() && engine.isIdle(),
  () => tell({ type: 'replaced' }),
);

async function begin(secret: string): Promise<void> {
  try {
    engine = await composeEngine({ env, ownEnv: process.env, secret, onLost: () => void leave(1, false) });
    tell({ type: 'ready', port: engine.port });
  } catch (error) {
    fail('the engine did not start', error);
  }
}

function take(name: string, handle: unknown): void {
  // One that left on the way here comes without its connection.
  const client = handle instanceof Socket ? handle : null;
  if (engine === null) client?.destroy();
  else engine.take(name, client);
}

async function leave(code: number, gently: boolean, stops = false): Promise<void> {
  if (leaving) return;
  leaving = true;
  if (gently) await engine?.drain(stops);
  setTimeout(() => process.exit(code), CLOSE_MS).unref();
  await engine?.close();
  process.exit(code);
}

function tell(message: object): void {
  // A channel that closes meanwhile is noticed by its 'disconnect'.
  if (process.connected) process.send?.(message, undefined, {}, () => {});
}

function fail(message: string, error: unknown): void {
  const what = error instanceof Error ? error.stack : String(error);
  if (engine === null) process.stderr.write(`${message}: ${what}\n`);
  else engine.log.error(message, { error });
  process.exit(1);
}
