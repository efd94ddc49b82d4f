import type { Command } from 'commander';
import { amount, clip, formatCount, localTime, oneLine, percentSaved, printable } from '../../common/text.ts';
import { lanesText, type NamedReceipt } from '../../engine/api/index.ts';
import { addCommand, type Context, pageLines } from '../context.ts';
import { shortId, withoutCodes } from '../terminal/format.ts';
import { table } from '../terminal/table.ts';

export function registerExplain(program: Command, context: Context): void {
  const description = 'show what was left out of and added to one request, and why';
  addCommand(program, 'explain', description, 'comet-cc explain last\ncomet-cc explain --list')
    .argument('[request]', '`last`, or an unambiguous prefix of a request id', 'last')
    .option('--session <id>', 'with last: the last request of this session; unambiguous prefix of its id')
    .option('--list', 'list the newest requests by their prompt, one line each')
    .option('--json', 'print one JSON document, with the edits that turn the body received into the one sent')
    .action(async (request: string, flags: { json?: boolean; list?: boolean; session?: string }) => {
      if (!flags.list) {
        const receipt = await context.engine.call('explain', { request, sessionId: flags.session });
        context.term.print(flags, receipt, () => explained(receipt, Date.now()));
        if (!flags.json) (await pageLines(context, 'session', receipt.session_id)).forEach(context.term.out);
        return;
      }
      const receipts = await context.engine.call('receipts/list', {});
      if (receipts.length === 0 && !flags.json) return context.term.say('no requests yet');
      context.term.print(flags, receipts, () => listed(receipts, context.term.width, Date.now()));
    });
}

const PROMPT_CHARS = 100;
const TITLE_CHARS = 60;
/** Below this prompts keep the room. */
const SESSIONS_FROM_WIDTH = 100;
const KINDS: Readonly<Record<string, string>> = { side: 'a side request', other: 'a request of its own' };

/** Why the request got what it got; the first one whose key begins the decision. */
const REASONS: readonly (readonly [string, string])[] = [
  ['facts', 'the facts were added that its type is subscribed to'],
  ['recall', 'memory was recalled for the prompt'],
  ['replay', 'the same as in the request before: nothing new was left out or added'],
  ['healing', 'what upstream no longer accepts was taken out'],
  ['cut in a tool loop', 'old tool rounds were left out: that costs less than to send them'],
  ['cut: cold', 'the prompt cache had expired, so a shorter context costs less at once'],
  ['cut: paid', 'the tokens left out save more than the new cache entry costs'],
  ['cut: pressure', "the context was close to the model's limit"],
  ['cut: target', 'the context was above trim.targetTokens'],
  ['cut', 'old messages were left out: that costs less than to send them'],
  ['epoch: first', 'the first request of the conversation'],
  ['epoch', 'the conversation changed, so its context was built again'],
];

export function explained(receipt: NamedReceipt, nowMs: number): string[] {
  const { received, sent, economics } = receipt;
  const reason = REASONS.find(([start]) => economics.decision.startsWith(start))?.[1] ?? oneLine(economics.decision);
  const prompt =
    receipt.prompt === '' ? (KINDS[receipt.class] ?? 'a request') : `"${clip(receipt.prompt, PROMPT_CHARS)}"`;
  return [
    `${printable(prompt)}, ${localTime(Date.parse(receipt.at), nowMs)}${sessionName(receipt)}`,
    headline(receipt),
    '',
    ...receipt.dropped.flatMap(({ from, to, tokens, nodes }) => [
      `left out  messages ${from} to ${to} (${amount(tokens)} tokens), kept verbatim in:`,
      ...nodes.map((id) => `            ${shortId(id)}`),
    ]),
    ...(receipt.thinking_stripped > 0
      ? [`left out  ${formatCount(receipt.thinking_stripped, 'old thinking block')}`]
      : []),
    ...receipt.added.flatMap(({ position, reason, text, found = [] }) => [
      `added     ${reason.replace(' of this epoch', '')}, ${getPlace(position)}:`,
      ...indented(withoutCodes(printable(text))),
      // What answers a question about the state of the work comes from no lane.
      ...found
        .filter(({ lanes }) => lanesText(lanes) !== '')
        .map(({ nodeId, score, lanes }) => `  found     ${shortId(nodeId)} ${score.toFixed(3)}: ${lanesText(lanes)}`),
    ]),
    ...sliceLines(receipt),
    `why       ${reason}`,
    ...answerLines(receipt),
    `tokens    ${billedLine(economics)}`,
    ...economicsLines(economics),
    `request   ${receipt.request_id.slice(0, 8)}: ${amount(received.bytes)} bytes received, ${amount(sent.bytes)} sent`,
  ];
}

