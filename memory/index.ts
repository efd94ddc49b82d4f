export type { MemoryDeps, ReportingModel } from './deps.ts';
export { createMemory } from './memory.ts';
export type * from './types/changes.ts';
export type * from './types/memory.ts';
export type * from './types/recall.ts';
export type * from './types/views.ts';
