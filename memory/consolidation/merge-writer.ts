import { getReason } from '../../common/errors.ts';
import { clip, sha256, trimEnd } from '../../common/text.ts';
import type { OpenParts } from '../ingest/parts.ts';
import { type Author, getAuthor, type MemoryNode } from '../model/node.ts';
import type { MergeInput, MergeResult } from '../models/model.ts';
import { contentDigest } from '../storage/index-writer.ts';
import { getAnchors } from '../text/keywords.ts';
import { collectNames, isNearDuplicate, sharedWords } from '../text/paraphrase.ts';
import { isPairedScript } from '../text/tokenizer.ts';
import type { ConsolidationRule, Group, MergeText } from './merge-nodes.ts';

/** `text`: of these nodes. `apart`: they do not belong together. `later`: retry when the model may be called. */
export type MergeDecision =
  | { readonly kind: 'text'; readonly text: MergeText; readonly author: Author; readonly nodes: readonly MemoryNode[] }
  | { readonly kind: 'apart' }
  | { readonly kind: 'later' };

/** Share of near pairs in a group made without a model. */
export const LEAST_DENSITY = 0.5;
const MOST_REFUSALS = 500;
const REFUSAL: MergeResult = { fits: false, summary: '', trigger: '' };

export type MergeWriter = ReturnType<typeof createMergeWriter>;

export type MergeWriterOptions = {
  readonly signal: AbortSignal;
  readonly modelCallLimit: number;
  /** Of its own calls; beyond it rules decide, as where the model is not available. */
  readonly tokenLimit: number;
  /** What `refusals` returned after the last run. */
  readonly refused?: readonly string[] | undefined;
} & Pick<ConsolidationRule, 'repeated'> &
  Pick<OpenParts, 'quota' | 'model' | 'log'>;

/** Calls the model while the budget allows. Without it rules merge plain repetitions and leave the rest to the next run. */
export function createMergeWriter(options: MergeWriterOptions) {
  const { model, quota, log, signal, modelCallLimit, tokenLimit, repeated } = options;
  const refusals = new Set(options.refused);
  const tokensUsed = (): number => model?.health?.().mergeTokens ?? 0;
  const tokensBefore = tokensUsed();
  const answers = new Map<string, MergeResult>();
  let calls = 0;
  let because = '';

  const apart: MergeDecision = { kind: 'apart' };
  const byRule = (text: MergeText, nodes: readonly MemoryNode[]): MergeDecision => {
    return { kind: 'text', text, author: { by: 'rules' }, nodes };
  };

  function mayAsk(): boolean {
    const decision = quota.decide();
    if (decision.kind === 'defer') because ||= decision.because;
    if (calls >= modelCallLimit) because ||= `dream.modelCalls (${modelCallLimit}) are used up`;
    if (tokensUsed() - tokensBefore >= tokenLimit) because ||= `dream.tokens (${tokenLimit}) are used up`;
    return because === '';
  }

  /** Null if the model may not be asked. */
  async function ask(kind: MergeInput['kind'], nodes: readonly MemoryNode[]): Promise<MergeResult | null> {
    const key = `${kind} ${nodes.map(contentDigest).join(' ')}`;
    const earlierAnswer = answers.get(key);
    if (earlierAnswer !== undefined) return earlierAnswer;
    const digest = sha256(key, 12);
    if (refusals.has(digest)) return REFUSAL;
    if (model?.merge === undefined || !mayAsk()) return null;
    calls += 1;
    const notes = nodes.map(({ summary, trigger, facts }) => {
      return { summary, trigger, facts: facts.map(({ concept, value }) => `${concept}: ${value}`) };
    });
    try {
      const answer = await model.merge({ kind, notes }, signal);
      answers.set(key, answer);
      if (!answer.fits) refusals.add(digest);
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      because = getReason(error);
      log.warn('model failed to merge; rules decide', { error });
      return null;
    }
  }

  return {
    /** Why the configured model was not called, '' otherwise. */
    because: (): string => because,
    /** Digests of what the model keeps apart, so that runs with a small budget do not ask the same each time. */
    refusals: (): string[] => [...refusals].slice(-MOST_REFUSALS),
    /** @param nodes  the keeper first */
    async merge(nodes: readonly MemoryNode[]): Promise<MergeDecision> {
      const answer = await ask('merge', nodes);
      if (answer === null) {
        const same = nodes.filter((node, at) => at === 0 || isRepetition(nodes[0] as MemoryNode, node, repeated));
        if (model !== null && same.length < nodes.length) return { kind: 'later' };
        return same.length > 1 ? byRule(joinTexts(same), same) : apart;
      }
      if (!answer.fits) return apart;
      const keepsWords = nodes[0]?.importance === 'HIGH';
      if (keepsWords || !isFaithful(answer, nodes, true)) return byRule(joinTexts(nodes), nodes);
      return { kind: 'text', text: answer, author: getAuthor(model?.name ?? null), nodes };
    },
    async group(nodes: readonly MemoryNode[], near: Group['density']): Promise<MergeDecision> {
      const answer = await ask('group', nodes);
      if (answer === null && model !== null) return { kind: 'later' };
      if (answer === null) return near >= LEAST_DENSITY ? byRule(groupText(nodes), nodes) : apart;
      if (!answer.fits) return apart;
      if (!isFaithful(answer, nodes, false)) return byRule(groupText(nodes), nodes);
      return { kind: 'text', text: answer, author: getAuthor(model?.name ?? null), nodes };
    },
  };
}

