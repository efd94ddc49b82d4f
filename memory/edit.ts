import { isDeepStrictEqual } from 'node:util';
import { CometError } from '../common/errors.ts';
import { findPinned, fromSection, unpinnedIn, withFields } from './model/edit.ts';
import { renderSection } from './model/markdown.ts';
import type { MemoryNode } from './model/node.ts';
import type { MemoryParts } from './parts.ts';
import { keptByHand, type LockedStore, type Store } from './storage/node-store.ts';

/** A node's whole section, or single fields given as texts. */
export type NodeChange =
  | { readonly text: string /** The section that was edited. */; readonly base: string }
  | { readonly set: Readonly<Record<string, string>> };

export type EditedNode = readonly [before: MemoryNode, after: MemoryNode];

export type Editing = ReturnType<typeof createEditing>;

type Parts = MemoryParts & { readonly resolve: (prefix: string) => MemoryNode };

/** Each edit reads the files first and can be rolled back. */
export function createEditing({ catalogue, getProject, redactor, resolve, snapshooter, store }: Parts) {
  async function redacted(set: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const fields = Object.entries(set).map(
      async ([field, text]) => [field, await redactor.inSlices.text(text)] as const,
    );
    return Object.fromEntries(await Promise.all(fields));
  }

  return {
    /** The node's section as its file has it. @throws as `show` */
    readSection: (id: string) =>
      withFreshFiles(store, async () => {
        const node = resolve(id);
        return { id: node.node_id, text: renderSection(node) };
      }),
    /** @throws as `show`; CometError `node_invalid` naming the key and what was expected, and nothing is changed */
    edit: (id: string, change: NodeChange): Promise<MemoryNode> =>
      withFreshFiles(store, async (store) => {
        const node = resolve(id);
        if ('text' in change && change.base !== renderSection(node))
          throw new CometError('node_invalid', `${node.node_id} was changed meanwhile; edit it again`);
        const edited =
          'text' in change
            ? fromSection(node, await redactor.inSlices.text(change.text))
            : withFields(node, await redacted(change.set));
        if (JSON.stringify(edited) === JSON.stringify(withFields(node, {}))) return node;
        await snapshooter.take('edit');
        const saved = keptByHand(edited, node);
        await store.save([saved]);
        return saved;
      }),
    /** Does the work, and gives those of these nodes that it changed. */
    async withChanges<T>(ids: readonly string[], work: () => Promise<T>) {
      const chosen = [...new Set(ids.map(resolve))];
      const result = await work();
      const changes = chosen.map((node): EditedNode => [node, catalogue.get(node.node_id) ?? node]);
      return { result, changes: changes.filter(([before, after]) => after !== before) };
    },
    /** @throws CometError `not_found` for a node that is gone, `node_invalid` for one that was changed since */
    takeBack: (changes: readonly EditedNode[]): Promise<void> =>
      withFreshFiles(store, async (store) => {
        const changed = changes.find(([, after]) => !isDeepStrictEqual(resolve(after.node_id), after));
        if (changed === undefined) return store.save(changes.map(([before]) => before));
        throw new CometError('node_invalid', `${changed[0].node_id} was changed since, so this is not undone`);
      }),
    /** Pinned nodes are always shown in their project, or in the one of `projectDir`. @throws as `edit` */
    pin: (ids: readonly string[], isPinned: boolean, projectDir?: string): Promise<readonly MemoryNode[]> =>
      withFreshFiles(store, async (store) => {
        const nodes = [...new Set(ids.map(resolve))].map((node) => {
          const project = projectDir === undefined ? null : getProject(projectDir);
          return isPinned ? findPinned(node, project ?? node.project) : unpinnedIn(node, project);
        });
        await store.save(nodes.filter((node) => catalogue.get(node.node_id) !== node));
        return nodes;
      }),
  };
}

/** Runs `work` while no other write runs, after edits on disk were read. */
export function withFreshFiles<T>(store: Store, work: (held: LockedStore) => Promise<T>): Promise<T> {
  return store.exclusive(async (store) => {
    await store.refresh();
    return work(store);
  });
}
