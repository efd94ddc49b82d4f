import { isCleanOrigin, type Origin } from '../../common/turn.ts';
import { isBundled } from '../consolidation/merge-nodes.ts';
import { fileMarks } from '../model/file-link.ts';
import type { Fact, MemoryNode } from '../model/node.ts';
import { isClosed, isPast } from '../model/validity.ts';
import { contentTags } from '../text/system-tags.ts';
import { isQuarantined } from './quarantine.ts';

const LEVELS = ['HIGH', 'MED', 'LOW'];
const DECISION = 'FLAG:DECISION';
/** A name in the middle of a sentence, of at least three letters. */
const NAME = /(?<=\p{Ll},? )\p{Lu}\p{Ll}{2,}(?: \p{Lu}\p{Ll}{2,})?(?!\p{L})/gu;
const DATES =
  /^(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|Jan|Feb|March|April|May|June|July|Aug|Sept|Oct|Nov|Dec)/;
/** A name that one memory gives says little of a project. */
const TWICE = 2;

export interface Counted {
  readonly name: string;
  readonly nodes: number;
}

export interface KnownFile extends Counted {
  /** The newest memory about it. */
  readonly newest: MemoryNode;
}

export interface KnownFact extends Pick<Fact, 'concept' | 'value' | 'polarity'> {
  readonly origin: Origin;
  readonly node_id: string;
}

/** What all memories of a project say together. */
export interface ProjectTally {
  readonly nodes: number;
  /** When the oldest and the newest of it were said; null where nothing is known. */
  readonly since: string | null;
  readonly until: string | null;
  /** Pinned first, then by importance, then the newest. */
  readonly weightiest: readonly MemoryNode[];
  /** Newest first. */
  readonly decisions: readonly MemoryNode[];
  /** Most used first, as are names and files. */
  readonly tags: readonly Counted[];
  readonly names: readonly Counted[];
  readonly files: readonly KnownFile[];
  /** Each statement once, the newest first. */
  readonly facts: readonly KnownFact[];
}

/** @param newestFirst  memories of one project */
export function tallied(newestFirst: readonly MemoryNode[]): ProjectTally {
  const open = newestFirst.filter((node) => !isQuarantined(node));
  const valid = open.filter((node) => !isPast(node));
  const shown = valid.filter((node) => !isBundled(node));
  const names = counted(valid.filter(({ origin }) => isCleanOrigin(origin)).map(namesOf));
  return {
    nodes: newestFirst.length,
    since: outermost(newestFirst, (a, b) => a < b),
    until: outermost(newestFirst, (a, b) => a > b),
    weightiest: [-1, 0, 1, 2].flatMap((level) => shown.filter((node) => weight(node) === level)),
    decisions: shown.filter(({ topic_tags }) => topic_tags.some((tag) => tag.toUpperCase() === DECISION)),
    tags: counted(open.map(({ topic_tags }) => contentTags(topic_tags))),
    names: names.filter(({ nodes }) => nodes >= TWICE),
    files: filesOf(valid),
    facts: factsOf(valid),
  };
}

function weight(node: MemoryNode): number {
  return node.pinned_from === undefined ? LEVELS.indexOf(node.importance) : -1;
}

function namesOf({ summary }: MemoryNode): string[] {
  const found = [...summary.matchAll(NAME)].map(([name]) => name);
  return [...new Set(found)].filter((name) => !DATES.test(name));
}

function filesOf(nodes: readonly MemoryNode[]): KnownFile[] {
  const about = nodes.map((node) => ({ node, paths: pathsOf(node) }));
  const newest = new Map<string, MemoryNode>();
  for (const { node, paths } of about) for (const path of paths) newest.set(path, newest.get(path) ?? node);
  return counted(about.map(({ paths }) => paths)).map((file) => ({
    ...file,
    newest: newest.get(file.name) as MemoryNode,
  }));
}

function pathsOf({ source_links }: MemoryNode): string[] {
  return source_links.length === 0 ? [] : fileMarks(source_links).map(({ path }) => path);
}

function outermost(nodes: readonly MemoryNode[], isBeyond: (a: string, b: string) => boolean): string | null {
  let found: string | null = null;
  for (const { valid_from: at } of nodes) if (found === null || isBeyond(at, found)) found = at;
  return found;
}

function factsOf(nodes: readonly MemoryNode[]): KnownFact[] {
  const found = new Map<string, KnownFact>();
  for (const { node_id, origin, facts } of nodes) {
    for (const fact of facts) {
      const { concept, value, polarity } = fact;
      const key = `${polarity}\0${concept}\0${value}`;
      if (!isClosed(fact) && !found.has(key)) found.set(key, { concept, value, polarity, origin, node_id });
    }
  }
  return [...found.values()];
}

function counted(lists: readonly (readonly string[])[]): Counted[] {
  const counts = new Map<string, number>();
  for (const list of lists) for (const name of list) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .map(([name, nodes]) => ({ name, nodes }))
    .sort((a, b) => b.nodes - a.nodes || (a.name < b.name ? -1 : 1));
}
