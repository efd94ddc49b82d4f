import os from 'node:os';
import path from 'node:path';
import { type Command, Option } from 'commander';
import { CometError } from '../../common/errors.ts';
import { makeDirs } from '../../common/files.ts';
import { resolveDirectory } from '../../common/paths.ts';
import { formatCount, localTime, oneLine, printable } from '../../common/text.ts';
import { getEngine, type ShareReport } from '../../engine/api/index.ts';
import { addCommand, type CommandFlags, type Context, requireUser, startedEngine } from '../context.ts';
import { shortId } from '../terminal/format.ts';
import { table } from '../terminal/table.ts';
import { confirmed } from '../terminal/term.ts';
import { watched } from './memory/watch.ts';

type Flags = CommandFlags<'off', 'name'> & { readonly scope?: 'me' | 'team'; readonly project?: readonly string[] };

const CREDENTIALS = /^(?:AWS|GOOGLE|AZURE|LANCEDB)_|^COMET_CC_SHARE_PASSPHRASE$/;

export function registerShare(program: Command, context: Context): void {
  const description = 'memory on more than one machine, or in a team, over storage of yours';
  const share = addCommand(program, 'share', description, 'comet-cc share init s3://bucket/folder --scope me');
  registerBegin(share, context);
  registerExchange(share, context);
  const told = 'what is shared, with whom, and what is refused';
  addCommand(share, 'status', told, 'comet-cc share status --json').jsonAction('document', async (flags: Flags) => {
    const report = await context.engine.call('share/status', {});
    context.term.print(flags, report, () =>
      report === null ? ['nothing is shared'] : reportLines(report, Date.now()),
    );
  });
  registerEnd(share, context);
}

function registerBegin(share: Command, context: Context): void {
  const options = (command: Command): Command =>
    command
      .option('--project <remote...>', 'git remotes whose memory is shared (host/owner/repo)')
      .option('--name <name>', 'what the others call this machine, or you')
      .option('--yes', 'do not ask')
      .option('--json', 'print one JSON document');
  const examples =
    'comet-cc share init s3://bucket/folder --scope me\ncomet-cc share init s3://bucket/team --scope team --project github.com/acme/shop';
  const init = addCommand(share, 'init <url>', 'share from this machine, the first one', examples);
  const scope = new Option('--scope <scope>', 'me: machines of yours; team: other people too').choices(['me', 'team']);
  init.addOption(scope.makeOptionMandatory());
  options(init).action((url: string, flags: Flags) => begin(context, url, flags, true));
  const example = 'comet-cc share join s3://bucket/folder';
  const join = addCommand(share, 'join <url>', 'share what another machine began', example);
  options(join).action((url: string, flags: Flags) => begin(context, url, flags, false));
}

