import { createHash } from 'node:crypto';
import { LruMap } from '../../common/map.ts';
import { toRecord } from '../../common/text.ts';
import { type ConversationView, IMAGE_TOKENS, type MessageInfo } from '../wire/conversation.ts';
import { parseSlice, type Slice } from '../wire/json.ts';
import { readTtl } from '../wire/message.ts';
import { findModelTraits } from '../wire/models.ts';
import { sumTokens } from '../wire/turns.ts';
import type { Bill, PrefixEntry, RequestRecord } from './store.ts';

export type CostComparison = ReturnType<typeof compareCosts>;

interface CostInput extends Pick<RequestRecord, 'model' | 'atMs' | 'billed'> {
  readonly received: Prompt;
  /** Null when the received bytes went upstream. */
  readonly sent: Prompt | null;
}

export function sumBill({ input, cacheRead, cacheWrite5m, cacheWrite1h }: Bill): number {
  return input + cacheRead + cacheWrite5m + cacheWrite1h;
}

/** Below this share of the modeled cache reads, upstream evicted the prefix; above, the estimate is inexact. */
const CLEAR_MISS = 0.5;

/** In tokens of uncached input. */
export function inputEquivalents(model: string, bill: Bill): number {
  const traits = findModelTraits(model);
  const cacheWrites = bill.cacheWrite5m * traits.cacheWrite5m + bill.cacheWrite1h * traits.cacheWrite1h;
  return bill.input + bill.cacheRead * traits.cacheRead + cacheWrites;
}

export function costUsd(model: string, bill: Bill, outputTokens: number): number {
  const { inputPrice, outputPrice } = findModelTraits(model);
  return (inputEquivalents(model, bill) * inputPrice + outputTokens * outputPrice) / 1_000_000;
}

/**
 * Runs the prefix-cache model for both conversations. Token estimates are scaled so that the sent prompt matches its
 * bill. When upstream read less from its cache than the model predicts (or the model has no history yet), the cache reads
 * of the untouched conversation are corrected alike.
 */
export function compareCosts(
  caches: { readonly [kind in 'untouched' | 'sent']: ReturnType<typeof createPrefixCache> },
  { model, atMs, received, sent, billed }: CostInput,
) {
  const total = sumBill(billed);
  const { head, messages } = sent ?? received;
  const estimate = sumTokens([...head, ...messages]);
  const scale = estimate === 0 ? 0 : total / estimate;
  const request = { atMs, scale, minTokens: findModelTraits(model).minCacheTokens };
  const expected = caches.sent.bill(sent ?? received, request).bill;
  const { bill, touched } = caches.untouched.bill(received, request);
  if (sent === null) return { untouched: billed, touched };
  const corrected = Object.entries(correctBill(bill, expected, billed));
  return {
    untouched: Object.fromEntries(corrected.map(([name, tokens]) => [name, Math.round(tokens)])) as Bill,
    touched,
  };
}

/** Upstream's cache is not observable: reads of the sent prompt indicate what the untouched one would have read. */
function correctBill(untouched: Bill, expected: Bill, billed: Bill): Bill {
  if (sumBill(billed) === billed.input) {
    // A request without cache reads and writes would not have used the cache untouched either.
    return { input: sumBill(untouched), cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 };
  }
  return billWithReads(untouched, Math.round(estimateReads(untouched, expected, billed)));
}

function estimateReads(untouched: Bill, expected: Bill, billed: Bill): number {
  const total = sumBill(untouched);
  const unread = sumBill(billed) - billed.cacheRead;
  if (expected.cacheRead === 0) {
    // A new model or a changed prefix: actual reads were cached before the rewrite.
    return untouched.cacheRead === 0 && billed.cacheRead > 0 ? total - unread : untouched.cacheRead;
  }
  const share = billed.cacheRead / expected.cacheRead;
  if (share < CLEAR_MISS) return untouched.cacheRead * share;
  const unreadExpected = sumBill(expected) - expected.cacheRead;
  if (unreadExpected === 0) return untouched.cacheRead;
  return total - Math.min(total, ((total - untouched.cacheRead) * unread) / unreadExpected);
}

