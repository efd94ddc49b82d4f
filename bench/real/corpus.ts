import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { isRecord } from '../../common/text.ts';
import { normalizedPath, pathsInCommand } from './tool-paths.ts';

/** Where the developer worked; also how Claude Code names the folder of the transcripts. */
export const PROJECT_DIR = '/Users/dev/Work/entire/devenv/cli';

/** A turn as this bench reads it from a transcript, without any code of the product. */
export interface RealTurn {
  readonly sessionId: string;
  /** Its place in the session, and the beginning of the digest of its prompts: what a label is attached to. */
  readonly at: number;
  readonly hash: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Texts of the user's messages. */
  readonly prompts: readonly string[];
  /** Those of them that the user typed, also while Claude was busy: no markup of the client and no notification. */
  readonly typed: readonly string[];
  /** Those that the user typed while Claude was busy. */
  readonly queued: readonly string[];
  /** Texts of the assistant's messages. */
  readonly answers: readonly string[];
  /** Prompts and answers. */
  readonly text: string;
  /** Every message in order, as the API would take it, without thinking. */
  readonly messages: readonly Message[];
}

export interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: readonly Block[];
  /** Of its first block. */
  readonly atMs: number;
}

export type Block = Readonly<Record<string, unknown>>;

export interface Corpus {
  readonly turns: readonly RealTurn[];
  readonly sessions: number;
  /** Paths that some tool was given, relative to the project, with the folders that they are in. */
  readonly paths: ReadonlySet<string>;
  readonly questions: Questions;
}

const Questions = z.object({
  answerable: z.array(z.object({ question: z.string(), answer: z.string() })),
  unanswerable: z.array(z.string()),
});
type Questions = z.infer<typeof Questions>;