async function begin(context: Context, url: string, flags: Flags, first: boolean): Promise<void> {
  requireUser(context);
  const { term, paths } = context;
  const { getRemote, openJoinedFolders, shareAddress } = await import('../../memory/index.ts');
  // A folder as the engine sees it.
  const read = shareAddress.safeParse(/^[a-z][a-z0-9]*:\/\//i.test(url) ? url : resolveDirectory(url));
  if (!read.success) throw new CometError('usage', `${oneLine(url)}: ${read.error.issues[0]?.message}`);
  const address = read.data;
  const env = credentials(context.env);
  const client = startedEngine(context);
  // Anyone with write access to the storage can name any project, so the user confirms the list.
  const { scope, projects: theirs } = flags.scope
    ? { scope: flags.scope, projects: [] }
    : await client.call('share/look', { url: address, env });
  const here = getRemote(process.cwd());
  const projects = [...(flags.project ?? (first && scope === 'team' && here !== null ? [here.remote] : theirs))];
  if (first && scope === 'team' && projects.length === 0)
    throw new CometError('usage', 'name what is shared with --project host/owner/repo, or run it in a clone');
  const isAll = scope === 'me' && projects.length === 0;
  const what = isAll ? 'all of memory' : `memories of ${projects.map(oneLine).join(', ') || 'no project'}`;
  if (!flags.yes && !(await confirmed(`Publish ${what} to ${oneLine(url)}?`))) return;
  const name = flags.name ?? namedAs(flags.scope === 'team' ? os.userInfo().username : os.hostname());
  const input = { url: address, first, name, env, scope, projects };
  if (first && path.isAbsolute(address)) await makeDirs(address);
  const done = await watched(context, flags, progress, () => client.call('share/join', input));
  const joins = here !== null && (done.scope === 'me' || done.projects.includes(here.remote));
  const folders = openJoinedFolders(paths.projectsFile);
  if (joins && folders.all()[here.remote]?.includes(here.common) !== true) {
    await folders.add([here]);
    // What was kept here before has the name of the remote now.
    await client.call('share/push', { env });
  }
  const shared = isAll ? 'all of memory' : done.projects.join(', ');
  term.print(flags, { ...done, joined: joins ? here.remote : null }, () => [
    `${oneLine(done.name)} shares ${oneLine(shared)} over ${oneLine(done.url)} with ${formatCount(done.machines, 'other machine')}`,
    ...(joins ? [`this folder shares the memory of ${oneLine(here.remote)}; elsewhere: comet-cc project join`] : []),
  ]);
  if (!flags.json) term.say('comet-cc share preview shows what leaves next; share leave ends it');
}

function namedAs(name: string): string {
  const plain = name.replace(/[^\p{L}\p{N}._ -]/gu, '-').replace(/^[^\p{L}\p{N}]+/u, '');
  return plain.slice(0, 40) || 'machine';
}

function credentials(env: NodeJS.ProcessEnv): Record<string, string> {
  const credentials = Object.entries(env).filter(([name, value]) => CREDENTIALS.test(name) && value !== undefined);
  return Object.fromEntries(credentials) as Record<string, string>;
}

function progress({ share }: { readonly share?: ShareReport | null }): string {
  const rows = share?.reading?.rows ?? 0;
  return rows === 0 ? 'reaching the storage…' : `${formatCount(rows, 'row')} read…`;
}

function registerExchange(share: Command, context: Context): void {
  const { term } = context;
  const env = credentials(context.env);
  addCommand(share, 'preview', 'print what would leave now', 'comet-cc share preview --json')
    .option('--json', 'print one JSON document, the memories as they would leave')
    .action(async (flags: Flags) => {
      const preview = await context.engine.call('share/preview', { env });
      const { nodes, tasks, pages, kept, removed, withdrawn, turns } = preview;
      term.print(flags, preview, () => [
        ...(nodes.length === 0
          ? ['nothing would leave now']
          : table(nodes, term.width, [
              { title: 'ID', cell: ({ node_id }) => shortId(node_id) },
              { title: 'PROJECT', cell: ({ project }) => oneLine(project) },
              { title: 'MEMORY', cell: ({ title }) => oneLine(title ?? ''), stretch: true },
            ])),
        ...(tasks.length > 0 ? [`${formatCount(tasks.length, 'task')} would leave`] : []),
        ...(pages.length > 0 ? [`${formatCount(pages.length, 'change')} of yours in pages would leave`] : []),
        ...(turns > 0 ? [`${formatCount(turns, 'verbatim turn')} of memories that left would follow`] : []),
        ...(removed > 0 ? [`${formatCount(removed, 'memory', 'memories')} would be removed elsewhere`] : []),
        ...(withdrawn > 0 ? [`${formatCount(withdrawn, 'memory', 'memories')} would be taken back`] : []),
        ...Object.entries(kept).map(
          ([reason, count]) => `kept here: ${formatCount(count, 'memory', 'memories')} ${KEPT[reason] ?? reason}`,
        ),
      ]);
    });
  register('push', 'publish what changed');
  register('pull', 'take over what others published');

  function register(name: 'push' | 'pull', description: string): void {
    addCommand(share, name, description, `comet-cc share ${name}`).jsonAction('document', async (flags: Flags) => {
      const done = await watched(context, flags, progress, () => context.engine.call(`share/${name}`, { env }));
      term.print(flags, done, () => {
        if ('added' in done) return [`${formatCount(done.added, 'memory', 'memories')} added`];
        return [done.sent === 0 ? 'nothing changed' : `${formatCount(done.sent, 'change')} published`];
      });
    });
  }
}

const KEPT: Readonly<Record<string, string>> = {
  draft: 'that no model has summarized yet',
  received: 'from a teammate',
  quarantined: 'in quarantine',
  forbidden: 'of a project whose .comet-cc.json forbids it',
  project: 'of a project that is not shared',
  scope: 'of the user, not of a project',
  private: 'with private text',
  size: 'of too many characters',
};

function reportLines(report: ShareReport, nowMs: number): string[] {
  const { url, scope, projects, machines, pushed_at, pulled_at, problem, waiting, restarted } = report;
  if (report.left) return [oneLine(`sharing has ended; what was published is still in ${url}: comet-cc share leave`)];
  const when = (at: string | null): string => (at === null ? 'never' : localTime(Date.parse(at), nowMs));
  return [
    `${printable(url)}, scope ${scope}, as ${printable(report.name)} (${report.machine})${report.sealed ? ', encrypted' : ''}`,
    `projects  ${projects.length === 0 ? (scope === 'me' ? 'all' : 'none') : projects.map(oneLine).join(', ')}`,
    `published ${when(pushed_at)}${waiting > 0 ? `, ${formatCount(waiting, 'change')} waiting` : ''}`,
    `read      ${when(pulled_at)}`,
    ...machines.map(({ machine, name, read, trusted, refused }) =>
      printable(
        `machine   ${name || 'unknown'} (${machine}), ${formatCount(read, 'row')} read${trusted ? ', trusted' : ''}${refused === '' ? '' : `; refused: ${refused}`}`,
      ),
    ),
    ...report.changed_apart.map(({ file, blocks }) =>
      printable(
        `apart     ${file}: ${formatCount(blocks, 'block')} changed on two machines; keep one, or remove the mark`,
      ),
    ),
    ...(restarted === null ? [] : [`restarted ${when(restarted.at)}: ${RESTARTED[restarted.why]}`]),
    ...(problem === '' ? [] : [`problem   ${oneLine(problem)}`]),
  ];
}

const RESTARTED = {
  copy: 'this home is a copy of another one, or from a backup, and became a machine of its own; nothing was lost',
  lost: 'what this machine had published was gone from the storage, or damaged there, and was published again',
} as const;

function registerEnd(share: Command, context: Context): void {
  const { term } = context;
  const description = "let a teammate's memories count as what Claude said, in system text too";
  addCommand(share, 'trust <machine>', description, 'comet-cc share trust anna\ncomet-cc share trust anna --off')
    .option('--off', 'no longer')
    .option('--yes', 'do not ask')
    .jsonAction('document', async (who: string, flags: Flags) => {
      requireUser(context);
      const trusted = flags.off !== true;
      if (trusted && !flags.yes && !(await confirmed(`Trust what ${oneLine(who)} publishes like what Claude said?`)))
        return;
      const client = getEngine(context.paths);
      const peer = await client.call('share/trust', { who, trusted });
      await client.call('share/pull', { env: credentials(context.env) });
      term.print(flags, { ...peer, trusted }, () => [
        `${printable(peer.name)} (${peer.machine}) is ${trusted ? 'trusted' : 'no longer trusted'}`,
      ]);
    });
  addCommand(share, 'leave', 'stop sharing, and remove what this machine published', 'comet-cc share leave')
    .option('--yes', 'do not ask')
    .jsonAction('document', async (flags: Flags) => {
      requireUser(context);
      if (!flags.yes && !(await confirmed('Stop sharing and remove what this machine published?'))) return;
      const { problem } = await getEngine(context.paths).call('share/leave', { env: credentials(context.env) });
      const removed = problem === '';
      term.print(flags, { removed, problem }, () => ['nothing is shared any more; what came from others stays here']);
      const again = `what this machine published is still there: ${problem}; to try again: comet-cc share leave`;
      if (!removed) throw new CometError('share_failed', again);
    });
}
