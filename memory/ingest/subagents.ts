import { findBlocks, isRecord, toText } from '../../common/text.ts';
import { getSource } from '../../common/turn.ts';
import { type Block, contentText } from './content-blocks.ts';
import type { ImportedAgent, ImportedMessage } from './imported-turn.ts';

type Line = Readonly<Record<string, unknown>>;

export interface Entry {
  readonly role: 'user' | 'assistant';
  /** API message id: the blocks of one message are on several lines. */
  readonly id: string;
  blocks: Block[];
}

type Agent = ReturnType<typeof newAgent>;

/** Transcripts of subagents, and the turns that started them. */
export function createSubagents() {
  const agents = new Map<string, Agent>();
  /** Tool calls that may have started a subagent, by id, and those that a result names, by subagent. */
  /** `by`: the turn or the subagent that made the call. */
  const calls = new Map<string, { readonly by: number | string; readonly prompt: string }>();
  const results = new Map<string, number | string>();
  /** First line of each side chain, for versions without ids of subagents. */
  const roots = new Map<string, string>();

  function noteStarts(by: number | string, { toolUseResult }: Line, blocks: readonly Block[]): void {
    const started = isRecord(toolUseResult) ? toText(toolUseResult['agentId']) : '';
    if (started !== '') results.set(started, by);
    for (const { type, id, input } of blocks) {
      const prompt = type === 'tool_use' && isRecord(input) ? toText(input['prompt']).trim() : '';
      if (prompt !== '') calls.set(toText(id), { by, prompt });
    }
  }

  function enter(id: string, line: Line, callId = ''): void {
    const { message, uuid, timestamp } = line;
    const atMs = Date.parse(toText(timestamp));
    const agent = agents.get(id) ?? newAgent(id, atMs);
    agents.set(id, agent);
    agent.lines += 1;
    agent.callId ||= callId;
    const name = toText(uuid);
    if (!isRecord(message) || !isSpoken(line) || (name !== '' && agent.seen.has(name))) return;
    agent.seen.add(name);
    if (!Number.isNaN(atMs)) agent.atMs = Math.max(agent.atMs, atMs);
    agent.model ||= toText(message['model']);
    const blocks = findBlocks(message['content']).filter(({ type }) => !toText(type).endsWith('thinking'));
    noteStarts(id, line, blocks);
    const isResult = blocks.some(({ type }) => type === 'tool_result');
    if (message['role'] === 'assistant' || isResult) {
      addMessage(agent.entries, isResult ? 'user' : 'assistant', toText(message['id']), blocks);
      return;
    }
    agent.prompt ||= contentText(blocks).trim();
    // The assistant wrote the task, not the user; what is in the client's forms is read as such.
    const role = getSource(contentText(blocks)) === null ? 'assistant' : 'user';
    agent.entries.push({ role, id: '', blocks: [...blocks] });
  }

  function getTurn(agent: Agent, visited = new Set<Agent>()): number | undefined {
    if (visited.has(agent)) return undefined;
    visited.add(agent);
    const call = calls.get(agent.callId) ?? [...calls.values()].find(({ prompt }) => prompt === agent.prompt);
    const by = results.get(agent.id) ?? call?.by;
    if (typeof by === 'number' || by === undefined) return by;
    const starter = agents.get(by);
    return starter === undefined ? undefined : getTurn(starter, visited);
  }

  return {
    /** A line of a subagent's own file, or of the session's. @param agentId  '' where the line names it, or none does */
    line(line: Line, agentId: string): void {
      const uuid = toText(line['uuid']);
      const id = agentId || toText(line['agentId']) || (roots.get(toText(line['parentUuid'])) ?? uuid);
      if (uuid !== '') roots.set(uuid, id);
      enter(id, line);
    },
    /** A line that repeats a subagent's message while the tool call runs. */
    progress({ data, parentToolUseID }: Line): void {
      if (!isRecord(data) || data['type'] !== 'agent_progress' || !isRecord(data['message'])) return;
      enter(toText(data['agentId']), data['message'], toText(parentToolUseID));
    },
    /** A message of the conversation itself. */
    message: noteStarts,
    agentsByTurn(): ReadonlyMap<number, readonly ImportedAgent[]> {
      const byTurn = new Map<number, ImportedAgent[]>();
      for (const agent of agents.values()) {
        const turn = getTurn(agent);
        const { id, startMs, atMs, model, entries } = agent;
        // Older versions log its steps only; its report is a result in the turn.
        const hasReport = entries
          .slice(1)
          .some(({ role, blocks }) => role === 'assistant' && contentText(blocks) !== '');
        if (turn === undefined || !hasReport) continue;
        byTurn.set(turn, [...(byTurn.get(turn) ?? []), { id, startMs, atMs, model, messages: getMessages(entries) }]);
      }
      return byTurn;
    },
    /** Number of lines of subagents that no turn is known to have started. */
    countUnknown(): number {
      const unknown = [...agents.values()].filter((agent) => getTurn(agent) === undefined);
      return unknown.reduce((sum, { lines }) => sum + lines, 0);
    },
  };
}

/** False for lines that only repeat a message, and for what the client wrote, not the user or the model. */
export function isSpoken({ type, message, isMeta, isApiErrorMessage }: Line): boolean {
  if (isMeta === true || isApiErrorMessage === true || !isRecord(message)) return false;
  return (type === 'user' || type === 'assistant') && message['role'] === type && message['model'] !== '<synthetic>';
}

function newAgent(id: string, atMs: number) {
  const startMs = Number.isNaN(atMs) ? 0 : atMs;
  const texts = { prompt: '', callId: '', model: '' };
  return { id, ...texts, entries: [] as Entry[], seen: new Set<string>(), startMs, atMs: startMs, lines: 0 };
}

/** Adds blocks to the message that they are part of: the results of parallel calls belong to one. */
export function addMessage(entries: Entry[], role: Entry['role'], id: string, blocks: readonly Block[]): void {
  if (blocks.length === 0) return;
  const last = entries.at(-1);
  const same = role === 'user' && last?.role === 'user' ? last : entries.find((entry) => id !== '' && entry.id === id);
  if (same === undefined) entries.push({ role, id, blocks: [...blocks] });
  else same.blocks.push(...blocks);
}

export function getMessages(entries: readonly Entry[]): ImportedMessage[] {
  return entries.map(({ role, blocks }) => ({ role, content: blocks }));
}
