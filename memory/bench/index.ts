export { askForQuestions, chooseQuestions, makeQuestions, type Question } from './questions.ts';
export { type Answer, askQuestions, type Outcome, SHOWN } from './run.ts';
export { type PastTurn, readNodeIds, readPastTurns } from './turns.ts';
