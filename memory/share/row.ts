import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import path from 'node:path';
import { z } from 'zod';
import { LruMap } from '../../common/map.ts';
import { parseJson, sha256 } from '../../common/text.ts';
import { MemoryNode } from '../model/node-schema.ts';
import { parseTask, type Task } from '../model/task.ts';
import type { TaskText } from '../tasks/task-files.ts';

/** Of a payload as it is stored. */
export const MAX_PAYLOAD_CHARS = 512 * 1024;
const VERSION = 1;
const MOST_KEYS = 100;

/** Random, made by the machine when it joins; also the name of its table. */
export const MACHINE_ID = /^[0-9a-f]{32}$/;
export const NODE_ID = /^mem_\d{8}_\d{6}_[0-9a-f]{6}$/;
const nodeId = z.string().regex(NODE_ID);
export const SHARED_ID = /^(?:mem_\d{8}_\d{6}_[0-9a-f]{6}|task [0-9a-f]{64})$/;
const TASK_FILE = /^(?:active|blocked|done\/\d{4}-\d\d)\/[^\p{Cc}/\\]{1,200}\.md$/u;
export const BLOCK_ID = /^page [0-9a-f]{64}$/;
const PLACE = /^(?:page [0-9a-f]{64})?$/;
const PAGE_FILE =
  /^(?:|(?:topics|plans)\/(?:[^\p{Cc}/\\.][^\p{Cc}/\\]{0,190}\/){0,8}[^\p{Cc}/\\.][^\p{Cc}/\\]{0,190}\.md)$/u;
const Line = z.string().regex(/^\P{Cc}*$/u);

/** Of a machine, or a person. */
export const NAME = /^[\p{L}\p{N}][\p{L}\p{N}._ -]{0,39}$/u;

/** The first row of a machine: who it is. Not sealed as a whole, because it holds the salt. */
const Card = z.strictObject({
  kind: z.literal('card'),
  /** As the user named the machine, or the person. */
  name: z.string().regex(NAME),
  /** Ed25519, SPKI, base64. */
  key: z.string().max(200),
  /** Of the passphrase, hex; null where rows are not sealed. */
  salt: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .nullable(),
  scope: z.enum(['me', 'team']),
  /** JSON array of the keys of the projects that it shares, sealed where rows are. */
  projects: z.string().max(20_000),
});
export type Card = z.infer<typeof Card>;

/** What a row says. */
export const Payload = z.discriminatedUnion('kind', [
  Card,
  /** Each change of a node, on whatever machine, has a version above the one that it changed. */
  z.strictObject({ kind: z.literal('node'), version: z.int().positive().max(1e9), node: MemoryNode }),
  /** A verbatim turn that this node stands for, see `unpack`; to the user's own machines only. */
  z.strictObject({ kind: z.literal('turn'), nodeId, turn: z.string() }),
  /** A task file, as `active/x.md`; to the user's own machines only. */
  z.strictObject({
    ...{ kind: z.literal('task'), version: z.int().positive().max(1e9) },
    ...{ name: z.string().regex(TASK_FILE), text: z.string() },
  }),
  /** What a person wrote into a page; null where it was taken out. To the user's own machines only. */
  z.strictObject({
    ...{ kind: z.literal('block'), version: z.int().positive().max(1e9), id: z.string().regex(BLOCK_ID) },
    block: z
      .strictObject({
        page: z.strictObject({
          ...{ kind: z.enum(['topic', 'plan', 'facts']), file: z.string().regex(PAGE_FILE) },
          ...{ title: Line.max(200), scope: z.enum(['user', 'project']), project: z.string().max(4_096) },
          ...{ topic: Line.max(200), updated: z.string().regex(/^(?:\d{4}-\d\d-\d\d)?$/) },
        }),
        ...{ section: Line.max(400), text: z.string().min(1) },
        ...{ after: z.string().regex(PLACE), instead: z.string().regex(PLACE) },
      })
      .nullable(),
  }),
  /** The node, or task, was removed: every copy of it goes. */
  z.strictObject({ kind: z.literal('tombstone'), nodeId: z.string().regex(SHARED_ID) }),
]);
export type Payload = z.infer<typeof Payload>;
export type TurnPayload = Extract<Payload, { kind: 'turn' }>;
export type BlockPayload = Extract<Payload, { kind: 'block' }>;
export type TaskPayload = Extract<Payload, { kind: 'task' }>;

/**
 * Names a task where ids of memories stand, whatever its folder; a digest, because the name says what it was about. One
 * that is made again under the name of a removed one is another.
 */
export function taskKey({ name, created }: Pick<Task, 'name' | 'created'>): string {
  return `task ${sha256(`${path.posix.basename(name, '.md').toLowerCase()}\n${created}`)}`;
}

export function findTask({ name, text }: TaskText): Task | null {
  const task = parseTask(text, path.posix.basename(name, '.md'));
  return typeof task === 'string' ? null : task;
}

/** One entry of a machine's log, as it lies in the bucket. */
export const Row = z.strictObject({
  /** 0 is the card; each row has the number after the one before. */
  sequence: z.int().nonnegative(),
  /** JSON of a payload, or what `seal` made of it. */
  payload: z.string().max(MAX_PAYLOAD_CHARS),
  /** Ed25519 over `signedBytes`, base64. */
  signature: z.string().max(100),
});
export type Row = z.infer<typeof Row>;

/** The same value gives the same text, whatever the order of its keys. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((each) => canonicalJson(each ?? null)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) as string;
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}

/** The machine's id is part of it: a row cannot be moved to another log, or to another place in its own. */
function signedBytes(machine: string, { sequence, payload }: Omit<Row, 'signature'>): Buffer {
  return Buffer.from(canonicalJson(['comet-cc share', VERSION, machine, sequence, payload]), 'utf8');
}

/** In base64, as SPKI and PKCS #8. */
export function generateKeys() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64'),
  };
}

/** Keys as they were read last: each is used for many rows. */
function createKeyReader(read: (der: Buffer) => KeyObject): (key: string) => KeyObject {
  const keys = new LruMap<string, KeyObject>(MOST_KEYS);
  return (text) => keys.getOrCreate(text, () => read(Buffer.from(text, 'base64')));
}

const getPrivateKey = createKeyReader((key) => createPrivateKey({ key, type: 'pkcs8', format: 'der' }));
const getPublicKey = createKeyReader((key) => createPublicKey({ key, type: 'spki', format: 'der' }));

export function signRow(machine: string, row: Omit<Row, 'signature'>, privateKey: string): Row {
  return { ...row, signature: sign(null, signedBytes(machine, row), getPrivateKey(privateKey)).toString('base64') };
}

/** False also for a key that is none, or one of another kind. */
export function isSigned(machine: string, row: Row, publicKey: string): boolean {
  try {
    const key = getPublicKey(publicKey);
    if (key.asymmetricKeyType !== 'ed25519') return false;
    return verify(null, signedBytes(machine, row), key, Buffer.from(row.signature, 'base64'));
  } catch {
    return false;
  }
}

/** What is compared to know whether a row is still the same. */
export const rowDigest = (machine: string, row: Row): string => sha256(signedBytes(machine, row));

export const parsePayload = (json: string): Payload | null => Payload.safeParse(parseJson(json)).data ?? null;
