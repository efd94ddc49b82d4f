import { findModelTraits } from '../../proxy/wire/models.ts';
import type { Json } from './rewriter-rig.ts';

/** What a client holds of its conversation; how it looks on the wire depends on the model. */
export type Entry =
  | { readonly role: 'user'; readonly blocks: readonly Json[]; readonly notes: readonly Note[] }
  | { readonly role: 'assistant'; readonly blocks: readonly Json[] };

/** What Claude Code says beside: a system message, or a reminder for models that take none. */
export interface Note {
  readonly text: string;
  readonly clear_at?: 'next_user_message';
  readonly output_config?: Json;
}

/** 2.1.332 states the environment, the effort and the tokens left in notes. */
export type Version = '2.1.197' | '2.1.332';

export interface Shape {
  readonly version: Version;
  readonly sessionId: string;
  readonly model: string;
  readonly effort: string;
  readonly ttl: '5m' | '1h';
  readonly cwd: string;
  readonly entries: readonly Entry[];
  /** Fields of the body in place of those of Claude Code. */
  readonly fields?: Json;
  /** Where breakpoints stand beside those of the system prompt; on the newest message by default. */
  readonly marks?: (typeof MARKS)[number];
}

export const MARKS = ['newest', 'last two', 'inside', 'automatic', 'both', 'tools'] as const;

export interface Form {
  /** Differs from request to request, in the attribution. */
  readonly nonce: number;
  /** Branches off for a moment: the breakpoint stands before the newest message. */
  readonly aside?: boolean;
  readonly fields?: Json;
  readonly userId?: string;
}

/** The body as Claude Code writes it with `-p`. */
export function getBody(shape: Shape, { nonce, aside = false, fields = {}, userId }: Form): Buffer {
  const manual = findModelTraits(shape.model).thinking === 'manual';
  const newest = shape.entries.findLastIndex((entry) => entry.role === 'user') - (aside ? 1 : 0);
  const takesSystem = findModelTraits(shape.model).systemMessages;
  const { marks = 'newest' } = shape;
  const before = shape.entries.findLastIndex((entry, index) => entry.role === 'user' && index < newest);
  const marked = marks === 'automatic' ? [] : marks === 'last two' ? [before, newest] : [newest];
  const messages = shape.entries.flatMap((entry, index) =>
    marked.includes(index)
      ? written(entry, takesSystem, control(shape), marks === 'inside')
      : asHistory(entry, takesSystem),
  );
  const rest: Json = {
    system: systemBlocks(shape, nonce),
    tools:
      marks === 'tools'
        ? TOOLS.map((tool, at) => (at === 0 ? tool : { ...tool, cache_control: control(shape) }))
        : TOOLS,
    metadata: { user_id: userId ?? JSON.stringify({ device_id: 'd', account_uuid: '', session_id: shape.sessionId }) },
    max_tokens: 64_000,
    thinking: manual ? { budget_tokens: 31_999, type: 'enabled' } : { type: 'adaptive' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    ...(!manual && { output_config: { effort: shape.effort } }),
    ...(isNew(shape) && { diagnostics: { previous_message_id: `msg_${nonce - 1}` } }),
    ...((marks === 'automatic' || marks === 'both') && { cache_control: control(shape) }),
    stream: true,
    ...shape.fields,
    ...fields,
  };
  const head = `{"model":${JSON.stringify(shape.model)},"messages":[${messages.join()}],`;
  return Buffer.from(head + JSON.stringify(rest).slice(1));
}

export function getHeaders(shape: Shape, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    'anthropic-beta': isNew(shape) ? `${BETAS},${NEW_BETAS}` : BETAS,
    'anthropic-version': '2023-06-01',
    'user-agent': `claude-cli/${shape.version} (external, cli)`,
    'x-claude-code-session-id': shape.sessionId,
    ...(isNew(shape) && { 'x-claude-code-request-class': 'main' }),
    ...more,
  };
}

