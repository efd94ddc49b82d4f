import { createHash, randomBytes } from 'node:crypto';
import type { Redactor } from '../../redact/index.ts';
import type { MemoryNode } from '../model/node.ts';
import type { Bus } from './bus.ts';
import type { ShareRules } from './filter.ts';
import { canonicalJson, generateKeys, type KeyPair, type Row } from './row.ts';
import { newSalt, sealingKey } from './seal.ts';
import type { Head, Peer } from './state.ts';

/** Rows of one write, and of one read. */
export const BATCH = 500;

/** What is known of a node that was published or received. */
export interface Known {
  /** `OWN`, or the machine that published it first. */
  readonly owner: string;
  readonly version: number;
  readonly digest: string;
  /** Its rows in the machine's own log. */
  readonly sequences: readonly number[];
}

/** What a machine keeps between runs; it holds the private key. */
export interface ShareState {
  readonly machine: string;
  readonly name: string;
  readonly keys: KeyPair;
  /** Hex; null where rows are not sealed. */
  readonly salt: string | null;
  readonly next: number;
  readonly confirmed: Head | null;
  readonly outbox: readonly Row[];
  readonly known: Readonly<Record<string, Known>>;
  /** Nodes that the user removed, here or elsewhere: they do not come back. */
  readonly removed: readonly string[];
  readonly peers: Readonly<Record<string, Peer>>;
  /** Rows of its own log whose bytes are to go. */
  readonly erasing: readonly number[];
  /** Why a machine or its last refused row was refused. */
  readonly refused: Readonly<Record<string, string>>;
}

export interface StateFile {
  load(): Promise<ShareState | null>;
  save(state: ShareState): Promise<void>;
}

/** Memory, as far as sharing reads and changes it. */
export interface SharedMemory {
  nodes(): readonly MemoryNode[];
  save(nodes: readonly MemoryNode[]): Promise<void>;
  /** Removes every trace. */
  remove(nodeIds: readonly string[]): Promise<void>;
}

export interface ShareParts {
  readonly bus: Bus;
  readonly stateFile: StateFile;
  readonly memory: SharedMemory;
  readonly redactor: Redactor;
  readonly rules: ShareRules;
  /** Null where rows are not sealed. */
  readonly passphrase: string | null;
  readonly name: string;
}

export function newState(name: string, isSealed: boolean): ShareState {
  const empty = { confirmed: null, outbox: [], known: {}, removed: [], peers: {}, erasing: [], refused: {} };
  const salt = isSealed ? newSalt() : null;
  return { machine: randomBytes(16).toString('hex'), name, keys: generateKeys(), salt, next: 0, ...empty };
}

export type ShareContext = Awaited<ReturnType<typeof openContext>>;

/** The state of sharing as it is on disk. */
export async function openContext(parts: ShareParts) {
  const { stateFile, passphrase } = parts;
  const keys = new Map<string, Buffer>();
  let state = (await stateFile.load()) ?? newState(parts.name, passphrase !== null);
  return {
    ...parts,
    state: (): ShareState => state,
    async keep(changed: Partial<ShareState>): Promise<void> {
      state = { ...state, ...changed };
      await stateFile.save(state);
    },
    /** Null where rows are not sealed, or there is no passphrase. */
    keyOf(salt: string | null): Buffer | null {
      if (salt === null || passphrase === null) return null;
      const key = keys.get(salt) ?? sealingKey(passphrase, salt);
      keys.set(salt, key);
      return key;
    },
  };
}

export function digestOf(node: MemoryNode): string {
  return createHash('sha256').update(canonicalJson(node)).digest('hex');
}
