/**
 * From which strength on two memories are linked.
 *
 *   npm run bench:links -- [--data FILE] [--embedder static|hash|words] [--json]
 *
 * Nodes that the local adapter makes of turns whose topic is known, in an index of their own, asked as saving a node
 * asks. A link is right where both nodes have the same topic. For each threshold: the share of links that are right,
 * and how many of the right ones were found of those that ten links a node allow. The first corpora fit, the others
 * are held out.
 */

import { parseArgs } from 'node:util';
import { grouped } from '../common/map.ts';
import { chooseLinks, linkStrength, linkThresholds, MOST_LINKS } from '../memory/compaction/linker.ts';
import { createStaticEmbedder } from '../memory/embeddings/static-embedder.ts';
import { createHashEmbedder } from '../test/helpers/hash-embedder.ts';
import { type Corpus, days, services, story, talks } from './links/corpora.ts';
import { type Kin, kinIn } from './links/kin.ts';

const THRESHOLDS = Array.from({ length: 23 }, (_, at) => 0.1 + at * 0.05);

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    embedder: { type: 'string', default: 'static' },
    json: { type: 'boolean', default: false },
  },
});
const embedder = values.embedder === 'hash' ? createHashEmbedder() : createStaticEmbedder();
const dialogues = values.data === undefined ? [] : talks(values.data);
const sets: readonly (readonly [string, readonly Corpus[]])[] = [
  ['fit: services', [services(1)]],
  ['fit: days', [days([1, 2, 3, 4])]],
  ['fit: dialogues', dialogues.slice(0, 3)],
  ['held out: services', [services(2), services(3)]],
  ['held out: days', [days([5, 6, 7, 8, 9, 10])]],
  ['held out: demo story', [story()]],
  ['held out: dialogues', dialogues.slice(3)],
];
const used = linkThresholds(values.embedder === 'words' ? '' : embedder.id, false);
const report = [];
for (const [name, corpora] of sets) {
  if (corpora.length === 0) continue;
  const measured = await Promise.all(corpora.map((corpus) => kinIn(corpus, embedder)));
  const rows = [...THRESHOLDS, used.least].map((least) => ({ least: rounded(least), ...scored(measured, least) }));
  report.push({ name, nodes: measured.reduce((sum, { topics }) => sum + topics.length, 0), rows });
}
if (values.json) process.stdout.write(`${JSON.stringify({ embedder: embedder.id, used, report }, null, 2)}\n`);
else {
  process.stdout.write(`${embedder.id}: ${JSON.stringify(used)}\n`);
  for (const { name, nodes, rows } of report) {
    process.stdout.write(`${name}, ${nodes} nodes\n`);
    for (const row of rows) {
      process.stdout.write(
        `  from ${row.least.toFixed(2)}: precision ${row.precision.toFixed(3)}, recall ${row.recall.toFixed(3)}, ${row.links.toFixed(1)} links a node\n`,
      );
    }
  }
}
await embedder.close();

function scored(measured: readonly Kin[], least: number) {
  const sum = { made: 0, right: 0, wanted: 0, nodes: 0 };
  for (const { topics, pairs } of measured) {
    const byNode = grouped(pairs, ({ from }) => String(from));
    sum.nodes += topics.length;
    for (const [from, topic] of topics.entries()) {
      const candidates = (byNode.get(String(from)) ?? []).map((pair) => {
        return { nodeId: String(pair.to).padStart(6, '0'), strength: linkStrength(pair, used) };
      });
      const chosen = chooseLinks(candidates, least);
      sum.made += chosen.length;
      sum.right += chosen.filter((id) => topics[Number(id)] === topic).length;
      sum.wanted += Math.min(MOST_LINKS, topics.filter((other) => other === topic).length - 1);
    }
  }
  return {
    precision: rounded(sum.right / Math.max(1, sum.made)),
    recall: rounded(sum.right / Math.max(1, sum.wanted)),
    links: rounded(sum.made / Math.max(1, sum.nodes)),
  };
}

function rounded(value: number): number {
  return Number(value.toFixed(3));
}
