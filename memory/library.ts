import { CometError } from '../common/errors.ts';
import { renderBrief } from './compaction/brief.ts';
import { isBundled } from './consolidation/merge-nodes.ts';
import type { JoinedTurn } from './ingest/join-parts.ts';
import type { Texts } from './ingest/turn-reader.ts';
import type { TurnBook } from './ingest/turn-registry.ts';
import type { MemoryNode } from './model/node.ts';
import { heldBackLine, memoryLine, summaryLine } from './recall/format-memory.ts';
import { isQuarantined } from './recall/quarantine.ts';
import type { MemoryLine } from './recall/types.ts';
import type { NodeFiles } from './storage/node-files.ts';
import type { NodeRegistry } from './storage/node-registry.ts';
import { isCall } from './text/tool-call-nodes.ts';

export interface NodeFilter {
  readonly sessionId?: string;
  readonly projectDir?: string;
  readonly tag?: string;
  readonly importance?: 'HIGH' | 'MED' | 'LOW';
  readonly sinceMs?: number;
  /** Bundle children too. */
  readonly all?: boolean;
  /** Only those that are held out of recall; false: none of them. */
  readonly quarantine?: boolean;
  readonly limit?: number;
}

export interface RawMessage {
  readonly seq: number;
  readonly role: string;
  /** Parsed `content`, verbatim but for redacted spans. */
  readonly content: unknown;
  /** Of what is kept; where nothing was redacted, of the very characters that Claude Code sent. */
  readonly sha256: string;
  /** Secrets were taken out of it; where they stood there are marks. */
  readonly redacted?: true;
}

export interface NodeView extends MemoryNode {
  /** Why the detailed summary is the local adapter's, or is not there; absent where there is nothing to say. */
  readonly detail_note?: string;
  readonly raw?: readonly RawMessage[];
  /** Rounds and tool calls of its turns. */
  readonly children?: readonly { readonly node_id: string; readonly summary: string }[];
}

/** Lines are whole as long as all of them stay below this; the preamble's budget of 2,000 tokens holds more. */
const WHOLE_LINES_CHARS = 7_000;
/** How every mark begins that stands in place of a secret. */
const MARK = '[REDACTED:';

export interface Queries {
  /** Tier-1 lines in the order given; unknown ids are left out. */
  lines(nodeIds: readonly string[]): readonly MemoryLine[];
  list(filter: NodeFilter): readonly MemoryNode[];
  /**
   * `id` may be any unambiguous prefix. Depth 2 adds the verbatim messages.
   * @throws CometError `not_found` or `ambiguous_id`
   */
  show(id: string, depth: 0 | 1 | 2): Promise<NodeView>;
  /** The brief as markdown, '' when there is none. @throws CometError `not_found` */
  brief(sessionId: string): Promise<string>;
  /** Every message of the session in order, for a fork with what it was forked from before them. @throws CometError `not_found` */
  restore(sessionId: string): Promise<readonly RawMessage[]>;
  /** @throws CometError `not_found` or `ambiguous_id` */
  resolve(prefix: string): MemoryNode;
}

type Parts = {
  readonly nodeFiles: NodeFiles;
  readonly projectOf: (directory: string | null) => string;
  readonly book: TurnBook;
  readonly catalogue: NodeRegistry;
  readonly texts: Texts;
};

