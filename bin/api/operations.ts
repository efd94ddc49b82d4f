import { z } from 'zod';
import type { MemoryNode } from '../../memory/core/node.ts';
import type { NodeView, RawMessage, RecallHit, SessionView } from '../../memory/face.ts';

const text = z.string().max(4_096);
const id = z.string().min(1).max(200);

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
    limit: z.int().positive().optional(),
  }),
  'nodes/show': z.strictObject({ id, depth: z.literal([0, 1, 2]) }),
  'nodes/search': z.strictObject({
    query: z.string().min(1).max(20_000),
    top: z.int().positive().max(1_000),
    sessionId: id.optional(),
    projectDir: text.optional(),
  }),
  'nodes/remove': z.strictObject({ ids: z.array(id).min(1).max(1_000) }),
  'sessions/list': z.strictObject({}),
  'sessions/brief': z.strictObject({ sessionId: id }),
  'sessions/restore': z.strictObject({ sessionId: id }),
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
  'sessions/list': readonly SessionView[];
  'sessions/brief': string;
  'sessions/restore': readonly RawMessage[];
  flush: boolean;
}

/** Field names are those of `status --json`. */
export interface EngineStatus {
  readonly pid: number;
  readonly version: string;
  readonly requests: {
    readonly total: number;
    readonly rewritten: number;
    readonly passed_through: number;
    readonly failed_open: number;
  };
  readonly tokens: { readonly original: number; readonly sent: number; readonly net_saved: number };
  readonly queue: { readonly sensor: number; readonly compacter: number; readonly indexer: number };
  readonly llm: {
    readonly backend: string;
    readonly calls_today: number;
    readonly tokens_today: number;
    readonly deferred: number;
    readonly last_error: string;
  };
  readonly nodes: number;
  readonly problems: readonly { readonly file: string; readonly message: string }[];
}

/** One function for each operation; the server has validated the input. */
export type Handlers = {
  readonly [K in Operation]: (
    input: OperationInput<K>,
    signal: AbortSignal,
  ) => OperationResults[K] | Promise<OperationResults[K]>;
};
