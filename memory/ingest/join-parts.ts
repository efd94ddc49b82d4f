import type { CapturedMessage } from '../../common/turn.ts';
import type { JournalTurn } from '../model/turn.ts';

/** `part`: id of the part that the message was captured in. */
export type JoinedMessage = CapturedMessage & { readonly part?: string };

export type JoinedTurn = Omit<JournalTurn, 'messages'> & { readonly messages: readonly JoinedMessage[] };

/**
 * Joins turns with the parts written before them, each message once.
 * @param getName  canonical id
 * @returns `turns`: whole ones and the parts of incomplete ones, in order of arrival; `parts`: those and unfinished forms
 *   of the turns
 */
export function joinParts(records: readonly JournalTurn[], getName = (turnId: string): string => turnId) {
  const parts = new Map<string, JournalTurn>();
  for (const record of records) if (record.part !== undefined) parts.set(getName(record.turnId), record);
  const ids = new Set<string>();
  for (const { turnId, part } of records) if (part?.of !== undefined) ids.add(getName(turnId));
  for (const { parts: own = [] } of records) for (const { turnId } of own) ids.add(getName(turnId));
  const unfinishedIds = new Set(
    records.flatMap(({ turnId, unfinishedIds: own = [] }) =>
      // With the same words both are forms of one turn, which has one name.
      own.map(getName).filter((name) => name !== getName(turnId)),
    ),
  );
  const isUnfinished = ({ turnId }: JournalTurn): boolean => unfinishedIds.has(getName(turnId));
  const turns = records
    .filter((record) => !isUnfinished(record) && (record.part === undefined || !ids.has(getName(record.turnId))))
    .map((record) => joinRecord(record, (turnId) => parts.get(getName(turnId))));
  const contained = [...parts.values()].filter((part) => ids.has(getName(part.turnId)));
  return { turns, parts: [...contained, ...records.filter(isUnfinished)] };
}

function joinRecord(record: JournalTurn, getPart: (turnId: string) => JournalTurn | undefined): JoinedTurn {
  if (record.part !== undefined) return { ...record, messages: nameMessages(record.messages, record.turnId) };
  const own = record.parts ?? [];
  if (record.tail === true) {
    const before = own.flatMap(({ turnId }) => nameMessages(getPart(turnId)?.messages ?? [], turnId));
    return { ...record, messages: [...before, ...record.messages] };
  }
  let from = 0;
  const before = own.flatMap(({ turnId, messages }) => {
    from += messages;
    return nameMessages(record.messages.slice(from - messages, from), turnId);
  });
  return { ...record, messages: [...before, ...record.messages.slice(from)] };
}

function nameMessages(messages: readonly CapturedMessage[], part: string): JoinedMessage[] {
  return messages.map((message) => ({ ...message, part }));
}
