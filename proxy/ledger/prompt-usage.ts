import { createHash } from 'node:crypto';
import { LruMap } from '../../common/map.ts';
import { type ConversationView, type MessageInfo, parseSlice } from '../wire/conversation.ts';
import type { Slice } from '../wire/json-scanner.ts';
import { estimateBlocks, estimateMessage, readTtl, type TokenEstimate } from './estimate-tokens.ts';

/** A prompt as the prompt cache sees it: tools, system and messages, in this order. */
export interface Prompt {
  /** Keys cache entries in addition to the prefix. */
  readonly seed: string;
  /** A change invalidates cached messages, but not tools and system. */
  readonly settings: string;
  readonly head: readonly TokenEstimate[];
  readonly messages: readonly TokenEstimate[];
  /** TTL of the automatic breakpoint at the end. */
  readonly autoTtl: string | null;
}

/** What a rewritten request sends. */
export interface SentPrompt {
  /** The added system block. */
  readonly systemBlock: string | null;
  /** The index of a received message, or the bytes of a new or changed one. */
  readonly messages: readonly (number | Buffer)[];
}

/** Estimates each message once, because every request repeats the transcript. */
export interface PromptEstimator {
  received(view: ConversationView): Prompt;
  sent(received: Prompt, sent: SentPrompt): Prompt;
}

const MAX_HEADS = 64;
const ATTRIBUTION = 'x-anthropic-billing-header:';

export function createPromptEstimator(): PromptEstimator {
  const messages = new WeakMap<MessageInfo, TokenEstimate>();
  const heads = new LruMap<string, TokenEstimate>(MAX_HEADS);

  /** Cached: tools and system blocks are long and rarely change. */
  function estimateHead(role: string, bytes: Buffer): TokenEstimate {
    const key = createHash('sha256').update(role).update(bytes).digest('base64');
    return heads.getOrCreate(key, () => estimateBlocks(role, readBlocks(JSON.parse(bytes.toString('utf8')))));
  }

  function estimateHeads({ body, scan }: ConversationView): TokenEstimate[] {
    const tools = scan.fields.get('tools');
    const system = scan.system ?? [scan.fields.get('system')].filter((at) => at !== undefined);
    const bytes = (at: Slice): Buffer => body.subarray(at.start, at.end);
    const blocks = system.map(bytes);
    // The attribution block differs in every request; upstream removes it first.
    if (blocks[0]?.includes(ATTRIBUTION) && blocks[0].indexOf(ATTRIBUTION) < 64) blocks.shift();
    return [
      ...(tools === undefined ? [] : [estimateHead('tools', bytes(tools))]),
      ...blocks.map((block) => estimateHead('system', block)),
    ];
  }

  function estimateAt(view: ConversationView, index: number): TokenEstimate {
    const info = view.infos[index] as MessageInfo;
    const found = messages.get(info) ?? estimateMessage(parseSlice(view.body, view.scan.messages[index] as Slice));
    messages.set(info, found);
    return found;
  }

  return {
    received(view) {
      const { body, scan } = view;
      const field = (name: string): string => {
        const at = scan.fields.get(name);
        return at === undefined ? '' : body.toString('utf8', at.start, at.end);
      };
      const auto = field('cache_control');
      return {
        seed: `${view.model}\n${field('speed')}`,
        settings: [field('thinking'), field('tool_choice'), view.effort].join('\n'),
        head: estimateHeads(view),
        messages: view.infos.map((_, index) => estimateAt(view, index)),
        autoTtl: auto === '' ? null : readTtl({ cache_control: JSON.parse(auto) as unknown }),
      };
    },
    sent(received, { systemBlock: block, messages: sent }) {
      return {
        ...received,
        head:
          block === null
            ? received.head
            : [...received.head, estimateBlocks('system', [{ type: 'text', text: block }])],
        messages: sent.map((message) =>
          typeof message === 'number'
            ? (received.messages[message] as TokenEstimate)
            : estimateMessage(JSON.parse(message.toString('utf8'))),
        ),
      };
    },
  };
}

export function sumPromptTokens({ head, messages }: Prompt): number {
  return [...head, ...messages].reduce((sum, { tokens }) => sum + tokens, 0);
}

/** Without deferred tools, which are not part of the prompt. */
function readBlocks(value: unknown): unknown[] {
  if (typeof value === 'string') return [{ type: 'text', text: value }];
  const blocks = Array.isArray(value) ? (value as unknown[]) : [value];
  return blocks.filter((block) => (block as { defer_loading?: unknown } | null)?.defer_loading !== true);
}
