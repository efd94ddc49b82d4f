export type { MemoryDeps, ReportingModel } from './deps.ts';
export { createMemory } from './engine.ts';
export type * from './face.ts';
