import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { homePaths } from '../../common/paths.ts';
import type { CapturedMessage, CapturedTurn } from '../../common/turn.ts';
import { createLocalModel } from '../../memory/compaction/rules-model.ts';
import type { Embedder } from '../../memory/embeddings/embedder.ts';
import { createStaticEmbedder } from '../../memory/embeddings/static-embedder.ts';
import { createMemory, type Memory } from '../../memory/memory.ts';
import type { LanguageModel } from '../../memory/models/model.ts';
import { openLanceIndex } from '../../memory/search/lancedb/search-index.ts';
import type { SearchIndex } from '../../memory/search/search-index.ts';
import { openNodeFiles } from '../../memory/storage/fs/node-files.ts';
import { openJournal } from '../../memory/storage/fs/turn-log.ts';
import { createRedactor } from '../../redact/index.ts';
import { noDreams, noFacts, noMarks, noPages, noQuota, noTasks } from '../no-files.ts';

/** Memory as the daemon has it, on files and an index of its own, without Claude. */
export interface Product {
  readonly memory: Memory;
  readonly index: SearchIndex;
  close(): Promise<void>;
}

export interface ProductOptions {
  /** Who writes nodes; the rules unless told. */
  readonly model?: LanguageModel;
  /** Stands for the rules. */
  readonly local?: LanguageModel;
  readonly embedder?: Embedder;
  readonly now?: () => number;
}

const nothing = { load: async () => [], add: async () => {} };

export async function openProduct({ model, local, embedder, now = Date.now }: ProductOptions = {}): Promise<Product> {
  const home = await mkdtemp(path.join(tmpdir(), 'comet-bench-'));
  const paths = homePaths(home);
  const report = (): void => {};
  const used = embedder ?? createStaticEmbedder();
  const { index } = await openLanceIndex({ dir: paths.indexDir, embedder: used, now: Date.now, report });
  const journal = await openJournal({ dir: paths.journalDir, report });
  const memory = await createMemory({
    config: Config.parse({ llm: model === undefined ? 'local' : 'claude', compaction: { idleMs: 0 } }),
    journal,
    nodeFiles: await openNodeFiles(paths),
    index,
    model: model ?? null,
    local: local ?? createLocalModel(),
    redactor: createRedactor({ markKey: Buffer.alloc(32, 7) }),
    getProject: (directory) => directory ?? '',
    forgotten: nothing,
    agentReports: nothing,
    tasks: noTasks,
    quota: noQuota,
    dismissed: nothing,
    closings: { load: async () => new Map(), add: async () => {} },
    snapshots: {
      list: async () => [],
      write: async (reason) => ({ id: '', at: '', reason, bytes: 0 }),
      read: async () => '',
      rewrite: async () => {},
    },
    sources: null,
    dreams: noDreams,
    crashMarks: noMarks,
    pageFiles: noPages,
    factFiles: noFacts,
    watch: null,
    clock: { now },
    log: silentLog,
    randomHex: () => randomBytes(4).toString('hex'),
  });
  return {
    memory,
    index,
    async close() {
      await memory.maintenance.close();
      await index.close();
      await used.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** A turn named by its place; `turnId` is its id in memory. */
export function capturedTurn(
  name: string,
  texts: readonly (readonly [CapturedMessage['role'], string])[],
  place: { readonly sessionId: string; readonly projectDir: string; readonly atMs: number },
): CapturedTurn {
  const messages = texts.map(([role, text]): CapturedMessage => {
    const content = JSON.stringify(text);
    return { role, content, sha256: hex(content) };
  });
  return { key: hex(`key ${name}`), turnId: hex(`end ${name}`), model: 'claude-opus-4-8', messages, ...place };
}

export function hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
