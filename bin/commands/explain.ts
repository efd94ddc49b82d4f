import type { Command } from 'commander';
import { oneLine, printable } from '../../common/text.ts';
import { engineOf, lanesText } from '../../engine/api/index.ts';
import type { Receipt } from '../../proxy/index.ts';
import type { Context } from '../context.ts';

export function registerExplain(program: Command, context: Context): void {
  program
    .command('explain')
    .description('show what was dropped from and added to one request, and why')
    .argument('[request]', '`last`, or an unambiguous prefix of a request id', 'last')
    .option('--session <id>', 'with last: the last request of this session')
    .option('--list', 'list the newest requests, one line each')
    .option('--json', 'print one JSON document, with the edits that turn the body received into the one sent')
    .addHelpText('after', '\nExamples:\n  comet-cc explain last\n  comet-cc explain --list')
    .action(async (request: string, flags: { json?: boolean; list?: boolean; session?: string }) => {
      const engine = engineOf(context.paths);
      if (!flags.list) {
        const receipt = await engine.call('explain', { request, sessionId: flags.session });
        return context.term.print(flags, receipt, () => explained(receipt));
      }
      const receipts = await engine.call('receipts/list', {});
      if (receipts.length === 0 && !flags.json) return context.term.say('no requests yet');
      context.term.print(flags, receipts, () => receipts.map(listed));
    });
}

export function explained(receipt: Receipt): string[] {
  const { received, sent, economics } = receipt;
  const digest = ({ bytes, sha256 }: Receipt['sent']): string => `${bytes} bytes, sha256 ${sha256.slice(0, 16)}…`;
  return [
    `request   ${receipt.request_id} at ${receipt.at}`,
    `session   ${printable(receipt.session_id) || '(none named)'}, ${receipt.class}, epoch ${receipt.epoch ?? '-'}`,
    `received  ${digest(received)}`,
    `sent      ${digest(sent)}`,
    ...answerLines(receipt),
    `tokens    ${billedLine(economics)} (${economics.decision})`,
    ...economicsLines(economics),
    ...receipt.dropped.flatMap(({ from, to, messages, tokens, nodes }) => [
      `dropped   messages ${from} to ${to} (${messages}, about ${tokens} tokens); kept verbatim in:`,
      ...nodes.map((id) => `            ${id}`),
    ]),
    ...(receipt.thinking_stripped > 0 ? [`stripped  ${receipt.thinking_stripped} thinking blocks`] : []),
    ...receipt.added.flatMap(({ channel, position, reason, text, found = [] }) => [
      `added     ${channel} at ${position}: ${reason}`,
      ...printable(text)
        .split('\n')
        .map((line) => `            ${line}`),
      ...found.map(({ nodeId, score, lanes }) => `  found     ${nodeId} ${score.toFixed(3)}: ${lanesText(lanes)}`),
    ]),
  ];
}

function answerLines({ status, refusal }: Receipt): string[] {
  if (status === 0) return ['answer    none yet'];
  if (status < 400) return [];
  return [`answer    ${status}${refusal === '' ? '' : `: ${oneLine(refusal)}`}`];
}

function billedLine({ billed, received_tokens: received, sent_tokens: sent }: Receipt['economics']): string {
  return billed === null
    ? `about ${received} received, ${sent} sent`
    : `${received} as received, ${sent} as billed (${billed.cache_read} read from the cache, ${billed.cache_write_5m + billed.cache_write_1h} written)`;
}

function economicsLines(economics: Receipt['economics']): string[] {
  const { untouched, saved_usd: saved, saved_equivalents, conversation_saved_usd, trimming_off } = economics;
  if (untouched === null) return [];
  const money = (usd: number): string => `${usd < 0 ? '-' : ''}$${Math.abs(usd).toFixed(4)}`;
  const written = untouched.cache_write_5m + untouched.cache_write_1h;
  return [
    `untouched ${untouched.cache_read} read from the cache, ${written} written`,
    `saved     ${money(saved)}, ${Math.round(saved_equivalents)} tokens of uncached input; the conversation so far ${money(conversation_saved_usd)}`,
    ...(trimming_off === null ? [] : [`off       nothing new is trimmed or added: ${oneLine(trimming_off)}`]),
  ];
}

function listed(receipt: Receipt): string {
  const { request_id, at, status, received, sent, economics } = receipt;
  const kind = `${receipt.class} ${economics.decision}`.padEnd(22);
  return `${request_id}  ${at.slice(0, 19)}  ${String(status).padStart(3)}  ${kind}  ${received.bytes} to ${sent.bytes} bytes`;
}
