import { z } from 'zod';
import { isRedirect, type MemoryNode, withoutSuccessor } from '../model/node.ts';
import { fromOwnMachine, fromTeammate, hidesOrders, type ShareRules, type ShareScope } from './filter.ts';
import {
  type BlockPayload,
  type Card,
  findTask,
  isSigned,
  type Payload,
  parsePayload,
  Row,
  rowDigest,
  type TaskPayload,
  type TurnPayload,
  taskKey,
} from './row.ts';
import { isSealed, unseal } from './seal.ts';

/** A row that is named by its place and content. */
export const Head = z.object({ sequence: z.int(), digest: z.string() }).readonly();
export type Head = z.infer<typeof Head>;

/** What to do with the outbox, after a look at the last row of the machine's own log. */
export type PublishPlan =
  /** Rows up to this number are in the bucket already; the others follow. */
  | { readonly kind: 'append'; readonly after: number }
  /** The bucket has less than it confirmed: everything is published again, to an empty log. */
  | { readonly kind: 'lost' }
  /**
   * Something that this home did not write: the home was restored from a backup, or another machine has a copy of it.
   * Two writers of one log would overwrite each other, so this one becomes a new machine, under a new key.
   */
  | { readonly kind: 'diverged' };

/**
 * @param confirmed  the last row that the bucket confirmed; null for none
 * @param outbox  rows that are signed and not confirmed, ascending
 * @param newHead  the last row in the bucket; null for an empty log
 */
export function planPublish(confirmed: Head | null, outbox: readonly Head[], newHead: Head | null): PublishPlan {
  if (newHead === null) return confirmed === null ? { kind: 'append', after: -1 } : { kind: 'lost' };
  // A batch that was stored before the machine could note it.
  if ([confirmed, ...outbox].some((head) => head?.sequence === newHead.sequence && head.digest === newHead.digest))
    return { kind: 'append', after: newHead.sequence };
  return newHead.sequence < (confirmed?.sequence ?? 0) ? { kind: 'lost' } : { kind: 'diverged' };
}

/** What a reader keeps of another machine. */
export const Peer = z
  .object({
    machine: z.string(),
    /** As the card said at first sight; the key is pinned. */
    card: z.custom<Card>(),
    /** What its nodes are labelled with here: the name on the card, made different from that of others. */
    name: z.string(),
    /** The last row read. */
    head: Head,
  })
  .readonly();
export type Peer = z.infer<typeof Peer>;

/** Why a machine, or one of its rows, is refused. */
export const REFUSALS = {
  invalid: 'a row is not valid',
  forged: 'a row is not signed by it',
  key_changed: 'its key has changed: nothing of it is read',
  passphrase: 'its passphrase is another one',
  project: 'a row is of a project that you do not share',
  scope: 'it shares with another scope: nothing of it is read',
  taken: 'a row has the id of a memory that is not its own',
  taken_name: 'a task has the name of another one here: rename one of them',
  orders: 'a row gives orders',
  not_theirs: 'a row removes a memory that is not its own',
} as const;
export type Refusal = keyof typeof REFUSALS;

/**
 * The card of a machine at first sight, or compared with the pinned one.
 * @param scope  of this machine: the user's own are not mixed with those of a team; null where it is not known yet
 */
export function checkCard(machine: string, row: Row, pinned: Card | null, scope: ShareScope | null): Card | Refusal {
  const payload = Row.safeParse(row).success ? parsePayload(row.payload) : null;
  if (payload?.kind !== 'card' || row.sequence !== 0) return 'invalid';
  if (pinned !== null && pinned.key !== payload.key) return 'key_changed';
  if (!isSigned(machine, row, payload.key)) return 'forged';
  return scope === null || payload.scope === scope ? payload : 'scope';
}

/** The name, or where another machine has it, the name with the beginning of the machine's id. */
export function getLabel(machine: string, name: string, peers: readonly Peer[]): string {
  const isTaken = peers.some((peer) => peer.machine !== machine && peer.name === name);
  return isTaken ? `${name}-${machine.slice(0, 8)}` : name;
}

/** A row of a machine whose key is pinned. @param key  of its sealed rows; null where there is no passphrase */
export function openRow(
  { machine, card }: Pick<Peer, 'machine' | 'card'>,
  row: Row,
  key: Buffer | null,
): Payload | Refusal {
  if (!Row.safeParse(row).success) return 'invalid';
  if (!isSigned(machine, row, card.key)) return 'forged';
  if ((card.salt !== null) !== isSealed(row.payload)) return 'invalid';
  if (card.salt === null) return parsePayload(row.payload) ?? 'invalid';
  const text = key === null ? null : unseal(row.payload, key);
  return text === null ? 'passphrase' : (parsePayload(text) ?? 'invalid');
}

