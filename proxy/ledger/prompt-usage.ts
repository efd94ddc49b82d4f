import { createHash } from 'node:crypto';
import { LruMap } from '../../common/lru.ts';
import type { EpochPlan } from '../rewrite/plan.ts';
import { type ConversationView, type MessageInfo, parseSlice } from '../wire/conversation.ts';
import type { Slice } from '../wire/json-scanner.ts';
import type { Spliced } from '../wire/splice.ts';
import { estimateBlocks, estimateMessage, type TokenEstimate, ttlOf } from './estimate-tokens.ts';

/** A prompt as the prompt cache sees it: tools, system, messages, in this order. */
export interface Prompt {
  /** What an entry is kept apart by beside the prefix. */
  readonly seed: string;
  /** What empties the cache of the messages, and of nothing before them. */
  readonly settings: string;
  readonly head: readonly TokenEstimate[];
  readonly messages: readonly TokenEstimate[];
  /** TTL of the automatic breakpoint at the end. */
  readonly autoTtl: string | null;
}

/** Weighs each message once: a transcript comes again with every request. */
export interface PromptEstimator {
  received(view: ConversationView): Prompt;
  /** What goes upstream when `plan` was applied to `received`. */
  sent(received: Prompt, plan: EpochPlan, spliced: Spliced): Prompt;
}

const HEADS = 64;
const ATTRIBUTION = 'x-anthropic-billing-header:';

export function createPromptEstimator(): PromptEstimator {
  const messages = new WeakMap<MessageInfo, TokenEstimate>();
  const heads = new LruMap<string, TokenEstimate>(HEADS);

  /** Tools and system blocks are long and seldom change. */
  function head(role: string, bytes: Buffer): TokenEstimate {
    const key = createHash('sha256').update(role).update(bytes).digest('base64');
    return heads.getOrCreate(key, () => estimateBlocks(role, blocksOf(JSON.parse(bytes.toString('utf8')))));
  }

  function headOf({ body, scan }: ConversationView): TokenEstimate[] {
    const tools = scan.fields.get('tools');
    const system = scan.system ?? [scan.fields.get('system')].filter((at) => at !== undefined);
    const bytes = (at: Slice): Buffer => body.subarray(at.start, at.end);
    const said = system.map(bytes);
    // Upstream takes it out before all else, and it is another one each time.
    if (said[0]?.includes(ATTRIBUTION) && said[0].indexOf(ATTRIBUTION) < 64) said.shift();
    return [...(tools === undefined ? [] : [head('tools', bytes(tools))]), ...said.map((one) => head('system', one))];
  }

  function weighed(view: ConversationView, index: number): TokenEstimate {
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
        head: headOf(view),
        messages: view.infos.map((_, index) => weighed(view, index)),
        autoTtl: auto === '' ? null : ttlOf({ cache_control: JSON.parse(auto) as unknown }),
      };
    },
    sent(received, plan, spliced) {
      const block = plan.systemBlock;
      return {
        ...received,
        head:
          block === null
            ? received.head
            : [...received.head, estimateBlocks('system', [{ type: 'text', text: block }])],
        messages: spliced.messages.map((message) =>
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

/** Tools that are loaded later are no part of the prompt. */
function blocksOf(value: unknown): unknown[] {
  if (typeof value === 'string') return [{ type: 'text', text: value }];
  const blocks = Array.isArray(value) ? (value as unknown[]) : [value];
  return blocks.filter((block) => (block as { defer_loading?: unknown } | null)?.defer_loading !== true);
}
