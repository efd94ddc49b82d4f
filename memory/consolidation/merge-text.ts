import type { MemoryNode } from '../model/node.ts';
import { anchorsOf } from '../text/keywords.ts';
import { isNearDuplicate } from '../text/near-duplicate.ts';
import { namesWithin, sharedWords } from '../text/paraphrase.ts';
import { clip } from '../text/sanitize-line.ts';

/** What one node says in the place of several. */
export interface MergeText {
  readonly summary: string;
  readonly trigger: string;
}

const GROUP_CHARS = 600;
/** Share of its words that one repeats of the other. */
const REPEATED = 1;
const LEAD = /^user says: /;

/** Every statement of all of them once, the first node's as they are. */
export function joinTexts([first, ...others]: readonly MemoryNode[]): MergeText {
  if (first === undefined) return { summary: '', trigger: '' };
  let summary = first.summary;
  const said = statementsOf(summary);
  for (const statement of others.flatMap((node) => statementsOf(node.summary))) {
    if (said.some((known) => isNearDuplicate(known, statement))) continue;
    said.push(statement);
    summary = `${summary.replace(/[.;\s]+$/, '')}; ${statement}`;
  }
  return { summary, trigger: first.trigger || (others.find(({ trigger }) => trigger !== '')?.trigger ?? '') };
}

/** Whether the others say nothing of their own, so that nobody needs to judge what that means. */
export function isRepetition([keeper, ...losers]: readonly MemoryNode[]): boolean {
  return keeper !== undefined && losers.every(({ summary }) => sharedWords(summary, keeper.summary) >= REPEATED);
}

/** What several nodes are about, and how each begins. */
export function groupText(members: readonly MemoryNode[]): MergeText {
  const all = members.map(({ summary }) => summary.replace(LEAD, '')).join('\n');
  const anchors = anchorsOf(all);
  const about = anchors.length === 0 ? '' : ` about ${anchors.join(', ')}`;
  const head = `${members.length} memories${about}: `;
  const room = Math.floor((GROUP_CHARS - head.length) / Math.max(1, members.length)) - 2;
  const begins = members.map(({ summary }) => clip(statementsOf(summary)[0] ?? '', room).replace(/[.;]+$/, ''));
  const [last = '', ...rest] = anchors.toReversed();
  const listed = rest.length === 0 ? last : `${rest.toReversed().join(', ')} or ${last}`;
  return {
    summary: `${head}${begins.join('; ')}`,
    trigger: `When I ${listed === '' ? 'come back to any of this' : `get to ${listed}`}`,
  };
}

/** Whether a text in place of `nodes` invents no name or figure and, where it is to keep all of theirs, drops none. */
export function isFaithful(text: MergeText, nodes: readonly MemoryNode[], keepsAll: boolean): boolean {
  const facts = nodes.flatMap((node) => node.facts.map(({ value }) => value));
  const own = [...nodes.map(({ summary }) => summary), ...nodes.map(({ trigger }) => trigger), ...facts];
  const given = [...own, ...nodes.flatMap(({ topic_tags }) => topic_tags)].join('\n');
  if (!namesWithin(`${text.summary}\n${text.trigger}`, given)) return false;
  return !keepsAll || nodes.every(({ summary }) => namesWithin(summary, text.summary));
}

function statementsOf(summary: string): string[] {
  return summary
    .replace(LEAD, '')
    .split(/;\s+|\n+|\s+—\s+answered:\s+/)
    .map((each) => each.trim())
    .filter((each) => each !== '');
}
