/**
 * Whether recall finds what was settled in coding sessions, and keeps silent where nothing was.
 *
 *   npm run bench:coding -- [--seeds 1,2,3] [--pages] [--json]
 *
 * For each seed a made-up history of many services (ports, flags, owners, commands, errors …), through the product's
 * own journal, nodes, index and recall. `found` is the share of questions for which a search has the node of the
 * answering turn among its first five; `recalled` the same of recall, which passes the gate, `shown` with the answer in
 * one of its lines; `clean` the share of those answers of whose lines one may stand in a system channel; `injected` is the share of questions without an answer for which something was recalled. Thresholds
 * were chosen on seed 1. With `--pages` each session begins by reading a page that speaks as the history does: what
 * differs is what taint and the detection of echoes cost.
 */
import { parseArgs } from 'node:util';
import { isCleanOrigin } from '../common/turn.ts';
import type { Memory } from '../memory/index.ts';
import { type Asked, createHistory, PROJECT_DIR } from './coding/history.ts';
import { withPages } from './coding/pages.ts';
import { spread } from './latency/stats.ts';
import { openProduct } from './recall/product.ts';

const FLUSH_MS = 300_000;
const SHOWN = 5;

interface Outcome {
  readonly seed: number;
  readonly turns: number;
  readonly answerable: number;
  readonly found: number;
  readonly recalled: number;
  readonly shown: number;
  readonly clean: number;
  readonly unanswerable: number;
  readonly injected: number;
  readonly injected_by: Readonly<Record<string, string>>;
  readonly missed: readonly string[];
  readonly junk: readonly string[];
  readonly latency_ms: { readonly p50: number; readonly p95: number };
}

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1,2,3' },
    pages: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const outcomes: Outcome[] = [];
for (const seed of values.seeds.split(',').map(Number)) outcomes.push(await measure(seed));
if (values.json) process.stdout.write(`${JSON.stringify({ outcomes }, null, 2)}\n`);
else for (const outcome of outcomes) print(outcome);

async function measure(seed: number): Promise<Outcome> {
  const { turns: told, asked } = createHistory(seed);
  const turns = values.pages ? withPages(told, createHistory(seed + 100).turns) : told;
  const product = await openProduct();
  try {
    product.memory.capture.captureTurns(turns);
    if (!(await product.memory.maintenance.flush(FLUSH_MS))) throw new Error('memory did not come to rest');
    const times: number[] = [];
    const results = [];
    for (const each of asked) {
      const { ms, ...result } = await ask(product.memory, each);
      results.push(result);
      times.push(ms);
    }
    const right = results.filter(({ answer }) => answer !== null);
    const wrong = results.filter(({ answer }) => answer === null);
    const loud = wrong.filter(({ lines }) => lines.length > 0);
    const kinds = [...new Set(wrong.map(({ topic }) => topic))];
    const { p50, p95 } = spread(times);
    return {
      seed,
      turns: turns.length,
      answerable: right.length,
      found: share(right.filter(({ found }) => found).length, right.length),
      recalled: share(right.filter(({ recalled }) => recalled).length, right.length),
      shown: share(right.filter(({ shown }) => shown).length, right.length),
      clean: share(right.filter(({ clean }) => clean).length, right.filter(({ recalled }) => recalled).length),
      unanswerable: wrong.length,
      injected: share(loud.length, wrong.length),
      injected_by: Object.fromEntries(
        kinds.map((kind) => {
          const of = wrong.filter(({ topic }) => topic === kind);
          return [kind, `${of.filter(({ lines }) => lines.length > 0).length} of ${of.length}`];
        }),
      ),
      missed: right.filter(({ found, recalled }) => !found || !recalled).map(({ question }) => question),
      junk: loud.map(({ question, lines }) => `${question} ${lines[0]}`),
      latency_ms: { p50: Number(p50.toFixed(1)), p95: Number(p95.toFixed(1)) },
    };
  } finally {
    await product.close();
  }
}

async function ask(memory: Memory, asked: Asked) {
  const request = {
    sessionId: 'tomorrow',
    projectDir: PROJECT_DIR,
    prompt: asked.question,
    recent: [],
    visibleTurns: new Set<string>(),
    shown: new Set<string>(),
  };
  const start = performance.now();
  const hits = (await memory.recall.recall(request, new AbortController().signal)).slice(0, SHOWN);
  const ms = performance.now() - start;
  const lines = hits.map(({ line }) => line.text);
  const { answer } = asked;
  const holds = ({ node }: { readonly node: { readonly turns: readonly string[] } }): boolean =>
    answer !== null && node.turns.includes(answer.turnId);
  const searched =
    answer === null ? [] : await memory.recall.search(asked.question, { top: SHOWN, projectDir: PROJECT_DIR });
  return {
    ...asked,
    ms,
    lines,
    found: searched.some(holds),
    recalled: hits.some(holds),
    clean: hits.some((hit) => holds(hit) && isCleanOrigin(hit.line.origin)),
    shown: answer !== null && lines.some((line) => line.includes(answer.value)),
  };
}

function share(part: number, of: number): number {
  return Number((part / Math.max(1, of)).toFixed(4));
}

function print(outcome: Outcome): void {
  const percent = (value: number): string => `${(value * 100).toFixed(1)} %`;
  const { seed, turns, answerable, found, recalled, shown, clean, unanswerable, injected, injected_by, latency_ms } =
    outcome;
  process.stdout.write(
    `seed ${seed}, ${turns} turns: found ${percent(found)}, recalled ${percent(recalled)}, answer shown ` +
      `${percent(shown)} of ${answerable}, of clean origin ${percent(clean)}; ` +
      `injected without an answer ${percent(injected)} of ${unanswerable} (${Object.entries(injected_by)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(', ')}); one recall ${latency_ms.p50} ms, 95 % below ${latency_ms.p95} ms\n`,
  );
}
