import { type Command, Option } from 'commander';
import { oneLine } from '../../../common/text.ts';
import {
  ago,
  type Depth,
  type EngineClient,
  engineOf,
  factText,
  messageLines,
  nodeLines,
  type Paint,
  sessionId,
  shownOrigin,
} from '../../../engine/api/index.ts';
import type { NodeReason, NodeView, Public } from '../../../memory/index.ts';
import { addCommand, type Context, printOrigin, readingEngine } from '../../context.ts';
import { truncate } from '../../terminal/table.ts';
import { ID, memoryIds } from './ids.ts';

/** The first look at depth 1 may wait for a model. */
const SHOW_MS = 150_000;

export function registerMemoryShow(memory: Command, context: Context): void {
  const depths = '0 summary and trigger, 1 detailed (written on first use), 2 verbatim; default: what exists';
  addCommand(memory, 'show', 'one memory', 'comet-cc memory show mem_20261121 --depth 2')
    .argument('<id>', ID)
    .addOption(new Option('--depth <n>', depths).choices(['0', '1', '2']))
    .option('--links', 'also show its links')
    .option('--json', 'print one JSON document')
    .action(async (given: string, flags: { depth?: string; links?: boolean; json?: boolean }) => {
      const client = readingEngine(context);
      const [id = ''] = await memoryIds(context, client, [given]);
      const depth = Number(flags.depth ?? 0) as Depth;
      if (depth === 1) context.term.progress('waiting for the detailed summary');
      const shown = client.call('nodes/show', { id, depth }, { timeoutMs: SHOW_MS });
      const node = await shown.finally(() => context.term.progress(''));
      if (flags.json) return context.term.json(node);
      const lines = nodeLines(node, flags.depth === undefined ? 1 : depth, context.term.paint, Date.now());
      if (flags.links) lines.push(...(await linkLines(client, node, context.term.paint)));
      for (const line of lines) context.term.out(line);
      // The lines of links are other memories'.
      await printOrigin(context, client, [flags.links ? 'external' : shownOrigin(node)]);
    });
}

async function linkLines(client: EngineClient, node: Public<NodeView>, paint: Paint): Promise<string[]> {
  const ids = [...new Set([...(node.parent_node_id === null ? [] : [node.parent_node_id]), ...node.links])];
  const linked = await Promise.all(ids.map((id) => client.call('nodes/show', { id, depth: 0 }).catch(() => null)));
  const lines = ids.map((id, at) => `${id}  ${linked[at] ? oneLine(linked[at].summary) : '(gone)'}`);
  const sources = node.source_links.map((source) => oneLine(source));
  return ['', paint('dim', 'links'), ...(lines.length + sources.length === 0 ? ['none'] : [...lines, ...sources])];
}

const PROMPT_WIDTH = 120;

export function registerMemoryWhy(memory: Command, context: Context): void {
  const description = 'show where a memory comes from and how far it is trusted';
  addCommand(memory, 'why', description, 'comet-cc memory why mem_20261121_223000_a1b2c3')
    .argument('<id>', ID)
    .option('--json', 'print one JSON document')
    .action(async (given: string, flags: { json?: boolean }) => {
      const client = readingEngine(context);
      const [id = ''] = await memoryIds(context, client, [given]);
      const reason = await client.call('nodes/why', { id });
      context.term.print(flags, reason, () => whyLines(reason, context.term.paint, Date.now()));
    });
}

function whyLines(reason: NodeReason, paint: Paint, nowMs: number): string[] {
  const lines = [
    paint('bold', reason.node_id),
    oneLine(reason.summary),
    `origin ${reason.origin}, written by ${oneLine(reason.written_by)}, because of ${reason.compaction_reason}`,
  ];
  for (const { turn, at, origin, prompt, tools } of reason.turns) {
    if (at === null) {
      lines.push(`- turn ${short(turn)}: its raw text is not stored`);
      continue;
    }
    const because = tools.length === 0 ? '' : ` (${tools.map(oneLine).join(', ')})`;
    lines.push(`- turn ${short(turn)}, ${ago(Date.parse(at), nowMs)}, ${origin}${because}`);
    lines.push(paint('dim', `  "${truncate(oneLine(prompt), PROMPT_WIDTH)}"`));
  }
  for (const { polarity, origin, turns, ...fact } of reason.facts) {
    const denied = polarity === 'negative' ? ' (denied)' : '';
    const from = turns.length === 0 ? 'no turn' : `turn ${turns.map(short).join(', ')}`;
    const stated = truncate(factText(fact), PROMPT_WIDTH);
    lines.push(`fact of ${origin} in ${from}${denied}: ${stated}`);
  }
  for (const { statement, valid_to, by } of reason.replaced) {
    const since = valid_to === null ? '' : ` since ${valid_to.slice(0, 10)}`;
    const what = statement === null ? 'all of it' : `"${truncate(oneLine(statement), PROMPT_WIDTH)}"`;
    lines.push(`no longer so${since}: ${what}${by === null ? '' : `; replaced by ${by}`}`);
  }
  for (const id of reason.replaces) lines.push(`replaces something of ${id}`);
  for (const alias of reason.aliases) lines.push(`alias ${alias}`);
  return lines;
}

function short(turn: string): string {
  return oneLine(turn).slice(0, 12);
}

export function registerMemoryRestore(memory: Command, context: Context): void {
  const description = 'print the verbatim messages of a session, trimmed ones included';
  addCommand(memory, 'restore', description, 'comet-cc memory restore 5f3a --json > session.json')
    .argument('<session>', 'unambiguous prefix of its id')
    .option('--json', 'print one JSON array')
    .action(async (session: string, flags: { json?: boolean }) => {
      const client = engineOf(context.paths);
      const messages = await client.call('sessions/restore', { sessionId: await sessionId(client, session) });
      const { paint, print } = context.term;
      print(flags, messages, () => messages.flatMap((message) => [...messageLines(message, paint), '']));
    });
}
