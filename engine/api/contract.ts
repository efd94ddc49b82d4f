import { isAbsolute } from 'node:path';
import { z } from 'zod';
import type { Mode } from '../../common/policy.ts';
import type {
  DocumentReport,
  DreamReport,
  ForgetReport,
  ImportReport,
  MemoryStats,
  MemoryStatus,
  NodeReason,
  NodeView,
  PastReport,
  ProjectView,
  RawMessage,
  RecallHit,
  RollbackReport,
  SessionDetail,
  SessionView,
} from '../../memory/index.ts';
import type { Skipped } from '../../memory/ingest/claude-transcript.ts';
import type { MemoryNode } from '../../memory/model/node.ts';
import type { SnapshotInfo } from '../../memory/storage/snapshot-files.ts';
import type { Receipt } from '../../proxy/rewrite/receipt.ts';
import type { Pauses } from '../policy/pauses.ts';
import type { Costs } from './costs.ts';

const text = z.string().max(4_096);
const id = z.string().min(1).max(200);
const path = text.refine(isAbsolute, 'an absolute path');
/** A program asks on behalf of a session there: it is told what the user lets memory tell in that project. */
const within = path.optional();
const section = z.string().max(400_000);

/** What each operation takes; the body of `POST /v1/<operation>`. */
export const operationInputs = {
  status: z.strictObject({}),
  'nodes/list': z.strictObject({
    sessionId: id.optional(),
    projectDir: text.optional(),
    tag: text.optional(),
    importance: z.enum(['HIGH', 'MED', 'LOW']).optional(),
    sinceMs: z.number().optional(),
    all: z.boolean().optional(),
    quarantine: z.boolean().optional(),
    limit: z.int().positive().optional(),
    within,
  }),
  'nodes/show': z.strictObject({ id, depth: z.literal([0, 1, 2]), within }),
  'nodes/search': z
    .strictObject({
      query: z.string().max(20_000),
      top: z.int().positive().max(1_000),
      sessionId: id.optional(),
      projectDir: text.optional(),
      file: path.optional(),
      within,
    })
    .refine(({ query, file }) => query !== '' || file !== undefined, 'a query, or a file'),
  'nodes/remove': z.strictObject({ ids: z.array(id).min(1).max(1_000), within }),
  'nodes/forget': z.strictObject({
    dryRun: z.boolean(),
    source: z.strictObject({ name: id, file: path.optional() }).optional(),
    sessionId: id.optional(),
    sinceMs: z.number().optional(),
  }),
  'nodes/section': z.strictObject({ id }),
  'nodes/edit': z.strictObject({
    id,
    change: z.union([
      z.strictObject({ text: section, base: section }),
      z.strictObject({ set: z.record(z.string().max(100), section) }),
    ]),
  }),
  'nodes/pin': z.strictObject({ ids: z.array(id).min(1).max(1_000), pinned: z.boolean(), projectDir: text.optional() }),
  'nodes/why': z.strictObject({ id }),
  /** As long as a node's text may be. */
  'nodes/remember': z.strictObject({ text: z.string().min(1).max(2_000), projectDir: path }),
  'project/overview': z.strictObject({ projectDir: text, within }),
  'memory/stats': z.strictObject({}),
  'memory/export': z.strictObject({ format: z.enum(['md', 'jsonl']) }),
  /** The engine reads the file itself: an export may be larger than a request. */
  'memory/import': z.strictObject({
    file: path,
    as: z.enum(['nodes', 'document', 'turns']).optional(),
    projectDir: path.optional(),
    again: z.boolean().optional(),
  }),
  'memory/import-claude': z.strictObject({
    /** Claude Code's own folder, as the user's shell names it. */
    claudeDir: path,
    projectDir: path.optional(),
    sinceMs: z.number().optional(),
    dryRun: z.boolean(),
    llm: z.enum(['local', 'claude']),
    budgetTokens: z.int().positive().optional(),
    again: z.boolean().optional(),
  }),
  'memory/dream': z.strictObject({ dryRun: z.boolean(), projectDir: path.optional() }),
  'memory/reindex': z.strictObject({}),
  'snapshots/list': z.strictObject({}),
  'snapshots/rollback': z.strictObject({ id }),
  'sessions/list': z.strictObject({ within }),
  'sessions/show': z.strictObject({ sessionId: id }),
  'sessions/close': z.strictObject({ sessionId: id }),
  'sessions/brief': z.strictObject({ sessionId: id }),
  'sessions/restore': z.strictObject({ sessionId: id }),
  'hooks/session-start': z.strictObject({ sessionId: id, projectDir: path }),
  'hooks/prompt': z.strictObject({
    sessionId: id,
    projectDir: path,
    prompt: z.string().max(20_000),
    /** What was said before it, oldest first. */
    recent: z.array(text).max(8).default([]),
  }),
  'hooks/compact': z.strictObject({ sessionId: id, done: z.boolean() }),
  'hooks/session-end': z.strictObject({ sessionId: id }),
  explain: z.strictObject({ request: id }),
  'receipts/list': z.strictObject({}),
  statusline: z.strictObject({ sessionId: id.optional(), projectDir: path.optional() }),
  flush: z.strictObject({ timeoutMs: z.int().positive().max(3_600_000) }),
};

