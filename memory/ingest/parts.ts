import type { Clock } from '../../common/async.ts';
import type { Log } from '../../common/log.ts';
import type { Redactor } from '../../redact/index.ts';
import type { LanguageModel } from '../models/model.ts';
import type { ModelQuota } from '../models/quota.ts';
import type { SearchIndex } from '../search/search-index.ts';
import type { CrashMarks } from '../storage/fs/set-files.ts';
import type { Indexer } from '../storage/index-writer.ts';
import type { NodeFiles } from '../storage/node-files.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import type { Store } from '../storage/node-store.ts';
import type { SnapshotService } from '../storage/snapshot.ts';
import type { Journal } from '../storage/turn-log.ts';
import type { FileReferences } from './file-references.ts';
import type { TaskQueue } from './task-queue.ts';
import type { TurnReader } from './turn-reader.ts';
import type { TurnRegistry } from './turn-registry.ts';

/** Opened by the caller. */
export interface OpenParts {
  readonly journal: Journal;
  readonly crashMarks: CrashMarks;
  readonly nodeFiles: NodeFiles;
  readonly index: SearchIndex;
  /** Null when `config.llm` is `local` or `off`. */
  readonly model: LanguageModel | null;
  readonly local: LanguageModel;
  readonly quota: ModelQuota;
  readonly redactor: Redactor;
  /** Project key of a directory, see `createProjectOf`. */
  readonly getProject: (directory: string | null) => string;
  readonly clock: Clock;
  readonly log: Log;
  /** Fresh lower-case hex, at least six digits. */
  readonly randomHex: () => string;
}

/** What the services of memory share; each takes what it needs. */
export interface ServiceParts extends OpenParts {
  readonly catalogue: NodeRegistry;
  readonly turnRegistry: TurnRegistry;
  readonly turnReader: TurnReader;
  readonly taskQueue: TaskQueue;
  readonly files: FileReferences;
  readonly indexer: Indexer;
  readonly snapshooter: SnapshotService;
  readonly store: Store;
}
