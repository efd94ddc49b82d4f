import type { Command } from 'commander';
import { counted, localTime, oneLine, printable } from '../../common/text.ts';
import { ago, type EngineClient, engineOf, type Paint, sessionId } from '../../engine/api/index.ts';
import type { SessionDetail, SessionView } from '../../memory/index.ts';
import { addCommand, type Context } from '../context.ts';
import { table } from '../terminal/table.ts';
import { refreshed } from '../terminal/watch.ts';

const ID = 'unambiguous prefix of its id; default: the newest session';
/** A long tail takes a while, although no model but the local one is waited for. */
const CLOSE_MS = 60_000;

export function registerSession(program: Command, context: Context): void {
  const { term, paths } = context;
  const session = addCommand(program, 'session', 'list sessions and show their summaries', 'comet-cc session ls');
  addCommand(session, 'ls', 'list sessions, newest first', 'comet-cc session ls --json')
    .option('--watch', 'refresh every two seconds until Ctrl-C')
    .option('--json', 'print one JSON array')
    .action(async (flags: { json?: boolean; watch?: boolean }) => {
      const list = () => engineOf(context.paths).call('sessions/list', {});
      const lines = (sessions: readonly SessionView[]): string[] => {
        const [heading = '', ...rows] = sessionLines(sessions, term.width, Date.now());
        return [term.paint('dim', heading), ...rows];
      };
      if (flags.watch) return refreshed(term, async () => lines(await list()));
      const sessions = await list();
      if (sessions.length === 0 && !flags.json) return term.say('no sessions yet');
      term.print(flags, sessions, () => lines(sessions));
    });
  register('show', 'show one session: its times, memories and brief', async (id, client, json) => {
    const detail = await client.call('sessions/show', { sessionId: id });
    term.print({ json }, detail, () => detailLines(detail, term.paint));
  });
  register('brief', 'print the brief of a session', async (id, client, json) => {
    const brief = await client.call('sessions/brief', { sessionId: id });
    if (json) term.json({ session_id: id, brief });
    else if (brief === '') term.say(`session ${id} has no brief yet`);
    else term.out(printable(brief).trimEnd());
  });
  const closing = "summarize the session's remaining turns now; the session reopens on its next turn";
  register('close', closing, async (id, client, json) => {
    const view = await client.call('sessions/close', { sessionId: id }, { timeoutMs: CLOSE_MS });
    const told = `closed ${oneLine(id)}: ${counted(view.turns, 'turn')} in ${counted(view.node_ids.length, 'memory', 'memories')}`;
    term.print({ json }, view, () => [told]);
  });

  function register(
    name: string,
    description: string,
    run: (id: string, client: EngineClient, json: boolean) => Promise<void>,
  ): void {
    addCommand(session, name, description, `comet-cc session ${name}${name === 'brief' ? '' : ' 5f3a'}`)
      .argument('[id]', ID)
      .option('--json', 'print one JSON document')
      .action(async (prefix: string | undefined, flags: { json?: boolean }) => {
        const client = engineOf(paths);
        await run(await sessionId(client, prefix), client, flags.json ?? false);
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
    ...nodes.map(({ text }) => oneLine(text)),
    ...(brief === '' ? [] : ['', ...printable(brief).trimEnd().split('\n')]),
  ];
}

export function sessionLines(sessions: readonly SessionView[], width: number, nowMs: number): string[] {
  return table(
    [
      { title: 'SESSION', cells: sessions.map((session) => oneLine(session.session_id).slice(0, 8)) },
      { title: 'WHEN', cells: sessions.map((session) => ago(Date.parse(session.updated_at), nowMs)) },
      { title: 'STATUS', cells: sessions.map((session) => session.status) },
      { title: 'TURNS', cells: sessions.map((session) => String(session.turns)), right: true },
      { title: 'MEMORIES', cells: sessions.map((session) => String(session.node_ids.length)), right: true },
      { title: 'TITLE', cells: sessions.map((session) => oneLine(session.title)), stretch: true },
      { title: 'PROJECT', cells: sessions.map((session) => oneLine(session.project)), stretch: true },
    ],
    width,
  );
}
