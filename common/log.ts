import fs, { constants } from 'node:fs';
import { lutimes } from 'node:fs/promises';
import { unquoted } from './text.ts';

type LogLevel = 'debug' | 'info' | 'warn' | 'error';
type LogFields = Record<string, unknown>;

/** Constant message, data in fields. Never throws. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
const NEVER = /^(authorization|proxy-authorization|x-api-key|cookie|set-cookie)$/i;

interface LogOptions {
  readonly level: LogLevel;
  readonly process: string;
  /** Receives one JSON line without its newline. */
  readonly sink: (line: string) => void;
  /** Applied to each whole line before the sink sees it. */
  readonly redact: (text: string) => string;
  readonly now: () => number;
}

export function createLog(options: LogOptions): Log {
  const least = LEVELS.indexOf(options.level);
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (LEVELS.indexOf(level) < least) return;
      const line = { at: new Date(options.now()).toISOString(), level, process: options.process, message, ...fields };
      options.sink(options.redact(JSON.stringify(line, plain)));
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

interface LogLimits {
  /** A file that would grow beyond it is rotated. */
  readonly fileBytes: number;
  /** Including the current one. */
  readonly files: number;
}

/** Two logs stay below 50 MB together. */
export const LOG_LIMITS: LogLimits = { fileBytes: 4 * 1024 * 1024, files: 5 };

const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);

/** Write what waits for a disk. */
const unwritten = new Set<() => void>();
process.once('exit', () => {
  for (const write of unwritten) write();
});

/** A sink for `createLog` that writes to a rotated file; a line that is far too long is cut. */
export function fileSink(file: string, limits: LogLimits = LOG_LIMITS): (line: string) => Promise<void> {
  const write = byteSink(file, limits);
  const most = Math.floor(limits.fileBytes / 4);
  return (line) => write(Buffer.from(`${line.length > most ? `${line.slice(0, most)}…` : line}\n`));
}

/**
 * Appends to `file` (0600) and rotates it to `file.1`, `file.2`, … as it grows. One process writes to a file; a file that
 * was renamed or removed is created again. Bytes are lost on a full disk; they wait for one that hangs, or for the exit.
 */
export function byteSink(file: string, limits: LogLimits = LOG_LIMITS): (bytes: Buffer) => Promise<void> {
  const waiting: Buffer[] = [];
  const write = (bytes: Buffer): void => {
    try {
      append(file, bytes.subarray(0, limits.fileBytes), limits);
    } catch {
      // The log itself failed, and the session must continue.
    }
  };
  const writeAll = (): void => waiting.forEach(write);
  return async (bytes) => {
    if (waiting.length === 1_000 || waiting.push(bytes) > 1) return;
    unwritten.add(writeAll);
    for (; waiting[0] !== undefined; waiting.shift()) {
      // It waits for the disk as a write does, but in a thread.
      await lutimes(file, new Date(), new Date()).catch(() => undefined);
      write(waiting[0]);
    }
    unwritten.delete(writeAll);
  };
}

export function rotateLarge(file: string): void {
  const stats = fs.statSync(file, { throwIfNoEntry: false });
  if (stats !== undefined && stats.size > LOG_LIMITS.fileBytes) rotate(file, LOG_LIMITS.files);
}

function append(file: string, bytes: Buffer, limits: LogLimits): void {
  const before = fs.lstatSync(file, { throwIfNoEntry: false });
  const size = before?.isFile() ? before.size : 0;
  if (size > 0 && size + bytes.length > limits.fileBytes) rotate(file, limits.files);
  const descriptor = fs.openSync(file, APPEND, 0o600);
  try {
    const stats = fs.fstatSync(descriptor);
    if (stats.isFile() && (stats.mode & 0o077) !== 0) fs.fchmodSync(descriptor, 0o600);
    fs.writeSync(descriptor, bytes);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** `file` becomes `file.1`; the oldest is deleted. A file that cannot be renamed is deleted, so that the limit holds. */
function rotate(file: string, files: number): void {
  for (let at = files - 2; at >= 1; at -= 1) moved(`${file}.${at}`, `${file}.${at + 1}`);
  if (!moved(file, `${file}.1`)) fs.rmSync(file, { force: true });
}

function moved(from: string, to: string): boolean {
  try {
    fs.renameSync(from, to);
    return true;
  } catch {
    // It does not exist, or another process has taken it.
    return fs.lstatSync(from, { throwIfNoEntry: false }) === undefined;
  }
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

function plain(key: string, value: unknown): unknown {
  if (NEVER.test(key)) return '[REDACTED:header]';
  if (value instanceof Error) {
    const { code } = value as Error & { code?: unknown };
    return { name: value.name, message: unquoted(value), code, cause: value.cause };
  }
  return value;
}
