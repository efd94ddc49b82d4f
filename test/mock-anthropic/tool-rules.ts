import { isServerResult, isUse, type Message } from './block-rules.ts';
import type { Json } from './json.ts';

interface Placed {
  readonly path: string;
  readonly block: Json;
}

/** Consecutive messages of one role, which the API reads as one. */
interface Turn {
  readonly role: string;
  readonly path: string;
  readonly blocks: Placed[];
}

/** Unique ids; each client call answered in the next turn, results first; each server result behind its call. */
export function checkTools(messages: readonly Message[]): string | null {
  const turns: Turn[] = [];
  for (const [index, { role, blocks }] of messages.entries()) {
    if (turns.at(-1)?.role !== role) turns.push({ role, path: `messages.${index}`, blocks: [] });
    turns.at(-1)?.blocks.push(...blocks.map((block, at) => ({ path: `messages.${index}.content.${at}`, block })));
  }
  return checkIds(turns) ?? checkClientTools(turns) ?? checkServerTools(turns);
}

function checkIds(turns: readonly Turn[]): string | null {
  const seen = new Set<unknown>();
  for (const { path, block } of turns.flatMap(({ blocks }) => blocks)) {
    if (!isUse(block) || typeof block.id !== 'string') continue;
    if (seen.has(block.id)) return `${path}: \`${block.type}\` ids must be unique`;
    seen.add(block.id);
  }
  return null;
}

function checkClientTools(turns: readonly Turn[]): string | null {
  for (const [at, turn] of turns.entries()) {
    const open = turn.role === 'assistant' ? new Set<string>() : getCalls(turns[at - 1]);
    const answered = new Set<string>();
    for (const { path, block } of turn.blocks) {
      if (block.type !== 'tool_result') continue;
      const id = String(block.tool_use_id ?? '');
      if (!open.has(id)) {
        return `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
      }
      if (answered.has(id)) {
        return `${path}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`;
      }
      answered.add(id);
    }
    const missing = turn.role === 'assistant' ? unanswered(turn, turns[at + 1]) : [];
    if (missing.length > 0) {
      return `${turn.path}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
    }
  }
  return null;
}

function getCalls(turn: Turn | undefined): Set<string> {
  if (turn?.role !== 'assistant') return new Set();
  return new Set(turn.blocks.flatMap(({ block }) => (block.type === 'tool_use' ? [String(block.id ?? '')] : [])));
}

/** The API takes the results that open the next turn; one behind other content answers nothing. */
function unanswered(turn: Turn, next: Turn | undefined): readonly string[] {
  const blocks = next?.role === 'user' ? next.blocks : [];
  const end = blocks.findIndex(({ block }) => block.type !== 'tool_result');
  const results = end < 0 ? blocks : blocks.slice(0, end);
  const answered = new Set(results.map(({ block }) => block.tool_use_id));
  return [...getCalls(turn)].filter((id) => !answered.has(id));
}

function checkServerTools(turns: readonly Turn[]): string | null {
  const open = new Map<unknown, Placed>();
  for (const { role, blocks } of turns) {
    const [left] = open.values();
    if (left && role === 'user' && blocks.some(({ block }) => block.type !== 'tool_result')) {
      const { name, id } = left.block;
      return `${left.path}: \`${name}\` tool use with id \`${id}\` was found without a corresponding \`${name}_tool_result\` block`;
    }
    for (const placed of role === 'assistant' ? blocks : []) {
      const { path, block } = placed;
      if (block.type === 'server_tool_use' || block.type === 'mcp_tool_use') open.set(block.id, placed);
      if (!isServerResult(block) || open.delete(block.tool_use_id)) continue;
      const use = block.type === 'mcp_tool_result' ? 'mcp_tool_use' : 'server_tool_use';
      return `${path}: unexpected \`tool_use_id\` found in \`${block.type}\` blocks: ${block.tool_use_id}. Each \`${block.type}\` block must have a corresponding \`${use}\` block before it.`;
    }
  }
  return null;
}
