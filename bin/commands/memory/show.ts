import { type Command, Option } from 'commander';
import { oneLine } from '../../../common/text.ts';
import type { EngineClient, Paint } from '../../../engine/api/index.ts';
import { type Depth, engineOf, nodeLines } from '../../../engine/api/index.ts';
import type { NodeView, Public } from '../../../memory/index.ts';
import type { Context } from '../../context.ts';

/** The first look at depth 1 may wait for a model. */
const SHOW_MS = 150_000;

export function registerMemoryShow(memory: Command, context: Context): void {
  memory
    .command('show')
    .description('one memory')
    .argument('<id>', 'unambiguous prefix of its id')
    .addOption(
      new Option(
        '--depth <n>',
        '0 summary and trigger, 1 detailed (written on first use), 2 verbatim; default: what exists',
      ).choices(['0', '1', '2']),
    )
    .option('--links', 'also show its links')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc memory show mem_20261121 --depth 2')
    .action(async (id: string, flags: { depth?: string; links?: boolean; json?: boolean }) => {
      const client = engineOf(context.paths);
      const depth = Number(flags.depth ?? 0) as Depth;
      if (depth === 1) context.term.progress('waiting for the detailed summary');
      const shown = client.call('nodes/show', { id, depth }, { timeoutMs: SHOW_MS });
      const node = await shown.finally(() => context.term.progress(''));
      if (flags.json) return context.term.json(node);
      const lines = nodeLines(node, flags.depth === undefined ? 1 : depth, context.term.paint, Date.now());
      if (flags.links) lines.push(...(await linkLines(client, node, context.term.paint)));
      for (const line of lines) context.term.out(line);
    });
}

async function linkLines(client: EngineClient, node: Public<NodeView>, paint: Paint): Promise<string[]> {
  const ids = [...new Set([...(node.parent_node_id === null ? [] : [node.parent_node_id]), ...node.links])];
  const linked = await Promise.all(ids.map((id) => client.call('nodes/show', { id, depth: 0 }).catch(() => null)));
  const lines = ids.map((id, at) => `${id}  ${linked[at] ? oneLine(linked[at].summary) : '(gone)'}`);
  const sources = node.source_links.map((source) => oneLine(source));
  return ['', paint('dim', 'links'), ...(lines.length + sources.length === 0 ? ['none'] : [...lines, ...sources])];
}
