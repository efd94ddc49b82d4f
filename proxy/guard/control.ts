import { once } from 'node:events';
import { chmodSync, lstatSync, renameSync, rmSync, type Stats } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { CometError } from '../../common/errors.ts';
import { ensureDir } from '../../common/files.ts';
import { isPipe } from '../../common/paths.ts';

/** Gives the answer, or null to keep the connection open without one. */
export type Handle = (request: Readonly<Record<string, unknown>>, socket: net.Socket) => Promise<object | null>;

/** A start sends its environment. */
const MOST_CHARS = 1_000_000;

const WATCH_MS = 500;

/**
 * JSON lines over a 0600 socket in a 0700 directory, one request per connection.
 * @param onLost  called once when `file` is no longer this socket
 * @throws CometError `port_in_use` when another guard answers, `unsafe_file` when the path is not a socket of this user
 */
export async function openControlSocket(file: string, handle: Handle, onLost: () => void): Promise<{ close(): void }> {
  const refuse = (cause?: unknown): never => {
    throw new CometError('port_in_use', `a guard of this home answers on ${file}; stop it first`, { cause });
  };
  if (isPipe(file)) {
    // Windows reserves the name of an open pipe.
    const server = net.createServer((socket) => serve(socket, handle)).listen(file);
    await once(server, 'listening').catch(refuse);
    return { close: () => void server.close() };
  }
  await ensureDir(path.dirname(file));
  if (lstatSync(file, { throwIfNoEntry: false }) !== undefined) {
    if (!ownStats(file)?.isSocket())
      throw new CometError('unsafe_file', `${file} is not a socket of this user; remove it`);
    const probe = net.connect(file);
    const connection = await once(probe, 'connect').catch(() => null);
    probe.destroy();
    if (connection !== null) refuse();
  }
  // Created under a temporary name and renamed, so that clients never see it before chmod. The name is not longer than
  // the final one, because callers check only that against the path limit of sockets.
  const temporary = path.join(path.dirname(file), `.${process.pid}`);
  rmSync(temporary, { force: true });
  const server = net.createServer((socket) => serve(socket, handle)).listen(temporary);
  await once(server, 'listening');
  chmodSync(temporary, 0o600);
  renameSync(temporary, file);
  const { isOurs, end } = watchSocket(file, onLost);
  return {
    close() {
      end();
      // First, so that who finds no guard finds no socket either.
      if (isOurs()) rmSync(file, { force: true });
      server.close();
    },
  };
}

/** Calls `onLost` once when `file` is no longer the socket that it is now. */
export function watchSocket(file: string, onLost: () => void) {
  const inode = ownStats(file)?.ino;
  const isOurs = (): boolean => {
    try {
      return ownStats(file)?.ino === inode;
    } catch {
      return false; // A folder that cannot be read.
    }
  };
  const watch = setInterval(() => {
    if (isOurs()) return;
    clearInterval(watch);
    onLost();
  }, WATCH_MS);
  return { isOurs, end: (): void => clearInterval(watch) };
}

function ownStats(file: string): Stats | null {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  return stats !== undefined && (process.getuid === undefined || stats.uid === process.getuid()) ? stats : null;
}

function serve(socket: net.Socket, handle: Handle): void {
  let text = '';
  socket.setEncoding('utf8').setTimeout(5_000, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('data', function onData(chunk: string) {
    text += chunk;
    const end = text.indexOf('\n');
    if (end < 0 && text.length > MOST_CHARS) socket.destroy();
    if (end < 0) return;
    socket.off('data', onData).resume().setTimeout(0);
    const answer = async (): Promise<object | null> => handle(Object(JSON.parse(text.slice(0, end))), socket);
    void answer()
      .catch((error: Error) => ({ error: error.message }))
      .then((reply) => reply !== null && socket.end(`${JSON.stringify(reply)}\n`));
  });
}
