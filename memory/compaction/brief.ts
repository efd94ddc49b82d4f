import { neutralLine } from '../../common/text.ts';
import { isCleanOrigin, type Origin } from '../../common/turn.ts';
import type { TurnRegistry } from '../ingest/turn-registry.ts';
import type { Claim, StoredBrief } from '../model/node.ts';
import type { SummaryResult } from '../models/model.ts';

export const BRIEF_CHARS = 1_500;
const CLAIM_CHARS = 440;
const ACTIVE = '## Active Work Context';
const HINTS = '## Hints';

export type SourcedClaim = Claim & { readonly origin: Origin };
type Claims = Pick<StoredBrief, 'active' | 'hints'>;

/** Adds origins and drops whole claims that exceed the size of the rendered brief. */
export function attributeBrief(brief: SummaryResult['brief'], getOrigin: (claim: Claim) => Origin): Claims {
  const settle = (claims: readonly Claim[]): SourcedClaim[] =>
    claims
      .map((claim) => ({ ...claim, text: neutralLine(claim.text, CLAIM_CHARS), origin: getOrigin(claim) }))
      .filter((claim) => claim.text !== '');
  return withinSize({ active: settle(brief.active), hints: settle(brief.hints) });
}

/** A decision, or what was left to do, of turns that the user went back behind; what was done there is done. */
export const isTakenBack = ({ text, sources }: Claim, turns: Pick<TurnRegistry, 'areAbandoned'>): boolean =>
  turns.areAbandoned(sources) && !/^(?:Done|Found|Stands): /.test(text);

export function renderBrief(brief: SummaryResult['brief']): string {
  const section = (title: string, claims: readonly Claim[]): string[] =>
    claims.length === 0 ? [] : [[title, ...claims.map((claim) => `- ${claim.text}`)].join('\n')];
  return [...section(ACTIVE, brief.active), ...section(HINTS, brief.hints)].join('\n\n');
}

const KINDS = ['Goal', 'Done', 'Found', 'Stands', 'Decided', 'Open', 'Next'];

const getKind = ({ text }: Claim): number => KINDS.findIndex((kind) => text.startsWith(`${kind}: `));

/** Of these kinds, a brief without any may have forgotten them; an open item that it leaves out is over. */
const NEEDED = ['Goal', 'Stands', 'Decided'].map((kind) => KINDS.indexOf(kind));

/** The goal and how the work stands, of which a brief has one each. */
export const tellsState = ({ text }: Claim): boolean => /^(?:Goal|Stands): /.test(text);

/** Longer quotations hide short claims. Of a goal its first part counts, which is what a new session is told. */
const SPARE_CHARS = 200;

/** The brief; short claims of `spare` take the place of those of whose kind it has none of clean origin. */
export function withSpareClaims<B extends Claims>(brief: B, spare: Claims): B {
  const used = new Set([...NEEDED, ...brief.active.map(getKind)]);
  const kinds = new Set(brief.active.filter(({ origin }) => isCleanOrigin(origin)).map(getKind));
  const mayAdd = (kind: number): boolean => used.has(kind) && !kinds.has(kind);
  const short = spare.active.filter(({ text }) => (text.split(LAST_ASKED)[0] ?? '').length <= SPARE_CHARS);
  const added = short.filter((claim) => isCleanOrigin(claim.origin) && mayAdd(getKind(claim)));
  const replaced = new Set(added.map(getKind));
  const left = brief.active.filter((claim) => !replaced.has(getKind(claim)));
  const active = [...left, ...added].toSorted((one, other) => getKind(one) - getKind(other));
  return { ...brief, ...withinSize({ active, hints: brief.hints }) };
}

/** Claims of trusted origin only, as system channels may show them. */
export function cleanBriefLines(brief: Claims): readonly string[] {
  const clean = (claims: readonly SourcedClaim[]) => claims.filter((claim) => isCleanOrigin(claim.origin));
  const text = renderBrief(withinSize({ active: clean(brief.active), hints: clean(brief.hints) }));
  return text === '' ? [] : text.split('\n').filter((line) => line !== '');
}

/** In a goal, before what was asked last. */
export const LAST_ASKED = '; last asked: ';

/** For a new session, with the last `most` of what was done and found: memories tell it, and prompts recall more. */
export function inShort(lines: readonly string[], most: number): readonly string[] {
  const deeds = lines.filter((line) => /^- (?:Done|Found): /.test(line));
  const left = new Set(deeds.slice(0, Math.max(0, deeds.length - most)));
  return lines.flatMap((line) => (left.has(line) ? [] : line.split(LAST_ASKED).slice(0, 1)));
}

function withinSize(claims: Claims): Claims {
  let { active, hints } = claims;
  while (renderBrief({ active, hints }).length > BRIEF_CHARS) {
    const deed = active.findIndex(({ text }) => text.startsWith('Done: '));
    if (deed >= 0) active = active.toSpliced(deed, 1);
    else if (hints.length > 0) hints = hints.slice(0, -1);
    else active = active.slice(0, -1);
  }
  return { active, hints };
}
