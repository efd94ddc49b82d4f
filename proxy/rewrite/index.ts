export type { CutRule } from './cut.ts';
export { fenceLines, type Line, renderRetrieval, renderSystemBlock } from './injected-text.ts';
export { openPlanStore, type PlanStore } from './plan-store.ts';
export { createRewriter, type RewriterConfig } from './rewriter.ts';
