import type { Problem } from '../../common/errors.ts';
import type { MemoryNode, StoredBrief } from '../model/node.ts';

/** By session, if it has a file: tails of the ids that its writers could have seen; null where it does not say. */
export type SeenIds = ReadonlyMap<string, ReadonlySet<string> | null>;

/** The truth: one markdown file for each session with a section for each of its nodes. */
export interface NodeFiles {
  /**
   * Reads all; a section that does not validate is named in `problems` and left as it is on disk. Files that did not
   * change since the last time give the very same nodes. With `only`, no other file is looked at.
   */
  load(only?: readonly string[]): Promise<{
    readonly nodes: readonly MemoryNode[];
    readonly problems: readonly Problem[];
    readonly seen?: SeenIds;
    /** Files by the ids of their sections, those that do not validate included. */
    readonly places?: ReadonlyMap<string, readonly string[]>;
  }>;
  /**
   * Inserts or replaces by `node_id`; durable when it resolves. Nodes may be of several sessions. With `read`, nodes by
   * their ids as they were read, a section that says something else by now stays as it is.
   */
  save(nodes: readonly MemoryNode[], read?: ReadonlyMap<string, MemoryNode>): Promise<void>;
  /** Removes the sections of these ids, and nothing else. */
  drop(nodeIds: readonly string[]): Promise<void>;
  /** Removes every section of these ids in any file, and set-aside copies that name one of them or of `turnIds`. */
  remove(nodeIds: readonly string[], turnIds?: readonly string[]): Promise<void>;
  readBrief(sessionId: string): Promise<StoredBrief | null>;
  /** One that claims nothing is taken away. */
  writeBrief(brief: StoredBrief): Promise<void>;
  /** Every brief that can be read, ordered by session. */
  briefs(): Promise<readonly StoredBrief[]>;
}
