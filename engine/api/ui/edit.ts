import { CometError } from '../../../common/errors.ts';
import { publicNode } from '../../../memory/index.ts';
import type { EngineServices } from '../service.ts';

type Services = Pick<EngineServices, 'memory' | 'removals' | 'undo'>;

async function undoable<T>({ memory: { library }, undo }: Services, ids: readonly string[], work: () => Promise<T>) {
  const { result, changes } = await library.withChanges(ids, work);
  return { result, undo: undo.keep(changes) };
}

export async function editNode(services: Services, id: string, set: Readonly<Record<string, string>>) {
  const { library } = services.memory;
  const { result, undo } = await undoable(services, [id], () => library.edit(id, { set }));
  return { node: publicNode(result), undo };
}

export async function pinNodes(services: Services, ids: readonly string[], isPinned: boolean) {
  const { library } = services.memory;
  const { result, undo } = await undoable(services, ids, () => library.pin(ids, isPinned));
  return { nodes: result.map(publicNode), undo };
}

/** @throws CometError `node_invalid` for a memory without instructions, which recall may always use */
export async function quarantineNodes(services: Services, ids: readonly string[], isQuarantined: boolean) {
  const { library } = services.memory;
  const { result, undo } = await undoable(services, ids, async () => {
    const nodes = [];
    for (const id of ids) {
      nodes.push(publicNode(await library.edit(id, { set: { released: isQuarantined ? 'false' : 'true' } })));
    }
    return nodes;
  });
  const other = isQuarantined ? result.find(({ status }) => status !== 'quarantined') : undefined;
  if (other === undefined) return { nodes: result, undo };
  await library.takeBack(services.undo.take(undo));
  throw new CometError(
    'node_invalid',
    `${other.node_id} gives no instructions from an untrusted source, so it cannot be quarantined; forget it instead`,
  );
}

/** Hides them, and removes every trace once there is no way back. */
export async function forgetNodes({ memory: { library }, removals }: Services, inputs: readonly string[]) {
  const nodes = await Promise.all(inputs.map((id) => library.show(id, 0)));
  const ids = [...new Set(nodes.map(({ node_id }) => node_id))];
  return { ids, undo: await removals.add(ids) };
}

/** Removes every trace of these memories now. */
export async function removeNodes(
  { memory, receipts }: Pick<EngineServices, 'memory' | 'receipts'>,
  ids: readonly string[],
) {
  const removed = await memory.library.remove(ids);
  await receipts.forget(removed);
  return removed;
}

export async function undoChange({ memory: { library }, removals, undo }: Services, id: string) {
  const kept = await removals.cancel(id);
  if (kept !== null) return { ids: kept };
  const changes = undo.take(id);
  await library.takeBack(changes);
  return { ids: changes.map(([{ node_id }]) => node_id) };
}
