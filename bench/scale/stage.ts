import { randomBytes } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { createLocalModel } from '../../memory/compaction/rules-model.ts';
import type { Embedder } from '../../memory/embeddings/embedder.ts';
import { createStaticEmbedder } from '../../memory/embeddings/static-embedder.ts';
import { createMemory, type Memory } from '../../memory/memory.ts';
import { openLanceIndex } from '../../memory/search/lancedb/search-index.ts';
import type { SearchIndex } from '../../memory/search/search-index.ts';
import type { NodeFiles } from '../../memory/storage/node-files.ts';
import type { Journal } from '../../memory/storage/turn-log.ts';
import { createRedactor } from '../../redact/index.ts';
import { noDreams, noFacts, noMarks, noPages, noQuota, noTasks } from '../no-files.ts';
import type { Corpus } from './corpus.ts';

export interface IndexStage {
  readonly index: SearchIndex;
  readonly embedder: Embedder;
  /** Waits for all upkeep. */
  close(): Promise<void>;
}

export async function openIndex(dir: string): Promise<IndexStage> {
  const embedder = createStaticEmbedder();
  const report = (problem: unknown): void => console.error(problem);
  const { index } = await openLanceIndex({ dir, embedder, now: Date.now, report });
  return {
    index,
    embedder,
    close: async () => {
      await index.close();
      await embedder.close();
    },
  };
}

/** Memory as the engine composes it, over the corpus in place of journal and node files, and a real index. */
export async function openCorpusMemory(
  dir: string,
  corpus: Corpus,
): Promise<{ memory: Memory; index: SearchIndex; close(): Promise<void> }> {
  const { index, embedder } = await openIndex(dir);
  const nothing = { load: async () => [], add: async () => {} };
  const memory = await createMemory({
    config: Config.parse({ llm: 'off' }),
    journal: getJournal(corpus),
    nodeFiles: getNodeFiles(corpus),
    index,
    model: null,
    local: createLocalModel(),
    redactor: createRedactor({ markKey: Buffer.alloc(32, 7) }),
    getProject: (directory) => directory ?? '',
    forgotten: nothing,
    agentReports: nothing,
    tasks: noTasks,
    quota: noQuota,
    dismissed: nothing,
    closings: { load: async () => new Map(), add: async () => {} },
    snapshots: { list: async () => [], write: refused, read: refused, rewrite: refused },
    dreams: noDreams,
    crashMarks: noMarks,
    pageFiles: noPages,
    factFiles: noFacts,
    sources: null,
    watch: null,
    clock: { now: Date.now },
    log: { ...silentLog, error: (message, fields) => console.error(message, fields) },
    randomHex: () => randomBytes(4).toString('hex'),
  });
  const close = async (): Promise<void> => {
    await memory.maintenance.close();
    await embedder.close();
  };
  return { memory, index, close };
}

function getJournal(corpus: Corpus): Journal {
  const places = new Map(corpus.sessions.map((sessionId, at) => [sessionId, at]));
  return {
    append: refused,
    sessions: async () => [...corpus.sessions].reverse(),
    read: async (sessionId) => {
      const at = places.get(sessionId);
      return at === undefined ? [] : corpus.session(at);
    },
    remove: refused,
    close: async () => {},
  };
}

/** Files that did not change give the very same nodes, as the real ones do. */
function getNodeFiles(corpus: Corpus): NodeFiles {
  const nodes = corpus.nodes();
  return {
    load: async () => ({ nodes, problems: [] }),
    save: refused,
    drop: refused,
    remove: refused,
    readBrief: async () => null,
    writeBrief: refused,
    briefs: async () => [],
  };
}

async function refused(): Promise<never> {
  throw new Error('a made-up history is only read');
}

export function diskBytes(dir: string): { readonly bytes: number; readonly files: number } {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const sizes = files.map(
    (entry) => statSync(path.join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size,
  );
  return { bytes: sizes.reduce<number>((sum, size = 0) => sum + size, 0), files: files.length };
}

/** Greatest resident size of this process so far. */
export function peakMb(): number {
  return process.resourceUsage().maxRSS / 1024;
}
