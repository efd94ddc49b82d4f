import path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { LruMap } from '../../common/lru.ts';
import { isRecord } from '../../common/text.ts';
import type { CapturedTurn } from '../../common/turn.ts';
import type { Redactor } from '../../redact/index.ts';
import { type FileChange, fileMarks } from '../model/file-link.ts';
import type { MemoryNode } from '../model/node.ts';
import type { FileMark } from '../model/turn.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import type { FileState, SourceFiles } from '../storage/project-files.ts';
import { type Block, blocksOf, stringOf } from './content-blocks.ts';

/** A turn's files are marked before it is written: a disk that hangs must not keep it from the journal. */
const MARK_MS = 300;
const MOST_FILES = 20;
/** What is not known by then counts as it was last known, and is known next time. */
const RECALL_MS = 15;
const VERDICTS = 20_000;

/** A node's files and those of them that changed since. */
export interface Freshness {
  readonly files: number;
  readonly changes: readonly FileChange[];
}

export interface FileAnchor {
  /** A directory of its project. */
  readonly directory: string;
  /** Relative to the project's root. */
  readonly path: string;
  /** Nodes about the file, or about files below the directory, newest first. */
  readonly nodes: readonly MemoryNode[];
}

/** Which files nodes are about, and what became of them. */
export interface FileMemory {
  /** Remembers where a project's working tree is. */
  notice(projectDir: string | null, atMs: number): void;
  /** Marks of the project's files that the turn's tool calls named; never late, never rejects. */
  marksOf(turn: CapturedTurn): Promise<readonly FileMark[]>;
  /** The same without a digest: what stood in the files when the turn was said is not known any more. */
  namesOf(turn: CapturedTurn): readonly FileMark[];
  /** For those of the nodes that are about files, as far as `budgetMs` allows. Never rejects. */
  freshness(
    nodes: readonly MemoryNode[],
    projectDir: string | null,
    budgetMs?: number,
  ): Promise<ReadonlyMap<string, Freshness>>;
  /** Null for what is in no project that is remembered. `file` is absolute and need not exist any more. */
  about(file: string): FileAnchor | null;
}

type Parts = {
  readonly sources: SourceFiles | null;
  readonly sourcePatience?: number;
  readonly projectOf: (directory: string | null) => string;
  readonly redactor: Redactor;
  readonly catalogue: NodeRegistry;
};

export function createFileMemory({ sources, sourcePatience = 1, projectOf, redactor, catalogue }: Parts): FileMemory {
  const lastSeen = new Map<string, { readonly directory: string; readonly atMs: number }>();
  const verdicts = new LruMap<string, FileState>(VERDICTS);
  const marksByNode = new WeakMap<MemoryNode, readonly FileMark[]>();

  function notice(projectDir: string | null, atMs: number): void {
    if (projectDir === null || sources === null) return;
    const project = projectOf(projectDir);
    if (project === '' || (lastSeen.get(project)?.atMs ?? Number.NEGATIVE_INFINITY) > atMs) return;
    lastSeen.set(project, { directory: projectDir, atMs });
  }

  function marksFor(node: MemoryNode): readonly FileMark[] {
    const known = marksByNode.get(node) ?? fileMarks(node.source_links);
    marksByNode.set(node, known);
    return known;
  }

  function rootFor(project: string, projectDir: string | null): string | null {
    if (sources === null || project === '') return null;
    if (projectDir !== null && projectOf(projectDir) === project) return sources.rootOf(projectDir);
    return sources.rootOf(lastSeen.get(project)?.directory ?? project);
  }

  async function look(root: string, mark: FileMark): Promise<void> {
    const key = verdictKey(root, mark);
    const state = (await sources?.compare(root, mark).catch(() => 'unknown' as const)) ?? 'unknown';
    verdicts.set(key, state);
  }

  function changesOf(marks: readonly FileMark[], root: string): FileChange[] {
    return marks.flatMap((mark) => {
      const state = verdicts.get(verdictKey(root, mark));
      return state === 'changed' || state === 'deleted' ? [{ path: mark.path, state }] : [];
    });
  }

  /** Files of the project that the turn's tool calls named, as far as they may be spoken of. */
  function placesOf(turn: CapturedTurn, root: string, directory: string): string[] {
    const places = touchedFiles(turn).flatMap((file) => sources?.placeOf(file, root, directory) ?? []);
    return [...new Set(places)].filter((place) => redactor.text(place) === place);
  }

  return {
    notice,

    namesOf(turn) {
      const root = sources?.rootOf(turn.projectDir) ?? null;
      if (root === null || turn.projectDir === null) return [];
      const places = placesOf(turn, root, turn.projectDir).slice(0, MOST_FILES);
      return places.map((place) => ({ path: place, sha256: '', commit: '' }));
    },

    async marksOf(turn) {
      const root = sources?.rootOf(turn.projectDir) ?? null;
      if (sources === null || root === null || turn.projectDir === null) return [];
      const speakable = placesOf(turn, root, turn.projectDir);
      const found = new Map<string, FileMark>();
      const looking = speakable.map(async (place) => {
        const mark = await sources.mark(root, place).catch(() => null);
        if (mark !== null) found.set(place, mark);
      });
      await within(Promise.all(looking), MARK_MS * sourcePatience);
      return speakable.flatMap((place) => found.get(place) ?? []).slice(0, MOST_FILES);
    },

    async freshness(nodes, projectDir, budgetMs = RECALL_MS) {
      const looked = nodes.flatMap((node) => {
        const marks = marksFor(node).filter(({ sha256 }) => sha256 !== '');
        const root = marks.length === 0 ? null : rootFor(node.project, projectDir);
        return root === null ? [] : [{ node, marks, root }];
      });
      const asked = new Map(
        looked.flatMap(({ marks, root }) => marks.map((mark) => [verdictKey(root, mark), { root, mark }] as const)),
      );
      if (asked.size === 0) return new Map();
      const looks = [...asked.values()].map(({ root, mark }) => look(root, mark));
      await within(Promise.all(looks), budgetMs * sourcePatience);
      return new Map(
        looked.map(({ node, marks, root }) => [node.node_id, { files: marks.length, changes: changesOf(marks, root) }]),
      );
    },

    about(file) {
      const all = catalogue.all();
      const projects = new Set(all.map((node) => node.project));
      const directory = ancestors(file).find((each) => projects.has(projectOf(each))) ?? null;
      const root = sources?.rootOf(directory) ?? null;
      if (directory === null || root === null) return null;
      // The project's own folder has no name below itself.
      const place = path.resolve(file) === root ? '' : sources?.placeOf(file, root, root);
      if (typeof place !== 'string') return null;
      const project = projectOf(directory);
      const isAbout = (node: MemoryNode): boolean =>
        node.project === project &&
        node.source_links.length > 0 &&
        marksFor(node).some((mark) => place === '' || mark.path === place || mark.path.startsWith(`${place}/`));
      return { directory, path: place, nodes: all.filter(isAbout) };
    },
  };
}

