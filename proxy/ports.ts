import type { EffectivePolicy } from '../common/policy.ts';
import type { CapturedTurn, MemoryLine, RecallRequest, SessionContext, ShownText } from '../common/turn.ts';
import type { Bill } from './ledger/store.ts';

/** A complete `POST /v1/messages` or `/v1/messages/count_tokens` from Claude Code. */
export interface MessagesRequest {
  readonly requestId: string;
  readonly path: 'messages' | 'count_tokens';
  /** Lower-case names, without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly receivedAtMs: number;
  readonly timer?: PhaseTimer;
  /** Lets the rewrite take `ms` longer. Absent where there is no deadline. */
  readonly extendDeadline?: (ms: number) => void;
}

/** A step of a request; `upstream` ends with the first byte of the response, `answer` with the newest one. */
export interface Phase {
  readonly name: 'parse' | 'decide' | 'recall' | 'plan' | 'splice' | 'store' | 'upstream' | 'answer';
  readonly ms: number;
}

export interface PhaseTimer {
  /** Ends a step; without effect once the request was sent. */
  end(name: Phase['name']): void;
  /** In order. Grows while the request runs. */
  readonly phases: readonly Phase[];
}

/** A response, decoded from a copy of its stream. */
export interface ObservedResponse {
  readonly status: number;
  /** `complete` only after `message_stop` or a whole JSON body. */
  readonly end: 'complete' | 'aborted_by_client' | 'cut_by_upstream';
  /** When its last bytes arrived; absent where that was just now. */
  readonly atMs?: number;
  /** Null for errors, count_tokens and responses that could not be decoded. */
  readonly message: AssistantMessage | null;
  /** First 2 KB of an error body, '' otherwise. */
  readonly errorText: string;
}

export interface AssistantMessage {
  readonly model: string;
  /** Content blocks in order, as Claude Code will send them back. */
  readonly content: readonly Readonly<Record<string, unknown>>[];
  readonly stopReason: string | null;
  readonly usage: Usage;
}

/** Tokens as the API reports them. */
export type Usage = Bill & { readonly output: number };

export interface RewriteOutcome {
  /** The bytes to forward; `request.body` itself when nothing changed. */
  readonly body: Buffer;
  readonly rewritten: boolean;
  /** Called once, after the response ended in any way. */
  onResponse(response: ObservedResponse): void;
}

/** Decides what goes upstream. Never throws: in doubt it replays the current plan or returns the original. */
export interface Rewriter {
  rewrite(request: MessagesRequest, signal: AbortSignal): Promise<RewriteOutcome>;
  /** Where `rewrite` is late: the current plan with nothing new, or the original bytes. Synchronous; never throws. */
  replay(request: MessagesRequest): RewriteOutcome;
}

/** Receives the rate limits of each response. Must return at once and not throw. */
export interface QuotaObserver {
  /** @param answer.headers  `anthropic-ratelimit-*`, `retry-after` and `request-id`, lower-case names */
  observeLimits(answer: { readonly status: number; readonly headers: Readonly<Record<string, string>> }): void;
}

/** The leaf certificate for the target host; null when it may not be served (missing, expired, wrong file mode). */
export interface CertSource {
  leaf(): { readonly key: string; readonly cert: string } | null;
}

export type { Log as ProxyLog } from '../common/log.ts';
export type { KeptState, MemoryLine } from '../common/turn.ts';

/** The user's policy for a working directory. Must not throw. */
export interface PolicySource {
  of(projectDir: string | null): Pick<EffectivePolicy, 'captures' | 'adds'>;
  /** Never captures the turn with this key or, in this session, prompt. */
  withhold(key: string, sessionId: string, prompt: string): void;
  /** Whether a turn with this prompt was withheld; any turn, where it is ''. */
  hasWithheld(sessionId: string, prompt: string): boolean;
}

/** How a recalled memory was found: its score, and its rank and score in each search lane. */
export interface Finding {
  readonly nodeId: string;
  readonly score: number;
  readonly lanes: Readonly<Record<string, { readonly rank: number; readonly score: number }>>;
}

export interface RecalledLine extends Pick<Finding, 'score'>, Partial<Pick<Finding, 'lanes'>> {
  readonly line: MemoryLine;
  readonly isExact?: boolean;
}

/** What a subagent was given of facts, by which subscription; '' for none. */
export interface GivenSlice {
  readonly agent: string;
  /** The configuration key, or the agent's file. */
  readonly because: string;
  readonly text: string;
}

export interface SubagentSource {
  /** Null where the subagent with this system prompt is subscribed to nothing, or there is nothing to see. */
  slice(request: {
    readonly sessionId: string;
    readonly projectDir: string | null;
    readonly system: string;
  }): Promise<GivenSlice | null>;
  /** What a hook gave the subagent with this id; null where none was called. */
  givenTo(agentId: string): GivenSlice | null;
}

export interface PastPrompt {
  readonly text: string;
  readonly atMs: number;
}

/** What Claude Code itself keeps of its sessions. */
export interface TranscriptSource {
  /** When the last answer of a session came; null where that is unknown. Must not throw. */
  lastAnswerMs(sessionId: string): Promise<number | null>;
  /** What was typed in a session, in order, and when. @throws what reading its transcript throws */
  prompts(sessionId: string): Promise<readonly PastPrompt[]>;
}

/** What the rewriter needs of memory; `engine/compose.ts` joins the two. */
export interface MemorySource {
  captureTurns(turns: readonly CapturedTurn[]): void;
  /** Resolves once the turns of this session that were captured before are known or stored, or failed to be. */
  awaitCaptures(sessionId: string): Promise<void>;
  nodesCovering(turnIds: readonly string[]): ReadonlyMap<string, readonly string[]>;
  prepareNodes(sessionId: string, turnIds: readonly string[]): void;
  lines(nodeIds: readonly string[]): readonly MemoryLine[];
  /** For each of these turns, one line with what was said in it; none for a turn that may not be quoted. */
  quotes(turnIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** The first line of its library is found in every text that has that part already. */
  sessionContext(sessionId: string, projectDir: string | null): Promise<SessionContext>;
  /** Lines for facts that are not as `shown` says, a heading first; none where nothing changed. */
  factChanges(sessionId: string, projectDir: string | null, shown: ShownText): Promise<readonly string[]>;
  recall(request: RecallRequest, signal: AbortSignal): Promise<readonly RecalledLine[]>;
}
