import { grouped } from '../../common/map.ts';
import { summarizeByRules } from '../../memory/compaction/rules-summary.ts';
import { readTurn } from '../../memory/ingest/turn-trust.ts';
import type { TurnText } from '../../memory/model/turn.ts';
import type { ProposedNode } from '../../memory/models/model.ts';
import { createHistory } from '../coding/history.ts';
import { SERVICES } from '../coding/topics.ts';
import { storyConversations } from '../labeled.ts';
import { plantedConversation } from '../local/planted.ts';
import { THEMES } from '../local/themes.ts';
import { getTurns, readDialogues } from '../recall/dialogues.ts';

/** Turns that are known to belong together; in a project many of them share a topic. */
interface Stretch {
  readonly topic: string;
  readonly turns: readonly TurnText[];
}

export interface TopicNode {
  readonly topic: string;
  readonly draft: ProposedNode;
  readonly turns: readonly TurnText[];
}

/** Nodes of one project, each with the topic it is known to be about. */
export interface Corpus {
  readonly name: string;
  readonly nodes: readonly TopicNode[];
}

/** What was settled about made-up services on many days; nodes about one service belong together. */
export function services(seed: number): Corpus {
  const { turns } = createHistory(seed);
  const stretches = turns.flatMap((turn): Stretch[] => {
    const text = readTurn(turn);
    const topic = SERVICES.find((name) => text.user.includes(name));
    return topic === undefined ? [] : [{ topic, turns: [text] }];
  });
  return { name: `services, seed ${seed}`, nodes: getNodes(stretches) };
}

/** Invented days of work in one project; nodes about one theme belong together, whatever the day. */
export function days(seeds: readonly number[]): Corpus {
  const stretches = seeds.flatMap((seed) =>
    THEMES.map((theme): Stretch => {
      const own = plantedConversation(seed).turns.filter((each) => each.theme === theme);
      return { topic: String(THEMES.indexOf(theme)), turns: own.map(({ turn }) => turn) };
    }),
  );
  return { name: `days, seeds ${seeds.join(' ')}`, nodes: getNodes(stretches) };
}

/** The demo's story; nodes of one part belong together. */
export function story(): Corpus {
  const stretches = storyConversations().flatMap((turns, session) => {
    let part = 0;
    return turns.map(({ turn, begins }): Stretch => {
      if (begins) part += 1;
      return { topic: `${session} ${part}`, turns: [turn] };
    });
  });
  return { name: 'demo story', nodes: getNodes(stretches) };
}

/** Dialogues in LoCoMo's shape, a project each; nodes of one session belong together. */
export function talks(file: string): Corpus[] {
  return readDialogues(file).map((dialogue) => {
    const bySession = grouped(getTurns(dialogue), ({ turn }) => turn.sessionId);
    const stretches = [...bySession].map(([topic, turns]): Stretch => {
      return {
        topic,
        turns: turns.map(({ turn }) => readTurn(turn)),
      };
    });
    return { name: `dialogue ${dialogue.id}`, nodes: getNodes(stretches) };
  });
}

export function getNodes(stretches: readonly Stretch[]): TopicNode[] {
  return stretches.flatMap(({ topic, turns }) =>
    turns.length === 0
      ? []
      : summarizeByRules({ turns, knownTags: [], brief: '' }).nodes.map((draft) => ({
          topic,
          draft,
          turns: turns.filter(({ turnId }) => draft.turns.includes(turnId)),
        })),
  );
}
