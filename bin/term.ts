/** What a command may know of the terminal it talks to. */
export interface Term {
  readonly isTerminal: boolean;
  readonly paint: Paint;
  /** Columns that a line may take; unlimited when stdout is not a terminal. */
  readonly width: number;
  /** Data, on stdout, with a newline. */
  out(text: string): void;
  /** One JSON document on stdout. */
  json(value: unknown): void;
  /** Everything that is not data, on stderr, with a newline. */
  say(text: string): void;
  /** Overwrites one line on stderr; nothing where stderr is not a terminal. An empty text clears it. */
  progress(text: string): void;
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';
export type Paint = (style: Style, text: string) => string;

const CODES: Record<Style, readonly [number, number]> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

export interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export function createTerm(stdout: Stream, stderr: Stream, env: NodeJS.ProcessEnv): Term {
  const isTerminal = stdout.isTTY === true;
  const color = isTerminal && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  return {
    isTerminal,
    paint: color ? (style, text) => `\u001b[${CODES[style][0]}m${text}\u001b[${CODES[style][1]}m` : (_, text) => text,
    width: isTerminal ? (stdout.columns ?? 80) : Number.POSITIVE_INFINITY,
    out: (text) => void stdout.write(`${text}\n`),
    json: (value) => void stdout.write(`${JSON.stringify(value, null, 2)}\n`),
    say: (text) => void stderr.write(`${text}\n`),
    progress: (text) => {
      if (stderr.isTTY === true) stderr.write(`\r\u001b[2K${text}`);
    },
  };
}