/** Of the path itself, which may be a directory, up to the top. */
function ancestors(file: string): string[] {
  const above = [file];
  for (let at = file; path.dirname(at) !== at; at = path.dirname(at)) above.push(path.dirname(at));
  return above;
}

function verdictKey(root: string, { path, sha256 }: FileMark): string {
  return `${root}\0${path}\0${sha256}`;
}

/** Waits for `work`, but not for longer. */
async function within(work: Promise<unknown>, budgetMs: number): Promise<void> {
  const stop = new AbortController();
  const late = after(budgetMs, undefined, { signal: stop.signal, ref: false }).catch(() => undefined);
  await Promise.race([work, late]);
  stop.abort();
}

/** Tools whose input names the one file they read or write, and where. */
const FILE_TOOLS: Readonly<Record<string, string>> = {
  Read: 'file_path',
  Edit: 'file_path',
  MultiEdit: 'file_path',
  Write: 'file_path',
  NotebookEdit: 'notebook_path',
  NotebookRead: 'notebook_path',
};
const MOST_NAMED = 40;
const MOST_WORDS = 30;
/** Beyond this a command is a script or a paste, and its words are no list of files. */
const COMMAND_CHARS = 4_000;

/** Paths that a turn's tool calls name, as they were given: those of file tools, then words of commands. */
export function touchedFiles(turn: CapturedTurn): string[] {
  const calls = turn.messages
    .filter((message) => message.role === 'assistant')
    .flatMap((message) => blocksOf(message).filter((block) => block['type'] === 'tool_use'));
  const named = calls.flatMap((call) => pathOf(call));
  const words = calls.flatMap((call) => commandWords(call));
  return [...new Set([...named.slice(-MOST_NAMED), ...words.slice(-MOST_WORDS)])];
}

function pathOf(call: Block): string[] {
  const key = FILE_TOOLS[stringOf(call['name'])];
  const path = key === undefined ? '' : stringOf(inputOf(call)[key]);
  return path === '' ? [] : [path];
}

/** Words that could be files; whoever asks the disk knows which of them are. */
function commandWords(call: Block): string[] {
  const name = stringOf(call['name']);
  if (name !== 'Bash' && name !== 'PowerShell') return [];
  const command = stringOf(inputOf(call)['command']).slice(0, COMMAND_CHARS);
  // What is followed by a bracket is called: `node -e "console.log(1)"`.
  const found = [...command.matchAll(/([^\s'"`;&|<>(){}=,:]+)(?=([(]?))/g)];
  const words = found.flatMap(([, word = '', bracket]) => (bracket === '' ? [word] : []));
  return words.filter((word) => /[./]/.test(word) && !/^[-~]|[*?$[\]!^\\]|^[./]+$/.test(word));
}

function inputOf(call: Block): Block {
  const input = call['input'];
  return isRecord(input) ? input : {};
}