export const BETAS =
  'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,prompt-caching-scope-2026-01-05,mid-conversation-system-2026-04-07,effort-2025-11-24';

export const NEW_BETAS =
  'per-turn-control-2026-07-01,mid-conversation-tool-changes-2026-07-01,mid-conversation-system-clear-at-2026-08-21,thinking-binding-controls-2026-08-01,thinking-display-updates-2026-08-18,cache-diagnosis-2026-04-07';

const TOOLS: readonly Json[] = ['Bash', 'Read'].map((name) => ({
  name,
  description: `${name} does what its name says.`,
  input_schema: { type: 'object', properties: { command: { type: 'string' } } },
}));

const asItWas = { true: new WeakMap<Entry, string[]>(), false: new WeakMap<Entry, string[]>() };

function asHistory(entry: Entry, takesSystem: boolean): string[] {
  const known = asItWas[`${takesSystem}`];
  const found = known.get(entry) ?? written(entry, takesSystem, null);
  known.set(entry, found);
  return found;
}

export const isNew = ({ version }: Pick<Shape, 'version'>): boolean => version === '2.1.332';

/** One text alone is a string once it is history; the newest message is blocks, the last with the breakpoint. */
function written(entry: Entry, takesSystem: boolean, mark: Json | null, isInside = false): string[] {
  const notes = entry.role === 'user' ? entry.notes : [];
  const blocks = entry.role === 'user' && !takesSystem ? withReminders(entry.blocks, notes) : entry.blocks;
  const at = blocks.findLastIndex((block) => !/thinking$/.test(String(block['type'])));
  const [only] = blocks;
  const content =
    mark !== null
      ? blocks.map((block, index) => (index === at ? withMark(block, mark, isInside) : block))
      : entry.role === 'user' && blocks.length === 1 && only?.['type'] === 'text' && !only['citations']
        ? only['text']
        : blocks;
  const said = takesSystem ? notes.map(writeNote) : [];
  return [JSON.stringify({ role: entry.role, content }), ...said];
}

/** On the block, or on the last part of a result. */
function withMark(block: Json, mark: Json, isInside: boolean): Json {
  const { content } = block;
  if (!isInside || !Array.isArray(content) || content.length === 0) return { ...block, cache_control: mark };
  return { ...block, content: [...content.slice(0, -1), { ...(content.at(-1) as Json), cache_control: mark }] };
}

/** Without a text it is the directive alone. */
function writeNote({ text, ...fields }: Note): string {
  return JSON.stringify({ role: 'system', content: text === '' ? [] : text, ...fields });
}

function withReminders(blocks: readonly Json[], notes: readonly Note[]): readonly Json[] {
  const parts = notes.flatMap(({ text }) => text.split('\n\n')).filter((text) => text !== '');
  const said = parts.map((text) => ({ type: 'text', text: `<system-reminder>\n${text}\n</system-reminder>` }));
  return blocks[0]?.['type'] === 'tool_result' ? [...blocks, ...said] : [...said, ...blocks];
}

function control({ ttl }: Shape): Json {
  return ttl === '1h' ? { type: 'ephemeral', ttl } : { type: 'ephemeral' };
}

function systemBlocks(shape: Shape, nonce: number): readonly Json[] {
  const count = String(nonce).padStart(5, '0');
  return [
    {
      type: 'text',
      text: `x-anthropic-billing-header: cc_version=${shape.version}.476; cc_entrypoint=cli; cch=${count};`,
    },
    { type: 'text', text: 'You help with code. Be exact.', cache_control: { ...control(shape), scope: 'global' } },
    {
      type: 'text',
      text: isNew(shape) ? 'Act with care.' : environment(shape),
      cache_control: control(shape),
    },
  ];
}

export function environment({ cwd }: Pick<Shape, 'cwd'>): string {
  return `# Environment\nYou have been invoked in the following environment: \n - Primary working directory: ${cwd}\n - Platform: linux\n`;
}
