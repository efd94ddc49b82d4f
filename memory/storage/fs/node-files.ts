import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { createMutex } from '../../../common/async.ts';
import type { Problem } from '../../../common/errors.ts';
import { createFree, ensureDir, replaceFile, writeFileAtomic } from '../../../common/files.ts';
import { grouped } from '../../../common/map.ts';
import { sha256 } from '../../../common/text.ts';
import {
  type FileHead,
  idTail,
  type NodeDocument,
  newDocument,
  type ParsedSection,
  parseBriefFile,
  parseDocument,
  parseSection,
  renderBriefFile,
  renderDocument,
  renderSection,
  splitSections,
  withoutSeen,
  withSeen,
} from '../../model/markdown.ts';
import { copied, type MemoryNode, type StoredBrief } from '../../model/node.ts';
import type { NodeFiles } from '../node-files.ts';
import { projectSlug, sessionStem } from '../paths.ts';
import { createFileCache, decoded, filesBelow, isHidden, isMarkdown, openDir, removeDurably } from './file-cache.ts';

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
  for (const dir of [nodesDir, briefsDir]) await openDir(dir);
  const sessions = createSessionFiles(nodesDir);
  const briefs = createBriefFiles(briefsDir);
  const exclusive = createMutex();
  return {
    load: (only) =>
      exclusive(async () => {
        const { problems, ...read } = await sessions.load(only);
        return { ...read, problems: [...problems, ...(await briefs.problems(only))] };
      }),
    save: (...change) => exclusive(() => sessions.save(...change)),
    drop: (nodeIds) => exclusive(() => sessions.drop(nodeIds)),
    remove: (nodeIds, turnIds = []) =>
      exclusive(async () => {
        await sessions.drop(nodeIds);
        const copies = memoryBackupDir === undefined ? [] : await filesBelow(memoryBackupDir, isMarkdown);
        for (const dir of [nodesDir, briefsDir]) {
          await removeAside(dir, [...nodeIds, ...turnIds]);
          copies.push(...(await filesBelow(dir, isMarkdown)).filter((file) => isHidden(dir, file)));
        }
        await removeFromCopies(copies, new Set(nodeIds), turnIds);
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
  let joined: { readonly files: readonly NodeFile[]; readonly library: Library } | null = null;

  async function load(only?: readonly string[]): Promise<Library> {
    const files = await cache.read(only);
    const isSame = joined?.files.length === files.length && files.every((file, at) => file === joined?.files[at]);
    if (!isSame || joined === null) joined = { files, library: joinFiles(files) };
    saved.clear();
    places = null;
    return joined.library;
  }

  /** False, without a change, where the file was saved by someone else since `before` was read. */
  async function write(file: string, text: string, before: string | null): Promise<boolean> {
    cache.forget(file);
    if (text !== '') return replaceFile(file, before, text);
    await removeDurably(file);
    return true;
  }

  async function dropFrom(file: string, ids: ReadonlySet<string>): Promise<void> {
    for (;;) {
      const text = await decoded(file);
      const left = text === null ? null : withoutSections(text, ids);
      if (left === null || left === text || (await write(file, left, text))) return;
    }
  }

  /** Null where someone else saved the file meanwhile. */
  async function writeInto(place: string, nodes: readonly MemoryNode[], read?: ReadonlyMap<string, MemoryNode>) {
    const { session_id, project } = nodes[0] as MemoryNode;
    const head = { session_id, project };
    const target = (await openPlace(place, head)) ?? (await openTarget(nodesDir, head));
    const { file } = target;
    const written = nodes.filter(({ node_id }) => read === undefined || says(target.document, read.get(node_id)));
    if (written.length === 0) return { file, written };
    const { document, displaced } = withNodes(target.document, written);
    for (const raw of displaced) await setAside(file, raw);
    const before = target.isNew ? null : renderDocument(target.document);
    return (await write(file, renderDocument(document), before)) ? { file, written } : null;
  }

  return {
    load,
    async save(nodes: readonly MemoryNode[], read?: ReadonlyMap<string, MemoryNode>): Promise<void> {
      places ??= new Map((joined?.library ?? (await load())).places);
      const where = places;
      const getPlace = ({ node_id }: MemoryNode): string => where.get(node_id)?.[0] ?? '';
      const groups = grouped(nodes, (node) => `${node.project}\n${node.session_id}\n${getPlace(node)}`);
      for (const group of groups.values()) {
        const place = getPlace(group[0] as MemoryNode);
        let into: Awaited<ReturnType<typeof writeInto>> = null;
        while (into === null) into = await writeInto(place, group, read);
        const { file, written } = into;
        const ids = written.map(({ node_id }) => node_id);
        if (place !== '' && place !== file) await dropFrom(place, new Set(ids));
        for (const node of written) saved.set(node.node_id, node);
        for (const id of ids) {
          where.set(id, [file, ...(where.get(id) ?? []).filter((each) => each !== place && each !== file)]);
        }
      }
    },
    async drop(ids: readonly string[]): Promise<void> {
      // A section that was copied or moved by hand must not outlive the one that is known.
      const where = (await load()).places;
      for (const file of new Set(ids.flatMap((id) => where.get(id) ?? []))) await dropFrom(file, new Set(ids));
      places = null;
      joined = null;
    },
  };
}

function createBriefFiles(briefsDir: string) {
  const cache = createFileCache(briefsDir, (file, text) => ({ file, brief: parseBriefFile(text ?? '') }));
  const getFile = (sessionId: string): string => path.join(briefsDir, `${sessionStem(sessionId)}.md`);
  return {
    async problems(only?: readonly string[]): Promise<Problem[]> {
      const read = await cache.read(only);
      return read.flatMap(({ file, brief }) => (typeof brief === 'string' ? [{ file, message: brief }] : []));
    },
    async read(sessionId: string): Promise<StoredBrief | null> {
      const text = await decoded(getFile(sessionId));
      const brief = text === null ? null : parseBriefFile(text);
      return brief === null || typeof brief === 'string' || brief.session_id !== sessionId ? null : brief;
    },
    async write(brief: StoredBrief): Promise<void> {
      const file = getFile(brief.session_id);
      const before = await decoded(file);
      if (before !== null && typeof parseBriefFile(before) === 'string') await setAside(file, await readFile(file));
      cache.forget(file);
      if (brief.active.length + brief.hints.length > 0) await writeFileAtomic(file, renderBriefFile(brief));
      else await rm(file, { force: true });
    },
    async all(): Promise<StoredBrief[]> {
      const read = await cache.read();
      const briefs = read.flatMap(({ brief }): StoredBrief[] => (typeof brief === 'string' ? [] : [brief]));
      return briefs.toSorted((a, b) => (a.session_id < b.session_id ? -1 : 1));
    },
  };
}

/** The file a node stands in already, whatever its name, as long as it says the same about the node. */
async function openPlace(file: string, head: FileHead) {
  const document = file === '' ? null : await readDocument(file);
  return document === null || typeof document === 'string' || !fits(document, head)
    ? null
    : { file, document, isNew: false };
}

/** The session's file; where a file of that name has a front matter that is not its own, the next free name (`isNew`). */
async function openTarget(nodesDir: string, { session_id, project }: FileHead) {
  const dir = path.join(nodesDir, projectSlug(project));
  await ensureDir(dir);
  for (let number = 1; ; number += 1) {
    const file = path.join(dir, `${sessionStem(session_id)}${number === 1 ? '' : `-${number}`}.md`);
    const document = await readDocument(file);
    if (document === null) return { file, document: newDocument({ session_id, project }), isNew: true };
    if (typeof document !== 'string' && fits(document, { session_id, project }))
      return { file, document, isNew: false };
  }
}

/** What someone typed is never lost, not even where it does not validate and its place is needed. */
async function setAside(file: string, text: string | Uint8Array): Promise<void> {
  await createFree((number) => `${file}${ASIDE}${number}`, text);
}

/** Who removes a node wants nothing of it left. */
async function removeAside(dir: string, names: readonly string[]): Promise<void> {
  for (const copy of await filesBelow(dir, (name) => name.includes(ASIDE))) {
    const text = await readFile(copy, 'utf8');
    if (names.some((name) => text.includes(name))) await rm(copy, { force: true });
  }
}

/** What is removed is removed from copies too: sections of these ids, and files that name one of the turns. */
async function removeFromCopies(copies: string[], ids: ReadonlySet<string>, turnIds: readonly string[]) {
  for (const copy of copies) {
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

export interface NodeFile {
  readonly file: string;
  /** What is wrong with the file as a whole, where it cannot be read as one. */
  readonly problem: string | null;
  readonly sections: readonly ReadSection[];
  /** Null where the front matter cannot be read. */
  readonly sessionId: string | null;
  readonly seen: NodeDocument['seen'];
}

interface ReadSection {
  readonly id: string | null;
  readonly line: number;
  /** Of the head and the section's text, which is not kept. */
  readonly digest: string;
  readonly parsed: ParsedSection;
}

/** `places`: files with a section of this id, the one that counts first. */
export type Library = Required<Awaited<ReturnType<NodeFiles['load']>>>;

export interface KnownNodes {
  /** The same file as it was read last: sections that did not change give the very same nodes. */
  readonly before?: NodeFile | undefined;
  /** What was written meanwhile, by id: sections that say the same give the very same nodes. */
  readonly saved?: ReadonlyMap<string, MemoryNode>;
}

/** @param text  null where the file is not UTF-8 */
export function readNodeFile(file: string, text: string | null, { before, saved }: KnownNodes = {}): NodeFile {
  const document = text === null ? 'expected UTF-8 text with a front matter' : parseDocument(text);
  if (typeof document === 'string') {
    const named = text === null ? [] : splitSections(text).sections.filter(({ id }) => id !== null);
    const parsed = { kind: 'problem', message: '' } as const;
    return {
      file,
      problem: document,
      ...{ sessionId: null, seen: null },
      sections: named.map(({ id, line }) => ({ id: copied(id), line, digest: '', parsed })),
    };
  }
  const earlierSections = new Map(before?.sections.map(({ digest, parsed }) => [digest, parsed]));
  const { session_id, project } = document.head;
  const sections = document.sections.map(({ id, raw, line }) => {
    const digest = sha256(JSON.stringify([session_id, project, raw]), 32);
    const parsed = earlierSections.get(digest) ?? reuseNode(parseSection(raw, document.head), saved);
    const own = parsed.kind === 'node' ? parsed.node.node_id : null;
    return { id: own === id ? own : copied(id), line, digest, parsed };
  });
  return { file, problem: null, sessionId: session_id, seen: document.seen, sections };
}

/** One object for what was written and what is read, so that no node is in memory twice. */
function reuseNode(parsed: ParsedSection, saved?: ReadonlyMap<string, MemoryNode>): ParsedSection {
  if (parsed.kind === 'problem') return parsed;
  const node = saved?.get(parsed.node.node_id);
  return node !== undefined && isDeepStrictEqual(node, parsed.node) ? { kind: 'node', node } : parsed;
}

/** All files as one: of several valid sections with one id the first counts; what does not validate is named. */
export function joinFiles(files: readonly NodeFile[]): Library {
  const nodes = new Map<string, MemoryNode>();
  const problems: Problem[] = [];
  const places = new Map<string, string[]>();
  const seen = new Map<string, ReadonlySet<string> | null>();
  for (const { file, problem, sections, sessionId, seen: own } of files) {
    if (sessionId !== null) {
      const others = seen.get(sessionId) ?? new Set();
      seen.set(sessionId, own === null || seen.get(sessionId) === null ? null : new Set([...others, ...own]));
    }
    if (problem !== null) problems.push({ file, message: problem });
    for (const { id, line, parsed } of sections) {
      const counts = parsed.kind === 'node' && !nodes.has(parsed.node.node_id);
      if (counts) nodes.set(parsed.node.node_id, parsed.node);
      else if (problem === null) {
        const twice = `${id}: expected each id once; the first section counts`;
        problems.push({ file, message: `line ${line}: ${parsed.kind === 'problem' ? parsed.message : twice}` });
      }
      if (id !== null) note(places, id, file, counts);
    }
  }
  return { nodes: [...nodes.values()], problems, places, seen };
}

function note(places: Map<string, string[]>, id: string, file: string, counts: boolean): void {
  const otherFiles = (places.get(id) ?? []).filter((each) => each !== file || !counts);
  if (counts) places.set(id, [file, ...otherFiles]);
  else if (!otherFiles.includes(file)) places.set(id, [...otherFiles, file]);
}

export function fits(document: NodeDocument, head: FileHead): boolean {
  return document.head.session_id === head.session_id && document.head.project === head.project;
}

/**
 * Inserts or replaces sections by id; all else stays as it is.
 * @returns the document, and the sections that did not validate and had to give way
 */
export function withNodes(document: NodeDocument, nodes: readonly MemoryNode[]) {
  const sections = [...document.sections];
  const displaced: string[] = [];
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
    if (parseSection(replaced.raw, document.head).kind === 'problem') displaced.push(replaced.raw);
    sections[at] = section;
  }
  const before = document.seen ?? document.sections.flatMap(({ id }) => (id === null ? [] : [idTail(id)]));
  const seen = new Set([...before, ...nodes.map(({ node_id }) => idTail(node_id))]);
  return { document: { ...document, lead: withSeen(endedByNewline(document.lead), seen), seen, sections }, displaced };
}

/** The text without these sections, whether it is a sound file or not; '' where none is left. */
export function withoutSections(text: string, removedIds: ReadonlySet<string>): string {
  const { lead, sections } = splitSections(text);
  const left = sections.filter(({ id }) => id === null || !removedIds.has(id));
  return left.length === 0 ? '' : [withoutSeen(lead, removedIds), ...left.map(({ raw }) => raw)].join('');
}

/** Whether a section says just this. */
export function says(document: NodeDocument, node: MemoryNode | undefined): boolean {
  return document.sections.some(({ id, raw }) => {
    const parsed = id === node?.node_id ? parseSection(raw, document.head) : null;
    return parsed?.kind === 'node' && isDeepStrictEqual(parsed.node, node);
  });
}

const endedByNewline = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`);
