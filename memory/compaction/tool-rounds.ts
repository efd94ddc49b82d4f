import type { CapturedTurn } from '../../common/turn.ts';
import type { Redactor } from '../../redact/index.ts';
import { joinParts } from '../ingest/join-parts.ts';
import { redactTurn } from '../ingest/redact-turn.ts';
import type { Texts } from '../ingest/turn-reader.ts';
import type { TurnBook } from '../ingest/turn-registry.ts';
import { readTainted } from '../ingest/turn-trust.ts';
import type { MemoryNode } from '../model/node.ts';
import type { JournalTurn, TurnText } from '../model/turn.ts';
import type { Catalogue } from '../storage/node-registry.ts';
import type { Store } from '../storage/node-store.ts';
import type { Journal } from '../storage/turn-log.ts';
import { actionsOf } from '../text/actions.ts';
import { callNodes } from '../text/tool-call-nodes.ts';
import type { Compactor } from './compactor.ts';

/**
 * Rounds of turns that still run. Each part is written once; the turn that it belongs to is written without what its
 * parts hold already, and its nodes become the parents of theirs.
 */
export interface Rounds {
  /** Writes a part and a node for it. @throws what journal and node files throw */
  ingest(part: CapturedTurn, stamp: Stamp): Promise<void>;
  /** Enters a part that is on disk. */
  enter(part: JournalTurn): void;
  /** What is known of the session's parts is on disk, and entered again when it comes back. */
  putAway(sessionId: string): void;
  /** Writes a whole turn; the record with all of its messages. @throws what the journal throws */
  append(turn: CapturedTurn, stamp: Stamp): Promise<JournalTurn>;
  /** Nodes for the parts of a session that nothing stands for. */
  standIn(sessionId: string): Promise<void>;
  /** What goes below nodes of these turns: the nodes of their parts or, where there are none, nodes for the tool calls. */
  childrenOf(nodes: readonly MemoryNode[], turns: readonly TurnText[]): MemoryNode[];
}

/** What a record is given beside what was captured. */
type Stamp = Pick<JournalTurn, 'project' | 'files' | 'echoes'>;

/** What is known of a part when the next one comes. */
interface Entered {
  readonly sessionId: string;
  readonly project: string;
  /** What the user asked for in its turn, as far as a line of memory could show it. */
  readonly prompt: string;
  readonly tainted: boolean;
}

const PROMPT_CHARS = 400;

type Parts = {
  readonly journal: Journal;
  readonly redactor: Redactor;
  readonly book: TurnBook;
  readonly catalogue: Catalogue;
  readonly compactor: Compactor;
  readonly store: Store;
  readonly texts: Texts;
  /** The user removed it: nothing of it is written again. */
  readonly isForgotten: (end: string) => boolean;
};