function sliceLines({ facts }: NamedReceipt): string[] {
  if (facts === undefined) return [];
  const { agent, because, text } = facts;
  if (because === '') return [`facts     none: nothing subscribes ${printable(agent)}`];
  if (text === '')
    return [`facts     none yet of those that ${printable(agent)} is subscribed to (${printable(because)})`];
  return [
    `facts     those that ${printable(agent)} is subscribed to (${printable(because)}), given at its start:`,
    ...indented(text),
  ];
}

const indented = (text: string): string[] =>
  printable(text)
    .split('\n')
    .map((line) => `            ${line}`);

/** "in the system prompt", "in message 4", of `system.2` and `messages.4`. */
function getPlace(position: string): string {
  const [place, index = ''] = position.split('.');
  return place === 'system' ? 'in the system prompt' : `in message ${index}`;
}

function sessionName({ session_title, session_id }: NamedReceipt): string {
  const name = session_title === '' ? printable(session_id) : `"${clip(session_title, TITLE_CHARS)}"`;
  return name === '' ? '' : `, session ${printable(name)}`;
}

/** "This prompt: 43 old messages (17.5k tokens) left out, 5 memory lines in their place, 1 recalled; saved 27 %" */
export function headline({ dropped, added, economics, edits }: NamedReceipt): string {
  if (edits.length === 0) return 'This prompt: sent as it came, nothing left out or added';
  const messages = dropped.reduce((sum, one) => sum + one.messages, 0);
  const tokens = dropped.reduce((sum, one) => sum + one.tokens, 0);
  const lines = added
    .filter(({ channel }) => channel === 'preamble')
    .flatMap(({ text }) => text.split('\n').filter((line) => line.startsWith('- '))).length;
  const recalled = added
    .filter(({ current }) => current === true)
    .reduce((sum, { channel, nodes, found = [] }) => sum + (channel === 'system' ? found : nodes).length, 0);
  const parts = [
    messages === 0 ? 'nothing left out' : `${formatCount(messages, 'old message')} (${amount(tokens)} tokens) left out`,
    ...(messages === 0 ? [] : [`${formatCount(lines, 'memory line')} in their place`]),
    `${recalled} recalled`,
  ];
  const percent = percentSaved(economics.received_tokens, economics.sent_tokens);
  return `This prompt: ${parts.join(', ')}; ${percent < 0 ? `memory added ${-percent} %` : `saved ${percent} %`}`;
}

function answerLines({ status, refusal }: NamedReceipt): string[] {
  if (status === 0) return ['answer    none yet'];
  if (status < 400) return [];
  return [`answer    ${status}${refusal === '' ? '' : `: ${oneLine(refusal)}`}`];
}

function billedLine({ billed, received_tokens: received, sent_tokens: sent }: NamedReceipt['economics']): string {
  const saved = `${amount(received)} without memory, ${amount(sent)} sent`;
  if (billed === null) return `about ${saved}`;
  const cacheWrites = billed.cache_write_5m + billed.cache_write_1h;
  return `${saved} (${amount(billed.cache_read)} read from the cache, ${amount(cacheWrites)} written)`;
}

function economicsLines(economics: NamedReceipt['economics']): string[] {
  const { untouched, saved_usd: saved, conversation_saved_usd: ever, trimming_off } = economics;
  if (untouched === null) return [];
  const money = (usd: number): string => `$${Math.abs(usd).toFixed(4)} ${usd < 0 ? 'more' : 'less'}`;
  return [
    `price     ${money(saved)} at API prices; the conversation so far ${money(ever)}`,
    ...(trimming_off === null ? [] : [`off       nothing new is left out or added: ${oneLine(trimming_off)}`]),
  ];
}

function listed(receipts: readonly NamedReceipt[], width: number, nowMs: number): string[] {
  const saved = ({ economics }: NamedReceipt) => `${percentSaved(economics.received_tokens, economics.sent_tokens)} %`;
  const sessions = new Set(receipts.map(({ session_id }) => session_id));
  const getTitle = ({ session_title }: NamedReceipt): string => oneLine(session_title);
  const session = { title: 'SESSION', cell: getTitle, stretch: true };
  return table(receipts, width, [
    { title: 'ID', cell: ({ request_id }) => request_id.slice(0, 8) },
    { title: 'WHEN', cell: ({ at }) => localTime(Date.parse(at), nowMs) },
    { title: 'STATUS', cell: ({ status }) => (status === 0 ? '-' : String(status)), right: true, spare: true },
    { title: 'TOKENS', cell: ({ economics }) => amount(economics.sent_tokens), right: true, spare: true },
    { title: 'SAVED', cell: saved, right: true, spare: true },
    { title: 'PROMPT', cell: ({ prompt, class: kind }) => prompt || `(${KINDS[kind] ?? 'not kept'})`, stretch: true },
    ...(sessions.size > 1 && width >= SESSIONS_FROM_WIDTH ? [session] : []),
  ]);
}
