import { hash } from 'node:crypto';
import { canonical, getBlocks, isObject, type Json } from './json.ts';
import { blockTokens } from './tokens.ts';

export type Part = 'tools' | 'system' | 'messages';

/** One position of the prompt, in the order the API reads it: tools, system, messages. */
export interface Item {
  readonly part: Part;
  readonly role: string;
  /** `messages.N.content.M`, `system.N` or `tools.N` in the body as sent. */
  readonly path: string;
  readonly message: number;
  readonly block: Json;
  readonly digest: string;
  readonly tokens: number;
  /** TTL of the breakpoint on this block, or on the last part inside it; null when there is none. */
  readonly ttl: string | null;
}

const ATTRIBUTION = 'x-anthropic-billing-header:';

/** The prompt as a flat list. Deferred tools are left out, and the attribution block when it stands first. */
export function getItems(body: Json): readonly Item[] {
  const items: Item[] = [];
  for (const [index, tool] of array(body.tools).entries()) {
    if (tool.defer_loading !== true) items.push(item('tools', '', `tools.${index}`, -1, tool));
  }
  for (const [index, block] of getBlocks(body.system).entries()) {
    // The API strips the block whole, also what someone merged into it (llm-gateway-protocol page, autumn 2026).
    if (index === 0 && typeof block.text === 'string' && block.text.startsWith(ATTRIBUTION)) continue;
    items.push(item('system', '', `system.${index}`, -1, block));
  }
  for (const [index, message] of array(body.messages).entries()) {
    const role = typeof message.role === 'string' ? message.role : '';
    for (const [at, block] of getBlocks(message.content).entries()) {
      items.push(item('messages', role, `messages.${index}.content.${at}`, index, block));
    }
  }
  return items;
}

/** Index of the first message of the running turn: the newest user message that is no tool result. */
export function runningTurn(body: Json): number {
  return array(body.messages).findLastIndex(
    (message) => message.role === 'user' && getBlocks(message.content).every((block) => block.type !== 'tool_result'),
  );
}

export function getDigest(text: string): string {
  return hash('sha1', text, 'base64');
}

export function digestBlock(role: string, block: Json): string {
  return getDigest(`${role}\n${canonical(block)}`);
}

type Measured = Pick<Item, 'digest' | 'tokens' | 'ttl'>;

/** By the block itself: whoever judges a growing conversation hands the same objects in again and again. */
const measured = new WeakMap<Json, Measured>();
/** By its text: most of a conversation comes again with each request. */
const measuredTexts = new Map<string, Measured>();
const MOST_CHARS = 8_000_000;
let chars = 0;

function item(part: Part, role: string, path: string, message: number, block: Json): Item {
  const known = measured.get(block) ?? measureText(role, block);
  measured.set(block, known);
  return { part, role, path, message, block, ...known };
}

function measureText(role: string, block: Json): Measured {
  const text = `${role}\n${JSON.stringify(block)}`;
  const known = measuredTexts.get(text);
  if (known !== undefined) return known;
  const fresh = { digest: digestBlock(role, block), tokens: blockTokens(block), ttl: getTtl(block) };
  chars += text.length;
  if (chars > MOST_CHARS) {
    measuredTexts.clear();
    chars = text.length;
  }
  measuredTexts.set(text, fresh);
  return fresh;
}

function getTtl(block: Json): string | null {
  const inner = block.type === 'tool_result' && Array.isArray(block.content) ? block.content.filter(isObject) : [];
  for (const holder of [block, ...inner.reverse()]) {
    const control = holder.cache_control;
    if (isObject(control)) return typeof control.ttl === 'string' ? control.ttl : '5m';
  }
  return null;
}

function array(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