const GROUP_CHARS = 600;
const LEAD = /^user says: /;

export function joinTexts([first, ...others]: readonly MemoryNode[]): MergeText {
  if (first === undefined) return { summary: '', trigger: '' };
  let summary = first.summary;
  const statements = getStatements(summary);
  for (const statement of others.flatMap((node) => getStatements(node.summary))) {
    if (statements.some((other) => isNearDuplicate(other, statement))) continue;
    statements.push(statement);
    summary = `${trimEnd(summary, '.; \n')}; ${statement}`;
  }
  return { summary, trigger: first.trigger || (others.find(({ trigger }) => trigger !== '')?.trigger ?? '') };
}

/** Vectors tell little of Hangul, kana and Han: there every word counts. */
export function isRepetition(keeper: MemoryNode, node: MemoryNode, least: number): boolean {
  return sharedWords(node.summary, keeper.summary) >= (isPairedScript(keeper.summary) ? 1 : least);
}

function groupText(members: readonly MemoryNode[]): MergeText {
  const anchors = getAnchors(members.map(({ summary }) => summary.replace(LEAD, '')).join('\n'));
  const about = anchors.length === 0 ? '' : ` about ${anchors.join(', ')}`;
  const head = `${members.length} memories${about}: `;
  const room = Math.floor((GROUP_CHARS - head.length) / Math.max(1, members.length)) - 2;
  const begins = members.map(({ summary }) => trimEnd(clip(getStatements(summary)[0] ?? '', room), '.;'));
  const [last = '', ...rest] = anchors.toReversed();
  const listed = rest.length === 0 ? last : `${rest.toReversed().join(', ')} or ${last}`;
  return {
    summary: `${head}${begins.join('; ')}`,
    trigger: `When I ${listed === '' ? 'come back to any of this' : `get to ${listed}`}`,
  };
}

/** The text invents no name or figure and, with `keepsAll`, drops none. */
function isFaithful(text: MergeText, nodes: readonly MemoryNode[], keepsAll: boolean): boolean {
  const facts = nodes.flatMap((node) => node.facts.map(({ value }) => value));
  const own = [...nodes.map(({ summary }) => summary), ...nodes.map(({ trigger }) => trigger), ...facts];
  const given = [...own, ...nodes.flatMap(({ topic_tags }) => topic_tags)].join('\n');
  if (!collectNames(`${text.summary}\n${text.trigger}`, given)) return false;
  return !keepsAll || nodes.every(({ summary }) => collectNames(summary, text.summary));
}

function getStatements(summary: string): string[] {
  const parts = summary.replace(LEAD, '').split(/;\s+|\n+|(?<!\s)\s+—\s+answered:\s+/);
  return parts.map((each) => each.trim()).filter((each) => each !== '');
}
