import { lowestOrigin } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import type { DetailInput, DetailResult } from '../models/language-model.ts';
import { neutralLine } from '../text/sanitize-line.ts';
import { isEmpty, isIdle, type Sentence, sentencesOf } from '../text/sentences.ts';

const MOST = 8;
const LEAST = 3;
const SENTENCE_CHARS = 400;
const DETAIL_CHARS = 2_400;

/** The detail without a model: what was said in the turns, the most telling sentences, in order. */
export function detailByRules({ turns, summary }: DetailInput): DetailResult {
  const told = turns.filter((turn) => !isIdle(turn)).flatMap(sentencesOf);
  const said = [...new Map(told.map((sentence) => [sentence.text, sentence])).values()];
  const telling = said.filter(({ text, by, worth }) => worth > 0 && !isEmpty(text, by));
  const others = said.filter((sentence) => !telling.includes(sentence) && !isEmpty(sentence.text, sentence.by));
  const chosen = new Set([
    ...telling.toSorted((one, other) => other.worth - one.worth).slice(0, MOST),
    ...others.slice(0, Math.max(0, LEAST - telling.length)),
  ]);
  const sentences = said.filter((sentence) => chosen.has(sentence)).map(spoken);
  return { sentences: sentences.length === 0 ? [summary] : sentences };
}

function spoken({ text, by }: Sentence): string {
  const whole = /[.!?。！？]$/u.test(text) ? text : `${text}.`;
  return by === 'user' ? `The user: ${whole}` : whole;
}

/**
 * The node with this detail: a line for each sentence, neither markup nor fence in it. Its writer saw all of the
 * turns, so it has the lowest of their origins.
 */
export function withDetail(
  node: MemoryNode,
  { sentences }: DetailResult,
  by: string,
  shown: readonly TurnText[],
): MemoryNode {
  const lines: string[] = [];
  let left = DETAIL_CHARS;
  for (const sentence of sentences.slice(0, MOST)) {
    const line = neutralLine(sentence, SENTENCE_CHARS);
    left -= line.length + 1;
    if (line === '' || left < 0) continue;
    lines.push(line);
  }
  if (lines.length === 0) return node;
  const detailed_origin = lowestOrigin([node.origin, ...shown.map((turn) => turn.origin)]);
  return { ...node, detailed_summary: lines.join('\n'), detailed_by: by, detailed_origin };
}
