import { readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { CometError, getReason, type Problem } from '../../common/errors.ts';
import { sha256 } from '../../common/text.ts';
import {
  createTranscriptReader,
  EVERYWHERE,
  getRepository,
  type IdSetFile,
  type Import,
  type ImportedTurn,
  type ImportProgress,
  type ImportTurnsReport,
  isComplete,
  NO_TURNS,
  type Skipped,
  sessionProjects,
} from '../../memory/index.ts';
import { MOST_BYTES, readTranscriptLines, type TranscriptFile, transcriptFiles } from '../transcript/files.ts';
import { importFile } from './import-file.ts';
import { absolutePath, projectPath } from './schema.ts';

/** A turn without an answer for this long gets none. */
const RUNNING_MS = 86_400_000;
const BUDGET_TOKENS = 200_000;

export const claudeImportInput = z.strictObject({
  /** Claude Code's own folder, as the user's shell names it. */
  claudeDir: absolutePath,
  projectDir: projectPath.optional(),
  sinceMs: z.number().optional(),
  dryRun: z.boolean(),
  llm: z.enum(['local', 'claude']),
  budgetTokens: z.int().positive().optional(),
  again: z.boolean().optional(),
});

type Input = z.infer<typeof claudeImportInput>;

export type ClaudeReport = Awaited<ReturnType<ClaudeImport['run']>>;

export type ClaudeImport = ReturnType<typeof createClaudeImport>;

export interface ClaudeImportDeps {
  readonly imports: Import;
  /** Tokens that the model has used today. */
  readonly tokensToday: () => number;
  /** Versions of transcripts that were imported to their end, and the sessions that have certain lines. */
  readonly done: IdSetFile;
  readonly hasModel: boolean;
  /** Whether the project of a directory allows capture now. */
  readonly captures: (projectDir: string) => boolean;
  readonly getProject: (directory: string | null) => string;
  readonly now: () => number;
}

/** Imports what Claude Code keeps itself: transcripts, and its memory files. */
export function createClaudeImport(deps: ClaudeImportDeps) {
  const { imports, tokensToday, done, hasModel, captures, getProject, now } = deps;
  let progress: ImportProgress | null = null;

  async function run(input: Input) {
    if (progress !== null)
      throw new CometError('not_allowed', 'an import is running; comet-cc status says how far it is, then try again');
    if (input.llm === 'claude' && !hasModel)
      throw new CometError('usage', 'the daemon asks no model (llm: local or off); set llm to claude and restart it');
    // A second one may not begin while the folder is listed.
    progress = { file: input.claudeDir, done: 0, total: 1, turns: 0 };
    try {
      const files = await transcriptFiles(path.join(input.claudeDir, 'projects'));
      progress = { ...progress, total: files.reduce((sum, { bytes }) => sum + bytes, 0) };
      return await importAll(files, input);
    } finally {
      progress = null;
    }
  }

  /** `added`, `known` and `skipped` are turns; `unchanged` were imported to their end before. */
  async function importAll(files: readonly TranscriptFile[], input: Input) {
    const ids = await done.load();
    const finished = new Set(input.again || input.llm === 'claude' ? [] : ids);
    const counts = { ...NO_TURNS, sessions: 0, files_read: 0 };
    const skipped: Record<keyof Skipped, number> = { broken: 0, other: 0, side: 0, summary: 0 };
    const problems: Problem[] = [];
    const directories = new Set<string>(input.projectDir === undefined ? [] : [input.projectDir]);
    const unchanged = files.filter(({ version }) => finished.has(version)).length;
    const before = tokensToday();
    const hasBudget = (tokens: number): boolean =>
      tokensToday() - before + tokens <= (input.budgetTokens ?? BUDGET_TOKENS);
    const owners = createLineOwners(ids);
    const state: ImportRun = { input, seen: new Set(), owners, hasBudget, counts, skipped, directories };
    // Captured sessions come first, and what forks repeat of them is theirs.
    const isKnown = await Promise.all(files.map((one) => imports.hasTurns(getSessionId(one))));
    for (const one of [...files.filter((_, at) => isKnown[at]), ...files.filter((_, at) => !isKnown[at])]) {
      try {
        if (!finished.has(one.version)) await importTranscript(one, state);
      } catch (error) {
        problems.push({ file: one.file, message: getReason(error) });
      }
      const { done: read = 0, ...rest } = progress as NonNullable<typeof progress>;
      progress = { ...rest, done: read + one.bytes, turns: counts.turns };
    }
    const documents = await importMemoryFiles([...directories], input, { imports, captures, problems });
    const { modelTokens, modelDone, modelLeft, ...own } = counts;
    // Estimated tokens of `--llm claude`, and the batches that it wrote and left.
    const model = { tokens: modelTokens, batches: modelDone, left: modelLeft };
    const shared = { kind: 'claude', dry_run: input.dryRun, transcripts: files.length, unchanged } as const;
    return { ...shared, ...own, model, lines_skipped: skipped, documents, problems };
  }

  async function importTranscript(one: TranscriptFile, state: ImportRun): Promise<void> {
    const { input, counts, skipped, directories, seen, owners, hasBudget } = state;
    if (one.bytes > MOST_BYTES) throw new CometError('unsafe_file', 'larger than 256 MB; split it by sessions');
    const transcript = await readTranscript(one);
    counts.files_read += 1;
    for (const [reason, lines] of Object.entries(transcript.skipped)) skipped[reason as keyof Skipped] += lines;
    const turns = endedTurns(transcript.turns, now());
    const isSelected = getSelection(input, turns);
    const budget = input.llm === 'claude' ? { hasBudget } : {};
    const options = { turns, imported: 'claude', dryRun: input.dryRun, seen, isSelected } as const;
    const report = await imports.importTurns({ ...options, isCopy: owners.isCopy, ...budget });
    const owned = owners.claim(turns.filter(isSelected));
    if (!input.dryRun && owned.length > 0) await done.add(owned);
    for (const [name, value] of Object.entries(report)) counts[name as keyof ImportTurnsReport] += value;
    if (report.turns > 0) counts.sessions += 1;
    for (const turn of turns) if (turn.projectDir !== null && isSelected(turn)) directories.add(turn.projectDir);
    if (report.turns === transcript.turns.length && !input.dryRun) await done.add([one.version]);
  }

  function getSelection({ projectDir, sinceMs = 0 }: Input, turns: readonly ImportedTurn[]) {
    const project = projectDir === undefined ? null : getProject(projectDir);
    const projects = sessionProjects(turns, getProject);
    const inProject = new Set(turns.filter((_, at) => project === null || projects[at] === project));
    return (turn: ImportedTurn): boolean => turn.atMs >= sinceMs && inProject.has(turn);
  }

  return { run, progress: (): ImportProgress | null => progress };
}

interface ImportRun {
  readonly input: Input;
  readonly seen: Set<string>;
  readonly owners: ReturnType<typeof createLineOwners>;
  /** Whether the budget has this many tokens left. */
  readonly hasBudget: (tokens: number) => boolean;
  readonly counts: typeof NO_TURNS & { sessions: number; files_read: number };
  readonly skipped: Record<keyof Skipped, number>;
  readonly directories: Set<string>;
}

/** Without the last turn, and what was typed during it, where it may still run. */
function endedTurns(turns: readonly ImportedTurn[], nowMs: number): readonly ImportedTurn[] {
  const at = turns.findLastIndex((turn) => turn.queued === undefined);
  const last = turns[at];
  const runs = last !== undefined && !isComplete(last) && nowMs - last.atMs < RUNNING_MS;
  return runs ? turns.slice(0, at) : turns;
}

async function importMemoryFiles(
  directories: readonly string[],
  { claudeDir, dryRun, projectDir: only }: Input,
  { imports, captures, problems }: Pick<ClaudeImportDeps, 'imports' | 'captures'> & { readonly problems: Problem[] },
) {
  const documents = { files: 0, added: 0, unchanged: 0 };
  for (const { file, projectDir } of await claudeMemoryFiles(claudeDir, directories)) {
    const isShared = projectDir === EVERYWHERE;
    if (!captures(isShared ? claudeDir : projectDir) || (only !== undefined && isShared)) continue;
    documents.files += 1;
    if (dryRun) continue;
    try {
      if (await linksOut(file, projectDir)) throw new CometError('unsafe_file', 'links out of its repository');
      // Earlier versions kept it in a project of its own.
      if (isShared) await imports.importDocument({ file, text: '', projectDir: claudeDir });
      const report = await importFile(imports, { file, as: 'document', projectDir });
      if (report.kind !== 'document') continue;
      documents.added += report.added;
      documents.unchanged += report.unchanged;
    } catch (error) {
      problems.push({ file, message: getReason(error) });
    }
  }
  return documents;
}

/** A record is the digest of a line's id and that of its session, half of each. */
const HALF = 32;

/** Which session a turn's lines belong to: a fork, and a copy made to resume, repeat lines of another session. */
function createLineOwners(records: readonly string[]) {
  const owners = new Map(records.map((record) => [record.slice(0, HALF), record.slice(HALF)]));
  const half = (text: string): string => sha256(text, HALF);
  const isForeign = (line: string, sessionId: string): boolean => {
    const owner = line === '' ? undefined : owners.get(half(line));
    return owner !== undefined && owner !== half(sessionId);
  };
  const isCopy = ({ lines: [first, last] = ['', ''], sessionId, messages }: ImportedTurn): boolean => {
    if (isForeign(first, sessionId)) return true;
    // A compaction may keep the end of a turn only.
    const [start] = messages;
    const hasResult = JSON.stringify(start?.content ?? '').includes('"type":"tool_result"');
    return (start?.role === 'assistant' || hasResult) && isForeign(last, sessionId);
  };
  return {
    isCopy,
    /** Records the lines of turns that are no copies; returns the new records. */
    claim: (turns: readonly ImportedTurn[]): string[] =>
      turns
        .filter((turn) => !isCopy(turn))
        .flatMap(({ lines = [], sessionId }) => [...new Set(lines)].map((line) => ({ line, sessionId })))
        .flatMap(({ line, sessionId }) => {
          const key = half(line);
          if (line === '' || owners.has(key)) return [];
          owners.set(key, half(sessionId));
          return [`${key}${half(sessionId)}`];
        }),
  };
}

/** Claude Code's own memory files: the user's, and those of the project directories. */
async function claudeMemoryFiles(claudeDir: string, projectDirs: readonly string[]) {
  const wanted = [{ file: path.join(claudeDir, 'CLAUDE.md'), projectDir: EVERYWHERE }];
  for (const projectDir of projectDirs) {
    const own = path.join(claudeDir, 'projects', projectDir.replace(/[^A-Za-z0-9]/g, '-'), 'memory');
    const notes = (await readdir(own).catch(() => [])).filter((name) => name.endsWith('.md')).sort();
    const names = path.isAbsolute(projectDir) ? ['CLAUDE.md', 'CLAUDE.local.md', '.claude/CLAUDE.md'] : [];
    const files = [...names.map((name) => path.join(projectDir, name)), ...notes.map((name) => path.join(own, name))];
    wanted.push(...files.map((file) => ({ file, projectDir })));
  }
  const states = await Promise.all(wanted.map(({ file }) => stat(file).catch(() => null)));
  return wanted.filter((_, at) => states[at]?.isFile());
}

/** A link in a repository may lead to any file of the user, whose text would be shared as the project's. */
async function linksOut(file: string, projectDir: string): Promise<boolean> {
  if (!file.startsWith(projectDir + path.sep)) return false;
  const root = await realpath(getRepository(projectDir)?.top ?? projectDir);
  return !(await realpath(file)).startsWith(root + path.sep);
}

const getSessionId = ({ file }: Pick<TranscriptFile, 'file'>): string => path.basename(file, '.jsonl');

/** @throws what reading the file throws */
export async function readTranscript({ file, agents }: Pick<TranscriptFile, 'file' | 'agents'>) {
  const reader = createTranscriptReader(getSessionId({ file }), Math.floor((await stat(file)).mtimeMs));
  await readTranscriptLines({ file, agents }, reader.line);
  return { turns: reader.turns(), skipped: reader.skipped() };
}
