import { createRedactor } from '../redact/index.ts';
import type { Span } from '../redact/patterns.ts';
import { createSecretlint } from '../redact/secretlint.ts';
import { plantedSecrets } from './redact/secrets.ts';
import { sourceCode } from './redact/source-code.ts';

/** What the redactor finds, what it takes for a secret in ordinary code, and how long it takes; beside its halves. */
const TARGETS = { foundPercent: 98, wrongPerMb: 1, msPerMb: 60 };
const SEEDS = [1, 2, 3];
const COUNT = 500;
const ROUNDS = 5;
const MARK = /\[REDACTED:/g;

const markKey = Buffer.alloc(32, 7);
const failed = (rule: string, error: unknown): void => console.error(`${rule} broke`, error);
const scanner = createSecretlint(failed);
const both = createRedactor({ markKey, onRuleError: failed });
const own = createRedactor({ markKey });

const ways: Readonly<Record<string, (text: string) => Promise<string>>> = {
  'secretlint alone': async (text) => cutOut(text, await scanner(text)),
  'our rules alone': async (text) => own.text(text),
  both: both.full.text,
};

const code = sourceCode('.');
const all = code.join('\n');
const megabyte = all.slice(0, 1_000_000);
console.log(`${COUNT} secrets in 20 formats, seeds ${SEEDS.join(', ')}; ${(all.length / 1e6).toFixed(1)} MB of code`);
console.log(
  `to reach: at least ${TARGETS.foundPercent} % found, at most ${TARGETS.wrongPerMb} wrong and ${TARGETS.msPerMb} ms per MB`,
);
for (const [name, redact] of Object.entries(ways)) {
  const missed = new Map<string, number>();
  let found = 0;
  for (const seed of SEEDS) {
    for (const { format, secret, text } of plantedSecrets(COUNT, seed)) {
      if ((await redact(text)).includes(secret)) missed.set(format, (missed.get(format) ?? 0) + 1);
      else found += 1;
    }
  }
  let wrong = 0;
  for (const text of code) wrong += (await redact(text)).match(MARK)?.length ?? 0;
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const started = performance.now();
    await redact(megabyte);
    times.push(performance.now() - started);
  }
  const median = times.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
  const recall = (100 * found) / (SEEDS.length * COUNT);
  const perMegabyte = (wrong / all.length) * 1e6;
  const line = [
    `${recall.toFixed(1)} % found`,
    `${perMegabyte.toFixed(2)} wrong per MB`,
    `${median.toFixed(0)} ms per MB`,
  ];
  const { foundPercent, wrongPerMb, msPerMb } = TARGETS;
  const holds = recall >= foundPercent && perMegabyte <= wrongPerMb && median <= msPerMb;
  console.log(
    `${name.padEnd(18)} ${line.join(', ')}${name === 'both' ? `: ${holds ? 'holds' : 'does NOT hold'}` : ''}`,
  );
  if (missed.size > 0)
    console.log(`  missed: ${[...missed].map(([format, count]) => `${format} ${count}`).join(', ')}`);
}

function cutOut(text: string, spans: readonly Span[]): string {
  return spans
    .toReversed()
    .reduce((left, { start, end }) => `${left.slice(0, start)}[REDACTED:${left.slice(end)}`, text);
}
