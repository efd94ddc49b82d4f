export { type SimulatedSavings, simulateSavings } from './cost.ts';
