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
    for (const id of ids)
      nodes.push(publicNode(await library.edit(id, { set: { released: isQuarantined ? 'false' : 'true' } })));
    return nodes;
  });
  const other = isQuarantined ? result.find(({ status }) => status !== 'quarantined') : undefined;
  if (other === undefined) return { nodes: result, undo };
  await library.takeBack(services.undo.take(undo));
  const reason = `${other.node_id} gives no instructions from an untrusted source`;
  throw new CometError('node_invalid', `${reason}, so it cannot be quarantined; forget it instead`);
}

/** Hides memories and facts, and removes every trace once there is no way back. */
export async function forget({ memory: { library }, removals }: Services, inputs: readonly string[]) {
  const { facts } = await library.listFacts({});
  const getId = async (id: string): Promise<string> =>
    facts.some((fact) => fact.id === id) ? (await library.explainFact(id, {})).id : (await library.show(id, 0)).node_id;
  const ids = [...new Set(await Promise.all(inputs.map(getId)))];
  return { ids, undo: await removals.add(ids) };
}

type Stores = Pick<EngineServices, 'memory' | 'receipts'>;

/** Removes every trace of these memories and facts now. */
export async function removeAll(stores: Stores, ids: readonly string[]): Promise<string[]> {
  const { library } = stores.memory;
  const { facts } = await library.listFacts({});
  const own = ids.filter((id) => facts.some((fact) => fact.id === id));
  const nodes = ids.filter((id) => !own.includes(id));
  if (own.length > 0) await library.forgetFacts(own, {});
  return [...own, ...(nodes.length > 0 ? await removeNodes(stores, nodes) : [])];
}

export async function removeNodes({ memory, receipts }: Stores, ids: readonly string[]) {
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
