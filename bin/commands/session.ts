import type { Command } from 'commander';
import { formatCount, localTime, oneLine, printable } from '../../common/text.ts';
import { ago, type EngineClient, type Paint, sessionId } from '../../engine/api/index.ts';
import type { Item, SessionDetail, SessionView } from '../../memory/index.ts';
import { addCommand, type CommandFlags, type Context } from '../context.ts';
import { withoutCodes } from '../terminal/format.ts';
import { table } from '../terminal/table.ts';
import { bullet, itemText } from './memory/around.ts';
import { projectName } from './memory/list.ts';

const ID = 'unambiguous prefix of its id; default: the newest session';
const SESSION = 'unambiguous prefix of its id';
/** A long tail takes a while, although no model but the local one is waited for. */
const CLOSE_MS = 60_000;

export function registerSession(program: Command, context: Context): void {
  const { term } = context;
  const session = addCommand(program, 'session', 'list sessions and show their summaries', 'comet-cc session ls');
  const list = addCommand(session, 'ls', 'list sessions, newest first', 'comet-cc session ls --json');
  list.jsonAction('array', async (flags: CommandFlags) => {
    const sessions = await context.engine.call('sessions/list', {});
    if (sessions.length === 0 && !flags.json) return term.say('no sessions yet');
    term.print(flags, sessions, () => {
      const [heading = '', ...rows] = sessionLines(sessions, term.width, Date.now());
      return [term.paint('dim', heading), ...rows];
    });
  });
  const description = 'what one session did and decided that another did not';
  addCommand(session, 'diff', description, 'comet-cc session diff 5f3a 91c0')
    .argument('<a>', SESSION)
    .argument('<b>', SESSION)
    .jsonAction('document', async (first: string, second: string, flags: CommandFlags) => {
      const client = context.engine;
      const [a, b] = [await sessionId(client, first), await sessionId(client, second)];
      const [inA, inB] = await Promise.all([a, b].map((id) => client.call('items/list', { sessionId: id })));
      const [only_a, only_b] = [without(inA ?? [], inB ?? []), without(inB ?? [], inA ?? [])];
      if (flags.json) return term.json({ a, b, only_a, only_b });
      const all = await client.call('sessions/list', {});
      const part = (id: string, own: readonly Item[]): string[] => [
        term.paint('bold', `only in ${oneLine(all.find(({ session_id }) => session_id === id)?.title ?? '') || id}`),
        ...(own.length === 0 ? ['nothing'] : own.flatMap((item) => bullet(itemText(item), term.width))),
      ];
      await term.page([...part(a, only_a), '', ...part(b, only_b)]);
    });
  register('show', 'show one session: its times, memories and brief', async (id, client, json) => {
    const detail = await client.call('sessions/show', { sessionId: id });
    term.print({ json }, detail, () => detailLines(detail, term.paint));
  });
  register('brief', 'print the brief of a session', async (id, client, json) => {
    const brief = await client.call('sessions/brief', { sessionId: id });
    if (json) term.json({ session_id: id, brief });
    else if (brief === '') term.say(`session ${id} has no brief yet`);
    else term.out(withoutCodes(printable(brief)).trimEnd());
  });
  const closing = "summarize the session's remaining turns now; the session reopens on its next turn";
  register('close', closing, async (id, client, json) => {
    const view = await client.call('sessions/close', { sessionId: id }, { timeoutMs: CLOSE_MS });
    const message = `closed ${oneLine(id)}: ${formatCount(view.turns, 'turn')} in ${formatCount(view.node_ids.length, 'memory', 'memories')}`;
    term.print({ json }, view, () => [message]);
  });

  function register(
    name: string,
    description: string,
    run: (id: string, client: EngineClient, json: boolean) => Promise<void>,
  ): void {
    addCommand(session, name, description, `comet-cc session ${name}${name === 'brief' ? '' : ' 5f3a'}`)
      .argument('[id]', ID)
      .jsonAction('document', async (prefix: string | undefined, flags: CommandFlags) => {
        await run(await sessionId(context.engine, prefix), context.engine, flags.json ?? false);
      });
  }
}

function detailLines(detail: SessionDetail, paint: Paint): string[] {
  const { session_id, title, project, status, created_at, updated_at, closed_at, turns, nodes, brief } = detail;
  const local = (at: string): string => localTime(Date.parse(at), Date.now());
  const rows: [string, string][] = [
    ['title', oneLine(title) || '(none)'],
    ['session', oneLine(session_id)],
    ['project', oneLine(project) || '(none)'],
    ['status', closed_at === null ? status : `${status} at ${local(closed_at)}`],
    ['from', `${local(created_at)} to ${local(updated_at)}`],
    ['turns', String(turns)],
    ['memories', String(nodes.length)],
  ];
  return [
    ...rows.map(([name, text]) => `${paint('dim', name.padEnd(8))} ${text}`),
    ...nodes.map(({ text }) => withoutCodes(oneLine(text))),
    ...(brief === '' ? [] : ['', ...withoutCodes(printable(brief)).trimEnd().split('\n')]),
  ];
}

function without(own: readonly Item[], other: readonly Item[]): Item[] {
  const texts = new Set(other.map(({ text }) => text));
  return own.filter(({ text }) => !texts.has(text));
}

export function sessionLines(sessions: readonly SessionView[], width: number, nowMs: number): string[] {
  return table(sessions, width, [
    { title: 'SESSION', cell: (session) => oneLine(session.session_id).slice(0, 8) },
    { title: 'WHEN', cell: (session) => ago(Date.parse(session.updated_at), nowMs) },
    { title: 'STATUS', cell: (session) => session.status, spare: true },
    { title: 'TURNS', cell: (session) => String(session.turns), right: true, spare: true },
    { title: 'MEMORIES', cell: (session) => String(session.node_ids.length), right: true, spare: true },
    { title: 'TITLE', cell: (session) => oneLine(session.title), stretch: true },
    { title: 'PROJECT', cell: (session) => projectName(session.project), stretch: true, spare: true },
  ]);
}