export function createRounds(parts: Parts): Rounds {
  const { journal, redactor, book, catalogue, compactor, store, texts, isForgotten } = parts;
  const entered = new Map<string, Entered>();

  function enter(part: JournalTurn): TurnText {
    const before = entered.get(part.part?.after ?? '');
    // What came before a part is not known where its predecessor is not: then it may be anything.
    const startsTainted = before?.tainted ?? part.part?.after !== null;
    const { text, tainted } = readTainted(part, startsTainted);
    const prompt = before?.prompt ?? text.user.slice(0, PROMPT_CHARS);
    book.record(part, text);
    const name = book.canonical(part.end);
    texts.keep({ ...text, end: name });
    const { sessionId, project } = part;
    entered.set(part.end, { sessionId, project, prompt, tainted });
    return { ...text, end: name };
  }

  async function write(part: CapturedTurn, stamp: Stamp): Promise<TurnText> {
    return enter(await journal.append({ ...(await redactTurn(part, redactor)), ...stamp }));
  }

  async function bundle(part: TurnText): Promise<void> {
    const known = entered.get(part.end);
    if (known === undefined || isCovered(part.end)) return;
    const { sessionId, project, prompt } = known;
    await compactor.bundle({ sessionId, project, reason: 'high_load', turns: [part] }, prompt);
  }

  function isCovered(end: string): boolean {
    return book.forms(end).some((form) => catalogue.standingFor(form).length > 0 || store.isDismissed(form));
  }

  /** The turn's parts, all of them written in its own session; empty where that cannot be. */
  async function writtenParts(turn: CapturedTurn, stamp: Stamp): Promise<NonNullable<CapturedTurn['parts']>> {
    const own = turn.parts ?? [];
    const isOwn = (end: string): boolean => book.sessionOf(end) === turn.sessionId;
    if (!own.some(({ end }) => isOwn(end))) return [];
    if (own.some(({ end }) => book.isRecorded(end) && !isOwn(end))) return [];
    let from = 0;
    for (const [index, { end, messages }] of own.entries()) {
      const { parts: _, ...rest } = turn;
      const part = { index, after: own[index - 1]?.end ?? null };
      const missing = !isOwn(end) && !isForgotten(end);
      if (missing) await write({ ...rest, end, messages: turn.messages.slice(from, from + messages), part }, stamp);
      from += messages;
    }
    return own;
  }

  return {
    enter,
    putAway(sessionId) {
      for (const [end, known] of entered) if (known.sessionId === sessionId) entered.delete(end);
    },
    async ingest(part, stamp) {
      await bundle(await write(part, stamp));
    },
    async append(turn, stamp) {
      const own = await writtenParts(turn, stamp);
      if (own.length === 0)
        return journal.append({ ...(await redactTurn(withoutForgotten(turn, isForgotten), redactor)), ...stamp });
      const held = own.reduce((sum, { messages }) => sum + messages, 0);
      const tail = { ...turn, messages: turn.messages.slice(held) };
      const stored = await journal.append({ ...(await redactTurn(tail, redactor)), ...stamp, tail: true });
      const records = await journal.read(turn.sessionId);
      return joinParts(records, book.canonical).turns.find(({ end }) => end === stored.end) ?? stored;
    },
    async standIn(sessionId) {
      const own = [...entered].filter(([, known]) => known.sessionId === sessionId).map(([end]) => end);
      const bare = new Set(own.filter((end) => book.wholesOf(end).length === 0 && !isCovered(end)));
      if (bare.size === 0) return;
      for (const part of await texts.ofSession(sessionId)) if (bare.has(part.end)) await bundle(part);
    },
    childrenOf(nodes, turns) {
      return nodes.flatMap((parent) => {
        const rounds = roundsBelow(parent, book, catalogue);
        const own = turns.filter(({ end }) => parent.turns.includes(end));
        return rounds.length > 0 ? rounds : callNodes(parent, actionsOf(own), compactor.newId);
      });
    },
  };
}

function roundsBelow(parent: MemoryNode, book: TurnBook, catalogue: Catalogue): MemoryNode[] {
  const ends = parent.turns.flatMap((end) => book.partsOf(end)).flatMap((end) => book.forms(end));
  const ids = new Set(ends.flatMap((end) => catalogue.standingFor(end)));
  return [...ids].flatMap((id): MemoryNode[] => {
    const node = catalogue.get(id);
    if (node === undefined || id === parent.node_id) return [];
    return [{ ...node, parent_node_id: parent.node_id, depth_level: parent.depth_level + 1 }];
  });
}

/** A turn without the messages of parts that the user removed. */
function withoutForgotten(turn: CapturedTurn, isForgotten: (end: string) => boolean): CapturedTurn {
  const own = turn.parts ?? [];
  if (!own.some(({ end }) => isForgotten(end))) return turn;
  let from = 0;
  const pieces = own.map(({ end, messages }) => {
    from += messages;
    return isForgotten(end) ? [] : turn.messages.slice(from - messages, from);
  });
  const parts = own.map(({ end }, index) => ({ end, messages: pieces[index]?.length ?? 0 }));
  return { ...turn, messages: [...pieces.flat(), ...turn.messages.slice(from)], parts };
}
