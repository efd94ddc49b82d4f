import type { ModelQuota } from '../memory/models/quota.ts';
import type { FactFiles } from '../memory/storage/fact-files.ts';
import type { DreamFiles } from '../memory/storage/fs/dream-files.ts';
import type { PageFiles } from '../memory/storage/fs/page-files.ts';
import type { CrashMarks } from '../memory/storage/fs/set-files.ts';
import type { Tasks } from '../memory/tasks/tasks.ts';

/** Where memory is only asked, nothing is tidied. */
export const noDreams: DreamFiles = {
  begin: refused,
  end: refused,
  pending: async () => null,
  lastDigests: async () => new Map(),
  load: async () => null,
  firstMs: async (nowMs: number) => nowMs,
  save: refused,
};

/** Nothing is remembered of a crash. */
export const noMarks: CrashMarks = {
  during: (_what, _turns, work) => work(),
  isSuspect: () => false,
  isSkipped: () => false,
  skipped: () => [],
};

/** Nothing is to be done; only what memory itself asks. */
export const noTasks = {
  active: async () => [],
  briefLines: async () => ({ open: 0, due: [], neglected: [] }),
  drop: async () => {},
  findDerived: async () => [],
  forget: async () => {},
  lint: async () => [],
  questions: async () => [],
  receive: async () => {},
  restore: async () => false,
  takeStatement: async () => {},
  texts: async () => [],
} satisfies Partial<Tasks> as unknown as Tasks;

/** The model may always be asked. */
export const noQuota: ModelQuota = { decide: () => ({ kind: 'allow' }) };

/** An empty library that nothing is written into. */
export const noPages: PageFiles = {
  dir: '',
  load: async () => ({ texts: new Map(), problems: [], isWritable: false }),
  replace: async () => true,
  getAddress: () => '',
};

/** No facts, and no concept that one could be about. */
export const noFacts: FactFiles = {
  getName: (scope) => scope,
  getPath: (name) => name,
  texts: async () => new Map(),
  replace: async () => true,
  ontology: async () => ({ ontology: { version: '0.2', concepts: {} }, problems: [] }),
};

async function refused(): Promise<never> {
  throw new Error('memory is only asked here');
}
