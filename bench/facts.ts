import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { grouped } from '../common/map.ts';
import { homePaths } from '../common/paths.ts';
import { extractFacts } from '../memory/facts/extract-facts.ts';
import { DEFAULT_ONTOLOGY } from '../memory/facts/index.ts';
import { extractByRules } from '../memory/facts/rules.ts';
import { saidIn } from '../memory/facts.ts';
import { readTurn } from '../memory/ingest/turn-trust.ts';
import { openJournal } from '../memory/storage/fs/turn-log.ts';
import { BENCH, DATA } from './paths.ts';
import { withCorpus } from './real/corpus.ts';
import { importCorpus, openRealMemory } from './real/product.ts';

/** A reader's verdicts: by the beginning of the digest of concept, value and evidence, whether the fact is right. */
const LABELS = path.join(BENCH, 'facts/labels.json');

interface Row {
  readonly hash: string;
  readonly concept: string;
  readonly value: string;
  readonly evidence: string;
  /** Of the sessions by id; the rules were written on the first. */
  readonly half: 1 | 2;
}

/** What the rules find in real sessions, and how much of it a reader found right. `--show` prints the facts. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      data: { type: 'string', default: DATA },
      show: { type: 'boolean', default: false },
    },
  });
  const labels = JSON.parse(await readFile(LABELS, 'utf8')) as Readonly<Record<string, boolean>>;
  const judged = (rows: readonly Row[]) => {
    const read = rows.filter(({ hash }) => labels[hash] !== undefined).length;
    const right = rows.filter(({ hash }) => labels[hash]).length;
    const distinct = new Set(rows.map(({ concept, value }) => `${concept}: ${value.toLowerCase()}`)).size;
    return { facts: rows.length, distinct, read, right, share: read === 0 ? null : Number((right / read).toFixed(3)) };
  };
  await withCorpus(values.data, async (corpus, home) => {
    const memory = await openRealMemory(home);
    await importCorpus(memory, home);
    await memory.maintenance.close();
    const { rows, turns } = await factsIn(home);
    const unique = [...new Map(rows.map((row) => [`${row.half} ${row.hash}`, row])).values()];
    if (values.show) {
      for (const { hash, concept, value, evidence } of unique)
        console.log(`${hash} ${labels[hash] ?? '?'}\n  ${concept}: ${value}\n  ${evidence}`);
    }
    const byConcept = grouped(unique, ({ concept }) => concept);
    const result = {
      sessions: corpus.sessions,
      turns,
      first_half: judged(unique.filter(({ half }) => half === 1)),
      second_half: judged(unique.filter(({ half }) => half === 2)),
      by_concept: Object.fromEntries([...byConcept].map(([name, own]) => [name, own.length])),
    };
    console.log(JSON.stringify(result, null, 2));
  });
}

async function factsIn(home: string): Promise<{ rows: Row[]; turns: number }> {
  const dir = homePaths(path.join(home, '.comet-cc')).journalDir;
  const journal = await openJournal({ dir, report: () => undefined });
  const rows: Row[] = [];
  let turns = 0;
  const sessions = [...(await journal.sessions())].sort();
  for (const [at, sessionId] of sessions.entries()) {
    for (const stored of await journal.read(sessionId)) {
      turns += 1;
      const turn = saidIn(readTurn(stored));
      const { facts } = extractFacts({ ontology: DEFAULT_ONTOLOGY, turn, candidates: extractByRules(turn) });
      for (const { concept, value, evidence, polarity } of facts) {
        const text = [concept, polarity, value, evidence].join('\n');
        const hash = createHash('sha256').update(text).digest('hex').slice(0, 12);
        const half = at < Math.floor(sessions.length / 2) ? 1 : 2;
        rows.push({ hash, half, concept: polarity === 'negated' ? `not ${concept}` : concept, value, evidence });
      }
    }
  }
  await journal.close();
  return { rows, turns };
}

await main();
