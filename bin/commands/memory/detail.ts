import { type Command, Option } from 'commander';
import { findBlocks, localDay, localTime, oneLine, printable, toText } from '../../../common/text.ts';
import { readQueuedText, readTypedText } from '../../../common/turn.ts';
import {
  ago,
  type Depth,
  type EngineClient,
  factText,
  messageLines,
  nodeLines,
  type Paint,
  sessionId,
  shownOrigin,
} from '../../../engine/api/index.ts';
import type { NodeReason, NodeView, Public } from '../../../memory/index.ts';
import { parseFileLink, withoutMarkup } from '../../../memory/recall/index.ts';
import { addCommand, type CommandFlags, type Context, pageLines, printOrigin } from '../../context.ts';
import { SPEAKERS, shortId, WRITERS } from '../../terminal/format.ts';
import { truncate, wrapped } from '../../terminal/table.ts';
import { type Look, spinner } from '../../terminal/term.ts';
import { bullet } from './around.ts';
import { ID, memoryIds } from './ids.ts';
import { badges, projectName } from './list.ts';

/** The first look at the details may wait for a model. */
const SHOW_MS = 150_000;
/** Longer lines are hard to read. */
const TEXT_WIDTH = 100;

type Flags = CommandFlags<'detail' | 'conversation' | 'long' | 'links', 'depth'>;

export function registerMemoryShow(memory: Command, context: Context): void {
  const depths = '0 summary and trigger, 1 detailed (written on first use), 2 verbatim with tools';
  const description = 'one memory, or a section of a topic page: what was done, decided and left to do';
  const examples =
    'comet-cc memory show a1b2c3\ncomet-cc memory show last --conversation\ncomet-cc memory show topic:printers#toner';
  addCommand(memory, 'show', description, examples)
    .argument('<id>', ID)
    .option('--detail', 'also the details, which a model writes on first use')
    .option('--conversation', 'what you and Claude said, without tools')
    .option('--links', 'also show its links')
    .option('--long', 'with codes, session, trigger and sources')
    .addOption(new Option('--depth <n>', depths).choices(['0', '1', '2']))
    .jsonAction('document', async (input: string, flags: Flags) => {
      const { term, engine: client } = context;
      const [id = ''] = await memoryIds(context, client, [input]);
      if (id.startsWith('topic:')) return await showTopic(context, client, id, flags);
      const depth = Number(flags.depth ?? (flags.conversation ? 2 : flags.detail ? 1 : 0)) as Depth;
      const node =
        depth === 1 ? await withDetails(context, client, id) : await client.call('nodes/show', { id, depth });
      if (flags.json) return term.json(node);
      const look = { paint: term.paint, width: Math.min(term.width, TEXT_WIDTH), nowMs: Date.now() };
      const lines =
        flags.long || flags.depth !== undefined
          ? nodeLines(node, flags.depth === undefined ? 1 : depth, term.paint, look.nowMs)
          : [...showLines(node, look), ...(flags.conversation ? conversationLines(node, look) : [])];
      if (flags.links) lines.push(...(await linkLines(client, node, term.paint)));
      await term.page([...lines, ...(await pageLines(context, 'node', node.node_id))]);
      // The lines of links are other memories'.
      await printOrigin(context, [{ origin: flags.links ? 'external' : shownOrigin(node) }]);
    });
}

async function showTopic(context: Context, client: EngineClient, id: string, flags: Flags): Promise<void> {
  const { term } = context;
  const topic = await client.call('topics/read', { name: id });
  if (flags.json) return term.json(topic);
  const width = Math.min(term.width, TEXT_WIDTH);
  const rows = topic.lines.flatMap(({ section, text }, at) => [
    ...(section === (topic.lines[at - 1]?.section ?? '') ? [] : ['', oneLine(section)]),
    ...wrapped(oneLine(text), width),
  ]);
  await term.page([term.paint('bold', oneLine(topic.title)), term.paint('dim', `topics/${topic.name}.md`), ...rows]);
  await printOrigin(context, [{ origin: topic.lines.some(({ reported }) => reported) ? 'external' : 'assistant' }]);
}

