import { hashOf } from '../search/string-interner.ts';
import { LEAST_SHARED, type Stated } from './supersession-patterns.ts';

/**
 * What stays in memory of a node's statements: their words in two bytes each, by hash, in order. A string, since an
 * array of so few numbers takes several times as much.
 */
export type Gist = string;

/** The word says what a revising statement is about. */
const SUBJECT = 1;
/** The word names what was so before. */
const FORMER = 2;
const ROLES = SUBJECT | FORMER;
const HASH = 0xffff - ROLES;

export function gistOf(statements: readonly Stated[]): Gist {
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
  const words = Uint16Array.from(roles, ([word, role]) => (hashOf(word) & HASH) | role).sort();
  return Buffer.from(words.buffer).toString('utf16le');
}

/**
 * False only where no statement of `next` revises one of `former`; both need not be taken apart for it. Words of one hash
 * are counted each, so that whatever `revisesStatement` finds is found here.
 */
export function mayRevise(next: Gist, former: Gist): boolean {
  let shared = 0;
  for (let at = 0, other = 0; at < next.length && other < former.length; ) {
    const word = next.charCodeAt(at);
    const apart = (word & HASH) - (former.charCodeAt(other) & HASH);
    if (apart > 0) other += 1;
    else at += 1;
    if (apart !== 0) continue;
    if ((word & FORMER) !== 0) return true;
    if ((word & SUBJECT) !== 0) shared += 1;
    if (shared === LEAST_SHARED) return true;
  }
  return false;
}