export function createQueries({ nodeFiles, projectOf, book, catalogue, texts }: Parts): Queries {
  function lines(ids: readonly string[]): readonly MemoryLine[] {
    const nodes = ids.flatMap((id) => catalogue.current(id) ?? []);
    const distinct = [...new Set(nodes)];
    const lines = distinct.map((node) => (isQuarantined(node) ? heldBackLine(node) : memoryLine(node, null)));
    let left = WHOLE_LINES_CHARS - lines.reduce((sum, line) => sum + line.text.length, 0);
    // The newest are shown whole first: they are what the conversation goes on from.
    for (const [at, node] of [...distinct.entries()].reverse()) {
      if (isQuarantined(node)) continue;
      const whole = summaryLine(node);
      left -= whole.text.length - (lines[at]?.text.length ?? 0);
      if (left < 0) break;
      lines[at] = whole;
    }
    return lines;
  }

  function resolve(prefix: string): MemoryNode {
    const nodes = new Set(prefix === '' ? [] : catalogue.matching(prefix).flatMap((id) => catalogue.current(id) ?? []));
    const [node] = nodes;
    if (node === undefined)
      throw new CometError('not_found', `no memory begins with "${prefix}"; see comet-cc memory ls`);
    if (nodes.size === 1) return node;
    const some = [...nodes].slice(0, 3).map((each) => each.node_id);
    throw new CometError(
      'ambiguous_id',
      `"${prefix}" fits ${nodes.size} memories (${some.join(', ')}, …); give more of it`,
    );
  }

  function list(filter: NodeFilter): readonly MemoryNode[] {
    const project = filter.projectDir === undefined ? undefined : projectOf(filter.projectDir);
    const tag = filter.tag?.toLowerCase();
    const fits = (node: MemoryNode): boolean =>
      (filter.quarantine === true || filter.all === true || !isBundled(node)) &&
      (filter.sessionId === undefined || node.session_id === filter.sessionId) &&
      (project === undefined || node.project === project) &&
      (tag === undefined || node.topic_tags.some((each) => each.toLowerCase() === tag)) &&
      (filter.importance === undefined || node.importance === filter.importance) &&
      (filter.sinceMs === undefined || Date.parse(node.created_at) >= filter.sinceMs) &&
      (filter.quarantine === undefined || isQuarantined(node) === filter.quarantine);
    const listed = catalogue.all().filter(fits);
    if (filter.all !== true) return listed.slice(0, filter.limit);
    const calls = catalogue.every().filter((node) => isCall(node) && fits(node));
    const newest = (a: MemoryNode, b: MemoryNode): number => b.created_at.localeCompare(a.created_at);
    return (calls.length === 0 ? listed : [...listed, ...calls].toSorted(newest)).slice(0, filter.limit);
  }

  async function restore(sessionId: string): Promise<readonly RawMessage[]> {
    const turns = await texts.turns(sessionId);
    if (turns.length === 0)
      throw new CometError('not_found', `no turn of session ${sessionId} is kept; see comet-cc session ls`);
    const shared = await turnsBefore(turns[0], { book, texts });
    return messagesOf([...shared, ...turns]).map(({ turnIds: _, ...message }) => message);
  }

  /** A node that others were merged into stands for turns of their sessions too. */
  function sessionsOf({ session_id, turns }: MemoryNode): string[] {
    return [...new Set([session_id, ...turns.flatMap((turnId) => book.sessionOf(turnId) ?? [])])];
  }

  return {
    lines,
    resolve,
    list,
    restore,
    async show(id, depth) {
      const node = resolve(id);
      const below = catalogue.childrenOf(node.node_id).map(({ node_id, summary }) => ({ node_id, summary }));
      const children = below.length === 0 ? {} : { children: below };
      if (depth < 2) return { ...node, ...children };
      const parent = isCall(node) ? catalogue.current(node.parent_node_id ?? '') : undefined;
      const own = new Set((parent ?? node).turns.flatMap((turnId) => book.forms(turnId)));
      const turns = (await Promise.all(sessionsOf(parent ?? node).map((sessionId) => texts.turns(sessionId)))).flat();
      const messages = messagesOf(turns).filter(({ turnIds }) => turnIds.some((turnId) => own.has(turnId)));
      return { ...node, ...children, raw: messages.map(({ turnIds: _, ...message }) => message) };
    },
    async brief(sessionId) {
      const brief = await nodeFiles.readBrief(sessionId);
      if (brief !== null) return renderBrief(brief);
      if (book.session(sessionId) !== undefined) return '';
      throw new CometError('not_found', `no session ${sessionId} is known; see comet-cc session ls`);
    },
  };
}

/** Messages in order of the session, numbered from 0, each with the names of its turn and of its part. */
function messagesOf(turns: readonly JoinedTurn[]): (RawMessage & { readonly turnIds: readonly string[] })[] {
  return turns
    .flatMap(({ messages, turnId, redacted }) =>
      messages.map((message) => ({ message, redacted, turnIds: [turnId, message.part ?? turnId] })),
    )
    .map(({ message: { role, content, sha256 }, redacted, turnIds }, seq) => {
      const marked = redacted && content.includes(MARK) ? { redacted: true as const } : {};
      return { seq, role, content: parsed(content), sha256, ...marked, turnIds };
    });
}

function parsed(content: string): unknown {
  try {
    return JSON.parse(content) as unknown;
  } catch {
    // What was not JSON when it came is shown as the text it is.
    return content;
  }
}

/**
 * The turns that a session shares with the one it was forked from, oldest first: they are kept once, in the session
 * that had them first. Ends at a turn of which nothing is kept.
 */
async function turnsBefore(
  first: Pick<JoinedTurn, 'before'> | undefined,
  { book, texts }: { readonly book: TurnBook; readonly texts: Pick<Texts, 'turns'> },
): Promise<JoinedTurn[]> {
  const read = new Map<string, Promise<readonly JoinedTurn[]>>();
  const found: JoinedTurn[] = [];
  const seen = new Set<string>();
  for (let before = first?.before ?? ''; before !== '' && !seen.has(before); ) {
    seen.add(before);
    const sessionId = book.sessionOf(before);
    if (sessionId === undefined) break;
    const turns = read.get(sessionId) ?? texts.turns(sessionId);
    read.set(sessionId, turns);
    const name = book.forms(before)[0];
    const turn = (await turns).find(({ turnId }) => turnId === name);
    if (turn === undefined) break;
    found.unshift(turn);
    before = turn.before ?? '';
  }
  return found;
}
