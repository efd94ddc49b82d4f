import { appendFileSync } from 'node:fs';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Record<string, unknown>;

/** Constant message, data in fields. Never throws. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
const NEVER = /^(authorization|proxy-authorization|x-api-key|cookie|set-cookie)$/i;

export interface LogOptions {
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

/** Appends to `file`, created 0600; a disk that cannot take the line loses it and nothing else. */
export function fileSink(file: string): (line: string) => void {
  return (line) => {
    try {
      appendFileSync(file, `${line}\n`, { mode: 0o600 });
    } catch {
      // Nowhere is left to say it: the log itself is what failed, and the session must go on.
    }
  };
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

function plain(key: string, value: unknown): unknown {
  if (NEVER.test(key)) return '[REDACTED:header]';
  if (value instanceof Error) {
    const { code } = value as Error & { code?: unknown };
    return { name: value.name, message: value.message, code, cause: value.cause };
  }
  return value;
}
