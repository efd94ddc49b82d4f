import { constants } from 'node:fs';
import { copyFile, link } from 'node:fs/promises';
import path from 'node:path';
import { ensureDir, syncDir, writeFileAtomic } from '../../../common/files.ts';
import { ancestors } from '../../../common/paths.ts';
import {
  isSchema1Section,
  parseBriefFile,
  parseDocument,
  parseFrontMatter,
  parseSection,
  renderFrontMatter,
  renderSection,
} from '../../model/markdown.ts';
import { decoded, filesBelow, inParallel, isMarkdown } from './file-cache.ts';

export type MigrationDirs = Readonly<Record<'nodesDir' | 'briefsDir' | 'backupDir', string>>;
export type MigratedFiles = Awaited<ReturnType<typeof migrateNodeFiles>>;

/**
 * Rewrites node files and briefs of schema 1 in the form of schema 2. It may be killed at any write and run again: a file
 * is copied before it is changed, copied once, and both forms can be read.
 * @param dirs.backupDir  gets a copy of every file before the first is changed
 * @returns `files`: written in the new form; `kept`: files and sections that do not validate, and stay as they are
 */
export async function migrateNodeFiles({ nodesDir, briefsDir, backupDir }: MigrationDirs) {
  const [nodes, briefs] = [await filesBelow(nodesDir, isMarkdown), await filesBelow(briefsDir, isMarkdown)];
  const getCopy = (file: string): string => {
    const dir = file.startsWith(nodesDir + path.sep) ? nodesDir : briefsDir;
    return path.join(backupDir, path.basename(dir), path.relative(dir, file));
  };
  const all = [...nodes, ...briefs];
  await inParallel(all, (file) => backUp(file, getCopy(file)));
  const top = path.dirname(backupDir);
  const dirs = all.flatMap((file) => ancestors(path.dirname(getCopy(file)))).filter((dir) => dir.length >= top.length);
  for (const dir of new Set(dirs)) await syncDir(dir);

  let files = 0;
  let keptCount = 0;
  const migrate = async (file: string, change: (text: string) => Rewritten): Promise<void> => {
    const before = await decoded(file);
    if (before === null) return;
    const after = change(before);
    keptCount += after.kept;
    if (after.text === before) return;
    await writeFileAtomic(file, after.text);
    files += 1;
  };
  await inParallel(nodes, (file) => migrate(file, migrateNodes));
  await inParallel(briefs, (file) => migrate(file, migrateBrief));
  return { files, kept: keptCount };
}

type Rewritten = ReturnType<typeof migrateNodes>;

function migrateNodes(text: string) {
  const document = parseDocument(text);
  if (typeof document === 'string') return { text, kept: 1 };
  const { session_id, project } = document.head;
  const { rest = '' } = parseFrontMatter(document.lead) ?? {};
  let keptCount = 0;
  const sections = document.sections.map(({ raw }) => {
    const parsed = parseSection(raw, document.head);
    if (parsed.kind === 'problem') keptCount += 1;
    return parsed.kind === 'problem' || !isSchema1Section(raw) ? raw : renderSection(parsed.node);
  });
  return { text: [renderFrontMatter({ session_id, project }), rest, ...sections].join(''), kept: keptCount };
}

function migrateBrief(text: string): Rewritten {
  const brief = parseBriefFile(text);
  const front = parseFrontMatter(text);
  if (typeof brief === 'string' || front === null) return { text, kept: 1 };
  const { session_id, project, updated_at } = brief;
  return { text: renderFrontMatter({ session_id, project, updated_at }) + front.rest, kept: 0 };
}

/** A second name for the bytes where the file system has that: the file is replaced later, never written to. */
async function backUp(file: string, copy: string): Promise<void> {
  await ensureDir(path.dirname(copy));
  await link(file, copy)
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return;
      return copyFile(file, copy, constants.COPYFILE_EXCL);
    })
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
}
