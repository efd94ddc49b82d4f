import { styleText } from 'node:util';
import { CometError } from '../../common/errors.ts';
import { escaped, printable } from '../../common/text.ts';
import type { Paint } from '../../engine/api/index.ts';

/** What a command may know of the terminal it talks to. */
export interface Term {
  readonly isTerminal: boolean;
  readonly paint: Paint;
  /** Lines that fit on the screen; unlimited when stdout is not a terminal. */
  readonly height: number;
  /** Columns that a line may take; unlimited when stdout is not a terminal. */
  readonly width: number;
  /** Data, on stdout, with a newline. */
  out(text: string): void;
  /** One JSON document on stdout. */
  json(value: unknown): void;
  /** Everything that is not data, uncoloured, on stderr, with a newline. */
  say(text: string): void;
  /** Overwrites one line on stderr; nothing where stderr is not a terminal. An empty text clears it. */
  progress(text: string): void;
}

export interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

export function createTerm(stdout: Stream, stderr: Stream, env: NodeJS.ProcessEnv): Term {
  // A terminal without a size, as in a container, reports 0.
  const isTerminal = stdout.isTTY === true;
  const color = isTerminal && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  return {
    isTerminal,
    paint: color ? (style, text) => styleText(style, text, { validateStream: false }) : (_, text) => text,
    height: isTerminal ? stdout.rows || 24 : Number.POSITIVE_INFINITY,
    width: isTerminal ? stdout.columns || 80 : Number.POSITIVE_INFINITY,
    out: (text) => void stdout.write(`${text}\n`),
    json: (value) => void stdout.write(`${escaped(JSON.stringify(value, null, 2))}\n`),
    say: (text) => void stderr.write(`${printable(text)}\n`),
    progress: (text) => {
      if (stderr.isTTY === true) stderr.write(`\r\u001b[2K${printable(text)}`);
    },
  };
}

/**
 * Asks on the terminal; anything but y or yes means no.
 *
 * @throws CometError `usage` without a terminal
 */
export async function confirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new CometError('usage', 'not a terminal: pass --yes to confirm');
  }
  const { createInterface } = await import('node:readline/promises');
  const dialog = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await dialog.question(`${question} [y/N] `)).trim());
  } finally {
    dialog.close();
  }
}
