import net from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import { socketPresent } from './control.ts';

const PAUSE_MS = 1_000;

/**
 * Calls `revive` when the guard crashes: its socket then remains without a listener, while a stopped guard removes it.
 *
 * @returns when `signal` is aborted
 */
export async function watchGuard(socket: string, revive: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (await heldOpen(socket, signal)) continue;
    if (signal.aborted) return;
    const crashed = await socketPresent(socket).catch(() => false);
    if (crashed && (await revived(revive))) continue;
    await after(PAUSE_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/** A failed attempt is repeated after a pause. */
async function revived(revive: () => Promise<void>): Promise<boolean> {
  try {
    await revive();
    return true;
  } catch {
    return false;
  }
}

/**
 * Stays connected until the other side closes, which a running guard does after some seconds and a dying one at once.
 * False when nothing listened.
 */
function heldOpen(socket: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    let connected = false;
    const connection = net.connect({ path: socket });
    connection.unref();
    const leave = (): void => void connection.destroy();
    signal.addEventListener('abort', leave, { once: true });
    connection.once('connect', () => {
      connected = true;
    });
    connection.on('error', leave);
    connection.once('close', () => {
      signal.removeEventListener('abort', leave);
      resolve(connected);
    });
    connection.resume();
  });
}