export type Operation = keyof typeof operationInputs;
export type OperationInput<K extends Operation> = z.infer<(typeof operationInputs)[K]>;

/** What each operation answers. */
export interface OperationResults {
  status: EngineStatus;
  'nodes/list': readonly MemoryNode[];
  'nodes/show': NodeView;
  'nodes/search': readonly RecallHit[];
  'nodes/remove': readonly string[];
  'nodes/forget': ForgetReport;
  'nodes/section': { readonly id: string; readonly text: string };
  'nodes/edit': MemoryNode;
  'nodes/pin': readonly MemoryNode[];
  'nodes/why': NodeReason;
  'nodes/remember': { readonly node: MemoryNode; readonly isNew: boolean };
  'project/overview': ProjectView;
  'memory/stats': MemoryStats & Pick<Costs, 'savings'>;
  'memory/export': string;
  'memory/import': ImportReport | DocumentReport | TurnsReport;
  'memory/import-claude': ClaudeReport;
  'memory/dream': DreamReport;
  'memory/reindex': number;
  'snapshots/list': readonly SnapshotInfo[];
  'snapshots/rollback': RollbackReport;
  'sessions/list': readonly SessionView[];
  'sessions/show': SessionDetail;
  'sessions/close': SessionView;
  'sessions/brief': string;
  'sessions/restore': readonly RawMessage[];
  'hooks/session-start': HookText;
  'hooks/prompt': HookText;
  'hooks/compact': HookText;
  'hooks/session-end': HookText;
  explain: Receipt;
  /** Newest first. */
  'receipts/list': readonly Receipt[];
  statusline: StatuslineView;
  flush: boolean;
}

/** Of a file with turns, a line for each message. */
export interface TurnsReport extends Pick<PastReport, 'turns' | 'added' | 'known' | 'skipped'> {
  readonly kind: 'turns';
  readonly sessions: number;
}

/** Of Claude Code's transcripts; `added`, `known` and `skipped` are turns. */
export interface ClaudeReport extends Pick<PastReport, 'turns' | 'added' | 'known' | 'skipped' | 'tokens'> {
  readonly kind: 'claude';
  readonly dry_run: boolean;
  readonly transcripts: number;
  /** Taken in to their end before, and not changed since. */
  readonly unchanged: number;
  readonly files_read: number;
  readonly sessions: number;
  /** What `--llm claude` would take, in about as many tokens, and what it did. */
  readonly model: { readonly tokens: number; readonly batches: number; readonly left: number };
  readonly lines_skipped: Skipped;
  /** Claude Code's own memory files; `added` and `unchanged` are pieces. */
  readonly documents: { readonly files: number; readonly added: number; readonly unchanged: number };
  readonly problems: readonly { readonly file: string; readonly message: string }[];
}

/** What a hook adds to the conversation, of clean origin; '' for nothing. */
export interface HookText {
  readonly text: string;
}

/** What Claude Code's statusline shows of a session and its project. */
export interface StatuslineView {
  readonly mode: Mode;
  /** Of the project; of all where none is known. */
  readonly nodes: number;
  /** Net saved in the session; null where nothing was counted yet. */
  readonly tokens: number | null;
  readonly trimming_off: boolean;
}

/** Field names are those of `status --json`. */
export interface EngineStatus extends MemoryStatus, Costs {
  readonly pid: number;
  readonly version: string;
  readonly paused: Pauses;
  readonly requests: {
    readonly total: number;
    readonly rewritten: number;
    readonly passed_through: number;
    readonly failed_open: number;
  };
}

/** One function for each operation; the server has validated the input. */
export type Handlers = {
  readonly [K in Operation]: (
    input: OperationInput<K>,
    signal: AbortSignal,
  ) => OperationResults[K] | Promise<OperationResults[K]>;
};
