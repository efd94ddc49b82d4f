import type { Catalogue } from './catalogue.ts';
import type { MemoryNode } from './core/node.ts';
import type { MemoryDeps } from './deps.ts';
import type { Indexer } from './indexer.ts';
import type { Claim } from './ports.ts';
import type { Texts } from './texts.ts';
import type { TurnBook } from './turn-book.ts';

type Parts = Pick<MemoryDeps, 'journal' | 'nodeFiles' | 'forgotten'> & {
  readonly book: TurnBook;
  readonly catalogue: Catalogue;
  readonly indexer: Indexer;
  readonly texts: Texts;
};

/**
 * Takes every trace of these nodes away: pointers to them, index rows, raw turns, claims of briefs that rest on
 * them. What is begun and interrupted can be repeated.
 */
export async function removeNodes(nodes: readonly MemoryNode[], parts: Parts): Promise<void> {
  const { book, catalogue, forgotten, indexer, journal, nodeFiles, texts } = parts;
  const ends = [...new Set(nodes.flatMap((node) => node.turns).flatMap((end) => [end, ...book.forms(end)]))];
  await forgotten.add(ends);
  for (const end of ends) book.take(end);
  for (const [sessionId, own] of bySession(ends, nodes, book)) await journal.remove(sessionId, own);
  texts.drop(ends);
  for (const sessionId of new Set(nodes.map((node) => node.session_id)))
    await cleanBrief(sessionId, new Set(ends), nodeFiles);
  const ids = nodes.flatMap((node) => [
    node.node_id,
    ...catalogue.pointersTo(node.node_id).map((each) => each.node_id),
  ]);
  const relinked = catalogue
    .all()
    .filter((node) => !ids.includes(node.node_id) && node.links.some((id) => ids.includes(id)));
  await nodeFiles.remove(ids);
  catalogue.remove(ids);
  const without = relinked.map((node) => ({ ...node, links: node.links.filter((id) => !ids.includes(id)) }));
  if (without.length > 0) await nodeFiles.save(without);
  catalogue.put(without);
  await indexer.remove(ids);
}

function bySession(ends: readonly string[], nodes: readonly MemoryNode[], book: TurnBook): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const put = (sessionId: string, end: string) => found.set(sessionId, [...(found.get(sessionId) ?? []), end]);
  for (const end of ends) {
    const sessionId = book.sessionOf(end) ?? nodes.find((node) => node.turns.includes(end))?.session_id;
    if (sessionId !== undefined) put(sessionId, end);
  }
  return found;
}

async function cleanBrief(
  sessionId: string,
  gone: ReadonlySet<string>,
  nodeFiles: MemoryDeps['nodeFiles'],
): Promise<void> {
  const brief = await nodeFiles.readBrief(sessionId);
  if (brief === null) return;
  const rests = ({ sources }: Claim): boolean => sources.some((end) => gone.has(end));
  const active = brief.active.filter((claim) => !rests(claim));
  const hints = brief.hints.filter((claim) => !rests(claim));
  if (active.length + hints.length < brief.active.length + brief.hints.length) {
    await nodeFiles.writeBrief({ ...brief, active, hints });
  }
}
