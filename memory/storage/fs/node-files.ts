import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Problem } from '../../../common/errors.ts';
import { createExclusive, ensureDir, syncDir, writeFileAtomic } from '../../../common/files.ts';
import { parseBriefFile, renderBriefFile } from '../../model/brief-markdown.ts';
import type { StoredBrief } from '../../model/claim.ts';
import { type FileHead, type NodeDocument, newDocument, parseDocument, renderDocument } from '../../model/markdown.ts';
import type { MemoryNode } from '../../model/node.ts';
import {
  fits,
  joinFiles,
  type Library,
  type NodeFile,
  readNodeFile,
  withNodes,
  withoutSections,
} from '../../model/node-file.ts';
import { grouped } from '../../text/group-by.ts';
import type { NodeFiles } from '../node-files.ts';
import { projectSlug, sessionStem } from '../paths.ts';
import { createFileCache, decoded, filesBelow } from './file-cache.ts';

const ASIDE = '.invalid-';

export interface NodeFilesOptions {
  readonly nodesDir: string;
  readonly briefsDir: string;
  /** Copies of both, where an upgrade of the home made some. */
  readonly memoryBackupDir?: string;
}

/**
 * Nodes as markdown, `<project>/<session>.md`. Files are read again before each change, so what was edited by hand
 * in between stays; sections and files that do not validate are carried along byte for byte.
 */
export async function openNodeFiles({ nodesDir, briefsDir, memoryBackupDir }: NodeFilesOptions): Promise<NodeFiles> {
  for (const dir of [nodesDir, briefsDir]) {
    await ensureDir(dir);
    await removeLeftovers(dir);
  }
  /** Nodes as they were written, until they are read again. */
  const saved = new Map<string, MemoryNode>();
  const nodeFiles = createFileCache(nodesDir, (file, text, before?: NodeFile) =>
    readNodeFile(file, text, { before, saved }),
  );
  const briefFiles = createFileCache(briefsDir, (file, text) => ({ file, brief: parseBriefFile(text ?? '') }));
  let tail: Promise<void> = Promise.resolve();
  let places: Map<string, readonly string[]> | null = null;

  function alone<T>(work: () => Promise<T>): Promise<T> {
    const result = tail.then(work);
    tail = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  async function load(only?: readonly string[]): Promise<Library> {
    const library = joinFiles(await nodeFiles.read(only));
    saved.clear();
    const problems: Problem[] = [...library.problems];
    for (const { file, brief } of await briefFiles.read(only)) {
      if (typeof brief === 'string') problems.push({ file, message: brief });
    }
    places = new Map(library.places);
    return { ...library, problems };
  }

  const known = async (): Promise<Map<string, readonly string[]>> => {
    if (places === null) await load();
    return places as unknown as Map<string, readonly string[]>;
  };

  async function write(file: string, text: string): Promise<void> {
    nodeFiles.forget(file);
    if (text !== '') return writeFileAtomic(file, text);
    await rm(file, { force: true });
    await syncDir(path.dirname(file));
  }

  async function save(nodes: readonly MemoryNode[]): Promise<void> {
    const where = await known();
    const placeOf = ({ node_id }: MemoryNode): string => where.get(node_id)?.[0] ?? '';
    const groups = grouped(nodes, (node) => `${node.project}\n${node.session_id}\n${placeOf(node)}`);
    for (const group of groups.values()) {
      const { session_id, project } = group[0] as MemoryNode;
      const place = placeOf(group[0] as MemoryNode);
      const target =
        (await openPlace(place, { session_id, project })) ?? (await openTarget(nodesDir, group[0] as FileHead));
      const { document, displaced } = withNodes(target.document, group);
      for (const raw of displaced) await setAside(target.file, raw);
      await write(target.file, renderDocument(document));
      const ids = group.map(({ node_id }) => node_id);
      if (place !== '' && place !== target.file) await drop(place, new Set(ids));
      for (const node of group) saved.set(node.node_id, node);
      for (const id of ids) {
        where.set(id, [target.file, ...(where.get(id) ?? []).filter((file) => file !== place && file !== target.file)]);
      }
    }
  }

  async function dropAll(ids: readonly string[]): Promise<void> {
    // A section that was copied or moved by hand must not outlive the one that is known.
    const where = (await load()).places;
    const files = new Set(ids.flatMap((id) => where.get(id) ?? []));
    for (const file of files) await drop(file, new Set(ids));
    places = null;
  }

  async function drop(file: string, ids: ReadonlySet<string>): Promise<void> {
    const text = await decoded(file);
    const left = text === null ? null : withoutSections(text, ids);
    if (left !== null && left !== text) await write(file, left);
  }

  async function remove(ids: readonly string[], turnIds: readonly string[]): Promise<void> {
    await dropAll(ids);
    for (const dir of [nodesDir, briefsDir]) await removeAside(dir, [...ids, ...turnIds]);
    if (memoryBackupDir !== undefined) await removeFromBackup(memoryBackupDir, new Set(ids), turnIds);
  }

  const briefFile = (sessionId: string): string => path.join(briefsDir, `${sessionStem(sessionId)}.md`);

  return {
    load: (only) =>
      alone(async () => {
        const { nodes, problems } = await load(only);
        return { nodes, problems };
      }),
    save: (nodes) => alone(() => save(nodes)),
    drop: (nodeIds) => alone(() => dropAll(nodeIds)),
    remove: (nodeIds, turnIds = []) => alone(() => remove(nodeIds, turnIds)),
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
        briefFiles.forget(file);
        if (brief.active.length + brief.hints.length > 0) await writeFileAtomic(file, renderBriefFile(brief));
        else await rm(file, { force: true });
      }),
    briefs: () =>
      alone(async () => {
        const read = await briefFiles.read();
        const found = read.flatMap(({ brief }): StoredBrief[] => (typeof brief === 'string' ? [] : [brief]));
        return found.toSorted((a, b) => (a.session_id < b.session_id ? -1 : 1));
      }),
  };
}

