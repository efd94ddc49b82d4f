/**
 * From where on a dream merges two memories, and puts several under one.
 *
 *   npm run bench:dream -- [--data FILE] [--embedder static|hash|words] [--json]
 *
 * Merges: things settled about made-up services, said again, said in other words, and settled otherwise; a merge is
 * right where both say the same of the same. `asked` are those that are put before a model, `alone` those of them that
 * rules merge where there is none. Groups, without a model: nodes whose topic is known, as for `bench:links`; a pair
 * inside a group is right where both have one topic. The first corpora fit, the others are held out.
 */

import { parseArgs } from 'node:util';
import { linkStrength, linkThresholds } from '../memory/compaction/linker.ts';
import { chooseGroups, chooseMerges, consolidationThresholds } from '../memory/consolidation/merge-nodes.ts';
import { isRepetition, LEAST_DENSITY } from '../memory/consolidation/merge-writer.ts';
import { createStaticEmbedder } from '../memory/embeddings/static-embedder.ts';
import type { MemoryNode } from '../memory/model/node.ts';
import { createHashEmbedder } from '../test/helpers/hash-embedder.ts';
import { getStatement, restated } from './dream/restated.ts';
import { type Corpus, days, story, talks } from './links/corpora.ts';
import { type Kin, kinIn, type Pair } from './links/kin.ts';

const COSINES = [0, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];
const WORDS = [0.4, 0.5, 0.6, 0.7];
const ABOVE_LINKS = [0, 0.05, 0.1, 0.15, 0.2, 0.25];

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    embedder: { type: 'string', default: 'static' },
    json: { type: 'boolean', default: false },
  },
});
const embedder = values.embedder === 'hash' ? createHashEmbedder() : createStaticEmbedder();
const id = values.embedder === 'words' ? '' : embedder.id;
const [used, link] = [consolidationThresholds(id), linkThresholds(id, false)];
const rule = { ...used, isWaiting: () => false };
const dialogues = values.data === undefined ? [] : talks(values.data);
const told: readonly (readonly [string, readonly Corpus[]])[] = [
  ['fit', [restated(1)]],
  ['held out', [restated(2), restated(3)]],
];
const known: readonly (readonly [string, readonly Corpus[]])[] = [
  ['fit: days', [days([1, 2, 3, 4])]],
  ['held out: days', [days([5, 6, 7, 8, 9, 10])]],
  ['held out: demo story', [story()]],
  ...(dialogues.length === 0 ? [] : [['held out: dialogues', dialogues] as const]),
];
const merges = await Promise.all(
  told.map(async ([name, corpora]) => {
    const all = await Promise.all(corpora.map((corpus) => kinIn(corpus, embedder)));
    const rows = COSINES.flatMap((same) => WORDS.map((words) => ({ same, words, ...getMerges(all, same, words) })));
    return { name, rows };
  }),
);
const groups = await Promise.all(
  known.map(async ([name, corpora]) => {
    const all = await Promise.all(corpora.map((corpus) => kinIn(corpus, embedder)));
    const steps = ABOVE_LINKS.map((above) => rounded(link.least + above));
    return { name, rows: steps.map((least) => ({ least, ...getGroups(all, least) })) };
  }),
);
if (values.json) process.stdout.write(`${JSON.stringify({ embedder: id, used, merges, groups }, null, 2)}\n`);
else print();
await embedder.close();

function getMerges(all: readonly Kin[], same: number, words: number) {
  const sum = { asked: 0, asked_right: 0, alone: 0, alone_right: 0, repeated: 0 };
  for (const kin of all) {
    const byId = new Map(kin.nodes.map((node) => [node.node_id, node]));
    const says = new Map(kin.nodes.map(({ node_id }, at) => [node_id, getStatement(kin.topics[at] as string)]));
    sum.repeated += kin.nodes.length - new Set(says.values()).size;
    const near = nearIn(kin, ({ cosine }) => cosine, same);
    for (const { keeper, absorbed } of chooseMerges(byId, near, { ...rule, words })) {
      for (const loser of absorbed) {
        const isRight = says.get(keeper) === says.get(loser);
        const isAlone = isRepetition(byId.get(keeper) as MemoryNode, byId.get(loser) as MemoryNode, rule.repeated);
        sum.asked += 1;
        sum.asked_right += Number(isRight);
        sum.alone += Number(isAlone);
        sum.alone_right += Number(isAlone && isRight);
      }
    }
  }
  return sum;
}

function getGroups(all: readonly Kin[], least: number) {
  const sum = { groups: 0, pairs: 0, right: 0, grouped: 0, nodes: 0 };
  for (const kin of all) {
    const byId = new Map(kin.nodes.map((node) => [node.node_id, node]));
    const topics = new Map(kin.nodes.map(({ node_id }, at) => [node_id, kin.topics[at]]));
    const near = nearIn(kin, (pair) => linkStrength(pair, link), least);
    const sure = chooseGroups(byId, near, rule).filter(({ density }) => density >= LEAST_DENSITY);
    sum.nodes += kin.nodes.length;
    sum.groups += sure.length;
    for (const { members } of sure) {
      const inside = members.flatMap((one, at) => members.slice(at + 1).map((other) => [one, other] as const));
      sum.pairs += inside.length;
      sum.right += inside.filter(([one, other]) => topics.get(one) === topics.get(other)).length;
      sum.grouped += members.length;
    }
  }
  const { groups: made, pairs, right, grouped, nodes } = sum;
  return { groups: made, right: rounded(right / Math.max(1, pairs)), grouped: rounded(grouped / Math.max(1, nodes)) };
}

function nearIn({ nodes, pairs }: Kin, getLikeness: (pair: Pair) => number, least: number) {
  const getId = (at: number): string => (nodes[at] as MemoryNode).node_id;
  return pairs
    .map((pair) => ({ left: getId(pair.from), right: getId(pair.to), similarity: getLikeness(pair) }))
    .filter(({ similarity }) => similarity >= least);
}

function rounded(value: number): number {
  return Number(value.toFixed(3));
}

function print(): void {
  const line = (text: string): boolean => process.stdout.write(`${text}\n`);
  line(`${id || 'an embedder that is not known'}: ${JSON.stringify(used)}`);
  for (const { name, rows } of merges) {
    line(`merges, ${name}, ${rows[0]?.repeated} said before`);
    for (const { same, words, asked, asked_right, alone, alone_right } of rows) {
      line(
        `  cosine ${same}, words ${words}: asked ${asked_right} right of ${asked}, alone ${alone_right} of ${alone}`,
      );
    }
  }
  for (const { name, rows } of groups) {
    line(`groups, ${name}`);
    for (const { least, groups: made, right, grouped } of rows) {
      line(`  from ${least}: ${made} groups, ${right} of their pairs right, ${grouped} of the nodes in one`);
    }
  }
}
