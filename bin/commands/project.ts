import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { resolveDirectory } from '../../common/paths.ts';
import { oneLine } from '../../common/text.ts';
import { addCommand, type CommandFlags, type Context, requireUser } from '../context.ts';
import { confirmed } from '../terminal/term.ts';

type Flags = CommandFlags<never, 'from'>;

const NO_REMOTE = 'no git remote here; of a folder that was moved: comet-cc project join --from OLD-FOLDER';
const KEPT = 'what this folder kept by itself is left out, unless comet-cc share is on';

export function registerProject(program: Command, context: Context): void {
  const { paths, term } = context;
  const openFolders = async () => (await import('../../memory/index.ts')).openJoinedFolders(paths.projectsFile);
  const project = addCommand(program, 'project', 'let folders share one memory', 'comet-cc project ls');
  const list = addCommand(project, 'ls', 'list what folders share the memory of', 'comet-cc project ls --json');
  list.jsonAction('document', async (flags: Flags) => {
    const joined = (await openFolders()).all();
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
      const { getRemote } = await import('../../memory/index.ts');
      const joined = await openFolders();
      const folder = resolveDirectory(dir);
      const found = flags.from === undefined ? getRemote(folder) : joined.moved(resolveDirectory(flags.from), folder);
      if (found === null) throw new CometError('not_found', NO_REMOTE);
      const { remote, common } = found;
      const others = (joined.all()[remote] ?? []).filter((each) => each !== common);
      const beside = others.length === 0 ? '' : ` with ${others.map(oneLine).join(', ')}`;
      if (!flags.yes && !(await confirmed(`Share the memory of ${oneLine(remote)}${beside} (${KEPT})?`))) return;
      await joined.add([{ remote, common }]);
      term.print(flags, { project: remote, folders: joined.all()[remote] }, () => [
        `from now on this folder shares the memory of ${oneLine(remote)}; ${KEPT}`,
      ]);
    });
  addCommand(project, 'leave', 'take project join back', 'comet-cc project leave .')
    .argument('[dir]', 'a folder of the repository', '.')
    .jsonAction('document', async (dir: string, flags: Flags) => {
      requireUser(context);
      const folders = await openFolders();
      const joined = folders.joinedBy(resolveDirectory(dir));
      const left = joined.map(({ remote }) => remote);
      if (left.length === 0)
        throw new CometError('not_found', 'this folder has joined nothing; see comet-cc project ls');
      await folders.add(joined, false);
      const kept = `what was kept meanwhile stays with ${left.map(oneLine).join(', ')}`;
      term.print(flags, { left }, () => [`this folder has its own memory again; ${kept}`]);
    });
}
