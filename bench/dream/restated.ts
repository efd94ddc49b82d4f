import type { TurnText } from '../../memory/model/turn.ts';
import { SERVICES, TOPICS } from '../coding/topics.ts';
import type { Corpus, TopicNode } from '../links/corpora.ts';
import { getNodes } from '../links/corpora.ts';
import { seeded } from '../local/seeded.ts';

type Form = 'first' | 'again' | 'reworded' | 'changed';

/** What a node of such a topic says of what, whatever the words. */
export function getStatement(topic: string): string {
  return topic.replace(/ \w+$/, '');
}

/**
 * What was settled about made-up services, said three times in all: once more in nearly the same words, once in others;
 * and the same things settled otherwise, in the same words.
 */
export function restated(seed: number): Corpus {
  const random = seeded(seed);
  const dice = { roll: random.below, pick: random.pickOne };
  const nodes: TopicNode[] = [];
  for (const service of SERVICES) {
    for (const topic of random.shuffled(TOPICS).slice(0, 4)) {
      const [value, other] = [topic.value(dice), topic.value(dice)];
      const say = (form: Form, at: number, said: string): void => {
        const fill = (text: string): string => text.replaceAll('{s}', service).replaceAll('{v}', said);
        const user = `${form === 'again' ? 'Once more, so that nobody forgets: ' : ''}${fill(topic.said[at] as string)}`;
        const turn = getTurn(`${seed} ${nodes.length}`, user, fill(topic.replied[at] as string));
        nodes.push(...getNodes([{ topic: `${service} ${topic.name} ${said} ${form}`, turns: [turn] }]));
      };
      say('first', 0, value);
      say('again', 0, value);
      say('reworded', 1, value);
      if (other !== value) say('changed', 0, other);
    }
  }
  return { name: `restated, seed ${seed}`, nodes };
}

function getTurn(turnId: string, user: string, answer: string): TurnText {
  const parts = [{ kind: 'assistant' as const, origin: 'assistant' as const, tool: '', text: answer }];
  return { turnId, atMs: 0, origin: 'user', user, parts };
}
