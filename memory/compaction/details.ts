import { beforeAbort } from '../../common/async.ts';
import { neutralLine } from '../../common/text.ts';
import { lowestOrigin } from '../../common/turn.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import type { MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import type { DetailInput, DetailResult, LanguageModel } from '../models/model.ts';
import { createBackoff } from '../models/quota.ts';
import { isSameWork } from './supersede.ts';

export type DetailedNode = MemoryNode & {
  /** Why the detailed summary is missing or made by rules. */
  readonly detail_note?: string;
};

type Parts = Pick<
  ServiceParts,
  'model' | 'local' | 'quota' | 'clock' | 'log' | 'catalogue' | 'store' | 'turnReader' | 'taskQueue'
>;

const MAX_SENTENCES = 8;
const SENTENCE_CHARS = 400;
const DETAIL_CHARS = 2_400;
const NEVER_ABORTS = new AbortController().signal;

/** Writes a node's detailed summary on first request. */
export type Details = ReturnType<typeof createDetails>;

export function createDetails({ model, local, quota, clock, log, catalogue, store, turnReader, taskQueue }: Parts) {
  const gate = createBackoff(clock, quota);
  const closing = new AbortController();
  const underway = new Map<string, Promise<DetailedNode>>();

  async function make(node: MemoryNode): Promise<DetailedNode> {
    const own = new Set(node.turns);
    const turns = (await turnReader.ofSession(node.session_id)).filter((turn) => own.has(turn.turnId));
    if (turns.length === 0) return { ...node, detail_note: 'no detailed summary: the raw turns are not kept here' };
    const isBundle = node.kind === 'tool';
    const input: DetailInput = { sessionId: node.session_id, summary: node.summary, turns, isBundle };
    const answer = await ask(input);
    if (typeof answer !== 'string') return keep(node, withDetail(node, answer.result, answer.by, turns));
    const fresh = withDetail(node, await local.expand(input, NEVER_ABORTS), local.name, turns);
    if (answer === '') return keep(node, fresh);
    // Not saved, so that the next request calls the model again.
    return { ...fresh, detail_note: `written without a model: ${answer}` };
  }

  /** The model's result, or the reason why there is none; '' without a model. */
  async function ask(
    input: DetailInput,
  ): Promise<{ result: Awaited<ReturnType<LanguageModel['expand']>>; by: string } | string> {
    if (model === null) return '';
    if (!gate.isOpen(input.sessionId)) return gate.because(input.sessionId);
    try {
      const result = await beforeAbort(model.expand(input, closing.signal), closing.signal);
      gate.succeeded();
      return { result, by: model.name };
    } catch (error) {
      if (closing.signal.aborted) return 'the daemon is stopping';
      gate.failed();
      log.warn('model failed to write a detailed summary; rules wrote it', { error });
      return (error as Error).message;
    }
  }

  /** Saves the detail unless the node changed or was removed in the meantime. */
  async function keep(before: MemoryNode, fresh: MemoryNode): Promise<DetailedNode> {
    return store.exclusive(async (store) => {
      await store.refresh();
      const now = catalogue.get(before.node_id);
      if (now === undefined || now.detailed_summary !== null || !isSameWork(before, now)) return now ?? fresh;
      const { detailed_summary, detailed_by, detailed_origin } = fresh;
      if (detailed_summary === null || detailed_by === undefined || detailed_origin === undefined) return now;
      const saved = { ...now, detailed_summary, detailed_by, detailed_origin };
      await store.save([saved]);
      return saved;
    });
  }

  return {
    show(node: MemoryNode): Promise<DetailedNode> {
      if (node.detailed_summary !== null || closing.signal.aborted) return Promise.resolve(node);
      const pending = underway.get(node.node_id);
      if (pending !== undefined) return pending;
      const made = make(node).finally(() => underway.delete(node.node_id));
      underway.set(node.node_id, made);
      void taskQueue.run('ingest', () => made.catch(() => undefined));
      return made;
    },
    /** Aborts model calls; pending summaries are made by rules. */
    close: (): void => closing.abort(new Error('memory is closing')),
  };
}

/** One sanitized line per sentence. The writer saw all turns, so the detail has their lowest origin. */
export function withDetail(
  node: MemoryNode,
  { sentences }: DetailResult,
  by: string,
  turns: readonly TurnText[],
): MemoryNode {
  const lines: string[] = [];
  let left = DETAIL_CHARS;
  for (const sentence of sentences.slice(0, MAX_SENTENCES)) {
    const line = neutralLine(sentence, SENTENCE_CHARS);
    left -= line.length + 1;
    if (line === '' || left < 0) continue;
    lines.push(line);
  }
  if (lines.length === 0) return node;
  const detailed_origin = lowestOrigin([node.origin, ...turns.map((turn) => turn.origin)]);
  return { ...node, detailed_summary: lines.join('\n'), detailed_by: by, detailed_origin };
}
