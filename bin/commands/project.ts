import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { resolveDirectory } from '../../common/paths.ts';
import { oneLine } from '../../common/text.ts';
import type { JoinedFolders } from '../../memory/index.ts';
import { addCommand, type CommandFlags, type Context, requireUser } from '../context.ts';
import { confirmed } from '../terminal/term.ts';

type Flags = CommandFlags<never, 'from'>;

export function registerProject(program: Command, context: Context): void {
  const { paths, term } = context;
  const project = addCommand(program, 'project', 'let folders share one memory', 'comet-cc project ls');
  const list = addCommand(project, 'ls', 'list what folders share the memory of', 'comet-cc project ls --json');
  list.jsonAction('document', async (flags: Flags) => {
    const { openJoinedFolders } = await import('../../memory/index.ts');
    const joined = openJoinedFolders(paths.projectsFile).all();
    const none = 'no folder shares the memory of another or of a remote';
    if (Object.keys(joined).length === 0 && !flags.json) return term.say(none);
    term.print(flags, joined, () =>
      Object.entries(joined).map(([remote, folders]) => [remote, ...folders].map(oneLine).join('\n  ')),
    );
  });
  const example = 'comet-cc project join . --from ~/src/old-name';
  addCommand(project, 'join', 'let a folder share the memory of its git remote, or of another folder', example)
    .argument('[dir]', 'a folder of the repository', '.')
    .option('--from <folder>', 'where it was before: share the memory of that folder instead')
    .option('--yes', 'do not ask')
    .jsonAction('document', async (dir: string, flags: Flags) => {
      requireUser(context);
      const { openJoinedFolders } = await import('../../memory/index.ts');
      const joined = openJoinedFolders(paths.projectsFile);
      const { remote, common } = await target(resolveDirectory(dir), flags.from, joined);
      const others = (joined.all()[remote] ?? []).filter((each) => each !== common);
      const beside = others.length === 0 ? '' : ` with ${others.map(oneLine).join(', ')}`;
      if (!flags.yes && !(await confirmed(`Share the memory of ${oneLine(remote)}${beside}?`))) return;
      joined.add([{ remote, common }]);
      term.print(flags, { project: remote, folders: joined.all()[remote] }, () => [
        `from now on this folder shares the memory of ${oneLine(remote)}; what it kept by itself stays its own`,
      ]);
    });
}

/** What a folder is to share the memory of, and by what it is known there. */
async function target(directory: string, from: string | undefined, joined: JoinedFolders) {
  const { getProjectFolder, getRemote } = await import('../../memory/index.ts');
  if (from !== undefined) {
    // A folder that is gone has no `.git` any more, and one above it is another project.
    const before = joined.ofPath(resolveDirectory(from));
    return { remote: before, common: getProjectFolder(directory) };
  }
  const repository = getRemote(directory);
  if (repository !== null) return repository;
  const moved = 'if it was moved, name where it was: comet-cc project join --from FOLDER';
  throw new CometError('not_found', `this folder is in no git repository with a remote; ${moved}`);
}
