import { clip } from '../common/text.ts';
import type { CapturedTurn } from '../common/turn.ts';
import { buildNodes } from './compaction/build-nodes.ts';
import { captureAgent, type ImportedAgent, importLink } from './ingest/imported-turn.ts';
import { redactTurn } from './ingest/redact-turn.ts';
import { readTurnPart } from './ingest/turn-trust.ts';
import type { TurnText } from './model/turn.ts';
import type { ProposedNode } from './models/model.ts';
import type { MemoryParts } from './parts.ts';

export interface StartedAgent {
  readonly turn: CapturedTurn;
  readonly agent: ImportedAgent;
  readonly index: number;
}

const TASK_CHARS = 160;
const RESULT_CHARS = 400;

/** Writes what a subagent did below the node of its turn, if there is one. Returns whether something was new. */
export async function saveSubagent(
  { turn, agent, index }: StartedAgent,
  { dryRun, imported }: { readonly dryRun: boolean; readonly imported: 'claude' | 'file' },
  { catalogue, compactor, removal, journal, redactor, store, turnRegistry, turnReader }: MemoryParts,
): Promise<boolean> {
  const { isGone } = removal;
  const getCovering = (turnId: string) => turnRegistry.aliases(turnId).flatMap(catalogue.nodesCovering);
  const captured = captureAgent(agent, turn, index);
  const parent = getCovering(turn.turnId).flatMap((id) => catalogue.current(id) ?? [])[0];
  if (isGone(captured.turnId) || isGone(turn.turnId) || getCovering(captured.turnId).length > 0) return false;
  if (dryRun || parent === undefined) return dryRun;
  // Same origin as the result of the call: a subagent's words are not the user's, nor this conversation's.
  const own = { ...(await redactTurn(captured, redactor)), project: parent.project, echoes: true as const };
  const text = readTurnPart(own, false).text;
  if (!turnRegistry.isRecorded(own.turnId)) turnRegistry.record(await journal.append(own), text);
  turnReader.keep(text);
  const { sessionId, project, atMs } = own;
  const source = {
    sessionId,
    project,
    reason: 'external',
    kind: 'tool',
    author: { by: 'rules' },
    shown: [text],
  } as const;
  const nodes = buildNodes([agentDraft(text)], { ...source, nowMs: atMs, newId: () => compactor.newId(atMs) });
  const below = { parent_node_id: parent.node_id, depth_level: parent.depth_level + 1 };
  const link = importLink(imported);
  const children = nodes.map((node) => ({ ...node, ...below, source_links: [...node.source_links, link] }));
  await store.save(children, [text]);
  return true;
}

function agentDraft({ turnId, parts }: TurnText): ProposedNode {
  const answers = parts.filter(({ kind }) => kind === 'assistant').map(({ text }) => text.replace(/\s+/g, ' ').trim());
  const task = clip(answers[0] ?? '', TASK_CHARS);
  const result = clip(answers.length > 1 ? (answers.at(-1) ?? '') : '', RESULT_CHARS);
  return {
    summary: `Subagent on “${task}”${result === '' ? '' : `: ${result}`}`,
    trigger: `When I need what a subagent found on “${task}”`,
    topic_tags: ['ORIGIN:SUBAGENT_RESULT'],
    importance: 'LOW',
    recall_mode: 'active',
    turns: [turnId],
    facts: [],
  };
}
