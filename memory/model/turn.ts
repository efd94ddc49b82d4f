import { type CapturedTurn, lowestOrigin, type Origin } from '../../common/turn.ts';

/** A file of a project at one moment. */
export interface FileMark {
  /** Relative to the project's root, with forward slashes. */
  readonly path: string;
  /** Beginning of the digest of its content, hex; '' where it was not read. */
  readonly sha256: string;
  /** Beginning of the commit that was checked out, hex; '' where there was none. */
  readonly commit: string;
}

/** What a model is shown of one turn: redacted, whole, never a preview. */
export interface TurnText {
  readonly turnId: string;
  readonly atMs: number;
  readonly origin: Origin;
  readonly user: string;
  /** What `user` says rests on: `tool` where it comes out of a file, which may quote anybody. `user` where absent. */
  readonly userOrigin?: 'tool';
  readonly parts: readonly TurnPart[];
  /** Files of the project that its tool calls named, as they were when it ended. */
  readonly files?: readonly FileMark[];
}

export interface TurnPart {
  readonly kind: 'assistant' | 'tool_use' | 'tool_result';
  readonly origin: Origin;
  /** Tool name for the two tool kinds, else ''. */
  readonly tool: string;
  readonly text: string;
}

/** One durable record of the journal: a redacted turn. `project` is the project key, see `core/project.ts`. */
export interface JournalTurn extends CapturedTurn {
  readonly seq: number;
  readonly project: string;
  readonly redacted: boolean;
  readonly files?: readonly FileMark[];
  /** The assistant says again in it what came from outside earlier in its session: all it says counts as external. */
  readonly echoes?: true;
  /** Of a turn with `parts`: their messages come before these and are not among them. */
  readonly tail?: true;
}

const ROW_CHARS = 40_000;
const CALL_CHARS = 200;
const CALLS = 20;

/** User text, assistant text and tool calls; tool output is not indexed. */
export function spokenText(turn: TurnText): string {
  const said = turn.parts.filter((part) => part.kind === 'assistant').map((part) => part.text);
  const calls = turn.parts
    .filter((part) => part.kind === 'tool_use')
    .slice(0, CALLS)
    .map((part) => `${part.tool} ${part.text.slice(0, CALL_CHARS)}`);
  return [turn.user, ...said, ...calls]
    .filter((text) => text !== '')
    .join('\n')
    .slice(0, ROW_CHARS);
}

/** User and assistant text only, with the origin of that text. */
export function withoutToolOutput(turn: TurnText): TurnText {
  const known = withoutToolOutputCache.get(turn);
  if (known !== undefined) return known;
  const parts = turn.parts.filter((part) => part.kind === 'assistant');
  const origins: Origin[] = parts.map((part) => part.origin);
  const bare = { ...turn, parts, origin: lowestOrigin([...origins, turn.userOrigin ?? 'user']) };
  withoutToolOutputCache.set(turn, bare);
  return bare;
}

/** Returns the same object each time, so that caches keyed by it hit. */
const withoutToolOutputCache = new WeakMap<TurnText, TurnText>();
