import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { resolveDirectory } from '../../common/paths.ts';
import { oneLine } from '../../common/text.ts';
import { addCommand, type CommandFlags, type Context, requireUser } from '../context.ts';
import { confirmed } from '../terminal/term.ts';

type Flags = CommandFlags;

export function registerProject(program: Command, context: Context): void {
  const { paths, term } = context;
  const project = addCommand(program, 'project', 'let folders share the memory of a git remote', 'comet-cc project ls');
  addCommand(
    project,
    'ls',
    'list the remotes and the folders that share their memory',
    'comet-cc project ls --json',
  ).jsonAction('document', async (flags: Flags) => {
    const { openJoinedFolders } = await import('../../memory/index.ts');
    const joined = openJoinedFolders(paths.projectsFile).all();
    if (Object.keys(joined).length === 0 && !flags.json) return term.say('no folder shares the memory of a remote');
    term.print(flags, joined, () =>
      Object.entries(joined).map(([remote, folders]) => [remote, ...folders].map(oneLine).join('\n  ')),
    );
  });
  addCommand(project, 'join', 'let a folder share the memory of its git remote', 'comet-cc project join . --yes')
    .argument('[dir]', 'a folder of the repository', '.')
    .option('--yes', 'do not ask')
    .jsonAction('document', async (dir: string, flags: Flags) => {
      requireUser(context);
      const { getRemote, openJoinedFolders } = await import('../../memory/index.ts');
      const repository = getRemote(resolveDirectory(dir));
      if (repository === null) throw new CometError('not_found', 'this folder is in no git repository with a remote');
      const { remote, common } = repository;
      const joined = openJoinedFolders(paths.projectsFile);
      const others = (joined.all()[remote] ?? []).filter((each) => each !== common);
      const beside = others.length === 0 ? '' : ` with ${others.map(oneLine).join(', ')}`;
      if (!flags.yes && !(await confirmed(`Share the memory of ${oneLine(remote)}${beside}?`))) return;
      joined.add([{ remote, common }]);
      term.print(flags, { project: remote, folders: joined.all()[remote] }, () => [
        `from now on this folder shares the memory of ${oneLine(remote)}; what it kept by itself stays its own`,
      ]);
    });
}
