import { findBlocks, isRecord, toText } from '../../common/text.ts';
import { getSource } from '../../common/turn.ts';
import type { Block } from './content-blocks.ts';

/** A prompt that the user typed while Claude was busy and that no user message of the transcript repeats. */
export interface QueuedPrompt {
  readonly blocks: readonly Block[];
  readonly atMs: number;
  /** Index of the turn that ran. */
  readonly after: number;
  /** Equal in copies of the transcript. */
  readonly id: string;
}

type Line = Readonly<Record<string, unknown>>;

interface Place {
  readonly atMs: number;
  readonly turn: number;
}

type Item = ReturnType<typeof newItem>;

/** `repeated`: a user message has it. */
type ItemState = 'waiting' | 'joined' | 'withdrawn' | 'repeated';

function newItem(content: unknown, { atMs, turn: after }: Place) {
  const blocks = findBlocks(content);
  const text = getText(blocks);
  const state = 'waiting' as ItemState;
  return { blocks, text, atMs, id: `queued ${atMs} ${text}`, after, state, isAttached: false, isRemoved: false };
}

/** `remove` lines of versions before 2.1.246 give no reason. */
const JOINED = new Set(['', 'absorbed_mid_turn']);

/** `commandMode` of what the user types; the rest are notifications. */
const TYPED = new Set(['', 'prompt', 'bash']);

/**
 * Claude Code's queue of typed prompts, as a transcript logs it. A prompt that leaves the queue becomes a user message
 * (`dequeue`) or joins the running turn: then it is on the `enqueue` line and in a `queued_command` attachment only.
 */
export function createPromptQueue() {
  const items: Item[] = [];
  const seen = new Set<string>();
  /** Prompts that joined the turn before the next prompt. */
  let recent: Item[] = [];
  let dequeued = 0;
  let isPrompted = false;

  const inState = (state: ItemState): Item[] => items.filter((item) => item.state === state);

  function add(content: unknown, at: Place): Item {
    const item = newItem(content, at);
    items.push(item);
    return item;
  }

  function join(item: Item, turn: number): void {
    item.state = 'joined';
    item.after = turn;
    recent.push(item);
  }

  function remove(line: Line, turn: number): void {
    const text = getText(findBlocks(line['content']));
    const open = [...inState('joined'), ...inState('waiting')].filter(
      (item) => !item.isRemoved && (text === '' || item.text === text),
    );
    const item = open.find(({ isAttached }) => isAttached) ?? open[0];
    if (item === undefined) return;
    item.isRemoved = true;
    if (item.state === 'joined') return;
    if (JOINED.has(toText(line['reason']))) join(item, turn);
    else item.state = 'withdrawn';
  }

  /** The items that a user message repeats; prompts that leave the queue together are one message. */
  function findRepeated(text: string): readonly Item[] {
    const waiting = inState('waiting');
    const same = waiting.find((item) => item.text === text) ?? recent.find((item) => item.text === text);
    if (same !== undefined) return [same];
    const left = waiting.slice(0, dequeued);
    const held = left.filter((item) => item.text !== '' && text.includes(item.text));
    return held.length > 0 ? held : left.slice(0, 1);
  }

  return {
    operation(line: Line, at: Place): void {
      const key = JSON.stringify([line['operation'], line['timestamp'], line['content']]);
      // A resumed session may log its last lines again.
      if (line['timestamp'] !== undefined && seen.has(key)) return;
      seen.add(key);
      if (line['operation'] === 'enqueue') add(line['content'], at);
      else if (line['operation'] === 'dequeue') dequeued += 1;
      else if (line['operation'] === 'remove') remove(line, at.turn);
      // Back in the input field, where the user edits it.
      else if (line['operation'] === 'popAll') for (const item of inState('waiting')) item.state = 'withdrawn';
    },
    attachment(attachment: Line, at: Place): void {
      const text = getText(findBlocks(attachment['prompt']));
      const open = [...inState('joined'), ...inState('waiting')].find((one) => one.text === text && !one.isAttached);
      const item = open ?? add(attachment['prompt'], at);
      item.isAttached = true;
      // The attachment holds images too, the line of the queue does not.
      item.blocks = typedBlocks(attachment);
      if (!isTyped(attachment)) item.state = 'withdrawn';
      else if (item.state === 'waiting') join(item, at.turn);
    },
    /** A user message that is a prompt; `text` as typed. */
    prompt(typed: string): void {
      isPrompted = true;
      const text = normalized(typed);
      if (text === '') return;
      for (const item of findRepeated(text)) item.state = 'repeated';
      dequeued = 0;
    },
    /** Any other message: no prompt follows a `dequeue` before it. */
    message(): void {
      if (isPrompted) recent = [];
      isPrompted = false;
      dequeued = 0;
    },
    prompts(): QueuedPrompt[] {
      const typed = [...inState('joined'), ...inState('waiting')];
      return items
        .filter((item) => typed.includes(item) && item.text !== '' && getSource(item.text) === null)
        .map(({ blocks, atMs, after, id }) => ({ blocks, atMs, after, id }));
    },
  };
}

/** False for what a schedule, a task, another agent or the client put in place of a prompt. */
export function isTyped({ commandMode, origin, isMeta, textNotTyped, wakeupSource }: Line): boolean {
  const kind = isRecord(origin) ? toText(origin['kind']) : '';
  if (isMeta === true || textNotTyped === true || wakeupSource !== undefined) return false;
  return TYPED.has(toText(commandMode)) && (kind === '' || kind === 'human');
}

function typedBlocks({ prompt, commandMode }: Line): readonly Block[] {
  const blocks = findBlocks(prompt);
  if (commandMode !== 'bash') return blocks;
  return blocks.map((block) =>
    block['type'] === 'text' ? { ...block, text: `<bash-input>${toText(block['text'])}</bash-input>` } : block,
  );
}

function getText(blocks: readonly Block[]): string {
  return normalized(blocks.map((block) => toText(block['text'])).join('\n'));
}

/** Images are numbered in the queue and apart in messages. */
function normalized(text: string): string {
  const words = text.replace(/\[image(?: [#\w ×]{1,30})?\]/gi, '');
  return words.replace(/\s+/g, ' ').trim();
}