/** With its details, or without them where the user stops waiting. */
async function withDetails({ term }: Context, client: EngineClient, id: string): Promise<Public<NodeView>> {
  const stopped = new AbortController();
  const stop = (): void => stopped.abort();
  process.once('SIGINT', stop);
  const end = spinner(term, 'asking for the details (Ctrl-C: go on without them)');
  try {
    return await client.call('nodes/show', { id, depth: 1 }, { timeoutMs: SHOW_MS, signal: stopped.signal });
  } catch (error) {
    if (!stopped.signal.aborted) throw error;
    return await client.call('nodes/show', { id, depth: 0 });
  } finally {
    end();
    process.off('SIGINT', stop);
  }
}

export function showLines(node: Public<NodeView>, { paint, width, nowMs }: Look): string[] {
  const { outcome = '', decisions = [], open = [], values = [], facts, detailed_summary, detail_note } = node;
  const dim = (text: string): string => paint('dim', text);
  const paragraph = (text: string): string[] =>
    printable(text)
      .split('\n')
      .flatMap((line) => wrapped(line, width));
  const item = (text: string): string[] => bullet(oneLine(text), width, Number.POSITIVE_INFINITY);
  const section = (title: string, texts: readonly string[]): string[] =>
    texts.length === 0 ? [] : ['', paint('bold', title), ...texts.flatMap(item)];
  const atMs = Date.parse(node.created_at);
  const about = [`${localTime(atMs, nowMs)} (${ago(atMs, nowMs)})`, projectName(node.project), ...badges(node)];
  const from = oneLine(node.session_title ?? '');
  const decided = decisions.flatMap(({ text, by, closed }) => (closed ? [] : by === 'user' ? `${text} (you)` : text));
  const left = open.flatMap(({ text, closed }) => (closed ? [] : text));
  const stated = [...open, ...decisions];
  const over = stated.flatMap(({ text, closed: end }) => (end ? `${text} (${end.as}, ${localDay(end.at)})` : []));
  const isStated = (value: string): boolean => stated.some(({ text }) => text === value);
  const current = facts.filter(({ value, valid_to = null }) => valid_to === null && !isStated(value));
  const exact = values.filter((value) => !/^\p{L}+$/u.test(value));
  const files = node.source_links.flatMap((link) => parseFileLink(link)?.path ?? []);
  return [
    ...wrapped(oneLine(node.title), width).map((line) => paint('bold', line)),
    ...wrapped(`${about.join(', ')}  ${shortId(node.node_id)}`, width).map(dim),
    ...(from === '' || from === oneLine(node.title) ? [] : wrapped(`in “${from}”`, width).map(dim)),
    ...(node.valid_to === null ? [] : [paint('yellow', `no longer so since ${localDay(node.valid_to)}`)]),
    '',
    ...paragraph(outcome || node.summary),
    ...section('Decided', decided),
    ...section('To do', left),
    ...section('Done or dropped', over),
    ...section('Facts', current.map(factText)),
    ...section('Values', exact.length === 0 ? [] : [exact.join(', ')]),
    ...section('Files', files),
    ...(detailed_summary === null ? [] : ['', paint('bold', 'Details'), ...paragraph(detailed_summary)]),
    ...(detail_note === undefined ? [] : wrapped(oneLine(detail_note), width).map(dim)),
  ];
}

/** What the user and Claude said in its turns, without what the client says for either. */
export function conversationLines({ raw = [] }: Pick<Public<NodeView>, 'raw'>, { paint, width }: Omit<Look, 'nowMs'>) {
  return raw.flatMap(({ role, content }): string[] => {
    const said = printable(spokenText(role, findBlocks(content))).trim();
    if (said === '') return [];
    const lines = said.split('\n').flatMap((line) => wrapped(line, width));
    return ['', paint('cyan', role === 'assistant' ? 'Claude' : 'You'), ...lines];
  });
}

function spokenText(role: string, blocks: ReturnType<typeof findBlocks>): string {
  const texts = blocks.filter(({ type }) => type === 'text').map(({ text }) => toText(text));
  if (role === 'assistant') return texts.map(withoutMarkup).join('\n');
  if (role === 'system') return readQueuedText(texts);
  return readTypedText(texts, { answers: blocks.some(({ type }) => type === 'tool_result') ? 'tool' : null });
}

