import type { CapturedMessage } from '../../common/turn.ts';
import type { JournalTurn } from '../model/turn.ts';

/** A message with the name of the part that it was captured in, where it was in one. */
export type JoinedMessage = CapturedMessage & { readonly part?: string };

export type JoinedTurn = Omit<JournalTurn, 'messages'> & { readonly messages: readonly JoinedMessage[] };

export interface JoinedRecords {
  /** Whole turns with all of their messages, and the parts of turns that are not complete, in order of arrival. */
  readonly turns: readonly JoinedTurn[];
  /** Parts that stand in one of these turns. */
  readonly parts: readonly JournalTurn[];
}

/**
 * Puts turns together with the parts that were written before them: each message once.
 *
 * @param nameOf  the first name of a turn or part that has several
 */
export function joinParts(records: readonly JournalTurn[], nameOf = (turnId: string): string => turnId): JoinedRecords {
  const parts = new Map<string, JournalTurn>();
  for (const record of records) if (record.part !== undefined) parts.set(nameOf(record.turnId), record);
  const held = new Set<string>();
  for (const { parts: own = [] } of records) for (const { turnId } of own) held.add(nameOf(turnId));
  const turns = records
    .filter((record) => record.part === undefined || !held.has(nameOf(record.turnId)))
    .map((record) => joined(record, (turnId) => parts.get(nameOf(turnId))));
  return { turns, parts: [...parts.values()].filter((part) => held.has(nameOf(part.turnId))) };
}

function joined(record: JournalTurn, partOf: (turnId: string) => JournalTurn | undefined): JoinedTurn {
  if (record.part !== undefined) return { ...record, messages: named(record.messages, record.turnId) };
  const own = record.parts ?? [];
  if (record.tail === true) {
    const before = own.flatMap(({ turnId }) => named(partOf(turnId)?.messages ?? [], turnId));
    return { ...record, messages: [...before, ...record.messages] };
  }
  let from = 0;
  const before = own.flatMap(({ turnId, messages }) => {
    from += messages;
    return named(record.messages.slice(from - messages, from), turnId);
  });
  return { ...record, messages: [...before, ...record.messages.slice(from)] };
}

function named(messages: readonly CapturedMessage[], part: string): JoinedMessage[] {
  return messages.map((message) => ({ ...message, part }));
}
