/**
 * Whether a cut loses what the work rests on: real sessions are replayed through the product's rewriter and memory, one
 * request for each prompt, with the rules in charge and trimming whenever possible. At the marked prompts it is counted
 * how many of the decisions, to-dos and values that a reader marked in absorbed turns are still in the request that
 * goes upstream, beside a rewriter that keeps as many of the newest turns as fit into the same tokens.
 *
 *   npm run bench:kept -- [--data DIR] [--mode aggressive|auto] [--join] [--json] [--misses]
 *
 * With --join each of these requests is the first one that the product and its empty memory see of the session, a day
 * after what was before. A mark is kept when its text is in the request's messages or system, compared by letters and digits only. Turns come
 * to memory as they do in use: out of the history of the next request. The tool rounds of a turn are in the history,
 * but no request is replayed for each of them, and thinking, which Claude Code's transcripts keep, is left out.
 */
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Config } from '../common/config.ts';
import { DATA } from './paths.ts';
import { type RealTurn, withCorpus } from './real/corpus.ts';
import { type MarkKind, readLabels } from './real/labels.ts';
import { openRealMemory } from './real/product.ts';
import { getLetters } from './real/quality.ts';
import { openReplay, type Replayed } from './real/replay.ts';

const KINDS: Readonly<Record<MarkKind, string>> = { d: 'decisions', t: 'to-dos', v: 'values' };
const CLIPPED = 160;

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: DATA },
    mode: { type: 'string', default: 'aggressive' },
    join: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    misses: { type: 'boolean', default: false },
  },
});
await withCorpus(values.data, ({ turns }, home) => run(turns, home));

interface Seen {
  readonly kind: MarkKind;
  readonly text: string;
  readonly kept: boolean;
  readonly naive: boolean;
}

interface CutSeen {
  readonly turns: number;
  readonly absorbed: number;
  readonly chars: number;
  readonly sent: number;
  readonly marks: readonly Seen[];
}

async function run(turns: readonly RealTurn[], home: string): Promise<void> {
  const labels = readLabels();
  const cuts: CutSeen[] = [];
  const sessions = [...new Set(labels.cuts.map((cut) => cut.sessionId))].map((sessionId) => ({
    own: turns.filter((turn) => turn.sessionId === sessionId),
    places: new Set(labels.cuts.filter((cut) => cut.sessionId === sessionId).map(({ at }) => at)),
  }));
  const seen = (own: readonly RealTurn[], at: number, sent: Replayed): void =>
    void cuts.push(judge(own.slice(0, at), sent, labels));
  if (values.join) {
    for (const { own, places } of sessions) {
      for (const at of places)
        await replayed(path.join(home, `${cuts.length}`), [{ own, from: at, places: new Set([at]) }], seen);
    }
  } else
    await replayed(
      home,
      sessions.map((session) => ({ ...session, from: 0 })),
      seen,
    );
  const report = getReport(cuts);
  if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else print(report);
  if (values.misses) printMisses(cuts);
}

interface Part {
  readonly own: readonly RealTurn[];
  /** The first prompt that is sent. */
  readonly from: number;
  readonly places: ReadonlySet<number>;
}

/** Sends the prompts of these sessions through one memory, and reports those at the places. */
async function replayed(
  home: string,
  parts: readonly Part[],
  onSent: (own: readonly RealTurn[], at: number, sent: Replayed) => void,
): Promise<void> {
  const memory = await openRealMemory(home);
  try {
    for (const { own, from, places } of parts) {
      const replay = await openReplay(memory, values.mode as Config['trim']['mode'], from > 0);
      for (let at = from; at <= Math.max(...places); at += 1) {
        const sent = await replay.send(own, at);
        if (places.has(at)) onSent(own, at, sent);
      }
    }
  } finally {
    await memory.maintenance.close();
  }
}

function judge(
  history: readonly RealTurn[],
  { body, received, texts }: Replayed,
  labels: ReturnType<typeof readLabels>,
): CutSeen {
  const sent = getLetters(body);
  // A quote of a turn is not the turn.
  const blocks = new Set(texts.map(getLetters));
  const absorbed = history.filter((turn) => !blocks.has(getLetters(turn.answers.at(-1) ?? turn.prompts.join('\n'))));
  const naive = newestWithin(history, body.length);
  const marks = absorbed.flatMap((turn) => labels.of(turn)?.marks ?? []);
  return {
    turns: history.length,
    absorbed: absorbed.length,
    chars: received.length,
    sent: body.length,
    marks: marks.map(({ kind, text }) => ({
      kind,
      text,
      kept: sent.includes(getLetters(text)),
      naive: naive.includes(getLetters(text)),
    })),
  };
}

/** The newest turns, whole, as many as fit. */
function newestWithin(history: readonly RealTurn[], chars: number): string {
  const kept: string[] = [];
  let left = chars;
  for (const turn of history.toReversed()) {
    const text = JSON.stringify(turn.messages);
    left -= text.length;
    if (left < 0) break;
    kept.unshift(turn.text);
  }
  return getLetters(kept.join('\n'));
}

function getReport(cuts: readonly CutSeen[]) {
  const sum = (value: (cut: CutSeen) => number): number => cuts.reduce((total, cut) => total + value(cut), 0);
  const marks = cuts.flatMap((cut) => cut.marks);
  const getRow = (own: readonly Seen[]) => ({
    marks: own.length,
    kept: share(own.filter(({ kept }) => kept).length, own.length),
    newest_turns: share(own.filter(({ naive }) => naive).length, own.length),
  });
  const byKind = Object.entries(KINDS).map(([kind, name]) => [
    name,
    getRow(marks.filter((mark) => mark.kind === kind)),
  ]);
  return {
    cuts: cuts.length,
    cuts_with_absorbed: cuts.filter(({ absorbed }) => absorbed > 0).length,
    turns: sum(({ turns }) => turns),
    absorbed: sum(({ absorbed }) => absorbed),
    sent_of_received: share(
      sum(({ sent }) => sent),
      sum(({ chars }) => chars),
    ),
    all: getRow(marks),
    by_kind: Object.fromEntries(byKind) as Record<string, ReturnType<typeof getRow>>,
  };
}

function share(part: number, of: number): number {
  return Math.round((part / Math.max(1, of)) * 1_000) / 1_000;
}

function print({
  cuts,
  cuts_with_absorbed,
  turns,
  absorbed,
  sent_of_received,
  all,
  by_kind,
}: ReturnType<typeof getReport>) {
  const lines = [
    `${cuts} cuts, ${cuts_with_absorbed} with absorbed turns; ${absorbed} of ${turns} turns absorbed, ${sent_of_received} of the text sent`,
    ...Object.entries({ 'all marks': all, ...by_kind }).map(
      ([name, row]) =>
        `${name} (${row.marks}) kept ${row.kept}; the newest turns in the same tokens ${row.newest_turns}`,
    ),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}

function printMisses(cuts: readonly CutSeen[]): void {
  const lost = cuts.flatMap(({ marks }) => marks.filter(({ kept }) => !kept));
  for (const { kind, text } of lost)
    process.stdout.write(`lost of ${KINDS[kind]}: ${text.replace(/\s+/g, ' ').slice(0, CLIPPED)}\n`);
}
