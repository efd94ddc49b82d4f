import path from 'node:path';
import { finishesWithin } from '../../common/async.ts';
import { LruMap, memoize } from '../../common/map.ts';
import { ancestors } from '../../common/paths.ts';
import { toRecord, toText } from '../../common/text.ts';
import type { CapturedTurn } from '../../common/turn.ts';
import type { Redactor } from '../../redact/index.ts';
import type { MemoryNode } from '../model/node.ts';
import { type FileChange, type FileMark, fileMarks } from '../model/turn.ts';
import type { FileState, SourceFiles } from '../storage/fs/project-files.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import { type Block, getBlocks } from './content-blocks.ts';

/** Files are hashed before the turn is journaled, so a slow disk must not delay the write. */
const HASH_TIMEOUT_MS = 300;
const MAX_FILES = 20;
/** A comparison that is late updates the cache for the next recall. */
const RECALL_TIMEOUT_MS = 15;
const CACHED_STATES = 20_000;

export interface Freshness {
  readonly files: number;
  readonly changes: readonly FileChange[];
}

export interface FileAnchor {
  /** A directory inside the project. */
  readonly directory: string;
  /** Relative to the project root. */
  readonly path: string;
  /** Nodes that reference the file or files below the directory, newest first. */
  readonly nodes: readonly MemoryNode[];
}

type Parts = {
  readonly sources: SourceFiles | null;
  readonly sourcePatience?: number;
  readonly getProject: (directory: string | null) => string;
  readonly redactor: Redactor;
  readonly catalogue: NodeRegistry;
};

/** Project files that the turn's tool calls name, without paths that contain secrets. */
function namedFiles(turn: CapturedTurn, root: string, sources: SourceFiles, redactor: Redactor): string[] {
  const { projectDir } = turn;
  if (projectDir === null) return [];
  const places = touchedFiles(turn).flatMap((file) => sources.getPlace(file, root, projectDir) ?? []);
  return [...new Set(places)].filter((place) => redactor.text(place) === place);
}

/** Remembers the latest working tree of each project. */
function createWorkingTrees(sources: SourceFiles | null, getProject: (directory: string | null) => string) {
  const lastSeen = new Map<string, { readonly directory: string; readonly atMs: number }>();
  return {
    note(projectDir: string | null, atMs: number): void {
      if (projectDir === null || sources === null) return;
      const project = getProject(projectDir);
      if (project === '' || (lastSeen.get(project)?.atMs ?? Number.NEGATIVE_INFINITY) > atMs) return;
      lastSeen.set(project, { directory: projectDir, atMs });
    },
    getRoot(project: string, projectDir: string | null): string | null {
      if (sources === null || project === '') return null;
      if (projectDir !== null && getProject(projectDir) === project) return sources.getRoot(projectDir);
      return sources.getRoot(lastSeen.get(project)?.directory ?? project);
    },
  };
}

/** Last known state of each file compared with its hash. */
function createStateCache(sources: SourceFiles | null) {
  const states = new LruMap<string, FileState>(CACHED_STATES);
  return {
    async update(root: string, mark: FileMark): Promise<void> {
      const state = (await sources?.compare(root, mark).catch(() => 'unknown' as const)) ?? 'unknown';
      states.set(stateKey(root, mark), state);
    },
    getChanges(marks: readonly FileMark[], root: string): FileChange[] {
      return marks.flatMap((mark) => {
        const state = states.get(stateKey(root, mark));
        return state === 'changed' || state === 'deleted' ? [{ path: mark.path, state }] : [];
      });
    },
  };
}

/** Tracks which files nodes reference and whether those files changed. */
export type FileReferences = ReturnType<typeof createFileReferences>;

