export { sealDigest } from '../policy/seal.ts';
export { type EngineClient, engineClient, engineOf, sessionId } from './client.ts';
export type { EngineStatus, OperationInput, OperationResults, StatuslineView } from './contract.ts';
export { type Costs, savedLine } from './cost.ts';
export type { ClaudeReport } from './import-claude.ts';
export * from './render.ts';
export { transcripts, transcriptTitle } from './session-titles.ts';
export { overrideLine, pauseLines, type StatusReport, statusReport, stoppedLine } from './status-report.ts';
export type { NamedReceipt, ProjectSummary } from './summary.ts';
