import { grouped, memoize } from '../../common/map.ts';
import { sha256 } from '../../common/text.ts';
import type { MemoryNode } from '../model/node.ts';
import { type PageBlock, type PageRef, pageKey, type ReceivedBlock } from '../pages/page-blocks.ts';
import { isPrivateText, type KeptReason, keptPlace } from './filter.ts';
import type { Leaving, ShareContext, SharedBlocks, SharedNode, ShareState } from './parts.ts';
import { type BlockPayload, MAX_PAYLOAD_CHARS } from './row.ts';
import { isNewer, type Peer } from './state.ts';

/** Of two changes made apart at the same time the block stays. */
const DIGEST = { here: 'here', gone: 'gone' } as const;
const SECTION_CHARS = 1_500;
/** Ids of memories that stand for sections: no memory has this date. */
export const PAGE_NODE = 'mem_20000101_';

function getPlace({ kind }: Pick<PageRef, 'kind'>, { places }: SharedBlocks): string {
  return (kind === 'facts' ? places.facts : places.pages).name;
}

/**
 * Changes of what people write into pages; a team gets them as memories, see `pageNodes`.
 * @returns `order`: the block before each that is here; `faded`: went on this machine alone
 */
export async function changedBlocks(
  { memory, rules, state }: ShareContext,
  stay: (reason: KeptReason, id: string) => void,
) {
  if (rules.scope !== 'me') return { leaving: [], order: new Map<string, string>(), faded: [] };
  const blocks = await memory.blocks(rules.getKey);
  const { known } = state();
  const { places, present } = blocks;
  const whole = [places.pages, places.facts].flatMap(({ name, isWhole }) => (isWhole ? [name] : []));
  const faded = new Set(blocks.faded);
  const removals = blockIds(known)
    .filter((id) => whole.includes(known[id]?.source ?? '') && !present.has(id) && !faded.has(id))
    .map((id): Leaving<'block'> => ({ id, digest: DIGEST.gone, source: '', said: { kind: 'block', id, block: null } }));
  const getInstead = createReplacements(removals, known);
  const added = blocks.blocks.flatMap((block): Leaving<'block'>[] => {
    const { key: id, page, section, text, after, isPrivate } = block;
    const kept =
      keptPlace(page.project, page.project, rules) ??
      (isPrivate || isPrivateText(text) ? 'private' : text.length > MAX_PAYLOAD_CHARS / 4 ? 'size' : null);
    if (kept !== null) {
      stay(kept, id);
      return [];
    }
    const source = getPlace(page, blocks);
    if (known[id]?.source === source) return [];
    const left = { page, section, text, after, instead: getInstead(id, after) };
    return [{ id, digest: DIGEST.here, source, said: { kind: 'block', id, block: left } }];
  });
  // A block comes before those that it replaces go: where it meets another in their place, both were written apart.
  const leaving = [...added, ...removals];
  return { leaving, order: new Map(blocks.blocks.map(({ key, after }) => [key, after])), faded: blocks.faded };
}

/** Among thousands of memories; what is known is replaced, never changed, once it was kept. */
const blockIds = memoize((entries: ShareState['known']) => Object.keys(entries).filter((id) => id.startsWith('page ')));

/** A block that went is replaced by the one that has its place now: behind the same block. */
function createReplacements(removals: readonly Leaving<'block'>[], entries: Readonly<Record<string, SharedNode>>) {
  const free = new Map(removals.map(({ id }) => [entries[id]?.after ?? '', id]));
  return (id: string, after: string): string => {
    const place = free.get(after) ?? '';
    const next = free.get(place);
    free.delete(after);
    if (place !== '' && next !== undefined) free.set(id, next);
    return place;
  };
}

/** What is known of blocks, with the block before each as it is now. */
export function inOrder(entries: Readonly<Record<string, SharedNode>>, order: ReadonlyMap<string, string>) {
  const ordered = { ...entries };
  for (const [id, after] of order) {
    const own = ordered[id];
    if (own !== undefined && own.after !== after) ordered[id] = { ...own, after };
  }
  return ordered;
}

