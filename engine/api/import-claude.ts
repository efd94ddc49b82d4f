import { CometError } from '../../common/errors.ts';
import type { IdSetFile, Memory, MemoryStatus, PastReport } from '../../memory/index.ts';
import type { Skipped } from '../../memory/ingest/claude-transcript.ts';
import { isComplete, type PastTurn } from '../../memory/ingest/imported-turn.ts';
import { createProjectOf } from '../../memory/storage/fs/git-project.ts';
import type { OperationInput, OperationResults } from './contract.ts';
import { importFile } from './import-file.ts';
import {
  claudeMemoryFiles,
  MOST_BYTES,
  readTranscript,
  type Transcript,
  type TranscriptFile,
  transcriptFiles,
} from './transcript-files.ts';

/** A turn that nobody has answered for so long will not be. */
const RUNNING_MS = 86_400_000;
const BUDGET_TOKENS = 200_000;

type Input = OperationInput<'memory/import-claude'>;
type Report = OperationResults['memory/import-claude'];

export interface ClaudeImport {
  run(input: Input): Promise<Report>;
  progress(): MemoryStatus['importing'];
}

export interface ClaudeImportDeps {
  readonly memory: Pick<Memory, 'importTurns' | 'importAll' | 'importDocument' | 'status'>;
  /** Versions of transcripts that were taken in to their end. */
  readonly done: IdSetFile;
  readonly hasModel: boolean;
  /** Whether the project of a directory lets memory take anything in now. */
  readonly takesIn: (projectDir: string) => boolean;
  readonly now: () => number;
}

type Counts = { -readonly [K in keyof PastReport]: number } & { sessions: number; files_read: number };

/** Takes over what Claude Code has kept itself: transcripts, and its memory files. */
export function createClaudeImport({ memory, done, hasModel, takesIn, now }: ClaudeImportDeps): ClaudeImport {
  let progress: MemoryStatus['importing'] = null;

  async function run(input: Input): Promise<Report> {
    if (progress !== null) throw new CometError('usage', 'an import is running; comet-cc status shows how far it is');
    const withModel = input.llm === 'claude';
    if (withModel && !hasModel) {
      throw new CometError('usage', 'the daemon asks no model (llm: local or off); set llm to claude and restart it');
    }
    const files = await transcriptFiles(input.claudeDir);
    progress = { file: input.claudeDir, done: 0, total: files.reduce((sum, { bytes }) => sum + bytes, 0), turns: 0 };
    try {
      return await takeAll(files, input);
    } finally {
      progress = null;
    }
  }

  async function takeAll(files: readonly TranscriptFile[], input: Input): Promise<Report> {
    const finished = new Set(input.again || input.llm === 'claude' ? [] : await done.load());
    const counts = noCounts();
    const skipped: Record<keyof Skipped, number> = { broken: 0, other: 0, side: 0, summary: 0 };
    const problems: { file: string; message: string }[] = [];
    const directories = new Set<string>(input.projectDir === undefined ? [] : [input.projectDir]);
    const unchanged = files.filter(({ version }) => finished.has(version)).length;
    const taking: Taking = { input, met: new Set(), mayAsk: askWithin(input.budgetTokens ?? BUDGET_TOKENS), counts };
    for (const one of files) {
      try {
        if (!finished.has(one.version)) await take(one, { ...taking, skipped, directories });
      } catch (error) {
        problems.push({ file: one.file, message: error instanceof Error ? error.message : String(error) });
      }
      const { done: before = 0, ...rest } = progress as NonNullable<typeof progress>;
      progress = { ...rest, done: before + one.bytes, turns: counts.turns };
    }
    const documents = await takeMemoryFiles([...directories], input, problems);
    const { modelTokens, modelDone, modelLeft, ...own } = counts;
    const model = { tokens: modelTokens, batches: modelDone, left: modelLeft };
    const shared = { kind: 'claude', dry_run: input.dryRun, transcripts: files.length, unchanged } as const;
    return { ...shared, ...own, model, lines_skipped: skipped, documents, problems };
  }

  async function take(one: TranscriptFile, to: Taking & Found): Promise<void> {
    const { input, counts, skipped, directories, met } = to;
    if (one.bytes > MOST_BYTES) throw new CometError('unsafe_file', 'larger than 256 MB; split it by sessions');
    const transcript = await readTranscript(one.file);
    counts.files_read += 1;
    for (const [reason, lines] of Object.entries(transcript.skipped)) skipped[reason as keyof Skipped] += lines;
    const turns = ended(transcript);
    const isWanted = wants(input);
    const asking = input.llm === 'claude' ? { mayAsk: to.mayAsk } : {};
    const { dryRun } = input;
    const report = await memory.importTurns({ turns, imported: 'claude', dryRun, met, wants: isWanted, ...asking });
    for (const [name, value] of Object.entries(report)) counts[name as keyof PastReport] += value;
    if (report.turns > 0) counts.sessions += 1;
    for (const turn of turns) if (turn.projectDir !== null && isWanted(turn)) directories.add(turn.projectDir);
    if (report.turns === transcript.turns.length && !dryRun) await done.add([one.version]);
  }

  function wants({ projectDir, sinceMs = 0 }: Input): (turn: PastTurn) => boolean {
    const projectOf = createProjectOf(now);
    const project = projectDir === undefined ? null : projectOf(projectDir);
    return (turn) => turn.atMs >= sinceMs && (project === null || projectOf(turn.projectDir) === project);
  }

  /** Without the last turn where it may still be going on. */
  function ended({ turns }: Transcript): readonly PastTurn[] {
    const last = turns.at(-1);
    const runs = last !== undefined && !isComplete(last) && now() - last.atMs < RUNNING_MS;
    return runs ? turns.slice(0, -1) : turns;
  }

  async function takeMemoryFiles(
    directories: readonly string[],
    { claudeDir, dryRun, projectDir: only }: Input,
    problems: { file: string; message: string }[],
  ): Promise<Report['documents']> {
    const documents = { files: 0, added: 0, unchanged: 0 };
    for (const { file, projectDir } of await claudeMemoryFiles(claudeDir, directories)) {
      if (!takesIn(projectDir) || (only !== undefined && projectDir === claudeDir)) continue;
      documents.files += 1;
      if (dryRun) continue;
      try {
        const report = await importFile(memory, { file, as: 'document', projectDir });
        if (report.kind !== 'document') continue;
        documents.added += report.added;
        documents.unchanged += report.unchanged;
      } catch (error) {
        problems.push({ file, message: error instanceof Error ? error.message : String(error) });
      }
    }
    return documents;
  }

  /** Counts what the model took; a call that would go beyond the budget is not made. */
  function askWithin(budgetTokens: number): (tokens: number) => boolean {
    const before = memory.status().llm.tokens_today;
    return (tokens) => memory.status().llm.tokens_today - before + tokens <= budgetTokens;
  }

  return { run, progress: () => progress };
}

interface Taking {
  readonly input: Input;
  readonly met: Set<string>;
  readonly mayAsk: (tokens: number) => boolean;
  readonly counts: Counts;
}

interface Found {
  readonly skipped: Record<keyof Skipped, number>;
  readonly directories: Set<string>;
}

function noCounts(): Counts {
  const turns = { turns: 0, added: 0, known: 0, skipped: 0, tokens: 0 };
  return { ...turns, modelTokens: 0, modelDone: 0, modelLeft: 0, sessions: 0, files_read: 0 };
}
