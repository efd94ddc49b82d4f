import { styleText } from 'node:util';
import { CometError } from '../../common/errors.ts';
import { escaped, printable } from '../../common/text.ts';
import type { Paint } from '../../engine/api/index.ts';

export type Term = ReturnType<typeof createTerm>;

export interface Look {
  readonly width: number;
  readonly nowMs: number;
  readonly paint: Paint;
}

export interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

export function createTerm(stdout: Stream, stderr: Stream, env: NodeJS.ProcessEnv) {
  // A terminal without a size, as in a container, reports 0.
  const isTerminal = stdout.isTTY === true;
  const printed: string[] = [];
  const put = (stream: Stream, text: string): void => {
    if (!isTerminal) printed.push(text);
    if (inProgress) progress('');
    stream.write(`${text}\n`);
  };
  const color = isTerminal && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  let inProgress = false;
  const progress = (text: string): void => {
    inProgress = stderr.isTTY === true && text !== '';
    if (stderr.isTTY === true) stderr.write(`\r\u001b[2K${printable(text)}`);
  };
  const out = (text: string): void => put(stdout, text);
  const json = (value: unknown): void => out(escaped(JSON.stringify(value, null, 2)));
  const paint: Paint = color ? (style, text) => styleText(style, text, { validateStream: false }) : (_, text) => text;
  return {
    isTerminal,
    paint,
    /** Columns that a line may take; unlimited when stdout is not a terminal. */
    width: isTerminal ? stdout.columns || 80 : Number.POSITIVE_INFINITY,
    /** Data, on stdout, with a newline. */
    out,
    json,
    /** The answer of a command: with `--json` as a document, else as lines. */
    print: (flags: { readonly json?: boolean | undefined }, value: unknown, lines: () => readonly string[]): void =>
      flags.json ? json(value) : lines().forEach(out),
    /** Lines on stdout; in the pager of `$PAGER`, else `less`, where they are longer than the screen. */
    async page(lines: readonly string[]): Promise<void> {
      if (inProgress) progress('');
      if (isTerminal && lines.length >= (stdout.rows || 24) && (await paged(lines.join('\n'), env))) return;
      lines.forEach(out);
    },
    /** What was printed until now, where stdout is not a terminal. */
    printed: () => printed.join('\n'),
    /** Everything that is not data, uncoloured, on stderr, with a newline. */
    say: (text: string): void => put(stderr, printable(text)),
    /** Overwrites one line on stderr; nothing where stderr is not a terminal. An empty text clears it, as every line does. */
    progress,
  };
}

const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const FRAME_MS = 100;

/** Turns on stderr, where that is a terminal, until the function that it gives is called. */
export function spinner(term: Pick<Term, 'progress'>, text: string): () => void {
  let frame = 0;
  const turning = setInterval(() => {
    term.progress(`${FRAMES[frame % FRAMES.length]} ${text}`);
    frame += 1;
  }, FRAME_MS);
  return () => {
    clearInterval(turning);
    term.progress('');
  };
}

/** False where there is no pager. It ends by itself where the text fits, and leaves the text on the screen. */
async function paged(text: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const [program = '', ...args] = (env['PAGER'] ?? 'less').split(/\s+/).filter((word) => word !== '');
  if (program === '' || program === 'cat' || env['TERM'] === 'dumb') return false;
  const { spawn } = await import('node:child_process');
  return await new Promise((resolve) => {
    const pager = spawn(program, args, { stdio: ['pipe', 'inherit', 'inherit'], env: { LESS: 'FRX', ...env } });
    pager.on('error', () => resolve(false)).on('close', () => resolve(true));
    // The reader may have seen enough.
    pager.stdin.on('error', () => undefined).end(`${text}\n`);
  });
}

/** Asks on the terminal; anything but y or yes means no. @throws CometError `usage` without a terminal or an answer */
export async function confirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new CometError('usage', 'not a terminal: pass --yes to confirm');
  const { createInterface } = await import('node:readline/promises');
  const dialog = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await dialog.question(`${question} [y/N] `)).trim());
  } catch (cause) {
    process.stderr.write('\n'); // Ctrl-C or Ctrl-D.
    throw new CometError('usage', 'no answer, so nothing more was done', { cause });
  } finally {
    dialog.close();
  }
}
