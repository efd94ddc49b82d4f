import { chmodSync, lstatSync, mkdirSync, renameSync, rmSync, type Stats } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { CometError } from '../../common/errors.ts';

export interface ControlOptions {
  readonly path: string;
  /** Answers one request; what it throws is answered as `{"error": …}`. */
  readonly handle: (request: Readonly<Record<string, unknown>>) => Promise<object>;
  /** Called once when the path is no longer our socket. */
  readonly onLost: () => void;
}

const LINE_LIMIT = 4_096;
const LINE_MS = 5_000;
const WATCH_MS = 500;

/**
 * Line JSON over a 0600 socket in a 0700 directory, one request for each connection.
 *
 * @throws CometError `port_in_use` when a guard answers there, `unsafe_file` when the path is not ours to replace
 */
export async function openControl(options: ControlOptions): Promise<{ close(): void }> {
  const dir = path.dirname(options.path);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const found = ownedBy(dir);
  if (found === null || !found.isDirectory()) throw unsafe(dir);
  chmodSync(dir, 0o700);
  await clearStale(options.path);

  const server = net.createServer((socket) => serve(socket, options.handle));
  // Listened on under a name of its own and renamed: whoever connects never finds a half-made socket.
  const made = `${options.path}.${process.pid}`;
  rmSync(made, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(made, resolve);
  });
  chmodSync(made, 0o600);
  renameSync(made, options.path);
  const inode = lstatSync(options.path).ino;
  const watch = setInterval(() => {
    if (ownedBy(options.path)?.ino === inode) return;
    clearInterval(watch);
    options.onLost();
  }, WATCH_MS);
  return {
    close() {
      clearInterval(watch);
      server.close();
      if (ownedBy(options.path)?.ino === inode) rmSync(options.path, { force: true });
    },
  };
}

async function clearStale(file: string): Promise<void> {
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return;
  if (!ownedBy(file)?.isSocket()) throw unsafe(file);
  if (await answers(file)) {
    throw new CometError('port_in_use', `another guard of this home answers on ${file}; stop it first`);
  }
  rmSync(file, { force: true });
}

function answers(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = net.connect(file);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
}

function ownedBy(file: string): Stats | null {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  return stats !== undefined && (process.getuid === undefined || stats.uid === process.getuid()) ? stats : null;
}

function unsafe(file: string): CometError {
  return new CometError('unsafe_file', `${file} is not ours (owner or kind is wrong); remove it and start again`);
}

function serve(socket: net.Socket, handle: ControlOptions['handle']): void {
  let text = '';
  socket.setEncoding('utf8');
  socket.setTimeout(LINE_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  const onData = (chunk: string): void => {
    text += chunk;
    if (text.length > LINE_LIMIT) return void socket.destroy();
    const end = text.indexOf('\n');
    if (end < 0) return;
    socket.off('data', onData).resume();
    socket.setTimeout(0);
    void answer(text.slice(0, end), handle).then((reply) => socket.end(`${JSON.stringify(reply)}\n`));
  };
  socket.on('data', onData);
}

async function answer(line: string, handle: ControlOptions['handle']): Promise<object> {
  try {
    const request: unknown = JSON.parse(line);
    if (typeof request !== 'object' || request === null) return { error: 'a JSON object was expected' };
    return await handle(request as Record<string, unknown>);
  } catch (error) {
    return { error: (error as Error).message };
  }
}
