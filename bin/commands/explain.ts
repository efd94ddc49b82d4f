import type { Command } from 'commander';
import type { Receipt } from '../../proxy/wire/receipt.ts';
import type { Context } from '../context.ts';
import { engineOf } from '../engine.ts';
import { printable } from '../format.ts';

export function registerExplain(program: Command, context: Context): void {
  program
    .command('explain')
    .description('the receipt of one rewritten request: what was dropped, what was added, and why')
    .argument('[request]', '`last`, or any unambiguous start of a request id', 'last')
    .option('--json', 'print one JSON document, with the edits that turn the body received into the one sent')
    .addHelpText('after', '\nExample:\n  comet-cc explain last')
    .action(async (request: string, flags: { json?: boolean }) => {
      const receipt = await engineOf(context.paths).call('explain', { request });
      if (flags.json) context.term.json(receipt);
      else for (const line of explained(receipt)) context.term.out(line);
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
    `tokens    about ${economics.received_tokens} received, ${economics.sent_tokens} sent (${economics.decision})`,
    ...receipt.dropped.flatMap(({ from, to, messages, tokens, nodes }) => [
      `dropped   messages ${from} to ${to} (${messages}, about ${tokens} tokens); kept word for word in:`,
      ...nodes.map((id) => `            ${id}`),
    ]),
    ...(receipt.thinking_stripped > 0 ? [`stripped  ${receipt.thinking_stripped} thinking blocks`] : []),
    ...receipt.added.flatMap(({ channel, position, reason, text }) => [
      `added     ${channel} at ${position}: ${reason}`,
      ...printable(text)
        .split('\n')
        .map((line) => `            ${line}`),
    ]),
  ];
}
