import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { createRedactor } from '../redact/index.ts';
import { AUDITED_PLAIN } from './redact/forms.ts';
import { isLeft, type Planted, plantedSecrets } from './redact/secrets.ts';
import { sourceCode } from './redact/source-code.ts';

/**
 * What share of secrets in forms of other projects' rules is redacted, what is marked wrongly in ordinary code, and the
 * CPU time, beside a baseline. Names the missed rules of the tuned half only. `-- DIR` adds recorded sessions.
 */
const TARGETS = { foundPercent: 92, wrongPerMb: 1 };
const SEEDS = [1, 2, 3];
const MARK = /\[REDACTED:(?!private:)/g;

const markKey = Buffer.alloc(32, 7);
const redactor = createRedactor({ markKey });

const ways: Readonly<Record<string, (text: string) => Promise<string>>> = {
  'random strings alone': async (text) =>
    text.replace(/[\w+/=-]{20,}/g, (run) => (bits(run) > 4.5 ? '[REDACTED:' : run)),
  'our rules': redactor.inSlices.text,
};

const planted = SEEDS.flatMap((seed) => plantedSecrets(1, seed));
const code = sourceCode('.');
const sessions = process.argv[2] === undefined ? [] : sessionTexts(process.argv[2]);
const size = (texts: readonly string[]): number => texts.reduce((sum, { length }) => sum + length, 0) / 1e6;
console.log(
  `${planted.length} secrets of ${new Set(planted.map(({ rule }) => rule)).size} rules, seeds ${SEEDS.join(', ')}`,
);
console.log(`${size(code).toFixed(1)} MB of code, ${size(sessions).toFixed(1)} MB of sessions`);
console.log(`to reach: ${TARGETS.foundPercent} % found, at most ${TARGETS.wrongPerMb} wrong per MB`);
for (const [name, redact] of Object.entries(ways)) {
  const found: Planted[] = [];
  for (const each of planted) if (!isLeft(each.secret, await redact(each.text))) found.push(each);
  const share = (of: (each: Planted) => boolean): string =>
    `${((100 * found.filter(of).length) / planted.filter(of).length).toFixed(1)} %`;
  const half = (wanted: Planted['half']) => (each: Planted) => each.half === wanted;
  const before = process.cpuUsage();
  const wrong = await marksIn(code, redact);
  const { user, system } = process.cpuUsage(before);
  const line = [
    `all ${share((each) => each.half !== 'audited')}`,
    `tuned half ${share(half('tuned'))}`,
    `held-out half ${share(half('held-out'))}`,
    `audited ${share(half('audited'))}`,
    `${(wrong / size(code)).toFixed(2)} wrong per MB of code`,
    sessions.length === 0
      ? 'no sessions'
      : `${((await marksIn(sessions, redact)) / size(sessions)).toFixed(2)} of sessions`,
    `${await marksIn(AUDITED_PLAIN, redact)} of ${AUDITED_PLAIN.length} audited plain texts marked`,
    `${((user + system) / 1_000 / size(code)).toFixed(0)} ms per MB`,
  ];
  console.log(`${name}: ${line.join(', ')}`);
  if (name !== 'our rules') continue;
  const missed = planted.filter((each) => each.half !== 'held-out' && !found.includes(each)).map(({ rule }) => rule);
  console.log(`  missed of the tuned half and the audit: ${[...new Set(missed)].join(', ')}`);
}

async function marksIn(texts: readonly string[], redact: (text: string) => Promise<string>): Promise<number> {
  let marks = 0;
  for (const text of texts) marks += (await redact(text)).match(MARK)?.length ?? 0;
  return marks;
}

/** All strings of the messages of transcripts, apart from signatures. */
function sessionTexts(folder: string): string[] {
  if (!existsSync(folder)) throw new Error(`no folder ${folder}`);
  const texts: string[] = [];
  const collect = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value);
    else if (typeof value === 'object' && value !== null)
      for (const [key, inner] of Object.entries(value)) if (key !== 'signature') collect(inner);
  };
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.jsonl.gz'))) {
    for (const line of gunzipSync(readFileSync(path.join(folder, file)))
      .toString()
      .split('\n')) {
      try {
        collect((JSON.parse(line) as { message?: unknown }).message);
      } catch {
        // A line that its recorder broke.
      }
    }
  }
  return texts;
}

function bits(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  return -[...counts.values()].reduce((sum, count) => sum + (count / text.length) * Math.log2(count / text.length), 0);
}