/** The same prompt with `cacheRead` tokens read; the difference moves to the larger kind of cache write. */
function billWithReads(bill: Bill, cacheRead: number): Bill {
  const more = Math.min(cacheRead, sumBill(bill)) - bill.cacheRead;
  if (Math.abs(more) < 1 || sumBill(bill) === bill.input) return bill;
  const field = bill.cacheWrite1h >= bill.cacheWrite5m ? 'cacheWrite1h' : 'cacheWrite5m';
  const written = Math.max(0, bill[field] - more);
  const rest = sumBill(bill) - bill.input - bill[field] - bill.cacheRead;
  return { ...bill, [field]: written, cacheRead: sumBill(bill) - bill.input - written - rest };
}

const LOOKBACK = 20;
export const TTL_MS = { '5m': 300_000, '1h': 3_600_000 } as const;
const MAX_ENTRIES = 20_000;

/** Tokens and blocks are cumulative. */
type Position = Pick<TokenEstimate, 'tokens' | 'blocks' | 'ttl'> & { readonly key: string };

/**
 * Models the API's prompt cache: exact prefixes, written at breakpoints, found by looking back at most 20 blocks from a
 * breakpoint, and valid for their TTL from the start of the request that last used them.
 *
 * Source: platform.claude.com build-with-claude/prompt-caching, Aug 2026.
 */
export function createPrefixCache() {
  const entries = new LruMap<string, PrefixEntry>(MAX_ENTRIES);
  const put = (entry: PrefixEntry): PrefixEntry => {
    entries.set(entry.key, entry);
    return entry;
  };
  return {
    restore: put,
    /**
     * @param atMs       start of the request, from which TTLs run
     * @param scale      billed tokens per estimated token
     * @param minTokens  shorter prefixes are not cached
     */
    bill(prompt: Prompt, { atMs, scale, minTokens }: Readonly<Record<'atMs' | 'scale' | 'minTokens', number>>) {
      const positions = listPositions(prompt);
      const live = (at: number): PrefixEntry | undefined => {
        const entry = entries.peek(positions[at]?.key ?? '');
        return entry !== undefined && entry.expiresAtMs > atMs ? entry : undefined;
      };
      const breakpoints = positions.flatMap(({ ttl }, at) => (ttl === null ? [] : [at]));
      const read = findLongestRead(positions, breakpoints, (at) => live(at) !== undefined);
      const countTokensAt = (at: number): number => scale * (positions[at]?.tokens ?? 0);
      const touched: PrefixEntry[] = [];
      const written = { '5m': 0, '1h': 0 };
      let done = countTokensAt(read);
      for (const at of new Set([...(read < 0 ? [] : [read]), ...breakpoints])) {
        const { key, ttl } = positions[at] as Position;
        const lives = live(at)?.ttl ?? ttl ?? '5m';
        if (countTokensAt(at) < minTokens) continue;
        touched.push(put({ key, ttl: lives, expiresAtMs: atMs + TTL_MS[lives === '1h' ? '1h' : '5m'] }));
        if (at <= read) continue;
        written[ttl === '1h' ? '1h' : '5m'] += countTokensAt(at) - done;
        done = countTokensAt(at);
      }
      const input = countTokensAt(positions.length - 1) - done;
      const bill = { input, cacheRead: countTokensAt(read), cacheWrite5m: written['5m'], cacheWrite1h: written['1h'] };
      return { bill, touched };
    },
  };
}

function listPositions({ seed, settings, head, messages, autoTtl }: Prompt): Position[] {
  const positions: Position[] = [];
  const hasImage = messages.some((message) => message.hasImage);
  let [key, tokens, blocks] = [seed, 0, 0];
  for (const [at, one] of [...head, ...messages].entries()) {
    if (at === head.length) key = `${key}\n${settings}\n${hasImage}`;
    key = createHash('sha256').update(key).update(one.digest).digest('base64');
    tokens += one.tokens;
    blocks += one.blocks;
    const isLast = at === head.length + messages.length - 1;
    positions.push({ key, tokens, blocks, ttl: one.ttl ?? (isLast ? autoTtl : null) });
  }
  return positions;
}

/** Index of the longest cached prefix; -1 without one. */
function findLongestRead(
  positions: readonly Position[],
  breakpoints: readonly number[],
  isLive: (at: number) => boolean,
): number {
  for (const from of breakpoints.toReversed()) {
    const end = positions[from]?.blocks ?? 0;
    for (let at = from; at >= 0 && end - (positions[at]?.blocks ?? 0) < LOOKBACK; at -= 1) if (isLive(at)) return at;
  }
  return -1;
}

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

