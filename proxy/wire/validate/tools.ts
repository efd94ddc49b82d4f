import { type ApiError, invalidRequest } from '../api-error.ts';
import type { BlockShape, MessageShape, RequestShape } from '../request-shape.ts';
import { isServerResult } from './roles.ts';

interface Placed {
  readonly block: BlockShape;
  /** Message and position in it, in the array as sent. */
  readonly index: number;
  readonly at: number;
}

/** Consecutive messages of one role, which the API merges. */
interface Turn {
  readonly role: string;
  readonly index: number;
  readonly blocks: readonly Placed[];
}

/** Each client tool call is answered in the next message, results first; each server result follows its call; ids are unique. */
export function checkTools(shape: RequestShape): ApiError | null {
  const turns = mergeTurns(shape.messages);
  return checkUnique(turns) ?? checkAnswers(turns) ?? checkServerTools(turns);
}

function mergeTurns(messages: readonly MessageShape[]): readonly Turn[] {
  const turns: { role: string; index: number; blocks: Placed[] }[] = [];
  for (const [index, message] of messages.entries()) {
    const placed = message.blocks.map((block, at) => ({ block, index, at }));
    const last = turns.at(-1);
    if (last?.role === message.role) last.blocks.push(...placed);
    else turns.push({ role: message.role, index, blocks: placed });
  }
  return turns;
}

function checkUnique(turns: readonly Turn[]): ApiError | null {
  const seen = new Set<string>();
  for (const turn of turns) {
    for (const placed of turn.blocks) {
      const { id, type } = placed.block;
      if (id === undefined) continue;
      if (seen.has(id)) return invalidRequest(`${formatPath(placed)}: \`${type}\` ids must be unique`);
      seen.add(id);
    }
  }
  return null;
}

function formatPath({ index, at }: Placed): string {
  return `messages.${index}.content.${at}`;
}

function checkAnswers(turns: readonly Turn[]): ApiError | null {
  let called: ReadonlySet<string> = new Set();
  for (const [at, turn] of turns.entries()) {
    if (turn.role === 'assistant') {
      called = new Set(turn.blocks.flatMap(({ block }) => (block.type === 'tool_use' ? [block.id ?? ''] : [])));
      const refusal = checkOrphans(turn, new Set()) ?? checkMissing(turn, called, turns[at + 1]);
      if (refusal) return refusal;
    } else {
      const refusal = checkOrphans(turn, called);
      if (refusal) return refusal;
      called = new Set();
    }
  }
  return null;
}

function checkMissing(turn: Turn, called: ReadonlySet<string>, next: Turn | undefined): ApiError | null {
  const answered = new Set<string>();
  for (const { block } of next?.role === 'user' ? next.blocks : []) {
    // The API ignores results that follow other content.
    if (block.type !== 'tool_result') break;
    answered.add(block.toolUseId ?? '');
  }
  const missing = [...called].filter((id) => !answered.has(id));
  if (missing.length === 0) return null;
  return invalidRequest(
    `messages.${turn.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  );
}

function checkOrphans(turn: Turn, called: ReadonlySet<string>): ApiError | null {
  const seen = new Set<string>();
  for (const placed of turn.blocks) {
    const { block } = placed;
    if (block.type !== 'tool_result') continue;
    const id = block.toolUseId ?? '';
    if (!called.has(id)) {
      return invalidRequest(
        `${formatPath(placed)}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    }
    if (seen.has(id)) {
      return invalidRequest(
        `${formatPath(placed)}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
      );
    }
    seen.add(id);
  }
  return null;
}

function checkServerTools(turns: readonly Turn[]): ApiError | null {
  const open = new Map<string, Placed>();
  for (const turn of turns) {
    if (turn.role === 'user' && turn.blocks.some(({ block }) => block.type !== 'tool_result')) {
      const left = [...open.values()][0];
      if (left) {
        return invalidRequest(
          `${formatPath(left)}: \`${left.block.name}\` tool use with id \`${left.block.id}\` was found without a corresponding \`${left.block.name}_tool_result\` block`,
        );
      }
    }
    if (turn.role !== 'assistant') continue;
    const orphan = matchServerResults(turn, open);
    if (orphan) return orphan;
  }
  return null;
}

function matchServerResults(turn: Turn, open: Map<string, Placed>): ApiError | null {
  for (const placed of turn.blocks) {
    const { block } = placed;
    if (block.type === 'server_tool_use' || block.type === 'mcp_tool_use') open.set(block.id ?? '', placed);
    if (!isServerResult(block) || block.toolUseId === undefined || open.delete(block.toolUseId)) continue;
    const use = block.type === 'mcp_tool_result' ? 'mcp_tool_use' : 'server_tool_use';
    return invalidRequest(
      `${formatPath(placed)}: unexpected \`tool_use_id\` found in \`${block.type}\` blocks: ${block.toolUseId}. Each \`${block.type}\` block must have a corresponding \`${use}\` block before it.`,
    );
  }
  return null;
}
