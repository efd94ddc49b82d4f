import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { memoize } from '../../common/map.ts';
import { sha256 } from '../../common/text.ts';
import type { Redactor } from '../../redact/index.ts';
import type { MemoryNode } from '../model/node.ts';
import type { JournalTurn } from '../model/turn.ts';
import type { BlockChanges, PageBlock } from '../pages/page-blocks.ts';
import type { IdSetFile } from '../storage/fs/set-files.ts';
import type { TaskText } from '../tasks/task-files.ts';
import type { Bus } from './bus.ts';
import type { ShareRules } from './filter.ts';
import { canonicalJson, generateKeys, MACHINE_ID, type Payload, Row } from './row.ts';
import { newSalt, sealingKey } from './seal.ts';
import { Head, Peer, UNSENT } from './state.ts';

/** Place of a turn without a row of its own: too large, or received. */
export const NO_ROW = -1;

/** Rows of one write, and of one read. */
export const BATCH = 500;

/** Keys of facts that a person wrote, which memory has dropped here since the last time. */
export interface FadedFacts extends IdSetFile {
  drop(keys: readonly string[]): Promise<void>;
}

/** What people wrote into pages and fact files. */
export interface SharedBlocks {
  readonly blocks: readonly PageBlock[];
  /** Keys of what is there, facts that a turn says again included. */
  readonly present: ReadonlySet<string>;
  /** Of facts that no person removed: they faded on this machine, or newer ones replaced them. */
  readonly faded: readonly string[];
  /** Where it is, and whether all of it can be read: only then is what is missing removed elsewhere. */
  readonly places: Readonly<Record<'pages' | 'facts', { readonly name: string; readonly isWhole: boolean }>>;
}

export type BlockChange = Omit<BlockChanges, 'redact'> & Pick<ShareRules, 'getKey'>;

/** What is known of a node that was published or received. */
const SharedNode = z
  .object({
    /** `OWN`, or the machine that published it first. */
    owner: z.string(),
    version: z.int(),
    /** Of the node as it left, or as it came. */
    digest: z.string(),
    /** Of the node as memory had it then: one that is unchanged is not looked at again. */
    source: z.string(),
    /** Its rows in the machine's own log. */
    sequences: z.array(z.int()).readonly(),
    /** Of a block of a page: the block before it. */
    after: z.string().optional(),
  })
  .readonly();
export type SharedNode = z.infer<typeof SharedNode>;

/** What changed here, as it leaves in its next version. */
export interface Leaving<Kind extends 'node' | 'task' | 'block'> extends Pick<SharedNode, 'digest' | 'source'> {
  readonly id: string;
  readonly said: Omit<Extract<Payload, { readonly kind: Kind }>, 'version'>;
}

/** What a machine keeps between runs; it holds the private key. */
export const ShareState = z
  .object({
    /** '' for a machine that has left. */
    url: z.string(),
    /** Where its log still lies then. */
    leaving: z.string().default(''),
    scope: z.enum(['me', 'team']),
    machine: z.string().regex(MACHINE_ID),
    name: z.string(),
    keys: z.object({ publicKey: z.string(), privateKey: z.string() }).readonly(),
    /** Hex; null where rows are not sealed. */
    salt: z.string().nullable(),
    next: z.int(),
    confirmed: Head.nullable(),
    outbox: z.array(Row).readonly(),
    known: z.record(z.string(), SharedNode).readonly(),
    peers: z.record(z.string(), Peer).readonly(),
    /** Verbatim turns that have left or came, by id: the row in its own log, or `NO_ROW`, and the node they came with. */
    turns: z.record(z.string(), z.object({ sequence: z.int(), nodeId: z.string() }).readonly()).default({}),
    /** Whether verbatim turns were taken over at the last pull. */
    raw: z.boolean().default(false),
    /** Rows of its own log whose bytes are to go. */
    erasing: z.array(z.int()).readonly(),
    /** Why a machine or its last refused row was refused. */
    refused: z.record(z.string(), z.string()).readonly(),
    /** Machines that are no longer on the storage. */
    left: z.array(z.string()).readonly().default([]),
    /** That everything was published again, as whom and when; null where it never was. */
    restarted: z
      .object({ why: z.enum(['copy', 'lost']), at: z.string() })
      .nullable()
      .default(null),
    /** ISO 8601; null before the first time. */
    pushed: z.string().nullable(),
    pulled: z.string().nullable(),
  })
  .readonly();
