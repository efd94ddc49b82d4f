import type { Answer, AnswerBlock } from './answer.ts';
import { isObject, type Json } from './json.ts';
import { getTexts, newestPrompt, type ServedRequest } from './request-record.ts';

/** Who answers. Called for accepted `/v1/messages` requests only. */
export type Brain = (request: ServedRequest) => Answer | Promise<Answer>;

export interface ScriptedTurn {
  /** Compared with the newest user prompt: contained in it, or matching it. */
  readonly when: string | RegExp;
  /** One answer per tool round, the last without a tool call. Past the end the last is repeated. */
  readonly rounds: readonly (readonly AnswerBlock[])[];
}

/** Answers every prompt with one line. */
export const echoBrain: Brain = (request) => {
  const prompt = request.body ? newestPrompt(request.body) : '';
  return { kind: 'message', blocks: [{ type: 'text', text: `Understood: ${prompt.slice(0, 200)}` }] };
};

/**
 * Plays tool rounds. It holds no state: the round is read off the request (assistant messages since the newest prompt),
 * so retries, resumed and interleaved sessions get the same answers.
 */
export function scriptedBrain(turns: readonly ScriptedTurn[], otherwise: Brain = echoBrain): Brain {
  return (request) => {
    const prompt = request.body ? newestPrompt(request.body) : '';
    const turn = turns.find(({ when }) => (typeof when === 'string' ? prompt.includes(when) : when.test(prompt)));
    if (!request.body || !turn) return otherwise(request);
    const round = Math.min(getRound(request.body), turn.rounds.length - 1);
    return { kind: 'message', blocks: turn.rounds[round] ?? [] };
  };
}

/** Assistant messages since the newest user prompt. */
export function getRound(body: Json): number {
  const messages = Array.isArray(body.messages) ? body.messages.filter(isObject) : [];
  const prompt = messages.findLastIndex((message) => message.role === 'user' && getTexts(message).length > 0);
  return messages.slice(prompt + 1).filter((message) => message.role === 'assistant').length;
}
