import type { AnswerBlock } from './answer.ts';
import { isThinking } from './block-rules.ts';
import type { Json } from './json.ts';
import { getRules } from './models.ts';
import { invalid, type Refusal } from './refusal.ts';
import { readSeal, type Seal, sealId, writeSeal } from './signature.ts';
import { digestBlock, getDigest, type Item } from './stream.ts';

/**
 * Preserved thinking: every signature is bound to tools, system and all earlier blocks, and to the thinking before it.
 *
 * Thinking may go from the start of the run, from its end, or altogether; a gap, a changed prefix or a block put back
 * that was missing when a later one was made invalidates from there on.
 */
export interface ThinkingLedger {
  /** `drops`: blocks the API would silently leave out of the prompt, by path. */
  check(request: ThinkingRequest): { readonly refusal: Refusal | null; readonly drops: ReadonlySet<string> };
  /** The answer's blocks with signatures, as the client has to send them back. */
  seal(request: ThinkingRequest, answer: readonly AnswerBlock[], run: string): readonly Json[];
}

export interface ThinkingRequest {
  readonly model: string;
  readonly items: readonly Item[];
  readonly betas: readonly string[];
  /** `drop_block` of `thinking.block_binding`. */
  readonly dropOnMismatch: boolean;
}

/** @param secret signatures survive a restart of the stand-in when it is kept */
export function createThinkingLedger(secret: Buffer, enforce: boolean): ThinkingLedger {
  return {
    check: (request) => (enforce ? checkAll(secret, request) : { refusal: null, drops: new Set() }),
    seal: (request, answer, run) => sealAnswer(secret, request, answer, run),
  };
}

interface Walk {
  readonly tools: string;
  readonly system: string;
  prefix: string;
  previous: string;
  depth: number;
}

type Mismatch = 'system' | 'tools' | 'messages' | 'gap' | 'restored';

function checkAll(secret: Buffer, request: ThinkingRequest) {
  const drops = new Set<string>();
  const latest = checkLatest(secret, request.items);
  if (latest) return { refusal: latest, drops };
  const { family, bindsThinking } = getRules(request.model);
  const walk = start(request.items);
  let broken = false;
  for (const item of request.items.filter(({ part }) => part === 'messages')) {
    if (!isThinking(item.block)) {
      walk.prefix = getDigest(walk.prefix + item.digest);
      continue;
    }
    const signature = getSignature(item.block);
    const seal = readSeal(secret, signature);
    if (!seal || !textMatches(seal, item.block)) return { refusal: invalid(unreadable(item)), drops };
    if (seal.family !== family) {
      // A block another model made is left out without an error.
      drops.add(item.path);
      continue;
    }
    const mismatch = bindsThinking ? compare(seal, walk) : null;
    if (mismatch && !request.dropOnMismatch)
      return { refusal: invalid(describe(item, mismatch, request.betas)), drops };
    broken ||= mismatch !== null;
    if (broken) drops.add(item.path);
    walk.previous = sealId(signature);
    walk.depth += 1;
  }
  return { refusal: null, drops };
}

function compare(seal: Seal, walk: Walk): Mismatch | null {
  if (seal.tools !== walk.tools) return 'tools';
  if (seal.system !== walk.system) return 'system';
  if (walk.depth > seal.depth) return 'restored';
  if (walk.depth > 0 && seal.previous !== walk.previous) return 'gap';
  return seal.prefix === walk.prefix ? null : 'messages';
}