export type ShareState = z.infer<typeof ShareState>;

export interface StateFile {
  load(): Promise<ShareState | null>;
  save(state: ShareState): Promise<void>;
  remove(): Promise<void>;
}

/** Memory, as far as sharing reads and changes it. */
export interface SharedMemory {
  nodes(): readonly MemoryNode[];
  /** Another number after each change of nodes. */
  revision(): number;
  save(nodes: readonly MemoryNode[]): Promise<void>;
  /** Removes every trace, without asking other machines to. */
  remove(nodeIds: readonly string[]): Promise<void>;
  /** Verbatim turns of a session, each with the nodes that stand for it. */
  getTurns(sessionId: string): Promise<readonly { readonly turn: JournalTurn; readonly nodeIds: readonly string[] }[]>;
  /** Adds turns that are not known; their nodes are there. */
  saveTurns(turns: readonly JournalTurn[]): Promise<void>;
  tasks(): Promise<readonly TaskText[]>;
  /** Writes the file in place of the one that its task had. */
  saveTask(file: TaskText): Promise<void>;
  removeTask(name: string): Promise<void>;
  blocks(getKey: ShareRules['getKey']): Promise<SharedBlocks>;
  /** @throws CometError `share_failed` */
  saveBlocks(change: BlockChange): Promise<void>;
  /** What faded is noted. */
  dropFaded(keys: readonly string[]): Promise<void>;
  /** Pages with blocks that were changed on two machines and still say so. */
  changedApart(): Promise<readonly { readonly file: string; readonly blocks: number }[]>;
  /** The user removed the turn. */
  isForgotten(turnId: string): boolean;
}

/** As the configuration has it. */
export interface ShareSettings extends Pick<ShareRules, 'scope' | 'projects' | 'raw'> {
  /** '' where nothing is shared. */
  readonly url: string;
  /** Ids of machines. */
  readonly trusted: readonly string[];
  readonly name: string;
  /** 0: only when asked. */
  readonly intervalMinutes: number;
}

export interface ShareOptions {
  /** Read before each step: they may change while memory is open. */
  readonly settings: () => ShareSettings;
  readonly keepSettings: (changed: Partial<ShareSettings>) => Promise<void>;
  readonly openBus: (url: string, env: NodeJS.ProcessEnv) => Promise<Bus>;
  readonly stateFile: StateFile;
  /** Ids of nodes and tasks that the user removed, here or on another machine: they do not come back. */
  readonly removed: IdSetFile;
  readonly faded: FadedFacts;
  /** Null where none is set. */
  readonly passphrase: (env: NodeJS.ProcessEnv) => Promise<string | null>;
  readonly isForbidden: ShareRules['isForbidden'];
  readonly keepsDrafts: boolean;
  /** Credentials, until a command brings those of its own shell. */
  readonly env: NodeJS.ProcessEnv;
}

export interface ShareParts extends Pick<ShareOptions, 'stateFile' | 'removed'> {
  readonly bus: Bus;
  readonly memory: SharedMemory;
  readonly redactor: Redactor;
  readonly rules: ShareRules;
  /** Ids of teammates' machines whose word the user trusts. */
  readonly trusted: readonly string[];
  /** Null where none is set: sealed rows cannot be written or read. */
  readonly passphrase: string | null;
  readonly now: () => number;
  /** Aborted when memory closes: a step ends at its next batch. */
  readonly signal: AbortSignal;
  /** Lets the event loop run, and answers go first. */
  readonly rest?: () => Promise<unknown>;
  /** Kept while the process runs. */
  readonly looked?: ReturnType<typeof createLooked>;
  /** Called after each batch of rows that were read. */
  readonly onRead?: (rows: number) => void;
}

