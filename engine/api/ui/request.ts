import { contentText } from '../render.ts';
import type { EngineServices } from '../service.ts';
import type { NamedReceipt } from '../summary.ts';
import { trimmed } from './conversation.ts';

const MAX_CHARS = 200_000;
/** Receipts hold no byte of what Claude Code sent. */
const NOT_KEPT = [
  'what was left out is rebuilt from the stored turns, with secrets redacted',
  'the system prompt, tools and messages that stayed are not kept',
  'old thinking blocks are not kept',
];

/** A place where the sent request differs from the received one. */
interface Change {
  readonly at: string;
  readonly removed: string;
  readonly added: string;
  /** Of `removed` before it was shortened. */
  readonly bytes: number;
}

/** A receipt with its differences as texts, in the order of the request. */
export async function requestView({ memory: { library } }: Pick<EngineServices, 'memory'>, receipt: NamedReceipt) {
  const messages = receipt.dropped.length === 0 ? [] : await library.readSession(receipt.session_id);
  const used = new Set<string>();
  const left: Change[] = receipt.dropped.map((range) => {
    const { lineOf } = trimmed(messages, { ...receipt, dropped: [range] });
    const removed = [...lineOf.keys()]
      .map(({ role, content }) => `${role}: ${contentText(content).join('\n')}`)
      .join('\n\n');
    const own = receipt.added.filter(
      ({ channel, nodes }) => channel === 'preamble' && nodes.join() === range.nodes.join(),
    );
    for (const { position } of own) used.add(position);
    const added = own.map(({ text }) => text).join('\n');
    const at = `messages ${range.from} to ${range.to}`;
    return { at, removed: removed.slice(0, MAX_CHARS), added, bytes: Buffer.byteLength(removed) };
  });
  const placed: Change[] = receipt.added
    .filter(({ channel, position }) => channel !== 'preamble' || !used.has(position))
    .map(({ position, text }) => ({ at: position.replace('.', ' '), removed: '', added: text, bytes: 0 }));
  return { ...receipt, changes: [...left, ...placed], not_kept: NOT_KEPT };
}
