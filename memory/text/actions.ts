import { clip, neutralLine, oneLine, parseJson } from '../../common/text.ts';
import { lowestOrigin, type Origin } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import { findImages } from './content-type.ts';

/** What a tool call does, the weightiest first. */
export const ACTS = ['EDIT', 'RUN', 'FETCH', 'DELEGATE', 'READ'] as const;
export type Act = (typeof ACTS)[number];

export interface Action {
  readonly act: Act;
  readonly tool: string;
  /** A file, command, url or pattern; '' where its input names none. */
  readonly subject: string;
  readonly failed: boolean;
  readonly images: string;
  /** What was asked about a page, '' where its input does not say. */
  readonly question: string;
  readonly origin: Origin;
}

export interface ActionGroup extends Omit<Action, 'failed'> {
  readonly count: number;
  readonly lastFailed: boolean;
}

const ACT_OF: Readonly<Record<string, Act>> = {
  Edit: 'EDIT',
  MultiEdit: 'EDIT',
  Write: 'EDIT',
  NotebookEdit: 'EDIT',
  Bash: 'RUN',
  PowerShell: 'RUN',
  WebFetch: 'FETCH',
  WebSearch: 'FETCH',
  Task: 'DELEGATE',
  Agent: 'DELEGATE',
};
const VERBS: Readonly<Record<Act, string>> = {
  EDIT: 'edited',
  RUN: 'ran',
  FETCH: 'fetched',
  DELEGATE: 'delegated',
  READ: 'read',
};
const FAILED =
  /^[ \t]*(?:<tool_use_error>|error\b|fatal:|traceback\b)|\bexit(?:ed)?(?: with)?(?: code| status)?:? [1-9]\d*\b|\bcommand (?:failed|not found)\b|\b[1-9]\d* (?:tests? )?failed\b/im;
export const REJECTED = /^The user doesn't want to (?:proceed|take this action)/;
const RESULT_CHARS = 4_000;
const INPUT_CHARS = 10_000;
const SUBJECT_CHARS = 60;
const CAPSULE_CHARS = 240;
const QUESTION_CHARS = 100;
const URLS = 5;
/** Of a path: enough to know it again. */
const SEGMENTS = 2;
/** Inputs of tools that say what a call was about. */
const TELLING = ['file_path', 'notebook_path', 'path', 'command', 'pattern', 'url', 'query', 'description', 'prompt'];
const FIELD = /"(\w+)":"((?:[^"\\]|\\.)*)"/g;
/** The client's own tools that plan or wait. */
const IDLE = /^(?:Todo\w+|Task\w+|(?:Enter|Exit)PlanMode|AskUserQuestion|ToolSearch|BashOutput|KillShell)$/;

/** Tool calls in order, each with the result that answers it; without those that the user refused. */
export function getActions(turns: readonly TurnText[]): Action[] {
  return turns.flatMap(({ parts }) => {
    const results = parts.filter(({ kind }) => kind === 'tool_result');
    const calls = parts.filter(({ kind }) => kind === 'tool_use');
    return calls.flatMap(({ tool, text, origin }): Action[] => {
      const at = results.findIndex((result) => result.tool === tool);
      const [result] = at < 0 ? [] : results.splice(at, 1);
      if (result !== undefined && REJECTED.test(result.text)) return [];
      const failed = result !== undefined && FAILED.test(result.text.slice(0, RESULT_CHARS));
      const images = findImages(result?.text ?? '');
      const { url, prompt } = readFields(text);
      const isQuestion = typeof url === 'string' && typeof prompt === 'string';
      const question = isQuestion ? `“${clip(prompt, QUESTION_CHARS)}”` : '';
      return [{ act: ACT_OF[tool] ?? 'READ', tool, subject: getSubject(text), failed, images, question, origin }];
    });
  });
}

/** One group for each thing something was done to, weightiest acts first, then in order. */
export function groupActions(actions: readonly Action[]): ActionGroup[] {
  const groups = new Map<string, ActionGroup>();
  for (const { failed, ...action } of actions) {
    if (IDLE.test(action.tool)) continue;
    const key = `${action.act} ${action.tool} ${action.subject}`;
    groups.set(key, { ...action, count: (groups.get(key)?.count ?? 0) + 1, lastFailed: failed });
  }
  return [...groups.values()].sort((a, b) => ACTS.indexOf(a.act) - ACTS.indexOf(b.act));
}

