import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { createExclusive, ensureDir, syncDir, writeFileAtomic } from '../../common/files.ts';
import { parseBriefFile, renderBriefFile } from '../core/brief-markdown.ts';
import {
  type FileHead,
  type NodeDocument,
  newDocument,
  parseDocument,
  parseSection,
  renderDocument,
  renderSection,
} from '../core/markdown.ts';
import type { MemoryNode } from '../core/node.ts';
import { projectSlug, sessionStem } from '../core/session-file.ts';
import type { NodeFiles, Problem } from '../ports.ts';

const ASIDE = '.invalid-';

export interface NodeFilesOptions {
  readonly nodesDir: string;
  readonly briefsDir: string;
}

/**
 * Nodes as markdown, `<project>/<session>.md`. Files are read again before each change, so what was edited by hand
 * in between stays; sections and files that do not validate are carried along byte for byte.
 */
export async function openNodeFiles({ nodesDir, briefsDir }: NodeFilesOptions): Promise<NodeFiles> {
  for (const dir of [nodesDir, briefsDir]) {
    await ensureDir(dir);
    await removeLeftovers(dir);
  }
  let tail: Promise<unknown> = Promise.resolve();
  let fileOf: Map<string, string> | null = null;

  function alone<T>(work: () => Promise<T>): Promise<T> {
    const result = tail.then(work);
    tail = result.catch(() => undefined);
    return result;
  }

  async function load(): Promise<{ nodes: MemoryNode[]; problems: Problem[]; found: Map<string, string> }> {
    const found = new Map<string, string>();
    const nodes: MemoryNode[] = [];
    const problems: Problem[] = [];
    for (const file of await markdownFiles(nodesDir)) {
      const document = await readDocument(file);
      if (typeof document === 'string') problems.push({ file, message: document });
      else if (document !== null) takeSections(document, { file, nodes, problems, found });
    }
    for (const file of await markdownFiles(briefsDir)) {
      const brief = parseBriefFile((await decoded(file)) ?? '');
      if (typeof brief === 'string') problems.push({ file, message: brief });
    }
    fileOf = found;
    return { nodes, problems, found };
  }

  const locations = async (): Promise<Map<string, string>> => fileOf ?? (await load()).found;

  async function save(nodes: readonly MemoryNode[]): Promise<void> {
    const known = await locations();
    for (const group of grouped(nodes, ({ session_id, project }) => `${project}\n${session_id}`).values()) {
      const { session_id, project } = group[0] as MemoryNode;
      const target = await openTarget(nodesDir, { session_id, project });
      const moved = group.filter(({ node_id }) => (known.get(node_id) ?? target.file) !== target.file);
      await writeFileAtomic(target.file, renderDocument(await withNodes(target, group)));
      await dropSections(moved.map(({ node_id }) => node_id));
      for (const { node_id } of group) known.set(node_id, target.file);
    }
  }

  async function dropSections(ids: readonly string[]): Promise<void> {
    const known = await locations();
    const held = ids.filter((id) => known.has(id));
    for (const [file, gone] of grouped(held, (id) => known.get(id) as string)) {
      const document = await readDocument(file);
      if (document !== null && typeof document !== 'string') await writeWithout(file, document, new Set(gone));
      await removeAside(file, gone);
    }
    for (const id of held) known.delete(id);
  }

  const briefFile = (sessionId: string): string => path.join(briefsDir, `${sessionStem(sessionId)}.md`);

  return {
    load: () =>
      alone(async () => {
        const { nodes, problems } = await load();
        return { nodes, problems };
      }),
    save: (nodes) => alone(() => save(nodes)),
    remove: (nodeIds) => alone(() => dropSections(nodeIds)),
    readBrief: (sessionId) =>
      alone(async () => {
        const text = await decoded(briefFile(sessionId));
        const brief = text === null ? null : parseBriefFile(text);
        return brief === null || typeof brief === 'string' || brief.session_id !== sessionId ? null : brief;
      }),
    writeBrief: (brief) =>
      alone(async () => {
        const file = briefFile(brief.session_id);
        const before = await decoded(file);
        if (before !== null && typeof parseBriefFile(before) === 'string') await setAside(file, await readFile(file));
        await writeFileAtomic(file, renderBriefFile(brief));
      }),
  };
}

