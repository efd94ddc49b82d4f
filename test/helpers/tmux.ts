import { execFileSync } from 'node:child_process';
import { expect, vi } from 'vitest';

/** A shell in a terminal of a given size, driven by keys and read as a screen. */
export interface TmuxTerminal {
  /** Types a line, and presses Enter once it is there: in a burst, Claude Code takes Enter for part of what is pasted. */
  type(line: string): Promise<void>;
  press(key: 'Escape' | 'C-c' | 'C-d'): void;
  /** Ends a program that wants Ctrl-D twice, and waits for the shell. */
  leave(): Promise<void>;
  /** The screen and what scrolled off it, wrapped lines joined, without trailing blanks. */
  screen(): string;
  /** Waits until the screen shows it. */
  shows(pattern: RegExp): Promise<void>;
  /** What a command prints, from its line to the next prompt, with `answer` given to its question; on a clear screen. */
  run(line: string, answer?: string): Promise<string>;
  resize(columns: number): void;
  close(): void;
}

const ROWS = 50;
const PROMPT = '$ ';

export function hasTmux(): boolean {
  try {
    execFileSync('tmux', ['-V']);
    return true;
  } catch {
    return false;
  }
}

export function openTmux(env: NodeJS.ProcessEnv, { cwd, columns }: { cwd: string; columns: number }): TmuxTerminal {
  const socket = `comet-cc-${process.pid}-${Math.random().toString(36).slice(2)}`;
  const shell = { ...env, TERM: 'xterm-256color', LANG: 'C.UTF-8', HISTFILE: '' };
  const tmux = (...args: string[]): string =>
    execFileSync('tmux', ['-L', socket, '-f', '/dev/null', ...args], { env: shell, cwd, encoding: 'utf8' });
  tmux('new-session', '-d', '-x', String(columns), '-y', String(ROWS), 'bash --norc --noprofile');
  tmux('set-option', '-g', 'history-limit', '5000');
  // Claude Code says so where it is off.
  tmux('set-option', '-g', 'focus-events', 'on');
  const capture = (...flags: string[]): string =>
    tmux('capture-pane', '-p', '-J', ...flags)
      .replace(/[^\S\n]+$/gm, '')
      .trimEnd();
  const screen = (): string => capture('-S', '-');
  const isDone = (): boolean => screen().split('\n').at(-1)?.trimEnd() === PROMPT.trim();
  const type = async (line: string): Promise<void> => {
    tmux('send-keys', '-l', line);
    await expect.poll(() => screen().replace(/\s/g, '')).toContain(line.replace(/\s/g, ''));
    tmux('send-keys', 'Enter');
  };
  tmux('send-keys', '-l', `PS1='${PROMPT}'; clear`);
  tmux('send-keys', 'Enter');
  return {
    type,
    press: (key) => void tmux('send-keys', key),
    async leave() {
      // On a busy machine the second key may come too late; the client takes it for a first one.
      const isLeft = (): Promise<boolean> => vi.waitUntil(isDone, { timeout: 10_000 }).catch(() => false);
      do {
        tmux('send-keys', 'C-d');
        await expect.poll(() => capture()).toMatch(/Ctrl-D again/);
        tmux('send-keys', 'C-d');
      } while (!(await isLeft()));
    },
    screen,
    shows: (pattern) => expect.poll(screen).toMatch(pattern),
    async run(line, answer) {
      await type('clear');
      await expect.poll(() => capture().trim()).toBe(PROMPT.trim());
      tmux('clear-history');
      await type(line);
      if (answer !== undefined) {
        await expect.poll(screen).toMatch(/\[y\/N\]$/);
        await type(answer);
      }
      await expect.poll(isDone).toBe(true);
      return screen().split('\n').slice(0, -1).join('\n').trimEnd();
    },
    resize: (columns_) => void tmux('resize-window', '-x', String(columns_), '-y', String(ROWS)),
    close: () => void tmux('kill-server'),
  };
}
