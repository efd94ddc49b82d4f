import { lstatSync } from 'node:fs';
import { postLocal } from '../common/local-request.ts';
import { homeOf, homePaths, isPipe } from '../common/paths.ts';

/** What Claude Code tells a hook, as far as it is used. */
export interface HookInput {
  readonly sessionId: string;
  readonly projectDir: string;
  readonly event: string;
  readonly source: string;
  readonly prompt: string;
  /** File, which may lag behind; '' where it is not told. */
  readonly transcript: string;
}

// biome-ignore lint/style/noProcessEnv: a hook is a process of its own, and this is its input
const env = process.env;
/** All that a hook takes, its own start included: the user waits for it, unless told to wait for longer. */
const WHOLE_MS = Number(env['COMET_CC_HOOK_MS']) || 180;
/** A machine so busy that the start took all of it still lets an engine answer that is there. */
const LEAST_MS = 120;
const CONNECT_MS = 1_000;
const INPUT_CHARS = 4_000_000;
const OWN_CHILD = 'COMET_CC_CHILD';

/**
 * Runs a hook: nothing it meets may disturb the session, so that what is malformed, missing or late ends with exit code
 * 0 and no output. What `hook` returns is added to the conversation.
 */
export async function runHook(hook: (input: HookInput) => Promise<string>): Promise<void> {
  try {
    const input = parseInput(await readInput());
    if (input === null || env[OWN_CHILD] !== undefined) return;
    const text = await hook(input);
    if (text === '') return;
    // Who has left hears nothing.
    process.stdout.on('error', () => {});
    const hookSpecificOutput = { hookEventName: input.event, additionalContext: text };
    process.stdout.write(`${JSON.stringify({ hookSpecificOutput })}\n`);
  } catch {
    // Nothing that a hook could say would help the session.
  }
}

/** The text that an operation of the engine's API answers with; '' where no engine is. @throws where none comes in time */
export async function ask(operation: string, input: Readonly<Record<string, unknown>>): Promise<string> {
  const { engineSocket } = homePaths(homeOf(env));
  if (!isOurs(engineSocket)) return '';
  const over = new AbortController();
  const endAfter = (ms: number): unknown => setTimeout(() => over.abort(), ms).unref();
  endAfter(Math.max(CONNECT_MS, leftMs()));
  return textOf(
    await postLocal(engineSocket, {
      path: `/v1/${operation}`,
      body: JSON.stringify(input),
      signal: over.signal,
      // A socket is there at once or not at all; what is told to a busy engine is told once it is written.
      onSent: () => endAfter(leftMs()),
    }),
  );
}

/** @throws where nothing is there */
function isOurs(address: string): boolean {
  if (isPipe(address)) return true;
  const found = lstatSync(address);
  return found.isSocket() && (process.getuid === undefined || found.uid === process.getuid());
}

async function readInput(): Promise<string> {
  const late = setTimeout(() => process.stdin.destroy(new Error('the input does not end')), leftMs());
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk as string;
    if (text.length > INPUT_CHARS) throw new Error('more than a hook is told');
  }
  clearTimeout(late);
  return text;
}

/** Since the process was started. */
function leftMs(): number {
  return Math.max(LEAST_MS, Math.round(WHOLE_MS - performance.now()));
}

function parseInput(text: string): HookInput | null {
  const told = JSON.parse(text) as Readonly<Record<string, unknown>> | null;
  const field = (name: string): string => {
    const value = told?.[name];
    return typeof value === 'string' ? value : '';
  };
  const input = {
    sessionId: field('session_id'),
    projectDir: field('cwd'),
    event: field('hook_event_name'),
    source: field('source'),
    prompt: field('prompt'),
    transcript: field('transcript_path'),
  };
  return input.sessionId === '' || input.projectDir === '' ? null : input;
}

function textOf(reply: string): string {
  const told = JSON.parse(reply) as { readonly result?: { readonly text?: unknown } } | null;
  const text = told?.result?.text;
  return typeof text === 'string' ? text : '';
}