/** A log with an unchanged stamp is read again after this time. */
const LOOKED_MS = 3_600_000;

/** What was found at the last look, where the next one would find the same. */
export function createLooked() {
  return {
    /** What nodes were looked at, and found published. */
    stamp: '',
    /** Projects of all nodes at a revision of memory. */
    projects: { revision: -1, names: [] as readonly string[] },
    /** Revision of memory without redirects that lead nowhere. */
    redirects: -1,
    /** By salt; of the passphrase. */
    keys: new Map<string, Buffer>(),
    passphrase: null as string | null,
    /** Logs that were read to their end, or end as this machine left its own. */
    logs: new Map<string, { readonly place: string; readonly atMs: number }>(),
  };
}

/** How a machine shares. */
export type Membership = Pick<ShareState, 'url' | 'scope' | 'name'>;

/** @param before  what the machine was: the others know by its key what it published, and what it may change */
export function newState(membership: Membership, isSealed: boolean, before: ShareState | null = null): ShareState {
  const fresh = {
    ...{ ...membership, machine: randomBytes(16).toString('hex'), keys: generateKeys() },
    ...{ next: 0, confirmed: null, outbox: [], known: {}, peers: {}, turns: {}, erasing: [] },
    ...{ raw: false, refused: {}, left: [], restarted: null, pushed: null, pulled: null, leaving: '' },
    salt: isSealed ? (before?.salt ?? newSalt()) : null,
  };
  if (before?.scope !== membership.scope) return fresh;
  const { machine, keys, known, turns, peers } = withoutLog(before);
  return { ...fresh, machine, keys, known, turns, peers: unread(peers) };
}

/** Other machines whose logs are read again from their beginning. */
export function unread(peers: ShareState['peers']): ShareState['peers'] {
  const head = { sequence: 0, digest: '' };
  return Object.fromEntries(Object.entries(peers).map(([machine, peer]) => [machine, { ...peer, head }]));
}

/** While nothing of this machine is on the storage: all that leaves is published again, in versions above the last. */
export function withoutLog(state: ShareState): ShareState {
  const known = Object.fromEntries(Object.entries(state.known).map(([id, each]) => [id, { ...each, ...UNSENT }]));
  const turns = Object.fromEntries(Object.entries(state.turns).filter(([, { sequence }]) => sequence === NO_ROW));
  return { ...state, next: 0, confirmed: null, outbox: [], erasing: [], known, turns };
}

export type ShareContext = Awaited<ReturnType<typeof openContext>>;

/** The state of sharing as it is on disk. */
export async function openContext(parts: ShareParts, first: ShareState) {
  const { stateFile, passphrase, looked = createLooked(), rest = nextTurn, now } = parts;
  let state = first;
  if (looked.passphrase !== passphrase) looked.keys.clear();
  looked.passphrase = passphrase;
  const getPlace = (stamp: string, head: Head | null): string => JSON.stringify([state.url, stamp, head]);
  return {
    ...parts,
    ...{ looked, rest },
    state: (): ShareState => state,
    /** Whether a log is as it was when it was read to its end. */
    isRead(machine: string, stamp: string | null, head: Head | null): boolean {
      const last = looked.logs.get(machine);
      if (stamp === null || last === undefined || Math.abs(now() - last.atMs) > LOOKED_MS) return false;
      return last.place === getPlace(stamp, head);
    },
    /** @param stamp  from before it was read */
    noteRead(machine: string, stamp: string | null, head: Head | null): void {
      if (stamp !== null) looked.logs.set(machine, { place: getPlace(stamp, head), atMs: now() });
    },
    async keep(changed: Partial<ShareState>): Promise<void> {
      state = { ...state, ...changed };
      await stateFile.save(state);
    },
    async getKey(salt: string): Promise<Buffer | null> {
      if (passphrase === null) return null;
      const key = looked.keys.get(salt) ?? (await sealingKey(passphrase, salt));
      looked.keys.set(salt, key);
      return key;
    },
  };
}

export const getDigest = memoize((node: MemoryNode) => sha256(canonicalJson(node)));
