import { localDay } from '../../common/text.ts';
import { type Fact, type MemoryNode, type NodeContent, withoutSuccessor } from '../model/node.ts';
import { contentTokens } from './keywords.ts';
import { tokenize } from './tokenizer.ts';

/** What sets the sections of a rule-made summary apart. */
export const SUMMARY_MARKS = {
  user: 'user says: ',
  quoted: 'quoted: ',
  /** Of a prompt that may be pasted. */
  prompt: 'prompt: ',
  ended: ' → ',
  further: '; then: ',
  decided: '; decided: ',
  left: '; open: ',
} as const;
/** Kept by `split`, so that the parts join to the same text again. */
const JOINTS =
  /((?:^|, )user says: |^quoted: |^prompt: | → | — answered: |; (?:(?:then|decided|open): )?|(?<=[.!?。]) )/;
/** Share of the shorter text's words from which two texts count as the same statement. */
const SAME = 0.7;
const TELLING = 3;
/** A value of more words is a whole statement. */
const BARE_VALUE = 4;

const DONE =
  /^\[x\]|\b(?:done|finished|completed?|fixed|resolved|implemented|shipped|merged|deployed|released|closed|added|removed|migrated|moved|renamed|rotated|updated|replaced|confirmed|approved|reviewed|submitted|published|ordered|delivered|installed|committed|pushed|upgraded|written|wrote|sent|answered|created|built|works now|no longer needed|passes|(?:has|have|was|were|is|are) (?:now |been )*\p{Ll}+(?:ed|en))\b|(?<!\p{L})(?:erledigt|fertig|behoben|umgesetzt|abgeschlossen|(?:ist|sind|wurden?|hab(?:en?)?|hat) (?:[^.!?;:]{1,60} )?(?:\p{L}{0,12}ge\p{Ll}{3,}(?:t|en)|\p{L}{3,}iert)|ya (?:l[aoe]s? |se )?\p{L}{3,}(?:é|[ai]mos)|\p{L}{3,}(?:ó|aron|ieron)|(?:está|están|fue|fueron|ha|han|he|hemos) (?:ya )?\p{L}{3,}[ai]d[oa]s?|hecho|terminad[oa]|listo|resuelt[oa]|fait|terminée?|corrigée?)(?!\p{L})|(?:已完成|完成了|已修复|已经|完了|済み|완료|끝났|끝냈|했습니다|했어요)/iu;
