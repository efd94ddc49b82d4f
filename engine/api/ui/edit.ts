import { CometError } from '../../../common/errors.ts';
import { publicNode } from '../../../memory/index.ts';
import type { EngineServices } from '../service.ts';

type Services = Pick<EngineServices, 'memory' | 'receipts' | 'undo'>;

async function undoable<T>({ memory: { library }, undo }: Services, ids: readonly string[], work: () => Promise<T>) {
  const { result, before } = await library.withBefore(ids, work);
  return { result, undo: undo.keep(before) };
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
  await library.putBack(services.undo.take(undo));
  throw new CometError(
    'node_invalid',
    `${other.node_id} gives no instructions from an untrusted source, so it cannot be quarantined; forget it instead`,
  );
}

/** Removes every trace but what undoing needs, in memory. */
export async function forgetNodes(services: Services, ids: readonly string[]) {
  const { library } = services.memory;
  const { result, undo } = await undoable(services, ids, () => library.remove(ids));
  await services.receipts.forget(result);
  return { ids: result, undo };
}

export async function undoChange({ memory: { library }, undo }: Services, id: string) {
  const before = undo.take(id);
  await library.putBack(before);
  return { ids: before.map(({ node_id }) => node_id) };
}
