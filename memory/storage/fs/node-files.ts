import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { createMutex } from '../../../common/async.ts';
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
 * Nodes as markdown, `<project>/<session>.md`. Files are read again before each change, so that edits by hand in between
 * are kept; sections and files that do not validate are carried along byte for byte.
 */
export async function openNodeFiles({ nodesDir, briefsDir, memoryBackupDir }: NodeFilesOptions): Promise<NodeFiles> {
  for (const dir of [nodesDir, briefsDir]) {
    await ensureDir(dir);
    await removeLeftovers(dir);
  }
  const sessions = createSessionFiles(nodesDir);
  const briefs = createBriefFiles(briefsDir);
  const exclusive = createMutex();
  return {
    load: (only) =>
      exclusive(async () => {
        const { nodes, problems } = await sessions.load(only);
        return { nodes, problems: [...problems, ...(await briefs.problems(only))] };
      }),
    save: (nodes) => exclusive(() => sessions.save(nodes)),
    drop: (nodeIds) => exclusive(() => sessions.drop(nodeIds)),
    remove: (nodeIds, turnIds = []) =>
      exclusive(async () => {
        await sessions.drop(nodeIds);
        for (const dir of [nodesDir, briefsDir]) await removeAside(dir, [...nodeIds, ...turnIds]);
        if (memoryBackupDir !== undefined) await removeFromBackup(memoryBackupDir, new Set(nodeIds), turnIds);
      }),
    readBrief: (sessionId) => exclusive(() => briefs.read(sessionId)),
    writeBrief: (brief) => exclusive(() => briefs.write(brief)),
    briefs: () => exclusive(() => briefs.all()),
  };
}

function createSessionFiles(nodesDir: string) {
  /** Nodes as they were written, until they are read again. */
  const saved = new Map<string, MemoryNode>();
  const cache = createFileCache(nodesDir, (file, text, before?: NodeFile) =>
    readNodeFile(file, text, { before, saved }),
  );
  let places: Map<string, readonly string[]> | null = null;

  async function load(only?: readonly string[]): Promise<Library> {
    const library = joinFiles(await cache.read(only));
    saved.clear();
    places = new Map(library.places);
    return library;
  }

  async function knownPlaces(): Promise<Map<string, readonly string[]>> {
    if (places === null) await load();
    return places as unknown as Map<string, readonly string[]>;
  }

  async function write(file: string, text: string): Promise<void> {
    cache.forget(file);
    if (text !== '') return writeFileAtomic(file, text);
    await rm(file, { force: true });
    await syncDir(path.dirname(file));
  }

  async function dropFrom(file: string, ids: ReadonlySet<string>): Promise<void> {
    const text = await decoded(file);
    const left = text === null ? null : withoutSections(text, ids);
    if (left !== null && left !== text) await write(file, left);
  }

  return {
    load,
    async save(nodes: readonly MemoryNode[]): Promise<void> {
      const where = await knownPlaces();
      const placeOf = ({ node_id }: MemoryNode): string => where.get(node_id)?.[0] ?? '';
      const groups = grouped(nodes, (node) => `${node.project}\n${node.session_id}\n${placeOf(node)}`);
      for (const group of groups.values()) {
        const { session_id, project } = group[0] as MemoryNode;
        const place = placeOf(group[0] as MemoryNode);
        const head = { session_id, project };
        const target = (await openPlace(place, head)) ?? (await openTarget(nodesDir, head));
        const { document, displaced } = withNodes(target.document, group);
        for (const raw of displaced) await setAside(target.file, raw);
        await write(target.file, renderDocument(document));
        const ids = group.map(({ node_id }) => node_id);
        if (place !== '' && place !== target.file) await dropFrom(place, new Set(ids));
        for (const node of group) saved.set(node.node_id, node);
        for (const id of ids) {
          const others = (where.get(id) ?? []).filter((file) => file !== place && file !== target.file);
          where.set(id, [target.file, ...others]);
        }
      }
    },
    async drop(ids: readonly string[]): Promise<void> {
      // A section that was copied or moved by hand must not outlive the one that is known.
      const where = (await load()).places;
      const files = new Set(ids.flatMap((id) => where.get(id) ?? []));
      for (const file of files) await dropFrom(file, new Set(ids));
      places = null;
    },
  };
}

function createBriefFiles(briefsDir: string) {
  const cache = createFileCache(briefsDir, (file, text) => ({ file, brief: parseBriefFile(text ?? '') }));
  const fileOf = (sessionId: string): string => path.join(briefsDir, `${sessionStem(sessionId)}.md`);
  return {
    async problems(only?: readonly string[]): Promise<Problem[]> {
      const read = await cache.read(only);
      return read.flatMap(({ file, brief }) => (typeof brief === 'string' ? [{ file, message: brief }] : []));
    },
    async read(sessionId: string): Promise<StoredBrief | null> {
      const text = await decoded(fileOf(sessionId));
      const brief = text === null ? null : parseBriefFile(text);
      return brief === null || typeof brief === 'string' || brief.session_id !== sessionId ? null : brief;
    },
    async write(brief: StoredBrief): Promise<void> {
      const file = fileOf(brief.session_id);
      const before = await decoded(file);
      if (before !== null && typeof parseBriefFile(before) === 'string') await setAside(file, await readFile(file));
      cache.forget(file);
      if (brief.active.length + brief.hints.length > 0) await writeFileAtomic(file, renderBriefFile(brief));
      else await rm(file, { force: true });
    },
    async all(): Promise<StoredBrief[]> {
      const read = await cache.read();
      const found = read.flatMap(({ brief }): StoredBrief[] => (typeof brief === 'string' ? [] : [brief]));
      return found.toSorted((a, b) => (a.session_id < b.session_id ? -1 : 1));
    },
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
