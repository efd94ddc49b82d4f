import { createHash } from 'node:crypto';
import { noFacts, noMarks, noPages, noQuota, noTasks } from '../../bench/no-files.ts';
import { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { createLocalModel } from '../../memory/compaction/rules-model.ts';
import type { IdSetFile, Memory, MemoryOptions } from '../../memory/index.ts';
import { createMemory } from '../../memory/memory.ts';
import type { MemoryNode, StoredBrief } from '../../memory/model/node.ts';
import type { SearchIndex } from '../../memory/search/search-index.ts';
import type { DreamFiles } from '../../memory/storage/fs/dream-files.ts';
import type { Snapshots } from '../../memory/storage/fs/snapshot-files.ts';
import type { NodeFiles } from '../../memory/storage/node-files.ts';
import type { Journal } from '../../memory/storage/turn-log.ts';
import { createRedactor } from '../../redact/index.ts';
import { createHashEmbedder } from './hash-embedder.ts';
import { createInMemorySearchIndex } from './in-memory-search-index.ts';
import { createMemoryDreams } from './memory-dreams.ts';
import { createMemorySnapshots } from './memory-snapshots.ts';
import { createMemoryJournal } from './memory-turn-log.ts';

/** What outlives a memory: open another one on the same disk to restart. */
export interface Disk {
  readonly journal: Journal;
  readonly nodeFiles: NodeFiles;
  readonly nodes: Map<string, MemoryNode>;
  readonly briefs: Map<string, StoredBrief>;
  readonly forgotten: string[];
  readonly dismissed: string[];
  readonly closed: Map<string, number>;
  readonly snapshots: Snapshots;
  readonly dreams: DreamFiles;
  index: SearchIndex;
  nowMs: number;
}

export function createDisk(): Disk {
  const nodes = new Map<string, MemoryNode>();
  const briefs = new Map<string, StoredBrief>();
  const journal = { ...createMemoryJournal(), close: async () => {} };
  const nodeFiles: NodeFiles = {
    load: async () => ({ nodes: [...nodes.values()], problems: [] }),
    save: async (fresh) => {
      for (const node of fresh) nodes.set(node.node_id, structuredClone(node));
    },
    drop: async (ids) => {
      for (const id of ids) nodes.delete(id);
    },
    remove: async (ids) => {
      for (const id of ids) nodes.delete(id);
    },
    readBrief: async (sessionId) => briefs.get(sessionId) ?? null,
    writeBrief: async (brief) => void briefs.set(brief.session_id, brief),
    briefs: async () => [...briefs.values()],
  };
  const index = freshIndex();
  const snapshots = createMemorySnapshots();
  return {
    journal,
    nodeFiles,
    nodes,
    briefs,
    forgotten: [],
    dismissed: [],
    closed: new Map(),
    snapshots,
    dreams: createMemoryDreams(),
    index,
    nowMs: 1_800_000_000_000,
  };
}

export function freshIndex(): SearchIndex {
  return { ...createInMemorySearchIndex(createHashEmbedder()), close: async () => {} };
}

export type RigOptions = Partial<MemoryOptions> & { readonly llm?: Config['llm']; readonly idleMs?: number };

export function openRig(
  disk: Disk,
  { llm = 'claude', idleMs = 600_000, ...over }: RigOptions = {},
): ReturnType<typeof createMemory> {
  return createMemory({
    config: Config.parse({ llm, compaction: { idleMs }, dream: { at: '' } }),
    journal: disk.journal,
    crashMarks: noMarks,
    nodeFiles: disk.nodeFiles,
    index: disk.index,
    model: null,
    local: createLocalModel(),
    redactor: createRedactor({ markKey: Buffer.alloc(32, 7) }),
    getProject: (directory) => directory ?? '',
    agentReports: listed([]),
    tasks: noTasks,
    quota: noQuota,
    forgotten: listed(disk.forgotten),
    dismissed: listed(disk.dismissed),
    closings: { load: async () => disk.closed, add: async (id, atMs) => void disk.closed.set(id, atMs) },
    snapshots: disk.snapshots,
    dreams: disk.dreams,
    pageFiles: noPages,
    factFiles: noFacts,
    sources: null,
    watch: null,
    clock: { now: () => disk.nowMs },
    log: silentLog,
    randomHex,
    ...over,
  });
}

/** What a new session of a project is given of the library as it is on disk. */
export async function getLibraryBlock({ library, recall }: Memory, projectDir: string | null): Promise<string> {
  await library.linkedBlock();
  return ((await recall.sessionContext('another', projectDir)).library ?? []).join('\n');
}

let asked = 0;
/** Another one each time, and the same ones in each run. */
function randomHex(): string {
  asked += 1;
  return createHash('sha256').update(String(asked)).digest('hex').slice(0, 8);
}

function listed(turnIds: string[]): IdSetFile {
  return { load: async () => turnIds, add: async (fresh) => void turnIds.push(...fresh) };
}