/** `edited src/db.ts (2×)`, `ran npm test (3×, failed at last)`. */
export function groupLine({ act, tool, subject, count, lastFailed, images, question }: ActionGroup): string {
  const shown = [images, question].filter((each) => each !== '').map((each) => `: ${each}`);
  const marks = [...(count > 1 ? [`${count}×`] : []), ...(lastFailed ? [count > 1 ? 'failed at last' : 'failed'] : [])];
  const marked = marks.length === 0 ? '' : ` (${marks.join(', ')})`;
  return neutralLine(`${VERBS[act]} ${subject || tool}${marked}${shown.join('')}`, CAPSULE_CHARS);
}

/** What was done, in one line; what does not fit is counted. Null where nothing was. */
export function getCapsule(actions: readonly Action[]): string | null {
  const lines = groupActions(actions).map(groupLine);
  if (lines.length === 0) return null;
  let shown = 0;
  for (let chars = 0; shown < lines.length; shown += 1) {
    chars += (lines[shown] as string).length + 2;
    if (chars > CAPSULE_CHARS && shown > 0) break;
  }
  const more = lines.length - shown;
  return [...lines.slice(0, shown), ...(more === 0 ? [] : [`${more} more`])].join('; ');
}

/** Pages that were fetched, without what may be secret in an address. */
export function getUrls(turns: readonly TurnText[]): string[] {
  const calls = turns.flatMap(({ parts }) => parts.filter(({ kind }) => kind === 'tool_use'));
  const named = calls.flatMap(({ text }) => /"url":"(https?:[^"\\\s]{4,300})"/.exec(text)?.[1] ?? []);
  const plain = named.flatMap((url) => (URL.canParse(url) ? [new URL(url).origin + new URL(url).pathname] : []));
  return [...new Set(plain)].slice(0, URLS);
}

/** What the input of a call names, as short as it is still known. */
export function getSubject(input: string, maxChars = SUBJECT_CHARS): string {
  const fields = readFields(input);
  const telling = TELLING.map((name) => fields[name]).find((value) => typeof value === 'string');
  const named = oneLine(String(telling ?? ''));
  const isPath = named.includes('/') && !/\s|^\w+:\/\//.test(named);
  return neutralLine(isPath ? named.split('/').slice(-SEGMENTS).join('/') : named, maxChars);
}

function readFields(input: string): Readonly<Record<string, unknown>> {
  const fields = parseJson(input);
  if (fields !== undefined) return Object(fields);
  // One without its middle: the content of a file.
  const pairs = [...input.slice(0, INPUT_CHARS).matchAll(FIELD)];
  return Object.fromEntries(
    pairs.map(([, name, value = '']) => [name, value.replace(/\\[nrt]/g, ' ').replace(/\\(.)/g, '$1')]).reverse(),
  );
}

const MOST = 12;
/** With fewer calls its capsule says all there is. */
const LEAST_CALLS = 4;

/** A child that stands for calls of its parent's turns: in the files, never in the index, one step from its parent. */
export const isCall = (node: MemoryNode): boolean => node.kind === 'tool' && node.turns.length === 0;

/** The tool calls of a node's turns as its children, at most twelve: calls of one kind on one thing are one. */
export function callNodes(parent: MemoryNode, actions: readonly Action[], newId: () => string): MemoryNode[] {
  const groups = groupActions(actions);
  if (actions.length < LEAST_CALLS || groups.length < 2) return [];
  const { session_id, project, valid_from, compaction_reason, created_at } = parent;
  const own = { session_id, project, valid_from, compaction_reason, created_at };
  return groups.slice(0, MOST).map((group): MemoryNode => {
    const line = groupLine(group);
    return {
      ...own,
      kind: 'tool',
      author: { by: 'rules' },
      status: 'current',
      node_id: newId(),
      parent_node_id: parent.node_id,
      depth_level: parent.depth_level + 1,
      modality: 'execution_trace',
      recall_mode: 'active',
      topic_tags: [`FLAG:ACT_${group.act}`],
      importance: 'LOW',
      summary: line,
      detailed_summary: null,
      trigger: `When I need what came of it: ${line}`,
      capsule: line,
      origin: lowestOrigin([parent.origin, group.origin]),
      links: [],
      source_links: [],
      valid_to: null,
      superseded_by: null,
      turns: [],
      facts: [],
    };
  });
}
