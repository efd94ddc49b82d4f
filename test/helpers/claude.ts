import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

const VERSION = '2.1.332';
/** Has other forms on the wire: it states the environment in the system prompt, and no class of a request. */
export const OLDER_VERSION = '2.1.197';

/** Said where a test is skipped: these tests drive the real client, which is not ours to ship. */
export const CLAUDE_MISSING = `Claude Code ${VERSION} was not found; .ci/run fetches it, or set COMET_CC_TEST_CLAUDE_DIR`;

/** The native binary of Claude Code that `.ci/run` keeps outside the checkout; null when there is none. */
export function findClaude(version = VERSION): string | null {
  const { COMET_CC_TEST_CLAUDE_DIR: given, XDG_CACHE_HOME: cache } = process.env;
  const kept = path.join(cache || path.join(os.homedir(), '.cache'), 'comet-cc-test', `claude-${version}`);
  const dir = version === VERSION ? given || kept : kept;
  const packages = path.join(dir, 'node_modules', '@anthropic-ai');
  if (!existsSync(packages)) return null;
  const wanted = `claude-code-${process.platform}-${process.arch}`;
  const names = readdirSync(packages).filter((name) => name === wanted || name === `${wanted}-musl`);
  const found = names.map((name) => path.join(packages, name, 'claude')).filter((file) => existsSync(file));
  return found[0] ?? null;
}

/** Nothing of a login, and nothing that Claude Code does beside the conversation. */
export const QUIET_CLAUDE = {
  ANTHROPIC_API_KEY: 'sk-ant-dummy-of-no-value',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  DISABLE_AUTOUPDATER: '1',
} as const;

export interface ClaudeAnswer {
  readonly sessionId: string;
  readonly text: string;
  readonly isError: boolean;
}

/** A Claude Code that takes one prompt after the other, as its SDK drives it. */
export interface ClaudeProcess {
  /** Resolves when the whole turn is over, tool rounds included. */
  ask(prompt: string): Promise<ClaudeAnswer>;
  /** Resolves at the end of a turn that no prompt started, such as one that a background task starts. */
  next(): Promise<ClaudeAnswer>;
  /** Stops the client where it stands, until what is returned is called. */
  freeze(): () => void;
  /** Closes stdin; resolves with the exit code. */
  end(): Promise<number | null>;
}

/** The arguments that make {@link startClaude} able to talk to it. */
export const TALKS = ['-p', '--verbose', '--input-format', 'stream-json', '--output-format', 'stream-json'] as const;

export function startClaude(
  command: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly cwd: string },
): ClaudeProcess {
  const [file = '', ...args] = command;
  const child = spawn(file, args, { ...options, stdio: 'pipe', detached: true });
  const answers = readAnswers(child);
  return {
    async ask(prompt) {
      const message = { role: 'user', content: [{ type: 'text', text: prompt }] };
      child.stdin.write(`${JSON.stringify({ type: 'user', message })}\n`);
      return await answers.next();
    },
    next: answers.next,
    freeze() {
      // A group of its own: `comet-cc run` and the client it started.
      const group = -(child.pid as number);
      process.kill(group, 'SIGSTOP');
      return () => process.kill(group, 'SIGCONT');
    },
    end() {
      child.stdin.end();
      return answers.code;
    },
  };
}

function readAnswers(child: ChildProcessWithoutNullStreams) {
  const ready: ClaudeAnswer[] = [];
  const waiting: { resolve(answer: ClaudeAnswer): void; reject(error: Error): void }[] = [];
  let said = '';
  let gone: Error | null = null;
  const hear = (text: string): void => {
    said = (said + text).slice(-4_000);
  };
  child.stderr.setEncoding('utf8').on('data', hear);
  // A client that ended before it read all is seen by its exit.
  child.stdin.on('error', () => undefined);
  createInterface(child.stdout).on('line', (line) => {
    hear(`${line}\n`);
    const answer = readResult(line);
    if (answer === null) return;
    const first = waiting.shift();
    if (first) first.resolve(answer);
    else ready.push(answer);
  });
  const code = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exit) => {
      gone = new Error(`Claude Code ended with ${exit} before it answered: ${said}`);
      for (const one of waiting.splice(0)) one.reject(gone);
      resolve(exit);
    });
  });
  const next = (): Promise<ClaudeAnswer> => {
    const first = ready.shift();
    if (first) return Promise.resolve(first);
    if (gone) return Promise.reject(gone);
    return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  };
  return { next, code };
}

function readResult(line: string): ClaudeAnswer | null {
  if (!line.startsWith('{')) return null;
  const event = JSON.parse(line) as { type: string; session_id: string; result?: string; is_error?: boolean };
  if (event.type !== 'result') return null;
  return { sessionId: event.session_id, text: event.result ?? '', isError: event.is_error ?? false };
}
