import { CometError } from '../common/errors.ts';
import { isCleanOrigin } from '../common/turn.ts';
import type { Catalogue } from './catalogue.ts';
import { cleanBriefLines, renderBrief } from './core/brief.ts';
import { DOCUMENT } from './core/document.ts';
import { memoryLine, summaryLine } from './core/memory-line.ts';
import { isBundled } from './core/merged-node.ts';
import type { MemoryNode } from './core/node.ts';
import type { JoinedTurn } from './core/parts.ts';
import { isCall } from './core/tool-bundle.ts';
import { isClosed, isPast, saysFact } from './core/validity.ts';
import type { MemoryDeps } from './deps.ts';
import type { Memory, MemoryLine, NodeFilter, RawMessage, StandingMemory } from './face.ts';
import type { Claim, StoredBrief } from './ports.ts';
import { turnsBefore } from './shared-turns.ts';
import type { Texts } from './texts.ts';
import type { TurnBook } from './turn-book.ts';

/** Lines are whole as long as all of them stay below this; the preamble's budget of 2,000 tokens holds more. */
const WHOLE_LINES_CHARS = 7_000;
const CHARS_PER_TOKEN = 3.5;
const BRIEFS_TRIED = 5;
/** How every mark begins that stands in place of a secret. */
const MARK = '[REDACTED:';

export type Queries = Pick<Memory, 'lines' | 'standing' | 'list' | 'show' | 'brief' | 'restore'> & {
  /** @throws CometError `not_found` or `ambiguous_id` */
  resolve(prefix: string): MemoryNode;
};

type Parts = Pick<MemoryDeps, 'config' | 'nodeFiles' | 'projectOf'> & {
  readonly book: TurnBook;
  readonly catalogue: Catalogue;
  readonly texts: Texts;
};

export function createQueries({ config, nodeFiles, projectOf, book, catalogue, texts }: Parts): Queries {
  function lines(ids: readonly string[]): readonly MemoryLine[] {
    const nodes = ids.flatMap((id) => catalogue.current(id) ?? []);
    const distinct = [...new Set(nodes)];
    const lines = distinct.map((node) => memoryLine(node, null));
    let left = WHOLE_LINES_CHARS - lines.reduce((sum, line) => sum + line.text.length, 0);
    // The newest are shown whole first: they are what the conversation goes on from.
    for (const [at, node] of [...distinct.entries()].reverse()) {
      const whole = summaryLine(node);
      left -= whole.text.length - (lines[at]?.text.length ?? 0);
      if (left < 0) break;
      lines[at] = whole;
    }
    return lines;
  }

  async function briefFor(sessionId: string, project: string): Promise<StoredBrief | null> {
    const own = await nodeFiles.readBrief(sessionId);
    if (own !== null || project === '') return own;
    const others = catalogue.all().filter((node) => node.project === project && node.written_by !== DOCUMENT);
    for (const id of [...new Set(others.map((node) => node.session_id))].slice(0, BRIEFS_TRIED)) {
      const brief = await nodeFiles.readBrief(id);
      if (brief !== null) return brief;
    }
    return null;
  }

  function passive(project: string): readonly MemoryLine[] {
    const standing = catalogue
      .all()
      .filter((node) => node.project === project && node.recall_mode !== 'active' && isCleanOrigin(node.origin))
      .filter((node) => !isPast(node))
      .toSorted((a, b) => rank(a) - rank(b))
      .slice(0, config.recall.passiveLines);
    const lines = standing.map((node) => memoryLine(node, null));
    const spentBefore = (at: number): number => lines.slice(0, at).reduce((sum, line) => sum + line.text.length, 0);
    return lines.filter(
      (line, at) => spentBefore(at) + line.text.length <= config.recall.passiveTokens * CHARS_PER_TOKEN,
    );
  }

  /** A claim rests on turns of which it was said since that it is no longer so. */
  function isRevised({ text, sources }: Claim): boolean {
    const nodes = sources.flatMap((end) => book.forms(end)).flatMap((end) => catalogue.standingFor(end));
    const facts = nodes.flatMap((id) => catalogue.get(id)?.facts.filter(isClosed) ?? []);
    return facts.some((fact) => saysFact(text, fact));
  }

  function current(brief: StoredBrief): StoredBrief {
    const holds = (claim: Claim): boolean => !isRevised(claim);
    return { ...brief, active: brief.active.filter(holds), hints: brief.hints.filter(holds) };
  }

  async function standing(sessionId: string, projectDir: string | null): Promise<StandingMemory> {
    const project = projectOf(projectDir);
    const brief = await briefFor(sessionId, project);
    return {
      brief: brief === null ? [] : cleanBriefLines(current(brief)),
      lines: project === '' ? [] : passive(project),
    };
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
    const fits = (node: MemoryNode): boolean =>
      (filter.all === true || !isBundled(node)) &&
      (filter.sessionId === undefined || node.session_id === filter.sessionId) &&
      (project === undefined || node.project === project) &&
      (filter.tag === undefined || node.topic_tags.includes(filter.tag)) &&
      (filter.importance === undefined || node.importance === filter.importance) &&
      (filter.sinceMs === undefined || Date.parse(node.created_at) >= filter.sinceMs);
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
    return messagesOf([...shared, ...turns]).map(({ ends: _, ...message }) => message);
  }

  /** A node that others were merged into stands for turns of their sessions too. */
  function sessionsOf({ session_id, turns }: MemoryNode): string[] {
    return [...new Set([session_id, ...turns.flatMap((end) => book.sessionOf(end) ?? [])])];
  }

  return {
    lines,
    standing,
    resolve,
    list,
    restore,
    async show(id, depth) {
      const node = resolve(id);
      const below = catalogue.childrenOf(node.node_id).map(({ node_id, summary }) => ({ node_id, summary }));
      const children = below.length === 0 ? {} : { children: below };
      if (depth < 2) return { ...node, ...children };
      const parent = isCall(node) ? catalogue.current(node.parent_node_id ?? '') : undefined;
      const own = new Set((parent ?? node).turns.flatMap((end) => book.forms(end)));
      const turns = (await Promise.all(sessionsOf(parent ?? node).map((sessionId) => texts.turns(sessionId)))).flat();
      const messages = messagesOf(turns).filter(({ ends }) => ends.some((end) => own.has(end)));
      return { ...node, ...children, raw: messages.map(({ ends: _, ...message }) => message) };
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
function messagesOf(turns: readonly JoinedTurn[]): (RawMessage & { readonly ends: readonly string[] })[] {
  return turns
    .flatMap(({ messages, end, redacted }) =>
      messages.map((message) => ({ message, redacted, ends: [end, message.part ?? end] })),
    )
    .map(({ message: { role, content, sha256 }, redacted, ends }, seq) => {
      const marked = redacted && content.includes(MARK) ? { redacted: true as const } : {};
      return { seq, role, content: parsed(content), sha256, ...marked, ends };
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

function rank(node: MemoryNode): number {
  if (node.pinned_from !== undefined) return -1;
  return ['HIGH', 'MED', 'LOW'].indexOf(node.importance);
}
