import type { HomePaths } from '../common/paths.ts';
import type { MigratedFiles, MigrationDirs } from './storage/fs/migrate-node-files.ts';

export type { Capture } from './capture.ts';
export type { ConsolidationReport as DreamReport } from './consolidation/consolidation.ts';
export type { EditedNode } from './edit.ts';
export type { FactReason } from './fact-library.ts';
export { DEFAULT_ONTOLOGY } from './facts/default-ontology.ts';
export { proposeConcepts } from './facts/grow-ontology.ts';
export { ontologyJsonSchema, parseOntology } from './facts/ontology.ts';
export type { FactView } from './facts.ts';
export type { ForgetReport } from './forget.ts';
export type { Import, ImportProgress } from './import.ts';
export { type ImportTurnsReport, NO_TURNS } from './import-turns.ts';
export { createTranscriptReader, type Skipped } from './ingest/claude-transcript.ts';
export { type ImportedTurn, isComplete, sessionProjects } from './ingest/imported-turn.ts';
export { isTurnLines, parseTurnLines } from './ingest/turns-jsonl.ts';
export type { Item } from './items.ts';
export type { Library, NodeReason, NodeView, RawMessage } from './library.ts';
export { type Public, type PublicHit, type PublicNode, publicNode } from './library.ts';
export type { MemoryStats, MemoryStatus } from './maintenance.ts';
export type { Memory } from './memory.ts';
export { EVERYWHERE, getTitle, type MemoryNode } from './model/node.ts';
export {
  type Budget,
  createUsageCounter,
  createUsageFile,
  openBudget,
  type UsageCounter,
  type UsageStore,
} from './models/quota.ts';
export { openLanguageModel, openMemory } from './open-memory.ts';
export type { TopicHit } from './pages/topic-search.ts';
export type { TopicText, TopicView } from './pages/topics.ts';
export type { MemoryOptions } from './parts.ts';
export type { ProjectView } from './recall/project-overview.ts';
export { isQuarantined } from './recall/quarantine.ts';
export type { Recall } from './recall/recall-service.ts';
export type * from './recall/types.ts';
export type { SessionDetail, SessionView } from './sessions.ts';
export type { ShareSettings } from './share/parts.ts';
export { NAME as SHARED_NAME } from './share/row.ts';
export { type ShareReport, type Sharing, shareAddress } from './share.ts';
export { isArchive } from './storage/archive.ts';
export { allowOntology, openOntologies, withProject } from './storage/fs/ontology-files.ts';
export { createProjectOf, getRemote, getRepository, openJoinedFolders } from './storage/fs/project-files.ts';
export { createIdSetFile, type IdSetFile } from './storage/fs/set-files.ts';
export type { SnapshotInfo } from './storage/fs/snapshot-files.ts';
export { libraryPaths } from './storage/paths.ts';
export type { Activity } from './tasks/judge.ts';
export type { Tasks, TaskView } from './tasks/tasks.ts';
export { isReminder } from './tasks/trigger.ts';

/** Makes facts of what nodes say, see `openSchema`. */
export async function migrateNodeFacts(paths: HomePaths): Promise<void> {
  await (await import('./migrate-facts.ts')).migrateNodeFacts(paths);
}

/** Rewrites the node files and briefs of schema 1, see `openSchema`. */
export async function migrateNodeFiles(dirs: MigrationDirs): Promise<MigratedFiles> {
  return (await import('./storage/fs/migrate-node-files.ts')).migrateNodeFiles(dirs);
}
