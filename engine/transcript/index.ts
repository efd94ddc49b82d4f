export { type SimulatedSavings, simulateSavings } from './cost.ts';
export { transcripts } from './files.ts';
export { transcriptTitle } from './session-titles.ts';