async function linkLines(client: EngineClient, node: Public<NodeView>, paint: Paint): Promise<string[]> {
  const ids = [...new Set([...(node.parent_node_id === null ? [] : [node.parent_node_id]), ...node.links])];
  const linked = await Promise.all(ids.map((id) => client.call('nodes/show', { id, depth: 0 }).catch(() => null)));
  const lines = ids.map((id, at) => `${shortId(id)}  ${linked[at] ? oneLine(linked[at].title) : '(gone)'}`);
  const sources = node.source_links.map((source) => oneLine(source));
  return ['', paint('dim', 'links'), ...(lines.length + sources.length === 0 ? ['none'] : [...lines, ...sources])];
}

const PROMPT_WIDTH = 120;

export function registerMemoryWhy(memory: Command, context: Context): void {
  addCommand(memory, 'why', 'show where a memory comes from and how far it is trusted', 'comet-cc memory why a1b2c3')
    .argument('<id>', ID)
    .jsonAction('document', async (input: string, flags: CommandFlags) => {
      const [id = ''] = await memoryIds(context, context.engine, [input]);
      const reason = await context.engine.call('nodes/why', { id });
      context.term.print(flags, reason, () => whyLines(reason, context.term.paint, Date.now()));
    });
}

const OCCASIONS: Readonly<Record<NodeReason['compaction_reason'], string>> = {
  topic_shift: 'when the topic changed',
  high_load: 'when much had been said',
  buffer_overflow: 'when many turns were waiting',
  forced: 'when the session paused or ended',
  external: 'when it was imported or noted',
};

export function whyLines(reason: NodeReason, paint: Paint, nowMs: number): string[] {
  const writer = WRITERS[reason.written_by] ?? oneLine(reason.written_by);
  const lines = [
    `${paint('bold', shortId(reason.node_id))}  ${oneLine(reason.summary)}`,
    `from ${SPEAKERS[reason.origin]}, written by ${writer} ${OCCASIONS[reason.compaction_reason]}`,
  ];
  for (const { at, origin, prompt, tools } of reason.turns) {
    if (at === null) {
      lines.push('- of a turn whose text is not stored');
      continue;
    }
    const because = tools.length === 0 ? '' : ` (${tools.map(oneLine).join(', ')})`;
    lines.push(`- said ${ago(Date.parse(at), nowMs)}, trusted as from ${SPEAKERS[origin]}${because}`);
    if (prompt !== '') lines.push(paint('dim', `  "${truncate(oneLine(prompt), PROMPT_WIDTH)}"`));
  }
  for (const { origin, ...fact } of reason.facts)
    lines.push(`statement of ${SPEAKERS[origin]}: ${truncate(factText(fact), PROMPT_WIDTH)}`);
  for (const { statement, valid_to, by } of reason.replaced) {
    const since = valid_to === null ? '' : ` since ${localDay(valid_to)}`;
    const what = statement === null ? 'all of it' : `"${truncate(oneLine(statement), PROMPT_WIDTH)}"`;
    lines.push(`no longer so${since}: ${what}${by === null ? '' : `; replaced by ${shortId(by)}`}`);
  }
  for (const id of reason.replaces) lines.push(`replaces something of ${shortId(id)}`);
  for (const alias of reason.aliases) lines.push(`also found as ${shortId(alias)}`);
  return lines;
}

export function registerMemoryRestore(memory: Command, context: Context): void {
  const description = 'print the verbatim messages of a session, trimmed ones included';
  addCommand(memory, 'restore', description, 'comet-cc memory restore 5f3a --json > session.json')
    .argument('<session>', 'unambiguous prefix of its id')
    .jsonAction('array', async (session: string, flags: CommandFlags) => {
      const id = await sessionId(context.engine, session);
      const messages = await context.engine.call('sessions/restore', { sessionId: id });
      const { paint, json, page } = context.term;
      if (flags.json) return json(messages);
      await page(messages.flatMap((message) => [...messageLines(message, paint), '']));
    });
}
