import type { Clock } from '../common/clock.ts';
import type { Config } from '../common/config.ts';
import type { Log } from '../common/log.ts';
import type { Redactor } from '../redact/index.ts';
import type { LanguageModel } from './models/language-model.ts';
import type { QuotaDecision } from './models/quota.ts';
import type { Reranker } from './recall/reranker.ts';
import type { NodeIndex } from './search/node-index.ts';
import type { NodeFiles, NodeWatch } from './storage/node-files.ts';
import type { SourceFiles } from './storage/project-files.ts';
import type { DreamFiles, Snapshots } from './storage/snapshot-files.ts';
import type { Journal } from './storage/turn-log.ts';

/** A model that can say how it is doing; `health` is what `status` shows. */
export type ReportingModel = LanguageModel & {
  health?(): {
    readonly callsToday: number;
    readonly tokensToday: number;
    readonly costUsdToday?: number;
    readonly lastError: string;
  };
};

/** All that memory is built from. It closes journal, index, watch and both models; the embedder is its owner's. */
export interface MemoryDeps {
  readonly config: Pick<Config, 'llm' | 'compaction' | 'recall' | 'rerank' | 'inject' | 'dream'>;
  readonly journal: Journal;
  readonly nodeFiles: NodeFiles;
  readonly index: NodeIndex;
  /** Null when `config.llm` is `local` or `off`. */
  readonly model: ReportingModel | null;
  readonly local: LanguageModel;
  /** Absent where nobody puts what was found in order. */
  readonly reranker?: Reranker;
  /** Whether the model may be asked now; always, where it is not given. */
  readonly quota?: { decide(): QuotaDecision };
  readonly redactor: Redactor;
  /** Project key of a directory, see `adapters/git-project.ts`. */
  readonly projectOf: (directory: string | null) => string;
  /** Ends of turns that the user removed: they must not be captured again. */
  readonly forgotten: Forgotten;
  /** Ends of turns whose nodes the user took out of the files: they stay in the journal, no node is made of them. */
  readonly dismissed: Forgotten;
  readonly closings: Closings;
  readonly snapshots: Snapshots;
  readonly dreams: DreamFiles;
  /** Null where no project's files are to be looked at. */
  readonly sources: SourceFiles | null;
  /** How many times as long as usual a look at them may take. */
  readonly sourcePatience?: number;
  /** Null where nobody edits by hand. */
  readonly watch: NodeWatch | null;
  readonly clock: Clock;
  readonly log: Log;
  /** Fresh lower-case hex, at least six digits. */
  readonly randomHex: () => string;
}

/** Sessions that the user closed. */
export interface Closings {
  /** When each was closed last, ms. */
  load(): Promise<ReadonlyMap<string, number>>;
  add(sessionId: string, atMs: number): Promise<void>;
}

export interface Forgotten {
  load(): Promise<readonly string[]>;
  add(ends: readonly string[]): Promise<void>;
}