/** Whether the log begins with what was read of it: otherwise it is read from its beginning, which doubles nothing. */
export function isContinued({ machine, head }: Peer, last: Row | null): boolean {
  return last !== null && last.sequence === head.sequence && rowDigest(machine, last) === head.digest;
}

export interface Reader extends Pick<ShareRules, 'scope' | 'projects' | 'raw'> {
  readonly trusted: readonly string[];
  /** The machine that published a node; `own` for one that was made here, null for one that is not known. */
  readonly getOwner: (nodeId: string) => string | null;
  /** The user removed it, or its publisher did: it does not come back. */
  readonly isRemoved: (nodeId: string) => boolean;
}

export const OWN = 'own';
/** Of what has no row in the machine's own log. */
export const UNSENT = { digest: '', source: '', sequences: [] } as const;

export type Change =
  | { readonly kind: 'save'; readonly node: MemoryNode }
  | { readonly kind: 'remove'; readonly nodeId: string }
  | TurnPayload
  | TaskPayload
  | BlockPayload
  | { readonly kind: 'none' };

/** What a row changes here. Applying it again changes nothing. */
export function getChange({ machine, name }: Peer, payload: Payload, reader: Reader): Change | Refusal {
  if (payload.kind === 'card') return { kind: 'none' };
  const { projects } = reader;
  const isTeam = reader.scope === 'team';
  const isOther = (project: string): boolean => (isTeam || projects.length > 0) && !projects.includes(project);
  if (isTeam && ['task', 'turn', 'block'].includes(payload.kind)) return 'invalid';
  if (payload.kind === 'task') {
    const task = findTask(payload);
    if (task === null) return 'invalid';
    return reader.isRemoved(taskKey(task)) ? { kind: 'none' } : payload;
  }
  if (payload.kind === 'block') {
    return payload.block !== null && isOther(payload.block.page.project) ? 'project' : payload;
  }
  const nodeId = payload.kind === 'node' ? payload.node.node_id : payload.nodeId;
  const owner = reader.getOwner(nodeId);
  const isTheirs = owner === machine || !isTeam;
  if (payload.kind === 'tombstone') {
    if (isTheirs) return { kind: 'remove', nodeId };
    return owner === null ? { kind: 'none' } : 'not_theirs';
  }
  if (reader.isRemoved(nodeId)) return { kind: 'none' };
  if (payload.kind === 'turn') return reader.raw ? payload : { kind: 'none' };
  const { node } = payload;
  if (isOther(node.project)) return 'project';
  if (!isTeam) return { kind: 'save', node: fromOwnMachine(node) };
  if (owner !== null && !isTheirs) return 'taken';
  if (isRedirect(node)) return 'invalid';
  const stored = fromTeammate(node, { machine, name, isTrusted: reader.trusted.includes(machine) });
  return hidesOrders(stored) ? 'orders' : { kind: 'save', node: stored };
}

/**
 * Redirects that lead to no node, as the nodes that they were: two machines may each have merged the other's keeper, or
 * the target does not leave its machine. Nothing is lost where one memory is there twice.
 */
export function strayRedirects(nodes: readonly MemoryNode[]): MemoryNode[] {
  if (!nodes.some(isRedirect)) return [];
  const byId = new Map(nodes.map((node) => [node.node_id, node]));
  const leads = (from: MemoryNode): boolean => {
    const passed = new Set<string>();
    let at: MemoryNode | undefined = from;
    while (at !== undefined && isRedirect(at) && !passed.has(at.node_id)) {
      passed.add(at.node_id);
      at = byId.get(at.superseded_by ?? '');
    }
    return at !== undefined && !isRedirect(at);
  };
  return nodes.filter((node) => isRedirect(node) && !leads(node)).map(withoutSuccessor);
}

type Version = { readonly version: number; readonly digest: string };

/** Of two changes made apart, every machine takes the same one, whatever its clock says. */
export function isNewer(version: Version, current: Version | undefined): boolean {
  if (current === undefined || version.version !== current.version) return version.version > (current?.version ?? 0);
  return version.digest > current.digest;
}