const NOT_DONE =
  /\b(?:not|isn't|aren't|wasn't|never|still|yet|todo|to do|open|pending|remaining|next|until|will|should|must|need(?:s|ed)?|required|planned|scheduled|expected|blocked|broken|asked|reported|has to|have to|would|could|before|once|if|when)\b|[?？]$|(?<!\p{L})(?:noch|nicht|offen|geplant|gedacht|gefragt|gemeldet|blockiert|planead[oa]|bloquead[oa]|pendiente|falta|todavía|reste|encore)(?!\p{L})|(?:还|未|没|아직|안 |まだ)/iu;
/** Tells when, or that something is left to do, not what. */
const UNTOLD =
  /\b(?:before|until|by) [^,.:;]*|(?<!\p{L})(?:bis|vor|hasta|antes del?) [^,.:;]*|\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight|week|month|(?:jan|febr)uary|march|april|may|june|july|august|(?:septem|octo|novem|decem)ber|end|to-?dos?|remaining|remind me|don'?t forget)\b|\d+|(?<!\p{L})(?:noch|fehl(?:t|en)|(?:me |nos )?faltan?|tiene[ns]? que|hay que)(?!\p{L})/giu;
/** Of a reply with what it answers, the reply. */
const REPLIED = /^“([^”]+)” (?:to|instead of) “/;
/** In a decision that takes the one before it back, which comes after it. */
export const INSTEAD_OF = '” instead of “';
/** Who is to be asked, and who says something. */
const ASKED =
  /\b(?:ask|check with|talk to|wait(?:ing)? for|hear from|frag\p{L}{0,2}|pregunt\p{L}{1,4} a) (?!if\b|the\b|for\b)(\p{L}{2,20})/iu;
const SAID =
  /(?<!\p{L})(?!user\b)(\p{L}{2,20}) (?:says?|said|confirm(?:s|ed)|repli(?:es|ed)|answered|agree[sd]|meint|sagte?|dice|dijo)(?!\p{L})/giu;
const SETTLED_SHARE = 0.6;
const LEAST_SHARED = 2;

/** The decision that a later one takes back; null where it takes none back. */
export const findTakenBack = (decision: string): string | null => decision.split(INSTEAD_OF)[1]?.slice(0, -1) ?? null;

/** A sentence that says that something is done, or what somebody says. */
export interface Report {
  readonly tokens: ReadonlySet<string>;
  readonly by: readonly string[];
  readonly isDone: boolean;
}

export function readReport(text: string): Report | null {
  const by = [...text.matchAll(SAID)].map(([, name = '']) => name.toLowerCase());
  const isDone = reportsDone(text);
  return isDone || by.length > 0 ? { tokens: new Set(tokenize(text)), by, isDone } : null;
}

/** Whether a report says that an open item is done, or what the person said who was to be asked. */
export function createSettled(item: string): (report: Report) => boolean {
  const words = REPLIED.exec(item)?.[1] ?? item;
  const wanted = contentTokens(words.replace(UNTOLD, ' '));
  const person = ASKED.exec(words)?.[1]?.toLowerCase() ?? '';
  const named = contentTokens(words);
  return ({ tokens, by, isDone }) => {
    const shared = wanted.filter((token) => tokens.has(token)).length;
    if (isDone && shared >= LEAST_SHARED && shared >= SETTLED_SHARE * wanted.length) return true;
    const others = by.includes(person) ? named.filter((token) => token !== person && tokens.has(token)) : [];
    return others.length >= LEAST_SHARED || others.some((token) => /\d/.test(token));
  };
}

export interface SummaryPart {
  readonly text: string;
  /** It stands where only words of the user stand; told for nodes of the local writer alone. */
  readonly isUsers: boolean;
}

export const reportsDone = (text: string): boolean => DONE.test(text) && !NOT_DONE.test(text);

/** No longer so. */
export const isClosed = (fact: Fact): boolean => (fact.valid_to ?? null) !== null;

/** True once and no longer: another node says what is so instead, or someone ended it by hand. */
export const isPast = (node: NodeContent): boolean => node.superseded_by !== null || node.valid_to !== null;

export function summaryParts({ summary, status }: MemoryNode): SummaryPart[] {
  let joint = '';
  return summary.split(JOINTS).flatMap((text, at): SummaryPart[] => {
    if (at % 2 === 1) joint = text;
    if (at % 2 === 1 || text.trim() === '') return [];
    return [{ text, isUsers: joint.endsWith(SUMMARY_MARKS.user) && status === 'draft' }];
  });
}

/** For text by others: in a summary, the mark would attribute it to the user. */
export const withoutUserMark = (text: string): string => text.replaceAll(SUMMARY_MARKS.user.trimEnd(), 'user says');

/** The summary without what its closed facts say; null where nothing is left. */
export function currentSummary(node: NodeContent): string | null {
  const closed = node.facts.filter(isClosed);
  if (closed.length === 0) return node.summary;
  const [isClosedBy, isOpenBy] = [toldBy(closed), toldBy(node.facts.filter((fact) => !isClosed(fact)))];
  const isGone = (part: string): boolean => isClosedBy(part) && !isOpenBy(part);
  const pieces = node.summary.split(JOINTS);
  let text = '';
  for (let at = 0; at < pieces.length; at += 2) {
    const [joint = '', part = ''] = [pieces[at - 1], pieces[at]];
    if (part.trim() !== '' && !isGone(part))
      text += (text === '' && joint.trim() !== SUMMARY_MARKS.user.trim() ? '' : joint) + part;
  }
  return text === '' ? null : text;
}

/** Whether a text states one of these facts, in whatever words; what the facts say is looked at once. */
export function toldBy(facts: readonly Pick<Fact, 'concept' | 'value'>[]): (text: string) => boolean {
  const words = facts.map(({ concept, value }) => ({
    values: [...new Set(tokenize(value))],
    named: [...new Set(tokenize(concept))],
  }));
  if (words.length === 0) return () => false;
  return (text) => {
    const textTokens = new Set(tokenize(text));
    const count = (tokens: readonly string[]): number => tokens.filter((token) => textTokens.has(token)).length;
    return words.some(({ values, named }) => {
      if (values.length === 0 || textTokens.size === 0) return false;
      const shared = count(values);
      const isWhole = values.length <= BARE_VALUE && shared === values.length;
      if (isWhole && count(named) * 2 >= named.length) return true;
      const least = Math.min(values.length, textTokens.size);
      return least >= TELLING && shared >= least * SAME;
    });
  };
}

/** `[2026-03-01 to 2026-03-09, replaced by mem_…]`, `[in part replaced by mem_…]`, or ''. */
export function validityNote(node: NodeContent): string {
  if (isPast(node)) {
    const until = node.valid_to === null ? '' : ` to ${localDay(node.valid_to)}`;
    const by = node.superseded_by === null ? '' : `, replaced by ${node.superseded_by}`;
    return `[no longer so: ${localDay(node.valid_from)}${until}${by}]`;
  }
  const heirs = [...new Set(node.facts.filter(isClosed).flatMap(({ superseded_by: by }) => by ?? []))];
  const others = heirs.filter((id) => id !== node.node_id);
  return others.length === 0 ? '' : `[in part replaced by ${others.slice(0, 2).join(', ')}]`;
}

/** Reopens facts that only removed nodes superseded. */
export function withoutRevisionsBy(node: MemoryNode, removedIds: ReadonlySet<string>): MemoryNode {
  const facts = node.facts.map((fact): Fact => {
    if (!removedIds.has(fact.superseded_by ?? '')) return fact;
    const { valid_to: _, superseded_by: __, ...open } = fact;
    return open;
  });
  if (node.superseded_as === undefined || !removedIds.has(node.superseded_by ?? '')) return { ...node, facts };
  return withoutSuccessor({ ...node, facts });
}
