/**
 * From where on a dream merges two memories, and puts several under one.
 *
 *   npm run bench:dream -- [--data FILE] [--embedder static|hash|words] [--json]
 *
 * Merges: things settled about made-up services, said again, said in other words, and settled otherwise. A merge is
 * right where both say the same of the same. Counted twice: what is put before a model, and what rules alone merge.
 * Groups: nodes whose topic is known, as for `bench:links`; a pair inside a group is right where both have one topic.
 * The first corpora fit, the others are held out.
 */
import { parseArgs } from 'node:util';
import { createHashEmbedder } from '../memory/adapters/hash-encoder.ts';
import { createStaticEmbedder } from '../memory/adapters/static-encoder.ts';
import { clustersOf, type Near } from '../memory/core/clusters.ts';
import { isRepetition } from '../memory/core/condense.ts';
import { dreamRule } from '../memory/core/dream-rule.ts';
import { linkFit, linkStrength } from '../memory/core/links.ts';
import { chooseMerges } from '../memory/core/merge-choice.ts';
import type { MemoryNode } from '../memory/core/node.ts';
import { restated } from './dream/restated.ts';
import { type Corpus, days, services, story, talks } from './links/corpora.ts';
import { type Kin, kinIn } from './links/kin.ts';

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    embedder: { type: 'string', default: 'static' },
    json: { type: 'boolean', default: false },
  },
});
const embedder = values.embedder === 'hash' ? createHashEmbedder() : createStaticEmbedder();
const rule = { ...dreamRule(embedder.id), sparesStandIns: false };
const fit = linkFit(values.embedder === 'words' ? '' : embedder.id, false);
const dialogues = values.data === undefined ? [] : talks(values.data);
const steps = (from: number, to: number, by: number): number[] =>
  Array.from({ length: Math.round((to - from) / by) + 1 }, (_, at) => Number((from + at * by).toFixed(3)));

const merges = [];
for (const [name, seeds] of [
  ['fit', [1]],
  ['held out', [2, 3]],
] as const) {
  const kin = await Promise.all(seeds.map((seed) => kinIn(restated(seed), embedder)));
  for (const same of [0, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])
    for (const words of [0.4, 0.5, 0.6, 0.7, 0.8]) merges.push({ name, same, words, ...mergesOf(kin, same, words) });
}
const groups = [];
const sets: readonly (readonly [string, readonly Corpus[]])[] = [
  ['fit: days', [days([1, 2, 3, 4])]],
  ['fit: services', [services(1)]],
  ['fit: dialogues', dialogues.slice(0, 3)],
  ['held out: days', [days([5, 6, 7, 8, 9, 10])]],
  ['held out: demo story', [story()]],
  ['held out: dialogues', dialogues.slice(3)],
];
for (const [name, corpora] of sets) {
  if (corpora.length === 0) continue;
  const kin = await Promise.all(corpora.map((corpus) => kinIn(corpus, embedder)));
  for (const scale of ['similarity', 'strength'] as const)
    for (const least of scale === 'similarity'
      ? steps(0.4, 0.8, 0.05)
      : values.embedder === 'words'
        ? steps(0.2, 0.7, 0.05)
        : steps(0.9, 1.5, 0.05))
      for (const density of [0, 0.5])
        groups.push({ name, scale, least, density, ...groupsOf(kin, scale, least, density) });
}
for (const each of [...merges, ...groups]) process.stdout.write(`${JSON.stringify(each)}\n`);
await embedder.close();

function mergesOf(kin: readonly Kin[], same: number, words: number) {
  const sum = { made: 0, right: 0, alone: 0, aloneRight: 0, again: 0, wanted: 0 };
  for (const { nodes, topics, pairs } of kin) {
    const near = pairs.map(
      ({ from, to, similarity }): Near => ({ left: idOf(nodes, from), right: idOf(nodes, to), likeness: similarity }),
    );
    const byId = new Map(nodes.map((node) => [node.node_id, node]));
    const topicOf = new Map(nodes.map((node, at) => [node.node_id, topics[at] as string]));
    const saysOf = (id: string): string => (topicOf.get(id) as string).replace(/ \w+$/, '');
    sum.wanted += new Set([...topicOf.keys()].map(saysOf)).size;
    for (const { keeper, losers } of chooseMerges(byId, near, { ...rule, words })) {
      for (const loser of losers) {
        const isRight = saysOf(keeper) === saysOf(loser);
        const isAlone = isRepetition([keeper, loser].map((id) => byId.get(id) as MemoryNode));
        sum.made += 1;
        sum.right += Number(isRight);
        sum.alone += Number(isAlone);
        sum.aloneRight += Number(isAlone && isRight);
      }
    }
  }
  return sum;
}

function groupsOf(kin: readonly Kin[], scale: 'similarity' | 'strength', least: number, density: number) {
  const sum = { groups: 0, pure: 0, pairs: 0, right: 0, grouped: 0, nodes: 0 };
  for (const { nodes, topics, pairs } of kin) {
    sum.nodes += nodes.length;
    const place = new Map(nodes.map((node, at) => [node.node_id, at]));
    const near = pairs
      .map(
        (pair): Near => ({
          left: idOf(nodes, pair.from),
          right: idOf(nodes, pair.to),
          likeness: scale === 'similarity' ? pair.similarity : linkStrength(pair, fit),
        }),
      )
      .filter(({ likeness }) => likeness >= least);
    const keys = new Set(near.map(({ left, right }) => [left, right].sort().join()));
    for (const members of clustersOf(near, rule.cluster)) {
      const inside = members.flatMap((one, at) => members.slice(at + 1).map((other) => [one, other] as const));
      if (inside.filter((pair) => keys.has([...pair].sort().join())).length / inside.length < density) continue;
      const right = inside.filter(
        ([one, other]) => topics[place.get(one) as number] === topics[place.get(other) as number],
      ).length;
      sum.groups += 1;
      sum.pure += Number(right === inside.length);
      sum.pairs += inside.length;
      sum.right += right;
      sum.grouped += members.length;
    }
  }
  return {
    groups: sum.groups,
    pure: sum.pure,
    precision: (sum.right / Math.max(1, sum.pairs)).toFixed(2),
    grouped: (sum.grouped / sum.nodes).toFixed(2),
  };
}

function idOf(nodes: readonly MemoryNode[], at: number): string {
  return (nodes[at] as MemoryNode).node_id;
}
