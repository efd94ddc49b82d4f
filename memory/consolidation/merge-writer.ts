import type { Log } from '../../common/log.ts';
import { contentDigest } from '../model/content-hash.ts';
import type { MemoryNode } from '../model/node.ts';
import type { LanguageModel, MergeInput, MergeResult } from '../models/language-model.ts';
import type { ModelQuota } from '../models/quota.ts';
import type { Group } from './choose-groups.ts';
import { CONSOLIDATION } from './merge-nodes.ts';
import { groupText, isFaithful, isRepetition, joinTexts, type MergeText } from './merge-text.ts';

/** A text for several nodes; or they do not belong together; or the model is to be asked another time. */
export type MergeDecision =
  | { readonly kind: 'text'; readonly text: MergeText; readonly writtenBy: string }
  | { readonly kind: 'apart' }
  | { readonly kind: 'later' };

export interface MergeWriter {
  /** @param nodes  the keeper first */
  merge(nodes: readonly MemoryNode[]): Promise<MergeDecision>;
  group(nodes: readonly MemoryNode[], density: Group['density']): Promise<MergeDecision>;
  /** Why no model was asked although there is one; '' where it was. */
  because(): string;
}

export interface MergeWriterOptions {
  readonly quota?: ModelQuota;
  /** Null where rules alone are to decide. */
  readonly model: LanguageModel | null;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Questions to the model at most. */
  readonly modelCallLimit: number;
  /** See `DreamRule`. */
  readonly density: number;
}

/**
 * Asks the model as long as it may be asked. Plain repetitions do not wait for it, and their text by rule loses nothing;
 * all else does.
 */
export function createMergeWriter({
  model,
  quota,
  log,
  signal,
  modelCallLimit,
  density,
}: MergeWriterOptions): MergeWriter {
  const answers = new Map<string, MergeResult>();
  let asked = 0;
  let because = '';

  const apart: MergeDecision = { kind: 'apart' };
  const byRule = (text: MergeText): MergeDecision => ({ kind: 'text', text, writtenBy: CONSOLIDATION });

  function mayAsk(): boolean {
    const decision = quota?.decide();
    if (decision?.kind === 'defer') because ||= decision.because;
    return because === '';
  }

  /** Null where the model cannot be asked. */
  async function ask(kind: MergeInput['kind'], nodes: readonly MemoryNode[]): Promise<MergeResult | null | 'later'> {
    const key = `${kind} ${nodes.map(contentDigest).join(' ')}`;
    const known = answers.get(key);
    if (known !== undefined) return known;
    if (model?.merge === undefined || !mayAsk()) return null;
    if (asked >= modelCallLimit) return 'later';
    asked += 1;
    const notes = nodes.map(({ summary, trigger, facts }) => {
      return { summary, trigger, facts: facts.map(({ concept, value }) => `${concept}: ${value}`) };
    });
    try {
      const answer = await model.merge({ kind, notes }, signal);
      answers.set(key, answer);
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      because = 'the model failed';
      log.warn('rules decide in the place of the model', { error });
      return null;
    }
  }

  return {
    because: () => because,
    async merge(nodes) {
      const answer = await ask('merge', nodes);
      if (answer === 'later') return { kind: 'later' };
      if (answer === null && isRepetition(nodes)) return byRule(joinTexts(nodes));
      if (answer === null) return model === null ? apart : { kind: 'later' };
      if (!answer.fits) return apart;
      const keepsWords = nodes[0]?.importance === 'HIGH';
      if (keepsWords || !isFaithful(answer, nodes, true)) return byRule(joinTexts(nodes));
      return { kind: 'text', text: answer, writtenBy: model?.name ?? CONSOLIDATION };
    },
    async group(nodes, near) {
      const answer = await ask('group', nodes);
      if (answer === 'later' || (answer === null && model !== null)) return { kind: 'later' };
      if (answer === null) return near >= density ? byRule(groupText(nodes)) : apart;
      if (!answer.fits) return apart;
      if (!isFaithful(answer, nodes, false)) return byRule(groupText(nodes));
      return { kind: 'text', text: answer, writtenBy: model?.name ?? CONSOLIDATION };
    },
  };
}