export interface SentPrompt {
  readonly systemBlock: string | null;
  /** The index of a received message, or the bytes of a new or changed one. */
  readonly messages: readonly (number | Buffer)[];
}

const MAX_HEADS = 64;
const ATTRIBUTION = 'x-anthropic-billing-header:';

/** Estimates each message once, because every request repeats the transcript. */
export function createPromptEstimator() {
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
    const estimate = messages.get(info) ?? estimateMessage(parseSlice(view.body, view.scan.messages[index] as Slice));
    messages.set(info, estimate);
    return estimate;
  }

  return {
    received(view: ConversationView): Prompt {
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
        autoTtl: auto === '' ? null : (readTtl({ cache_control: JSON.parse(auto) as unknown }) ?? null),
      };
    },
    sent(received: Prompt, { systemBlock: block, messages: sent }: SentPrompt): Prompt {
      const added = block === null ? [] : [estimateBlocks('system', [{ type: 'text', text: block }])];
      return {
        ...received,
        head: [...received.head, ...added],
        messages: sent.map((message) =>
          typeof message === 'number'
            ? (received.messages[message] as TokenEstimate)
            : estimateMessage(JSON.parse(message.toString('utf8'))),
        ),
      };
    },
  };
}

/** Without deferred tools, which are not part of the prompt. */
function readBlocks(value: unknown): unknown[] {
  if (typeof value === 'string') return [{ type: 'text', text: value }];
  const blocks = Array.isArray(value) ? (value as unknown[]) : [value];
  return blocks.filter((block) => (block as { defer_loading?: unknown } | null)?.defer_loading !== true);
}

type Json = Readonly<Record<string, unknown>>;

/** An element of the prompt: one message, one system block, or the tools. */
export type TokenEstimate = Readonly<ReturnType<typeof estimateBlocks>>;

export function estimateMessage(message: unknown): TokenEstimate {
  const { role, content } = toRecord(message);
  return estimateBlocks(String(role ?? ''), typeof content === 'string' ? [{ type: 'text', text: content }] : content);
}

function estimateBlocks(role: string, content: unknown) {
  const blocks = Array.isArray(content) ? content.map(toRecord) : [];
  const ttls = blocks.flatMap((block) => [...nestedBlocks(block).map(readTtl), readTtl(block)]);
  return {
    /** Independent of the content's form and of cache breakpoints. */
    digest: createHash('sha256').update(role).update(JSON.stringify(blocks, withoutBreakpoints)).digest('base64'),
    /** An estimate; the bill corrects it. */
    tokens: blocks.reduce((sum, block) => sum + estimateBlock(block), 0),
    /** Those that count for the cache's lookback. */
    blocks: blocks.length,
    /** Of the last breakpoint; null without one. */
    ttl: ttls.findLast((ttl) => ttl !== undefined) ?? null,
    hasImage: blocks.some((block) => [block, ...nestedBlocks(block)].some(({ type }) => type === 'image')),
  };
}

/** A quarter of the bytes that the model reads, without signatures and JSON syntax. */
function estimateBlock(block: Json): number {
  switch (block['type']) {
    case 'text':
      return quarterOfBytes(block['text']);
    case 'thinking':
      return quarterOfBytes(block['thinking']);
    case 'redacted_thinking':
      return 0;
    case 'image':
    case 'document':
      return IMAGE_TOKENS;
    case 'tool_result':
      if (!Array.isArray(block['content'])) return quarterOfBytes(block['content']);
      return nestedBlocks(block).reduce((sum, part) => sum + estimateBlock(part), 0);
    default:
      return quarterOfBytes(JSON.stringify(block, withoutBreakpoints));
  }
}

const quarterOfBytes = (text: unknown): number =>
  typeof text === 'string' ? Math.ceil(Buffer.byteLength(text) / 4) : 0;

function nestedBlocks(block: Json): Json[] {
  return block['type'] === 'tool_result' && Array.isArray(block['content']) ? block['content'].map(toRecord) : [];
}

const withoutBreakpoints = (key: string, value: unknown): unknown => (key === 'cache_control' ? undefined : value);
