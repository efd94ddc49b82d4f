import net from 'node:net';

/** Carries the secret that only the guard and its engine know. */
export const SECRET_HEADER = 'x-comet-cc-guard';

const HALF_CLOSED_MS = 600_000;
const HEAD_LIMIT = 4_096;

/** @throws what the socket threw, or ETIMEDOUT after `timeoutMs` */
export function dial(host: string, port: number, timeoutMs: number): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({
      host,
      port,
      allowHalfOpen: true,
      noDelay: true,
      autoSelectFamilyAttemptTimeout: 1_000,
    });
    const timer = setTimeout(() => {
      socket.destroy(Object.assign(new Error(`no connection to ${host} in ${timeoutMs} ms`), { code: 'ETIMEDOUT' }));
    }, timeoutMs);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.off('error', failed);
      resolve(socket);
    });
    socket.once('error', failed);
    function failed(error: Error): void {
      clearTimeout(timer);
      reject(error);
    }
  });
}

export interface EngineDoor {
  readonly port: number;
  readonly secret: string;
  /** `host:port` that the engine terminates. */
  readonly authority: string;
  readonly timeoutMs: number;
}

/**
 * A connection to the engine that has answered CONNECT.
 *
 * @returns `declined` when the engine answered anything but 200: it must not intercept now
 * @throws when it could not be reached or did not answer in time
 */
export async function dialEngine(door: EngineDoor): Promise<net.Socket | 'declined'> {
  const startedAt = performance.now();
  const socket = await dial('127.0.0.1', door.port, door.timeoutMs);
  const left = Math.max(1, door.timeoutMs - (performance.now() - startedAt));
  socket.write(
    `CONNECT ${door.authority} HTTP/1.1\r\nHost: ${door.authority}\r\n${SECRET_HEADER}: ${door.secret}\r\n\r\n`,
  );
  const status = await readStatus(socket, left).catch((error: unknown) => {
    socket.destroy();
    throw error;
  });
  if (status === 200) return socket;
  socket.destroy();
  return 'declined';
}

function readStatus(socket: net.Socket, timeoutMs: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0);
    const timer = setTimeout(() => done(new Error('the engine did not answer')), timeoutMs);
    const onData = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) {
        if (head.length > HEAD_LIMIT) done(new Error('the engine answered with too long a head'));
        return;
      }
      const rest = head.subarray(end + 4);
      socket.pause();
      if (rest.length > 0) socket.unshift(rest);
      const status = /^HTTP\/1\.1 (\d{3})/.exec(head.toString('latin1'));
      done(null, Number(status?.[1] ?? 0));
    };
    const onClose = (): void => done(new Error('the engine closed the connection'));
    function done(error: Error | null, status = 0): void {
      clearTimeout(timer);
      socket.off('data', onData).off('end', onClose).off('close', onClose).off('error', onClose);
      socket.on('error', () => socket.destroy());
      if (error === null) resolve(status);
      else reject(error);
    }
    socket.on('data', onData).once('end', onClose).once('close', onClose).once('error', onClose);
  });
}

/** Pipes both ways with backpressure; one side's end half-closes the other, its failure closes both. */
export function join(client: net.Socket, remote: net.Socket): void {
  for (const [from, to] of [
    [client, remote],
    [remote, client],
  ] as const) {
    from.setNoDelay(true);
    from.on('error', () => to.destroy());
    from.once('close', () => to.destroySoon());
    // Half-closed and silent for so long means the other end is gone without a word.
    from.once('end', () => to.setTimeout(HALF_CLOSED_MS, () => to.destroy()));
    from.pipe(to);
  }
}
