import type { Fact, MemoryNode } from '../model/node.ts';
import { contentTags } from '../text/system-tags.ts';

/** A turn up to so long is one passage; a longer one is many that overlap, each with the turn's beginning. */
const WHOLE_CHARS = 1_800;
const PASSAGE_CHARS = 1_200;
const HEAD_CHARS = 300;
const SENTENCE_END = /(?<=[.!?;])\s+|\s—\s|\n/;

/**
 * The places in which a node says something: what stands in one of them was said together. A summary of several turns
 * joins what nobody said together, so each of its sentences stands for itself.
 *
 * @param said  its turns by their ids, those that could be read
 */
export function passagesOf(node: MemoryNode, said: ReadonlyMap<string, { readonly text: string }>): string[] {
  const { summary, trigger, topic_tags, turns, facts } = node;
  if (turns.length <= 1) {
    const about = [summary, trigger, ...contentTags(topic_tags), ...facts.map(stated)].join('\n');
    return [about, ...[...said.values()].flatMap(({ text }) => partsOf(text)).map((part) => `${about}\n${part}`)];
  }
  const parts = [...said].flatMap(([turnId, { text }]) => {
    const resting = facts.filter(({ evidence }) => evidence.includes(turnId)).map(stated);
    return partsOf(text).map((part) => [part, ...resting].join('\n'));
  });
  return [...parts, ...summary.split(SENTENCE_END), ...facts.map(stated)];
}

function stated({ concept, value }: Fact): string {
  return `${concept} ${value}`;
}

function partsOf(text: string): string[] {
  if (text.length <= WHOLE_CHARS) return [text];
  const head = text.slice(0, HEAD_CHARS);
  const count = Math.ceil(text.length / (PASSAGE_CHARS / 2));
  return Array.from({ length: count }, (_, at) => {
    const from = (at * PASSAGE_CHARS) / 2;
    return `${head}\n${text.slice(from, from + PASSAGE_CHARS)}`;
  });
}
