export type { MemoryDeps, ReportingModel } from './deps.ts';
export { createMemory } from './engine.ts';
export type * from './face/changes.ts';
export type * from './face/memory.ts';
export type * from './face/recall.ts';
export type * from './face/views.ts';
