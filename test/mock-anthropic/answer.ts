import type { Json } from './json.ts';

/** A content block of an answer; thinking comes without a signature, a tool_use may leave out its id. */
export type AnswerBlock =
  | { readonly type: 'thinking'; readonly thinking: string }
  | { readonly type: 'redacted_thinking' }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly name: string; readonly input: Json; readonly id?: string }
  | (Json & { readonly type: string });

/** How an answer travels; everything off by default. */
export interface Delivery {
  /** Held before the first byte. */
  readonly before?: Promise<unknown>;
  readonly delayMs?: number;
  /** After this many deltas the stream waits for the gate. */
  readonly pause?: { readonly afterDeltas: number; readonly until: Promise<unknown> };
  /** After this many deltas the socket is destroyed. */
  readonly cutAfterDeltas?: number;
  /** After this many deltas an `error` event ends the stream (HTTP 200 stays). */
  readonly errorAfterDeltas?: { readonly count: number; readonly type: string; readonly message: string };
  readonly compress?: 'gzip' | 'br';
  /** Chunks of at most this many bytes, whatever they split. */
  readonly chunkBytes?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Answer =
  | {
      readonly kind: 'message';
      readonly blocks: readonly AnswerBlock[];
      /** Default: `tool_use` when a block is one, else `end_turn`. */
      readonly stopReason?: string;
      readonly delivery?: Delivery;
    }
  | {
      readonly kind: 'error';
      readonly status: number;
      readonly type: string;
      readonly message: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly delivery?: Delivery;
    };

export function getStopReason(answer: Answer & { kind: 'message' }): string {
  return answer.stopReason ?? (answer.blocks.some((block) => block.type === 'tool_use') ? 'tool_use' : 'end_turn');
}