export function createFileReferences({ sources, sourcePatience = 1, getProject, redactor, catalogue }: Parts) {
  const trees = createWorkingTrees(sources, getProject);
  const states = createStateCache(sources);
  const getMarksFor = memoize(({ source_links }: MemoryNode) => fileMarks(source_links));

  return {
    /** Records the latest working tree of a project. */
    noteProject: trees.note,

    /** Without hashes: an imported turn's files may have changed since. */
    getNames(turn: CapturedTurn): readonly FileMark[] {
      const root = sources?.getRoot(turn.projectDir) ?? null;
      if (sources === null || root === null) return [];
      const places = namedFiles(turn, root, sources, redactor).slice(0, MAX_FILES);
      return places.map((place) => ({ path: place, sha256: '', commit: '' }));
    },

    /** Hashes the project files that the turn's tool calls name; bounded in time, never rejects. */
    async getMarks(turn: CapturedTurn): Promise<readonly FileMark[]> {
      const root = sources?.getRoot(turn.projectDir) ?? null;
      if (sources === null || root === null) return [];
      const places = namedFiles(turn, root, sources, redactor);
      const marks = new Map<string, FileMark>();
      const looking = places.map(async (place) => {
        const mark = await sources.mark(root, place).catch(() => null);
        if (mark !== null) marks.set(place, mark);
      });
      await finishesWithin(Promise.all(looking), HASH_TIMEOUT_MS * sourcePatience);
      return places.flatMap((place) => marks.get(place) ?? []).slice(0, MAX_FILES);
    },

    /** By node id, for nodes that reference files. Never rejects. */
    async freshness(
      nodes: readonly MemoryNode[],
      projectDir: string | null,
      budgetMs: number = RECALL_TIMEOUT_MS,
    ): Promise<ReadonlyMap<string, Freshness>> {
      const looked = nodes.flatMap((node) => {
        const marks = getMarksFor(node).filter(({ sha256 }) => sha256 !== '');
        const root = marks.length === 0 ? null : trees.getRoot(node.project, projectDir);
        return root === null ? [] : [{ node, marks, root }];
      });
      const stateByMark = new Map(
        looked.flatMap(({ marks, root }) => marks.map((mark) => [stateKey(root, mark), { root, mark }] as const)),
      );
      if (stateByMark.size === 0) return new Map();
      const looks = [...stateByMark.values()].map(({ root, mark }) => states.update(root, mark));
      await finishesWithin(Promise.all(looks), budgetMs * sourcePatience);
      const found = looked.map(({ node, marks, root }) => {
        return [node.node_id, { files: marks.length, changes: states.getChanges(marks, root) }] as const;
      });
      return new Map(found);
    },

    /** Null outside known projects. `file` is absolute and may be deleted. */
    getAnchor(file: string): FileAnchor | null {
      const all = catalogue.all();
      const projects = new Set(all.map((node) => node.project));
      const directory = ancestors(file).find((each) => projects.has(getProject(each))) ?? null;
      const root = sources?.getRoot(directory) ?? null;
      if (directory === null || root === null) return null;
      // `placeOf` returns no path for the root itself.
      const place = path.resolve(file) === root ? '' : sources?.getPlace(file, root, root);
      if (typeof place !== 'string') return null;
      const project = getProject(directory);
      const isAbout = (node: MemoryNode): boolean =>
        node.project === project &&
        node.source_links.length > 0 &&
        getMarksFor(node).some((mark) => place === '' || mark.path === place || mark.path.startsWith(`${place}/`));
      return { directory, path: place, nodes: all.filter(isAbout) };
    },
  };
}

const stateKey = (root: string, { path, sha256 }: FileMark): string => `${root}\0${path}\0${sha256}`;

/** Input key of the file path, per tool. */
const FILE_TOOLS: Readonly<Record<string, string>> = {
  Read: 'file_path',
  Edit: 'file_path',
  MultiEdit: 'file_path',
  Write: 'file_path',
  NotebookEdit: 'notebook_path',
  NotebookRead: 'notebook_path',
};
const MAX_TOOL_PATHS = 40;
const MAX_COMMAND_WORDS = 30;
/** A longer command is a script or a paste. */
const COMMAND_CHARS = 4_000;

/** Paths as given in tool calls: those of file tools, then candidate words of commands. */
export function touchedFiles(turn: CapturedTurn): string[] {
  const calls = turn.messages
    .filter((message) => message.role === 'assistant')
    .flatMap((message) => getBlocks(message).filter((block) => block['type'] === 'tool_use'));
  const named = calls.flatMap((call) => getPath(call));
  const words = calls.flatMap((call) => commandWords(call));
  return [...new Set([...named.slice(-MAX_TOOL_PATHS), ...words.slice(-MAX_COMMAND_WORDS)])];
}

function getPath(call: Block): string[] {
  const key = FILE_TOOLS[toText(call['name'])];
  const path = key === undefined ? '' : toText(toRecord(call['input'])[key]);
  return path === '' ? [] : [path];
}

/** Ends as a file does: a branch, a host or a key of a configuration is none. */
const FILE =
  /(?:^|[\w)-])\.(?:[cm]?[jt]sx?|py|rs|go|java|kts?|rb|php|cs|cc|cpp|[ch]|swift|sql|ya?ml|jsonl?|toml|md|txt|log|sh|ps1|s?css|html?|xml|svg|png|env|lock|mod|sum|cfg|ini|conf|csv|proto|tf|gradle|snap|vue|svelte|prisma|graphql|gitignore)$|(?:^|\/)(?:Makefile|Dockerfile|LICENSE|README)$/i;

/** Words that may be paths of files; the caller checks them on disk. */
function commandWords(call: Block): string[] {
  const name = toText(call['name']);
  if (name !== 'Bash' && name !== 'PowerShell') return [];
  const command = toText(toRecord(call['input'])['command']).slice(0, COMMAND_CHARS);
  // A word before a bracket is a call: `node -e "run(1)"`.
  const matches = [...command.matchAll(/([^\s'"`;&|<>(){}=,:]+)(?=([(]?))/g)];
  const words = matches.flatMap(([, word = '', bracket]) => (bracket === '' ? [word] : []));
  return words.filter((word) => FILE.test(word) && !/^[-~]|[@*?$[\]!^\\]|^[\w-]+(?:\.[\w-]+)+\//.test(word));
}
