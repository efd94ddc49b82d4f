import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Problem } from '../../common/errors.ts';
import { copied } from './detach-strings.ts';
import {
  type FileHead,
  type NodeDocument,
  type ParsedSection,
  parseDocument,
  parseSection,
  renderSection,
  splitSections,
} from './markdown.ts';
import type { MemoryNode } from './node.ts';

/** One node file as it was read. */
export interface NodeFile {
  readonly file: string;
  /** What is wrong with the file as a whole, where it cannot be read as one. */
  readonly problem: string | null;
  readonly sections: readonly ReadSection[];
}

interface ReadSection {
  readonly id: string | null;
  readonly line: number;
  /** Of the head and the section's text, which is not kept. */
  readonly digest: string;
  readonly parsed: ParsedSection;
}

export interface Library {
  readonly nodes: readonly MemoryNode[];
  readonly problems: readonly Problem[];
  /** Files with a section of this id, the one that counts first. */
  readonly places: ReadonlyMap<string, readonly string[]>;
}

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
      sections: named.map(({ id, line }) => ({ id: copied(id), line, digest: '', parsed })),
    };
  }
  const known = new Map(before?.sections.map(({ digest, parsed }) => [digest, parsed]));
  const { session_id, project } = document.head;
  const sections = document.sections.map(({ id, raw, line }) => {
    const digest = createHash('sha256')
      .update(JSON.stringify([session_id, project, raw]))
      .digest('base64');
    const parsed = known.get(digest) ?? held(parseSection(raw, document.head), saved);
    const own = parsed.kind === 'node' ? parsed.node.node_id : null;
    return { id: own === id ? own : copied(id), line, digest, parsed };
  });
  return { file, problem: null, sections };
}

/** One object for what was written and what is read, so that no node is in memory twice. */
function held(parsed: ParsedSection, saved?: ReadonlyMap<string, MemoryNode>): ParsedSection {
  if (parsed.kind === 'problem') return parsed;
  const node = saved?.get(parsed.node.node_id);
  return node !== undefined && isDeepStrictEqual(node, parsed.node) ? { kind: 'node', node } : parsed;
}

/** All files as one: of several valid sections with one id the first counts; what does not validate is named. */
export function joinFiles(files: readonly NodeFile[]): Library {
  const nodes = new Map<string, MemoryNode>();
  const problems: Problem[] = [];
  const places = new Map<string, string[]>();
  for (const { file, problem, sections } of files) {
    if (problem !== null) problems.push({ file, message: problem });
    for (const { id, line, parsed } of sections) {
      const counts = parsed.kind === 'node' && !nodes.has(parsed.node.node_id);
      if (counts) nodes.set(parsed.node.node_id, parsed.node);
      else if (problem === null) problems.push({ file, message: `line ${line}: ${doubt(parsed)}` });
      if (id !== null) note(places, id, file, counts);
    }
  }
  return { nodes: [...nodes.values()], problems, places };
}

function doubt(parsed: ParsedSection): string {
  if (parsed.kind === 'problem') return parsed.message;
  return `${parsed.node.node_id}: expected each id once; the first section counts`;
}

function note(places: Map<string, string[]>, id: string, file: string, counts: boolean): void {
  const known = (places.get(id) ?? []).filter((each) => each !== file || !counts);
  if (counts) places.set(id, [file, ...known]);
  else if (!known.includes(file)) places.set(id, [...known, file]);
}

export function fits(document: NodeDocument, head: FileHead): boolean {
  return document.head.session_id === head.session_id && document.head.project === head.project;
}

/**
 * Inserts or replaces sections by id; all else stays as it is.
 *
 * @returns the document, and the sections that did not validate and had to give way
 */
export function withNodes(
  document: NodeDocument,
  nodes: readonly MemoryNode[],
): { readonly document: NodeDocument; readonly displaced: readonly string[] } {
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
  return { document: { ...document, lead: endedByNewline(document.lead), sections }, displaced };
}

/** The text without these sections, whether it is a sound file or not; '' where none is left. */
export function withoutSections(text: string, gone: ReadonlySet<string>): string {
  const { lead, sections } = splitSections(text);
  const left = sections.filter(({ id }) => id === null || !gone.has(id));
  return left.length === 0 ? '' : [lead, ...left.map(({ raw }) => raw)].join('');
}

function endedByNewline(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}
