import { lstatSync } from 'node:fs';
import { getHome, homePaths, isPipe } from '../common/paths.ts';
import { postLocal } from '../common/request.ts';
import { toText } from '../common/text.ts';

export type HookInput = NonNullable<ReturnType<typeof parseInput>>;

/** `text` is added to the conversation, `message` is shown to the user; '' for nothing. */
export interface HookAnswer {
  readonly text: string;
  readonly message: string;
}

export const NO_ANSWER: HookAnswer = { text: '', message: '' };

// biome-ignore lint/style/noProcessEnv: a hook is a process of its own, and this is its input
const env = process.env;
/** Limit for the whole hook, its start included, because the user waits for it. */
const TOTAL_MS = Number(env['COMET_CC_HOOK_MS']) || 180;
/** Minimum for the engine's answer, for a busy machine on which the start used up the limit. */
const MIN_MS = 120;
const CONNECT_MS = 1_000;
const INPUT_CHARS = 4_000_000;
const OWN_CHILD = 'COMET_CC_CHILD';

/** Malformed, missing or late input prints nothing and exits with 0: a hook must not disturb the session. */
export async function runHook(hook: (input: HookInput) => Promise<HookAnswer>): Promise<void> {
  try {
    const input = parseInput(await readInput());
    if (input === null || env[OWN_CHILD] !== undefined) return;
    const { text, message } = await hook(input);
    if (text === '' && message === '') return;
    // Claude Code may have closed the pipe.
    process.stdout.on('error', () => {});
    const output = {
      ...(message === '' ? {} : { systemMessage: message }),
      ...(text === '' ? {} : { hookSpecificOutput: { hookEventName: input.event, additionalContext: text } }),
    };
    process.stdout.write(`${JSON.stringify(output)}\n`);
  } catch {
    // No message would help the session.
  }
}

/** What an operation of the engine's API answers; nothing without an engine. @throws when it is late */
export async function callEngine(operation: string, input: Readonly<Record<string, unknown>>): Promise<HookAnswer> {
  const { engineSocket } = homePaths(getHome(env));
  if (!isOwnSocket(engineSocket)) return NO_ANSWER;
  const controller = new AbortController();
  const abortAfter = (ms: number): unknown => setTimeout(() => controller.abort(), ms).unref();
  abortAfter(Math.max(CONNECT_MS, remainingMs()));
  const reply = await postLocal(engineSocket, {
    path: `/v1/${operation}`,
    body: JSON.stringify(input),
    signal: controller.signal,
    // The shorter limit starts once the request is written: a busy engine then still handles it.
    onSent: () => abortAfter(remainingMs()),
  });
  const { result } = JSON.parse(reply) as { readonly result?: Readonly<Record<string, unknown>> };
  return { text: toText(result?.['text']), message: toText(result?.['message']) };
}

/** @throws where there is no such file */
function isOwnSocket(address: string): boolean {
  if (isPipe(address)) return true;
  const stats = lstatSync(address);
  return stats.isSocket() && (process.getuid === undefined || stats.uid === process.getuid());
}

async function readInput(): Promise<string> {
  const late = setTimeout(() => process.stdin.destroy(new Error('the input is late')), remainingMs());
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk as string;
    if (text.length > INPUT_CHARS) throw new Error('the input is too long');
  }
  clearTimeout(late);
  return text;
}

/** Measured from the start of the process. */
const remainingMs = (): number => Math.max(MIN_MS, Math.round(TOTAL_MS - performance.now()));

function parseInput(text: string) {
  const input = JSON.parse(text) as Readonly<Record<string, unknown>> | null;
  const field = (name: string): string => toText(input?.[name]);
  const parsed = {
    sessionId: field('session_id'),
    projectDir: field('cwd'),
    event: field('hook_event_name'),
    source: field('source'),
    prompt: field('prompt'),
    agentType: field('agent_type'),
    agentId: field('agent_id'),
  };
  return parsed.sessionId === '' || parsed.projectDir === '' ? null : parsed;
}
