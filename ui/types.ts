import type { OperationInput, OperationResults } from '../engine/api/index.ts';

export interface Row {
  readonly requests: number;
  readonly original: number;
  readonly sent: number;
  readonly own: number;
  readonly cache_read: number;
  readonly cache_write: number;
  readonly untouched_usd: number;
  readonly sent_usd: number;
  readonly own_usd: number;
  readonly net_saved_usd: number;
}
type Status = OperationResults['status'];
export interface UiOverview extends Pick<Status, 'version' | 'nodes' | 'queue' | 'paused' | 'savings'> {
  readonly sessions: readonly {
    readonly session_id: string;
    readonly title: string;
    readonly project: string;
    readonly at: string;
    readonly streaming: boolean;
    readonly requests: number;
    readonly epoch: number | null;
    readonly decision: string;
    readonly received_tokens: number;
    readonly sent_tokens: number;
    readonly recalled_tokens: number;
    readonly recalled: number;
    readonly saved_usd: number;
    readonly untouched_usd: number;
    readonly sent_usd: number;
    readonly trimming_off: string | null;
    readonly phases: readonly { readonly name: string; readonly ms: number }[];
  }[];
}
export interface UiSavings {
  readonly days: readonly (Row & { readonly day: string })[];
  readonly sessions: readonly (Row & {
    readonly session_id: string;
    readonly title: string;
    readonly project: string;
    readonly at: string;
  })[];
  readonly projects: readonly (Row & { readonly project: string })[];
}
export interface UiSession {
  readonly session_id: string;
  readonly title: string;
  readonly project: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly messages: readonly {
    readonly seq: number;
    readonly turn: string;
    readonly role: string;
    readonly text: string;
    readonly kind: 'text' | 'tool_use' | 'tool_result' | 'thinking';
    readonly at?: string;
    readonly trimmed_by?: number;
  }[];
  readonly lines: readonly { readonly text: string; readonly nodes: readonly string[] }[];
  readonly requests: readonly {
    readonly request_id: string;
    readonly at: string;
    readonly turn: string;
    readonly prompt: string;
    readonly epoch: number | null;
    readonly decision: string;
    readonly received_tokens: number;
    readonly sent_tokens: number;
    readonly saved_usd: number;
    readonly recalled: number;
    readonly cut: boolean;
  }[];
}
export type UiRequest = OperationResults['explain'] & {
  readonly changes: readonly {
    readonly at: string;
    readonly removed: string;
    readonly added: string;
    readonly bytes: number;
  }[];
  /** What no receipt holds. */
  readonly not_kept: readonly string[];
};
export interface UiHit {
  readonly node_id: string;
  readonly title: string;
  readonly summary: string;
  readonly project: string;
  readonly kind: string;
  readonly origin: string;
  readonly importance: string;
  readonly created_at: string;
  readonly pinned: boolean;
  readonly quarantined: boolean;
  readonly score: number;
  readonly isFar?: boolean;
  readonly lanes: Readonly<Record<string, { readonly rank: number; readonly score: number }>>;
  readonly why: string;
}
export interface UiSearch {
  readonly total: number;
  readonly hits: readonly UiHit[];
  readonly projects: readonly string[];
}
export interface UiGraph {
  readonly nodes: readonly {
    readonly id: string;
    readonly title: string;
    readonly project: string;
    readonly at: number;
    readonly importance: 'HIGH' | 'MED' | 'LOW';
    readonly kind: 'memory' | 'topic' | 'file';
  }[];
  readonly links: readonly (readonly [from: number, to: number, kind: string])[];
  readonly left_out: number;
}
export interface UiHealth extends Pick<Status, 'version' | 'pid' | 'budget' | 'llm' | 'paused' | 'problems'> {
  readonly node: string;
  readonly uptime_ms: number;
  readonly rss: number;
  readonly daemon: { readonly pid: number; readonly state: string; readonly restarts: number } | null;
  readonly checks: readonly {
    readonly name: string;
    readonly state: 'ok' | 'warn' | 'fail';
    readonly detail: string;
    readonly fix: string;
  }[];
  readonly quota: readonly { readonly name: string; readonly used: number; readonly resets: string | null }[];
  readonly log: readonly { readonly at: string; readonly level: string; readonly message: string }[];
}
interface Undoable {
  readonly undo: string;
}
/** Operations of the page: what they take, and what they answer. */
interface PageOperations {
  'ui/overview': [Record<string, never>, UiOverview];
  'ui/savings': [Record<string, never>, UiSavings];
  'ui/session': [{ sessionId: string }, UiSession];
  'ui/request': [{ requestId: string }, UiRequest];
  'ui/search': [
    {
      query: string;
      project?: string;
      kind?: string;
      origin?: string;
      importance?: string;
      sinceMs?: number;
      quarantine?: boolean;
      limit: number;
    },
    UiSearch,
  ];
  'ui/graph': [{ project?: string }, UiGraph];
  'ui/health': [Record<string, never>, UiHealth];
  'ui/pause': [{ mode: 'private' | 'off'; projectDir?: string }, unknown];
  'ui/resume': [{ projectDir?: string }, unknown];
  'ui/edit': [{ id: string; set: Record<string, string> }, Undoable];
  'ui/pin': [{ ids: string[]; pinned: boolean }, Undoable];
  'ui/quarantine': [{ ids: string[]; quarantined: boolean }, Undoable];
  'ui/forget': [{ ids: string[] }, Undoable];
  'ui/undo': [{ undo: string }, unknown];
}
type Known = { [K in keyof OperationResults]: [OperationInput<K>, OperationResults[K]] };
type All = Omit<Known, keyof PageOperations> & PageOperations;
export type Name = keyof All;
export type Input<K extends Name> = All[K][0];
export type Result<K extends Name> = All[K][1];