/** Writes what another machine says of blocks, in its order; `known` gets what is here then. */
export async function saveBlocks(
  payloads: readonly BlockPayload[],
  { machine, name }: Peer,
  { known, erasing }: { readonly known: Record<string, SharedNode>; readonly erasing: number[] },
  { memory, rules, now }: ShareContext,
): Promise<void> {
  if (payloads.length === 0) return;
  const added = new Map<string, ReceivedBlock>();
  const removed = new Set<string>();
  const before = { ...known };
  const { present } = await memory.blocks(rules.getKey);
  const label = `${name}, ${new Date(now()).toISOString().slice(0, 10)}`;
  for (const { id, version, block } of payloads) {
    const digest = block === null ? DIGEST.gone : DIGEST.here;
    if (!isNewer({ version, digest }, known[id])) continue;
    const { owner = machine, sequences = [] } = known[id] ?? {};
    if (block === null) {
      added.delete(id);
      removed.add(id);
      erasing.push(...sequences);
    } else {
      removed.delete(id);
      const { instead, ...said } = block;
      added.set(id, { block: { ...said, key: id }, instead, label });
    }
    // One that was taken out here too, and not published yet, still says what took its place.
    const source = block === null && !present.has(id) ? (known[id]?.source ?? '') : '';
    const { after } = known[id] ?? {};
    known[id] = { owner, version, digest, source, after, sequences: block === null ? [] : sequences };
  }
  if (added.size + removed.size === 0) return;
  const isKnown = (id: string): boolean => before[id] !== undefined;
  await memory.saveBlocks({ added: [...added.values()], removed, isKnown, getKey: rules.getKey });
  const blocks = await memory.blocks(rules.getKey);
  for (const [id, { block }] of added) {
    known[id] = { ...(known[id] as SharedNode), source: blocks.present.has(id) ? getPlace(block.page, blocks) : '' };
  }
  Object.assign(known, inOrder(known, new Map(blocks.blocks.map(({ key, after }) => [key, after]))));
}

/**
 * What people wrote into pages of projects, as a team gets it: a memory for each section, which is recalled there as
 * what a teammate says. It never becomes a page of theirs.
 */
export function pageNodes(blocks: readonly PageBlock[], machine: string): MemoryNode[] {
  const isOwn = ({ page, section, isPrivate }: PageBlock): boolean =>
    page.kind === 'topic' && page.scope === 'project' && !isPrivate && !/^reported\b/i.test(section);
  const own = blocks.filter(isOwn);
  return [...grouped(own, ({ page, section }) => JSON.stringify([pageKey(page), section]))].flatMap(([place, said]) =>
    getChunks(said.map(({ text }) => text)).map((text, nth) =>
      getNode(said[0] as PageBlock, text, `${machine} ${place} ${nth}`),
    ),
  );
}

function getChunks(texts: readonly string[]): string[] {
  const chunks: string[] = [];
  for (const text of texts) {
    const joined = `${chunks.at(-1) ?? ''}\n${text}`;
    if (chunks.length > 0 && joined.length <= SECTION_CHARS) chunks[chunks.length - 1] = joined;
    else chunks.push(text);
  }
  return chunks;
}

/** The id follows from the place, so that an edited section is another version of the same memory. */
function getNode({ page, section }: PageBlock, text: string, place: string): MemoryNode {
  const digest = sha256(place);
  const time = new Date((Number.parseInt(digest.slice(6, 14), 16) % 86_400) * 1_000).toISOString().slice(11, 19);
  const title = [page.title, section].filter((each) => each !== '').join(', ');
  const at = `${page.updated}T00:00:00.000Z`;
  return {
    ...{ node_id: `${PAGE_NODE}${time.replaceAll(':', '')}_${digest.slice(0, 6)}`, kind: 'note', status: 'current' },
    ...{ session_id: `page-${digest.slice(0, 12)}`, project: page.project, author: { by: 'user' }, origin: 'user' },
    ...{ depth_level: 1, recall_mode: 'active', topic_tags: [], importance: 'MED', title },
    summary: `${title}: ${text}`,
    ...{ detailed_summary: null, trigger: '', parent_node_id: null, links: [], source_links: [], capsule: null },
    ...{ valid_from: at, valid_to: null, superseded_by: null, compaction_reason: 'external', created_at: at },
    ...{ turns: [], facts: [] },
  };
}
