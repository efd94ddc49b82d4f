import { hashOf } from '../index/text-ids.ts';
import { LEAST_SHARED, type Stated } from './revision-cue.ts';

/**
 * What stays in memory of a node's statements: their words in two bytes each, by hash, in order. A string, since an
 * array of so few numbers takes several times as much.
 */
export type Marks = string;

/** The word says what a revising statement is about. */
const SUBJECT = 1;
/** The word names what was so before. */
const FORMER = 2;
const ROLES = SUBJECT | FORMER;
const HASH = 0xffff - ROLES;

export function marksOf(statements: readonly Stated[]): Marks {
  const roles = new Map<string, number>();
  const add = (words: Iterable<string>, role: number): void => {
    for (const word of words) roles.set(word, (roles.get(word) ?? 0) | role);
  };
  for (const { tokens, cue, formers } of statements) {
    add(tokens, 0);
    if (cue === null) continue;
    add(cue.topics, SUBJECT);
    for (const former of formers) add(former.tokens, FORMER);
  }
  const marks = [...roles].map(([word, role]) => (hashOf(word) & HASH) | role);
  return String.fromCharCode(...Uint16Array.from(marks).sort());
}

/**
 * False only where no statement of `next` revises one of `former`; both need not be taken apart for it. Words of one hash
 * are counted each, so that whatever `revisesStatement` finds is found here.
 */
export function mayRevise(next: Marks, former: Marks): boolean {
  let shared = 0;
  for (let at = 0, other = 0; at < next.length && other < former.length; ) {
    const mark = next.charCodeAt(at);
    const apart = (mark & HASH) - (former.charCodeAt(other) & HASH);
    if (apart > 0) other += 1;
    else at += 1;
    if (apart !== 0) continue;
    if ((mark & FORMER) !== 0) return true;
    if ((mark & SUBJECT) !== 0) shared += 1;
    if (shared === LEAST_SHARED) return true;
  }
  return false;
}
