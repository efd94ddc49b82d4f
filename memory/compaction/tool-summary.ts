import { lowestOrigin } from '../../common/turn.ts';
import type { TurnText } from '../model/turn.ts';
import type { DraftNode } from '../models/language-model.ts';
import { subjectOf } from '../text/actions.ts';
import { clip } from '../text/sanitize-line.ts';

const SUMMARY_CHARS = 180;
const PROMPT_CHARS = 200;
const CALL_CHARS = 40;
const SAID_CHARS = 80;

/**
 * Some rounds of a turn in one node: what was called, on what, and the last words said over it. What tools answered
 * is left to the raw messages.
 *
 * @param prompt  what the user asked for, '' where it is not known
 */
export function bundleDraft(part: TurnText, prompt: string): DraftNode {
  const calls = part.parts.filter((each) => each.kind === 'tool_use');
  const said = part.parts.findLast((each) => each.kind === 'assistant' && each.text !== '');
  const named = [...new Set(calls.map(({ tool, text }) => `${tool} ${subjectOf(text, CALL_CHARS)}`.trim()))];
  const words = said === undefined ? '' : ` — ${clip(oneLine(said.text), SAID_CHARS)}`;
  const count = `${calls.length} tool ${calls.length === 1 ? 'call' : 'calls'}`;
  const room = SUMMARY_CHARS - count.length - words.length - 2;
  const subjects = named.map((name) => name.replace(/^\S+ /, ''));
  const shown = [...calls.map(({ origin }) => origin), ...(said === undefined ? [] : [said.origin])];
  return {
    summary: `${count}: ${clip(named.join('; '), room)}${words}`,
    trigger: triggerOf(prompt, subjects),
    topic_tags: [],
    importance: 'LOW',
    recall_mode: 'active',
    turns: [part.turnId],
    facts: [],
    origin: lowestOrigin([...shown, 'user']),
  };
}

function triggerOf(prompt: string, subjects: readonly string[]): string {
  const called = clip(subjects.join(', '), SUMMARY_CHARS);
  if (prompt === '') return `When I need what a tool said about ${called}`;
  return `When I come back to “${clip(oneLine(prompt), PROMPT_CHARS)}”, or need what a tool said about ${called}`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
