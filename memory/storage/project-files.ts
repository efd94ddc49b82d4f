import type { FileMark } from '../model/turn.ts';

/** What the disk says of a marked file; `unknown` where it cannot or must not be read. */
export type FileState = 'same' | 'changed' | 'deleted' | 'unknown';

/** The projects' own files: only looked at, never written, and never one outside the project or with secrets. */
export interface SourceFiles {
  /** The project's root for a working directory inside it; null where there is none. */
  getRoot(directory: string | null): string | null;
  /** The path inside `root`; null for one that leads out of it. Relative paths start from `directory`. */
  getPlace(file: string, root: string, directory: string): string | null;
  /** Null where there is no such file now. May take as long as the disk does. */
  mark(root: string, path: string): Promise<FileMark | null>;
  compare(root: string, mark: FileMark): Promise<FileState>;
}
