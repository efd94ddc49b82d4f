import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../common/async.ts';
import { localDay, oneLine, printable } from '../../common/text.ts';
import { lowestOrigin, type Origin } from '../../common/turn.ts';
import type { NodeView, Public, RawMessage } from '../../memory/index.ts';
import { contentTags, documentText, parseFileLink, terseMeta } from '../../memory/recall/index.ts';

/** Colors a text; the identity where there are no colors. */
export type Paint = (style: 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan', text: string) => string;
export type Depth = 0 | 1 | 2;

export function nodeLines(node: Public<NodeView>, depth: Depth, paint: Paint, nowMs: number): string[] {
  const field = (name: string, text: string): string => `${paint('dim', name.padEnd(10))} ${text}`;
  const lines = [
    paint('bold', node.node_id),
    field('summary', oneLine(node.summary)),
    field('trigger', oneLine(node.trigger)),
  ];
  if (depth === 0) return lines;
  const writer = oneLine(node.written_by);
  lines.push(
    field('when', `${node.created_at} (${ago(Date.parse(node.created_at), nowMs)})`),
    field('session', oneLine(node.session_id)),
    field('project', oneLine(node.project)),
    field('tags', oneLine(contentTags(node.topic_tags).join(', '))),
    field('kind', terseMeta(node)),
    field('importance', `${node.importance}, recall ${node.recall_mode}, origin ${node.origin}, by ${writer}`),
  );
  if (node.superseded_by !== null) {
    const since = node.valid_to === null ? '' : `, ${localDay(node.valid_to)}`;
    lines.push(field('replaced', `by ${node.superseded_by}${since}`));
  } else if (node.valid_to !== null) lines.push(field('ended', localDay(node.valid_to)));
  if (node.capsule !== null) lines.push(field('done', oneLine(node.capsule)));
  if (node.source_links.length > 0) lines.push(field('sources', node.source_links.map(sourceText).join(', ')));
  if (node.detailed_summary !== null) lines.push('', printable(node.detailed_summary));
  if (node.detail_note !== undefined) lines.push(paint('dim', oneLine(node.detail_note)));
  for (const fact of node.facts) {
    const until = fact.valid_to
      ? ` (until ${localDay(fact.valid_to)}${fact.superseded_by ? `, replaced by ${fact.superseded_by}` : ''})`
      : '';
    lines.push(`- ${factText(fact)}${until}`);
  }
  for (const child of node.children ?? []) lines.push(`- ${child.node_id}  ${oneLine(child.summary)}`);
  if (depth === 2) for (const message of node.raw ?? []) lines.push('', ...messageLines(message, paint));
  return lines;
}

/** The lowest origin of what `nodeLines` shows. */
export function shownOrigin(node: Public<NodeView>): Origin {
  const { origin, detailed_origin = origin, raw_origin = origin, facts } = node;
  return lowestOrigin([origin, detailed_origin, raw_origin, ...facts.map((fact) => fact.origin ?? origin)]);
}

/** A file with the content and commit it was read at, or the link as it stands. */
function sourceText(link: string): string {
  const mark = parseFileLink(link);
  if (mark === null) return oneLine(link);
  const at = [mark.sha256, mark.commit === '' ? '' : `commit ${mark.commit}`].filter((each) => each !== '').join(', ');
  return oneLine(at === '' ? mark.path : `${mark.path} (${at})`);
}

/** A verbatim message for reading; `--json` has the exact content. */
export function messageLines(message: RawMessage, paint: Paint): string[] {
  const head = paint('cyan', `${message.seq} ${oneLine(message.role)}`);
  return [head, ...contentText(message.content).map((text) => printable(text))];
}

/** One text for each block of a message's content. */
export function contentText(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [JSON.stringify(content)];
  return content.map((block) => blockText(block as Record<string, unknown>));
}

function blockText(block: Record<string, unknown>): string {
  switch (block['type']) {
    case 'text':
      return String(block['text']);
    case 'thinking':
      return `[thinking] ${String(block['thinking'])}`;
    case 'tool_use':
      return `[${String(block['name'])}] ${JSON.stringify(block['input'])}`;
    case 'tool_result':
      return `[result] ${contentText(block['content'] ?? '').join('\n')}`;
    case 'document':
      return documentText(block) || '[document]';
    case 'image':
      return '[image]';
    default:
      return JSON.stringify(block);
  }
}

/**
 * A statement on one line, without a concept that was only made of words of its value, as "tax or cents". A "not"
 * before a value that says its own would turn it around.
 */
export function factText({ concept, value }: { readonly concept: string; readonly value: string }): string {
  const isRepeated = concept.split(/,? or |,? /).every((word) => value.includes(word));
  return oneLine(isRepeated ? value : `${concept}: ${value}`);
}

/** "5 min ago"; a date after thirty days; a time to come is "now". */
export function ago(thenMs: number, nowMs: number): string {
  const past = nowMs - thenMs;
  if (past < MINUTE_MS) return 'now';
  if (past < HOUR_MS) return `${Math.floor(past / MINUTE_MS)} min ago`;
  if (past < DAY_MS) return `${Math.floor(past / HOUR_MS)} h ago`;
  if (past < 30 * DAY_MS) return `${Math.floor(past / DAY_MS)} d ago`;
  return localDay(thenMs);
}

/** Rank and score in each lane that found something. */
export function lanesText(lanes: Readonly<Record<string, { readonly rank: number; readonly score: number }>>): string {
  return Object.entries(lanes)
    .map(([lane, { rank, score }]) => `${lane} #${rank} ${score.toFixed(3)}`)
    .join(', ');
}
