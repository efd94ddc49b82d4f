import type { OperationInput, OperationResults } from '../engine/api/index.ts';

export type Name = keyof OperationResults;
export type Input<K extends Name> = OperationInput<K>;
export type Result<K extends Name> = OperationResults[K];

export type UiOverview = Result<'ui/overview'>;
export type UiSavings = Result<'ui/savings'>;
export type Row = Omit<UiSavings['days'][number], 'day'>;
export type UiSession = Result<'ui/session'>;
export type UiRequest = Result<'ui/request'>;
export type UiSearch = Result<'ui/search'>;
export type UiHit = UiSearch['hits'][number];
export type UiGraph = Result<'ui/graph'>;
export type UiHealth = Result<'ui/health'>;