function takeSections(
  document: NodeDocument,
  into: { file: string; nodes: MemoryNode[]; problems: Problem[]; found: Map<string, string> },
): void {
  const { file, nodes, problems, found } = into;
  for (const { id, raw, line } of document.sections) {
    const parsed = parseSection(raw, document.head);
    if (parsed.kind === 'problem') {
      problems.push({ file, message: `line ${line}: ${parsed.message}` });
      if (id !== null && !found.has(id)) found.set(id, file);
    } else if (nodes.some(({ node_id }) => node_id === id)) {
      problems.push({ file, message: `line ${line}: ${id}: expected each id once; the first section counts` });
    } else {
      nodes.push(parsed.node);
      found.set(parsed.node.node_id, file);
    }
  }
}

interface Target {
  readonly file: string;
  readonly document: NodeDocument;
}

/** The session's file; where a file of that name has a front matter that is not its own, the next free name. */
async function openTarget(nodesDir: string, head: FileHead): Promise<Target> {
  const dir = path.join(nodesDir, projectSlug(head.project));
  await ensureDir(dir);
  for (let number = 1; ; number += 1) {
    const file = path.join(dir, `${sessionStem(head.session_id)}${number === 1 ? '' : `-${number}`}.md`);
    const document = await readDocument(file);
    if (document === null) return { file, document: newDocument(head) };
    if (typeof document === 'string') continue;
    if (document.head.session_id === head.session_id && document.head.project === head.project) {
      return { file, document };
    }
  }
}

async function withNodes({ file, document }: Target, nodes: readonly MemoryNode[]): Promise<NodeDocument> {
  const sections = [...document.sections];
  for (const node of nodes) {
    const section = { id: node.node_id, raw: renderSection(node), line: 0 };
    const at = sections.findIndex(({ id }) => id === node.node_id);
    const replaced = sections[at];
    if (replaced === undefined) {
      const last = sections.pop();
      if (last !== undefined) sections.push({ ...last, raw: endedByNewline(last.raw) });
      sections.push(section);
      continue;
    }
    if (parseSection(replaced.raw, document.head).kind === 'problem') await setAside(file, replaced.raw);
    sections[at] = section;
  }
  return { ...document, lead: endedByNewline(document.lead), sections };
}

async function writeWithout(file: string, document: NodeDocument, gone: ReadonlySet<string>): Promise<void> {
  const sections = document.sections.filter(({ id }) => id === null || !gone.has(id));
  if (sections.length > 0) return writeFileAtomic(file, renderDocument({ ...document, sections }));
  await rm(file, { force: true });
  await syncDir(path.dirname(file));
}

/** What someone typed is never lost, not even where it does not validate and its place is needed. */
async function setAside(file: string, text: string | Uint8Array): Promise<void> {
  let number = 1;
  while (!(await createExclusive(`${file}${ASIDE}${number}`, text))) number += 1;
}

/** Who removes a node wants nothing of it left. */
async function removeAside(file: string, ids: readonly string[]): Promise<void> {
  const dir = path.dirname(file);
  const names = (await readdir(dir)).filter((name) => name.startsWith(`${path.basename(file)}${ASIDE}`));
  for (const copy of names.map((name) => path.join(dir, name))) {
    const text = await readFile(copy, 'utf8');
    if (ids.some((id) => text.includes(id))) await rm(copy, { force: true });
  }
}

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

function endedByNewline(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

async function readDocument(file: string): Promise<NodeDocument | string | null> {
  const text = await decoded(file);
  if (text === '') return 'expected UTF-8 text with a front matter';
  return text === null ? null : parseDocument(text);
}

/** Null when there is no such file, '' when it is not UTF-8. */
async function decoded(file: string): Promise<string | null> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (bytes === null) return null;
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) ? text : '';
}

const markdownFiles = (dir: string): Promise<string[]> => filesBelow(dir, '.md');

/** A crash between writing and renaming leaves a temporary file behind. */
async function removeLeftovers(dir: string): Promise<void> {
  await Promise.all((await filesBelow(dir, '.tmp')).map((file) => rm(file, { force: true })));
}

async function filesBelow(dir: string, ending: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(ending));
  return files.map((entry) => path.join(entry.parentPath, entry.name)).sort();
}