function sealAnswer(
  secret: Buffer,
  request: ThinkingRequest,
  answer: readonly AnswerBlock[],
  run: string,
): readonly Json[] {
  const { family } = getRules(request.model);
  const walk = start(request.items);
  for (const item of request.items.filter(({ part }) => part === 'messages')) {
    if (!isThinking(item.block)) walk.prefix = getDigest(walk.prefix + item.digest);
    else if (readSeal(secret, getSignature(item.block))?.family === family) {
      walk.previous = sealId(getSignature(item.block));
      walk.depth += 1;
    }
  }
  return answer.map((block, at) => {
    if (!isThinking(block)) {
      walk.prefix = getDigest(walk.prefix + digestBlock('assistant', block));
      return block;
    }
    const text = 'thinking' in block && typeof block.thinking === 'string' ? block.thinking : '';
    const { tools, system, prefix, previous, depth } = walk;
    const place = runPlace(answer, at);
    const runId = `${run}.${at - place.runIndex}`;
    const signature = writeSeal(secret, {
      family,
      tools,
      system,
      prefix,
      previous,
      depth,
      text: getDigest(text),
      run: runId,
      runIndex: place.runIndex,
      runLength: place.runLength,
    });
    walk.previous = sealId(signature);
    walk.depth += 1;
    if (block.type === 'redacted_thinking') return { type: 'redacted_thinking', data: signature };
    return { type: 'thinking', thinking: text, signature };
  });
}

/** The latest assistant message holds each of its thinking runs whole and as issued, or not at all. */
function checkLatest(secret: Buffer, items: readonly Item[]): Refusal | null {
  const last = items.findLast((item) => item.role === 'assistant')?.message;
  const blocks = items.filter((item) => item.message === last && item.part === 'messages');
  for (let at = 0; at < blocks.length; at += 1) {
    const item = blocks[at];
    if (!item || !isThinking(item.block)) continue;
    const seal = readSeal(secret, getSignature(item.block));
    if (!seal) return null;
    const run = blocks.slice(at, at + seal.runLength);
    const whole = run.length === seal.runLength && run.every((part, index) => fits(secret, part, seal.run, index));
    if (!whole) return invalid(`${item.path}: ${MODIFIED}`);
    at += seal.runLength - 1;
  }
  return null;
}

function fits(secret: Buffer, item: Item, run: string, index: number): boolean {
  const seal = isThinking(item.block) ? readSeal(secret, getSignature(item.block)) : null;
  return seal !== null && seal.run === run && seal.runIndex === index && textMatches(seal, item.block);
}

/** Empty text with a signature is complete: the signature holds the reasoning. */
function textMatches(seal: Seal, block: Json): boolean {
  return typeof block.thinking !== 'string' || block.thinking === '' || seal.text === getDigest(block.thinking);
}

function runPlace(answer: readonly AnswerBlock[], at: number) {
  let first = at;
  while (first > 0 && isThinking(answer[first - 1] ?? {})) first -= 1;
  let end = at;
  while (isThinking(answer[end + 1] ?? {})) end += 1;
  return { runIndex: at - first, runLength: end - first + 1 };
}

function start(items: readonly Item[]): Walk {
  const digest = (part: string) =>
    getDigest(
      items
        .filter((item) => item.part === part)
        .map((item) => item.digest)
        .join(),
    );
  return { tools: digest('tools'), system: digest('system'), prefix: '', previous: '', depth: 0 };
}

function getSignature(block: Json): string {
  const value = block.type === 'thinking' ? block.signature : block.data;
  return typeof value === 'string' ? value : '';
}

const MODIFIED =
  '`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.';

// Sentences as seen on the live API, Sep and Oct 2026 (anomalyco/opencode#48637 and public probes).
const REASONS: Readonly<Record<Mismatch, string>> = {
  system: ' The `system` prompt differs from the one this block was created with.',
  tools: ' The `tools` list differs from the one this block was created with.',
  messages: '',
  gap: ' The `thinking` block that preceded this one when it was created is missing from this request.',
  restored: '',
};

function describe(item: Item, mismatch: Mismatch, betas: readonly string[]): string {
  const beta = betas.some((value) => value.startsWith('thinking-binding-controls-'))
    ? ''
    : ' That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.';
  return `${unreadable(item)}. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".${beta}${REASONS[mismatch]}`;
}

function unreadable(item: Item): string {
  const type = item.block.type === 'redacted_thinking' ? 'redacted_thinking' : 'thinking';
  const field = type === 'thinking' ? 'signature' : 'data';
  return `${item.path}: Invalid \`${field}\` in \`${type}\` block`;
}
