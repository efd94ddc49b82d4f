import type { Steps } from '../../common/async.ts';
import type { Corpus, Embedder } from '../embeddings/embedder.ts';
import { DEFAULT_RULES } from '../facts/default-rules.ts';
import type { TurnText } from '../model/turn.ts';
import type { LanguageModel } from '../models/model.ts';
import { detailByRules, detectTopicShiftByRules, summarizeByRules } from './rules-summary.ts';
import { getChanged } from './supersede-rules.ts';
import { embeddedText, type TurnEmbeddings } from './topic-shift.ts';
import { readTurnState } from './turn-state.ts';

/** Vocabularies are sorted by frequency; the first subwords occur in every text. */
const PLAIN_PIECES = 1_500;
const TALK: Corpus = {
  pieceWeights: (pieces) => new Map(pieces.map((piece) => [piece, Math.max(0, Math.log((piece + 1) / PLAIN_PIECES))])),
  mean: async () => null,
};

/** Deterministic rules without process or network; the fallback of every other model. Without `embedder` only words count. */
export function createLocalModel({ embedder }: { embedder?: Pick<Embedder, 'embedQuery'> } = {}): LanguageModel {
  async function embedTurns(turns: readonly TurnText[]): Promise<TurnEmbeddings> {
    const vectors = new Map<TurnText, Float32Array>();
    if (embedder === undefined) return vectors;
    try {
      for (const turn of turns) {
        const { vector, comparedWith } = await embedder.embedQuery(embeddedText(turn), TALK);
        if (comparedWith === 'vector') vectors.set(turn, vector);
      }
    } catch {
      // Words suffice; the indexer reports the embedder's error.
      return new Map();
    }
    return vectors;
  }

  return {
    name: 'local',
    detectTopicShift: async (input, signal) => {
      signal.throwIfAborted();
      return detectTopicShiftByRules(input, await embedTurns([...input.buffer, input.turn]));
    },
    summarize: async (input, signal) => {
      signal.throwIfAborted();
      return summarizeByRules(input, await embedTurns(input.turns));
    },
    expand: async (input, signal) => {
      signal.throwIfAborted();
      return detailByRules(input);
    },
    close: async () => {},
  };
}

/** Compiles regular expressions ahead of the first turn, which would otherwise block the event loop for it. */
export function* compileRules(): Steps<void> {
  // Once to interpret, once for machine code.
  for (const { pattern } of DEFAULT_RULES) yield void [pattern.exec(' '), pattern.exec(' ')];
  const turn: TurnText = { turnId: '', atMs: 0, origin: 'user', user: 'We use the first words here.', parts: [] };
  yield void readTurnState(turn);
  yield void [turn.user, turn.user].map(getChanged);
  const text = 'The first words work. They are used by the port 1.';
  const parts = [{ kind: 'assistant', origin: 'assistant', tool: '', text }] as const;
  summarizeByRules({ turns: [{ ...turn, parts }], knownTags: [], brief: '' });
}
