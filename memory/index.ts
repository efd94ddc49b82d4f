import type { Memory, MemoryOptions } from './memory.ts';
import type { MigratedFiles, MigrationDirs } from './storage/fs/migrate-node-files.ts';

export type { ArchiveReport } from './archive.ts';
export type { Capture } from './capture.ts';
export type { ConsolidationReport as DreamReport } from './consolidation/change-set.ts';
export type { NodeReason } from './explain-node.ts';
export type { ForgetReport } from './forget.ts';
export type { DocumentReport, ImportProgress } from './import-document.ts';
export type { ImportTurnsReport } from './import-turns.ts';
export type { Import } from './imports.ts';
export { createTranscriptReader, type Skipped } from './ingest/claude-transcript.ts';
export { type ImportedTurn, isComplete, sessionProjects } from './ingest/imported-turn.ts';
export { isTurnLines, parseTurnLines } from './ingest/turns-jsonl.ts';
export type { Library, NodeView, RawMessage } from './library.ts';
export type { MemoryStats, MemoryStatus } from './maintenance.ts';
export type { Memory, MemoryOptions } from './memory.ts';
export { type Budget, openBudget, type UsageCounter, type UsageStore } from './models/budget.ts';
export { createUsageFile } from './models/usage-file.ts';
export { type Public, type PublicHit, type PublicNode, publicNode } from './node-view.ts';
export { type OpenMemoryOptions, openMemory } from './open-memory.ts';
export type { ProjectView } from './recall/project-overview.ts';
export type { Recall } from './recall/recall-service.ts';
export type * from './recall/types.ts';
export type { SessionDetail, SessionView } from './sessions.ts';
export { isArchive } from './storage/archive.ts';
export { createProjectOf } from './storage/fs/git-project.ts';
export type { IdSetFile } from './storage/fs/id-set-file.ts';
export { createIdSetFile } from './storage/fs/id-set-file.ts';
export type { SnapshotInfo } from './storage/snapshot-files.ts';

/** Loads the services on first use: importing this module for a type or a rule stays cheap. */
export async function createMemory(options: MemoryOptions): Promise<Memory> {
  const memory = await import('./memory.ts');
  return memory.createMemory(options);
}

/** Rewrites the node files and briefs of schema 1, see `openSchema`. */
export async function migrateNodeFiles(dirs: MigrationDirs): Promise<MigratedFiles> {
  const migration = await import('./storage/fs/migrate-node-files.ts');
  return migration.migrateNodeFiles(dirs);
}