/** Runs a benchmark on the corpus in a temporary home; says so where `dataDir` has none. */
export async function withCorpus(
  dataDir: string,
  run: (corpus: Corpus, home: string) => Promise<unknown>,
): Promise<void> {
  const home = await mkdtemp(path.join(tmpdir(), 'comet-bench-'));
  try {
    const corpus = await unpackCorpus(path.resolve(dataDir), home);
    if (corpus === null) console.log(`skipped: no corpus in ${dataDir}`);
    else await run(corpus, home);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Writes the transcripts below `home` as Claude Code keeps them; null where `dataDir` has no corpus. */
export async function unpackCorpus(dataDir: string, home: string): Promise<Corpus | null> {
  const packed = path.join(dataDir, 'real', 'cli');
  const names = await readdir(packed).catch(() => []);
  const files = names.filter((name) => name.endsWith('.jsonl.gz')).sort();
  if (files.length === 0) return null;
  const folder = path.join(home, '.claude', 'projects', PROJECT_DIR.replace(/[^A-Za-z0-9]/g, '-'));
  await mkdir(folder, { recursive: true });
  const turns: RealTurn[] = [];
  const paths = new Set<string>();
  for (const name of files) {
    const text = gunzipSync(await readFile(path.join(packed, name))).toString('utf8');
    const sessionId = name.replace('.jsonl.gz', '');
    const file = path.join(folder, `${sessionId}.jsonl`);
    await writeFile(file, text);
    const own = readTranscript(sessionId, text);
    // An import reads the oldest file first.
    const endSeconds = (own.at(-1)?.endMs ?? 0) / 1_000;
    await utimes(file, endSeconds, endSeconds);
    turns.push(...own);
    for (const { messages } of own) for (const message of messages) collectPaths(message, paths);
  }
  const questions = Questions.parse(
    JSON.parse(await readFile(path.join(dataDir, 'real', 'cli-questions.json'), 'utf8')),
  );
  return { turns, sessions: files.length, paths, questions };
}

interface OpenTurn {
  readonly startMs: number;
  endMs: number;
  readonly prompts: string[];
  readonly queued: string[];
  readonly answers: string[];
  readonly messages: { role: Message['role']; id: string; content: Block[]; atMs: number }[];
}

function readTranscript(sessionId: string, text: string): RealTurn[] {
  const turns: OpenTurn[] = [];
  const seen = new Set<string>();
  for (const row of text.split('\n')) {
    const line = parsed(row);
    const last = turns.at(-1);
    if (line?.['operation'] === 'enqueue') last?.queued.push(String(line['content'] ?? ''));
    if (line === null || !isSpoken(line) || seen.has(String(line['uuid']))) continue;
    seen.add(String(line['uuid']));
    enter(line, turns);
  }
  return turns.map(({ startMs, endMs, prompts, queued, answers, messages }, at) => ({
    sessionId,
    at,
    hash: createHash('sha256').update(prompts.join('\n')).digest('hex').slice(0, 12),
    startMs,
    endMs,
    prompts,
    typed: [...prompts, ...queued].filter((prompt) => !MARKUP.test(prompt)),
    queued,
    answers,
    text: [...prompts, ...answers].join('\n'),
    messages: messages.map(({ role, content, atMs }) => ({ role, content, atMs })),
  }));
}

const MARKUP =
  /^\s*(?:<(?:command-|local-command|task-notification|system-reminder|bash-|user-prompt)|\[Request interrupted|Operation stopped by hook)/;

type Line = Readonly<Record<string, unknown>>;

function parsed(row: string): Line | null {
  try {
    const value = JSON.parse(row) as unknown;
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

/** False for what the client wrote for itself, and for subagents. */
function isSpoken(line: Line): boolean {
  const { type, message } = line;
  if (line['isSidechain'] === true || line['isMeta'] === true || line['isCompactSummary'] === true) return false;
  if (line['isApiErrorMessage'] === true || !isRecord(message) || message['model'] === '<synthetic>') return false;
  return (type === 'user' || type === 'assistant') && message['role'] === type;
}

function enter(line: Line, turns: OpenTurn[]): void {
  const message = line['message'] as Line;
  const role = message['role'] as Message['role'];
  const content = getBlocks(message['content']).filter(({ type }) => !String(type).includes('thinking'));
  const atMs = Date.parse(String(line['timestamp']));
  const isPrompt = role === 'user' && !content.some(({ type }) => type === 'tool_result');
  const last = turns.at(-1);
  // Consecutive prompts form one turn.
  const continues = last !== undefined && (!isPrompt || !last.messages.some((each) => each.role === 'assistant'));
  const turn = continues ? last : { startMs: atMs, endMs: atMs, prompts: [], queued: [], answers: [], messages: [] };
  if (!continues) turns.push(turn);
  turn.endMs = Math.max(turn.endMs, atMs);
  const texts = content.flatMap((block) => (block['type'] === 'text' ? [String(block['text'])] : []));
  if (isPrompt) turn.prompts.push(texts.join('\n'));
  else if (role === 'assistant') turn.answers.push(...texts.filter((each) => each.trim() !== ''));
  const id = String(message['id'] ?? '');
  const before = turn.messages.at(-1);
  // Blocks of one answer, and results of parallel calls, are on lines of their own.
  if (before?.role === role) before.content.push(...content);
  else if (content.length > 0) turn.messages.push({ role, id, content: [...content], atMs });
}

function getBlocks(content: unknown): Block[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? content.filter(isRecord) : [];
}

const PATH_KEYS = ['file_path', 'notebook_path', 'path'];

function collectPaths({ content }: Message, paths: Set<string>): void {
  for (const { type, input } of content) {
    if (type !== 'tool_use' || !isRecord(input)) continue;
    const named = PATH_KEYS.flatMap((key) => (typeof input[key] === 'string' ? [input[key]] : []));
    const command = typeof input['command'] === 'string' ? pathsInCommand(input['command']) : [];
    for (const each of [...named, ...command]) {
      const parts = normalizedPath(each, PROJECT_DIR).split('/');
      for (let length = parts.length; length > 0; length -= 1) paths.add(parts.slice(0, length).join('/'));
    }
  }
}
