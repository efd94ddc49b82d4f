import { LruMap } from '../../common/map.ts';
import { clip, neutralLine } from '../../common/text.ts';
import { isContinuation } from '../../common/turn.ts';
import { type JournalTurn, spokenText, type TurnText, withoutToolOutput } from '../model/turn.ts';
import type { Journal } from '../storage/turn-log.ts';
import { type JoinedTurn, joinParts } from './join-parts.ts';
import type { TurnRegistry } from './turn-registry.ts';
import { readTurn, readTurnPart } from './turn-trust.ts';

/** Older turns are found through the search index; the cache serves recent ones. */
const CACHED_CHARS = 1_000_000;

type TurnWords = ReturnType<typeof findWords>;

/** Reads raw turns: each once, in its latest form, under its canonical id. */
export type TurnReader = ReturnType<typeof createTurnReader>;

export function createTurnReader(
  journal: Journal,
  turnRegistry: TurnRegistry,
  isSkipped: (turnId: string) => boolean = () => false,
) {
  const cache = new LruMap<string, TurnWords>(CACHED_CHARS, ({ text, quote }) => text.length + quote.length);
  const keep = (turn: TurnText): void => void cache.set(turn.turnId, findWords(turn));
  const getName = (turnId: string): string => turnRegistry.aliases(turnId)[0] ?? turnId;

  async function joinSession(sessionId: string) {
    const latest = new Map<string, JournalTurn>();
    for (const turn of await journal.read(sessionId)) {
      const name = getName(turn.turnId);
      // Another form may arrive after its files changed: keep the first hashes. Receipts have the key of the first form.
      const { files = turn.files, key } = latest.get(name) ?? turn;
      latest.set(name, { ...turn, turnId: name, key, ...(files === undefined ? {} : { files }) });
    }
    return joinParts([...latest.values()], getName);
  }

  async function ofSession(sessionId: string): Promise<readonly TurnText[]> {
    const { turns, parts } = await joinSession(sessionId);
    const whole = turns.filter(({ turnId, part }) => part === undefined && !isSkipped(turnId));
    const rounds = [...parts, ...turns.filter(({ part }) => part !== undefined)].filter(
      ({ turnId }) => !isSkipped(turnId),
    );
    return [...whole.map(readTurn), ...readParts(rounds)];
  }

  return {
    turns: async (sessionId: string): Promise<readonly JoinedTurn[]> => (await joinSession(sessionId)).turns,
    /** Transcripts of subagents, which are no messages of the turns that started them. */
    agents: async (sessionId: string): Promise<readonly JoinedTurn[]> =>
      (await joinSession(sessionId)).parts.filter(({ part }) => part?.of !== undefined),
    /** Whole turns, then parts, without those that are skipped. */
    ofSession,
    keep,
    drop(turnIds: readonly string[]): void {
      for (const turnId of turnIds) cache.delete(turnId);
    },
    async words(turnId: string): Promise<TurnWords | null> {
      const name = getName(turnId);
      const sessionId = turnRegistry.getSession(name);
      if (!cache.has(name) && sessionId !== undefined) for (const turn of await ofSession(sessionId)) keep(turn);
      return cache.get(name) ?? null;
    },
    /** Words of several turns; reads each session once at most. */
    async getWords(turnIds: readonly string[]): Promise<ReadonlyMap<string, TurnWords>> {
      const words = new Map<string, TurnWords>();
      const read = new Map<string, Promise<ReadonlyMap<string, TurnWords>>>();
      for (const turnId of turnIds) {
        const name = getName(turnId);
        const sessionId = turnRegistry.getSession(name);
        if (!cache.has(name) && sessionId !== undefined && !read.has(sessionId)) {
          read.set(
            sessionId,
            ofSession(sessionId).then((all) => new Map(all.map((turn) => [turn.turnId, findWords(turn)]))),
          );
        }
        const turnWords = cache.get(name) ?? (await read.get(sessionId ?? ''))?.get(name);
        if (turnWords !== undefined) words.set(turnId, turnWords);
      }
      return words;
    },
  };
}

function findWords(turn: TurnText) {
  return { text: spokenText(turn), origin: withoutToolOutput(turn).origin, quote: getQuote(turn) };
}

/** Characters of the beginning and the end of a text that is quoted; conclusions stand last. */
const ASKED_CHARS = [600, 200] as const;
const ANSWERED_CHARS = [600, 1_600] as const;

/** What was asked and answered, without the tools, on one line; long texts without their middle. */
function getQuote({ user, parts }: TurnText): string {
  const answers = parts.filter(({ kind, text }) => kind === 'assistant' && !isContinuation(text));
  const answer = ends(answers.map(({ text }) => text).join('\n'), ANSWERED_CHARS);
  const prompt = isContinuation(user) ? '' : ends(user, ASKED_CHARS);
  const quotes = [prompt && `asked: “${prompt}”`, answer && `answered: “${answer}”`];
  return quotes.filter((quote) => quote !== '').join(' — ');
}

function ends(text: string, [first, last]: readonly [number, number]): string {
  const line = neutralLine(text, Number.MAX_SAFE_INTEGER);
  if (line.length <= first + last) return line;
  const end = line.slice(-last);
  return `${clip(line, first)} ${end.slice(end.indexOf(' ') + 1).replace(/^[\udc00-\udfff]/, '')}`;
}

/** Taint carries over from part to part; a part whose predecessor is missing counts as tainted. */
function readParts(parts: readonly JournalTurn[]): TurnText[] {
  const tainted = new Map<string | null, boolean>([[null, false]]);
  return parts.map((part) => {
    const read = readTurnPart(part, tainted.get(part.part?.after ?? null) ?? true);
    tainted.set(part.turnId, read.tainted);
    return read.text;
  });
}
