import { CometError, getOnly } from '../common/errors.ts';
import { grouped } from '../common/map.ts';
import { compareText, sha256 } from '../common/text.ts';
import { withFreshFiles } from './edit.ts';
import { getTitle, type MemoryNode } from './model/node.ts';
import type { MemoryParts } from './parts.ts';
import { isTakenBack, readProjectState, type StateItem, withClosed, withoutAbandoned } from './recall/project-state.ts';
import { readTasks } from './recall/recall-service.ts';
import { isNearDuplicate } from './text/paraphrase.ts';

/** An open item, a decision, or the outcome of a memory; `at` is when it was said. */
export type Item = Readonly<ReturnType<typeof getItem>>;

export interface ItemFilter {
  readonly projectDir?: string;
  readonly sessionId?: string;
  readonly sinceMs?: number;
}

const KINDS = { open: 'todo', decided: 'decision', outcome: 'outcome' } as const;
const MOST = 500;

export type Items = ReturnType<typeof createItems>;

/** Open items, decisions and outcomes as memory reads them from its nodes and the agents' task lists. */
export function createItems(parts: MemoryParts) {
  const { catalogue, clock, facts, getProject, snapshooter, store, turnRegistry } = parts;

  function getStates({ projectDir, sessionId }: ItemFilter): StateItem[] {
    const project = projectDir === undefined ? undefined : getProject(projectDir);
    const nodes = catalogue.all().filter((node) => project === undefined || node.project === project);
    const own = nodes.filter((node) => sessionId === undefined || node.session_id === sessionId);
    return [...grouped(own, (node) => node.project).values()].flatMap((near) => {
      const ids = new Set(near.map(({ node_id }) => node_id));
      const tasks = readTasks(parts, ({ node_id }) => ids.has(node_id));
      const state = readProjectState(withoutAbandoned(near, turnRegistry), tasks, MOST);
      return [...state.open, ...state.decided, ...state.outcome];
    });
  }

  const getNamed = () => getStates({}).filter(({ kind }) => kind !== 'outcome');

  const closeItems = (ids: readonly string[], as: Closing['as']): Promise<readonly Item[]> =>
    withFreshFiles(store, async (store) => {
      const all = getNamed();
      const chosen = ids.map((id) => resolveItem(id, all));
      const at = new Date(clock.now()).toISOString();
      if (chosen.length > 0) await snapshooter.take('edit');
      for (const item of chosen) {
        await store.save([findClosed(catalogue.current(item.node.node_id) ?? item.node, item, { at, as })]);
        for (const { id, evidence } of item.kind === 'decided' ? (await facts.list(item.node.project)).facts : [])
          if (evidence !== '' && item.text.includes(evidence)) await facts.forget([id], item.node.project);
      }
      return chosen.map(getItem);
    });

  return {
    isTakenBack: (nodeId: string, text: string) => isTakenBack(catalogue.current(nodeId), text, turnRegistry),
    /** The memory with the marks of what others of its project say is over. */
    withClosed<T extends MemoryNode>(node: T): T {
      const near = catalogue.all().filter(({ project }) => project === node.project);
      return withClosed(node, withoutAbandoned(near, turnRegistry));
    },
    /** Newest first; once what also stands as a reply alone, for channels that may not tell what it answers. */
    listItems({ sinceMs = 0, ...filter }: ItemFilter): readonly Item[] {
      const items = getStates(filter).map(getItem);
      const isRepeated = ({ node_id, text }: Item) =>
        items.some((each) => each.node_id === node_id && each.text.startsWith(`“${text}” `));
      return items
        .filter((item) => Date.parse(item.at) >= sinceMs && !isRepeated(item))
        .sort((one, other) => compareText(other.at, one.at));
    },
    /** An open item or a decision. @throws CometError `not_found`, `ambiguous_id` */
    findItem: (id: string): Item => getItem(resolveItem(id, getNamed())),
    /**
     * Marks items as done or dropped; they stay in their memories. What says the same no longer counts, facts included.
     * @throws CometError `not_found`, `ambiguous_id`; nothing is changed
     */
    closeItems,
    /** Marks as done what a task was made of, by what it says. @param project  key; '' for every project */
    closeSame: (titles: readonly string[], project: string): Promise<readonly Item[]> => {
      const same = getStates({}).filter(
        ({ kind, node, text }) => kind === 'open' && [node.project, ''].includes(project) && saysOneOf(titles, text),
      );
      const ids = same.map((item) => getItem(item).id);
      return closeItems(ids, 'done');
    },
    /** Takes {@link closeSame} back. */
    reopenSame: (titles: readonly string[], project: string): Promise<void> =>
      withFreshFiles(store, async (store) => {
        const isDone = ({ text, closed }: OpenItem) => closed?.as === 'done' && saysOneOf(titles, text);
        const nodes = catalogue.all().filter((node) => [node.project, ''].includes(project) && node.open?.some(isDone));
        if (nodes.length === 0) return;
        await snapshooter.take('edit');
        const reopened = (item: OpenItem): OpenItem => (isDone(item) ? { ...item, closed: undefined } : item);
        await store.save(nodes.map((node) => ({ ...node, open: node.open?.map(reopened) })));
      }),
    /** Makes the text of a note an open item or a decision; `isTyped`: the user typed it in a terminal. */
    stateNote: (id: string, kind: 'todo' | 'decision', isTyped: boolean): Promise<Item> =>
      withFreshFiles(store, async (store) => {
        const node = catalogue.current(id);
        if (node === undefined) throw new CometError('not_found', `no memory ${id}`);
        const { summary: text, turns } = node;
        const item = { text, origin: isTyped ? ('user' as const) : node.origin, turn: turns[0] ?? '' };
        const stated = kind === 'todo' ? { open: [item] } : { decisions: [{ ...item, by: 'user' as const }] };
        await store.save([{ ...node, ...stated }]);
        return getItem({ kind: kind === 'todo' ? 'open' : 'decided', node, ...item });
      }),
  };
}

const saysOneOf = (titles: readonly string[], text: string) => titles.some((title) => isNearDuplicate(text, title));

function getItem({ kind, node, text, origin }: StateItem) {
  const { node_id, session_id, project, valid_from: at } = node;
  // Six hex digits that stay as long as the text does.
  const id = sha256(`${node_id}\n${kind}\n${text}`, 6);
  return { id, kind: KINDS[kind], text, origin, node_id, title: getTitle(node), session_id, project, at };
}

function resolveItem(prefix: string, items: readonly StateItem[]): StateItem {
  return getOnly(
    items.filter((item) => getItem(item).id.startsWith(prefix)),
    `no item ${prefix}; comet-cc todo and decisions list them`,
    `${prefix} fits several items; give more of the id`,
  );
}

/** A task of an agent's list stands in no memory until it is closed. */
function findClosed(node: MemoryNode, { kind, text, turn }: StateItem, closed: Closing): MemoryNode {
  const close = <T extends { readonly text: string }>(each: T) => (each.text === text ? { ...each, closed } : each);
  if (kind === 'decided') return { ...node, decisions: node.decisions?.map(close) ?? [] };
  const open = node.open ?? [];
  if (!open.some((each) => each.text === text))
    return { ...node, open: [...open, { text, origin: node.origin, turn: turn ?? '', closed }] };
  return { ...node, open: open.map(close) };
}

type OpenItem = NonNullable<MemoryNode['open']>[number];
type Closing = NonNullable<OpenItem['closed']>;
