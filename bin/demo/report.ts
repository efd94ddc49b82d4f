import { oneLine } from '../../common/text.ts';
import { count } from '../terminal/format.ts';
import { table, wrapped } from '../terminal/table.ts';
import type { Term } from '../terminal/term.ts';
import type { Answered, Outcome } from './outcome.ts';
import type { Channel } from './replies.ts';
import type { Played } from './run-story.ts';

export interface Progress {
  say(what: string): void;
  turn(played: Played): void;
  /** Leaves no line behind. */
  end(): void;
}

const EVERY = 10;
const WIDTH = 80;
const BAR = 24;

/** One line that renews itself on a terminal, else a line every ten turns; nothing beside a JSON document. */
export function createProgress(term: Term, json: boolean): Progress {
  const live = process.stderr.isTTY === true;
  if (json) return { say: () => {}, turn: () => {}, end: () => {} };
  return {
    say: (what) => term.progress(`comet-cc demo: ${what}…`),
    turn: ({ turns, of, session }) => {
      const done = Math.round((BAR * turns) / of);
      if (live)
        term.progress(`[${'='.repeat(done)}${' '.repeat(BAR - done)}] turn ${turns} of ${of}, session ${session}`);
      else if (turns % EVERY === 0) term.say(`comet-cc demo: turn ${turns} of ${of}`);
    },
    end: () => term.progress(''),
  };
}

const CHANNELS: Readonly<Record<Channel, string>> = {
  recalled: 'recalled for this prompt',
  preamble: 'in the summary of the trimmed turns',
  'system block': 'in the memory block of the system prompt',
  conversation: 'still in the conversation itself',
};

export function printOutcome(outcome: Outcome, term: Term): void {
  const width = Math.min(term.width, WIDTH);
  const lines = [
    ...opening(outcome, width),
    '',
    ...figures(outcome, width, term),
    '',
    term.paint('bold', 'Asked late, told early'),
    ...outcome.questions.flatMap((answered, at) => ['', ...answeredLines(answered, at + 1, width, term)]),
    '',
    ...closing(outcome, width),
  ];
  for (const line of lines) term.out(line);
}

function opening({ turns, sessions, requests, duration_ms }: Outcome, width: number): string[] {
  return wrapped(
    `A scripted coding conversation, ${turns} turns in ${sessions} sessions (${requests} requests), a night between them, played in ${(duration_ms / 1000).toFixed(1)} s through guard, engine, TLS and store, against a mock API that validates and bills like the real one.`,
    width,
  );
}

function figures(outcome: Outcome, width: number, { paint }: Term): string[] {
  const { tokens, cache, cost } = outcome;
  const rows: readonly (readonly [string, number, number, string])[] = [
    ['requests', outcome.requests, outcome.requests, ''],
    ['refused', 0, outcome.refused, ''],
    ['prompt tokens', tokens.received, tokens.sent, share(tokens.saved, tokens.received)],
    ['  read from the cache', cache.direct.read, cache.read, ''],
    ['  written to the cache', cache.direct.written, cache.written, ''],
    ['cost, in input tokens', cost.direct, cost.through, share(cost.saved, cost.direct)],
  ];
  const [head = '', ...body] = table(
    [
      { title: '', cells: rows.map(([name]) => name) },
      { title: 'direct', cells: rows.map(([, direct]) => count(direct)), right: true },
      { title: 'with comet-cc', cells: rows.map(([, , through]) => count(through)), right: true },
      { title: '', cells: rows.map(([, , , saved]) => saved) },
    ],
    width,
  );
  const made = `${count(outcome.nodes)} memory nodes; ${outcome.cuts} trims of older turns (${outcome.epochs} epochs).`;
  const { receipts, restored, ledger } = outcome;
  const proved = `${receipts.true} of ${receipts.checked} receipts turn what Claude Code sent into what went upstream; ${restored.equal} of ${restored.messages} messages come back byte for byte. The ledger reckons ${count(ledger.received)} tokens received and ${count(ledger.sent)} sent, $${ledger.saved_usd.toFixed(2)} saved.`;
  return [paint('dim', head), ...body, '', ...wrapped(made, width), ...wrapped(proved, width)];
}

function answeredLines(answered: Answered, number: number, width: number, { paint }: Term): string[] {
  const indent = '   ';
  const inner = (text: string): string[] => wrapped(text, width - indent.length).map((line) => indent + line);
  const [first = '', ...more] = inner(answered.question);
  const title = [`${number}. ${first.trimStart()}`, ...more].map((line) => paint('bold', line));
  if (answered.line === null || answered.channel === null)
    return [...title, ...inner(answered.answer).map((line) => paint('red', line))];
  const sent = answered.in_client_request ? 'trimmed from what Claude Code sent' : 'not in what Claude Code sent';
  return [
    ...title,
    ...inner(oneLine(answered.answer)),
    ...inner(`${CHANNELS[answered.channel]}; ${sent}:`),
    ...inner(oneLine(answered.line)).map((line) => paint('green', line)),
    ...(answered.node_id === null
      ? []
      : [`${indent}${paint('dim', `in full: comet-cc memory show ${answered.node_id} --depth 2`)}`]),
  ];
}

function closing({ home }: Outcome, width: number): string[] {
  const cost = wrapped(
    'Cost counts a cached token as the model is priced: 0.05 when read, 2 when written for an hour. Memory was written without a model here; with Claude Code, claude -p writes it on your own plan.',
    width,
  );
  if (home === null) {
    return [
      ...cost,
      '',
      ...wrapped(
        'The memories are gone with their temporary home; to look around in them: comet-cc demo --keep',
        width,
      ),
    ];
  }
  const keep = [`Kept: ${home} (the daemon is stopped). Look inside with:`];
  const starting = `  export COMET_CC_HOME=${home} COMET_CC_LLM=local`;
  return [...cost, '', ...keep, starting, '  comet-cc start --port 0 && comet-cc memory ls', '  comet-cc stop'];
}

function share(saved: number, of: number): string {
  if (of === 0) return '';
  const percent = Math.round((100 * Math.abs(saved)) / of);
  return saved >= 0 ? `${percent} % less` : `${percent} % more`;
}
