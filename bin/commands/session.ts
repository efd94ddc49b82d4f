import type { Command } from 'commander';
import type { SessionView } from '../../memory/face.ts';
import type { Context } from '../context.ts';
import { engineOf, sessionId } from '../engine.ts';
import { ago, oneLine, printable, table } from '../format.ts';

export function registerSession(program: Command, context: Context): void {
  const session = program
    .command('session')
    .description('conversations that were seen, and their briefs')
    .addHelpText('after', '\nExample:\n  comet-cc session ls');
  session
    .command('ls')
    .description('one line for each session, the newest first')
    .option('--json', 'print one JSON array')
    .addHelpText('after', '\nExample:\n  comet-cc session ls --json')
    .action(async (flags: { json?: boolean }) => {
      const found = await engineOf(context.paths).call('sessions/list', {});
      const sessions = [...found].sort((a, b) => b.updated_at.localeCompare(a.updated_at));
      if (flags.json) return context.term.json(sessions);
      if (sessions.length === 0) return context.term.say('no session was seen yet');
      const [heading, ...lines] = sessionLines(sessions, context.term.width, Date.now());
      context.term.out(context.term.paint('dim', heading as string));
      for (const line of lines) context.term.out(line);
    });
  session
    .command('brief')
    .description('the running guidance of a session')
    .argument('[id]', 'any unambiguous start of its id; the newest session where none is given')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc session brief')
    .action(async (prefix: string | undefined, flags: { json?: boolean }) => {
      const client = engineOf(context.paths);
      const id = await sessionId(client, prefix);
      const brief = await client.call('sessions/brief', { sessionId: id });
      if (flags.json) context.term.json({ session_id: id, brief });
      else if (brief === '') context.term.say(`session ${id} has no brief yet`);
      else context.term.out(printable(brief).trimEnd());
    });
}

export function sessionLines(sessions: readonly SessionView[], width: number, nowMs: number): string[] {
  return table(
    [
      { title: 'SESSION', cells: sessions.map((session) => oneLine(session.session_id)) },
      { title: 'WHEN', cells: sessions.map((session) => ago(Date.parse(session.updated_at), nowMs)) },
      { title: 'STATUS', cells: sessions.map((session) => session.status) },
      { title: 'TURNS', cells: sessions.map((session) => String(session.turns)), right: true },
      { title: 'NODES', cells: sessions.map((session) => String(session.node_ids.length)), right: true },
      { title: 'PROJECT', cells: sessions.map((session) => oneLine(session.project)), stretch: true },
    ],
    width,
  );
}