interface Target {
  readonly file: string;
  readonly document: NodeDocument;
}

/** The file a node stands in already, whatever its name, as long as it says the same about the node. */
async function openPlace(file: string, head: FileHead): Promise<Target | null> {
  const document = file === '' ? null : await readDocument(file);
  return document === null || typeof document === 'string' || !fits(document, head) ? null : { file, document };
}

/** The session's file; where a file of that name has a front matter that is not its own, the next free name. */
async function openTarget(nodesDir: string, { session_id, project }: FileHead): Promise<Target> {
  const dir = path.join(nodesDir, projectSlug(project));
  await ensureDir(dir);
  for (let number = 1; ; number += 1) {
    const file = path.join(dir, `${sessionStem(session_id)}${number === 1 ? '' : `-${number}`}.md`);
    const document = await readDocument(file);
    if (document === null) return { file, document: newDocument({ session_id, project }) };
    if (typeof document !== 'string' && fits(document, { session_id, project })) return { file, document };
  }
}

/** What someone typed is never lost, not even where it does not validate and its place is needed. */
async function setAside(file: string, text: string | Uint8Array): Promise<void> {
  let number = 1;
  while (!(await createExclusive(`${file}${ASIDE}${number}`, text))) number += 1;
}

/** Who removes a node wants nothing of it left. */
async function removeAside(dir: string, names: readonly string[]): Promise<void> {
  for (const copy of await filesBelow(dir, (name) => name.includes(ASIDE))) {
    const text = await readFile(copy, 'utf8');
    if (names.some((name) => text.includes(name))) await rm(copy, { force: true });
  }
}

/** What is removed is removed from the backup too: sections of these ids, and files that name one of the turns. */
async function removeFromBackup(dir: string, ids: ReadonlySet<string>, turnIds: readonly string[]): Promise<void> {
  for (const copy of await filesBelow(dir, (name) => name.endsWith('.md'))) {
    const text = await readFile(copy, 'utf8');
    if (![...ids, ...turnIds].some((name) => text.includes(name))) continue;
    const left = withoutSections(text, ids);
    if (left === '' || turnIds.some((turnId) => left.includes(turnId))) await rm(copy, { force: true });
    else await writeFileAtomic(copy, left);
  }
}

async function readDocument(file: string): Promise<NodeDocument | string | null> {
  const text = await decoded(file);
  if (text === '') return 'expected UTF-8 text with a front matter';
  return text === null ? null : parseDocument(text);
}

/** A crash between writing and renaming leaves a temporary file behind. */
async function removeLeftovers(dir: string): Promise<void> {
  const files = await filesBelow(dir, (name) => name.endsWith('.tmp'));
  await Promise.all(files.map((file) => rm(file, { force: true })));
}
