import { type Command, Option } from 'commander';
import type { EngineClient } from '../../../engine/api/client.ts';
import { engineOf } from '../../../engine/api/engine-client.ts';
import type { Context } from '../../../engine/lifecycle/context.ts';
import type { NodeView } from '../../../memory/index.ts';
import { parseFileLink } from '../../../memory/model/file-link.ts';
import { contentTags, terseMeta } from '../../../memory/text/system-tags.ts';
import { ago, factText, oneLine, printable } from '../../terminal/format.ts';
import { messageLines } from '../../terminal/render.ts';
import type { Paint } from '../../terminal/term.ts';

type Depth = 0 | 1 | 2;

/** The first look at depth 1 may wait for a model. */
const SHOW_MS = 150_000;

export function registerMemoryShow(memory: Command, context: Context): void {
  memory
    .command('show')
    .description('one memory')
    .argument('<id>', 'any unambiguous start of its id')
    .addOption(
      new Option(
        '--depth <n>',
        '0 summary and trigger, 1 detailed (written at the first look), 2 raw, verbatim; without it, what is there',
      ).choices(['0', '1', '2']),
    )
    .option('--links', 'what it is linked to')
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

export function nodeLines(node: NodeView, depth: Depth, paint: Paint, nowMs: number): string[] {
  const field = (name: string, text: string): string => `${paint('dim', name.padEnd(10))} ${text}`;
  const lines = [
    paint('bold', node.node_id),
    field('summary', oneLine(node.summary)),
    field('trigger', oneLine(node.trigger)),
  ];
  if (depth === 0) return lines;
  const when = `${node.created_at} (${ago(Date.parse(node.created_at), nowMs)})`;
  lines.push(
    field('when', when),
    field('session', oneLine(node.session_id)),
    field('project', oneLine(node.project)),
    field('tags', oneLine(contentTags(node.topic_tags).join(', '))),
    field('kind', terseMeta(node)),
    field(
      'importance',
      `${node.importance}, recall ${node.recall_mode}, origin ${node.origin}, by ${oneLine(node.written_by)}`,
    ),
  );
  if (node.superseded_by !== null) {
    const since = node.valid_to === null ? '' : `, ${node.valid_to.slice(0, 10)}`;
    lines.push(field('replaced', `by ${node.superseded_by}${since}`));
  } else if (node.valid_to !== null) lines.push(field('ended', node.valid_to.slice(0, 10)));
  if (node.capsule !== null) lines.push(field('done', oneLine(node.capsule)));
  if (node.source_links.length > 0) lines.push(field('sources', node.source_links.map(sourceText).join(', ')));
  if (node.detailed_summary !== null) lines.push('', printable(node.detailed_summary));
  if (node.detail_note !== undefined) lines.push(paint('dim', oneLine(node.detail_note)));
  for (const fact of node.facts) {
    const until = fact.valid_to
      ? ` (until ${fact.valid_to.slice(0, 10)}${fact.superseded_by ? `, replaced by ${fact.superseded_by}` : ''})`
      : '';
    lines.push(`- ${factText(fact)}${fact.polarity === 'negative' ? ' (negative)' : ''}${until}`);
  }
  for (const child of node.children ?? []) lines.push(`- ${child.node_id}  ${oneLine(child.summary)}`);
  if (depth === 2) for (const message of node.raw ?? []) lines.push('', ...messageLines(message, paint));
  return lines;
}

async function linkLines(client: EngineClient, node: NodeView, paint: Paint): Promise<string[]> {
  const ids = [...new Set([...(node.parent_node_id === null ? [] : [node.parent_node_id]), ...node.links])];
  const linked = await Promise.all(ids.map((id) => client.call('nodes/show', { id, depth: 0 }).catch(() => null)));
  const lines = ids.map((id, at) => `${id}  ${linked[at] ? oneLine(linked[at].summary) : '(gone)'}`);
  const sources = node.source_links.map((source) => oneLine(source));
  return ['', paint('dim', 'links'), ...(lines.length + sources.length === 0 ? ['none'] : [...lines, ...sources])];
}

/** A file with the content and commit it was read at, or the link as it stands. */
function sourceText(link: string): string {
  const mark = parseFileLink(link);
  if (mark === null) return oneLine(link);
  const at = [mark.sha256, mark.commit === '' ? '' : `commit ${mark.commit}`].filter((each) => each !== '').join(', ');
  return oneLine(at === '' ? mark.path : `${mark.path} (${at})`);
}
