import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a signature of the stand-in says about the block it was issued for. */
export interface Seal {
  readonly family: string;
  readonly tools: string;
  readonly system: string;
  /** Chain over every earlier non-thinking block. */
  readonly prefix: string;
  /** Id of the thinking block right before this one when it was made; '' for the first. */
  readonly previous: string;
  /** Thinking blocks before this one when it was made. */
  readonly depth: number;
  readonly text: string;
  /** One response's consecutive thinking blocks share a run. */
  readonly run: string;
  readonly runIndex: number;
  readonly runLength: number;
}

/** Whole groups of base64, so that a signature is base64 as the API's are. */
const MAC_LENGTH = 24;

export function writeSeal(secret: Buffer, seal: Seal): string {
  const payload = Buffer.from(JSON.stringify(Object.values(seal))).toString('base64');
  return mac(secret, payload) + payload;
}

/** Null when the signature is not one of ours. */
export function readSeal(secret: Buffer, signature: unknown): Seal | null {
  if (typeof signature !== 'string' || signature.length <= MAC_LENGTH) return null;
  const read = getRead(secret);
  const known = read.get(signature);
  if (known !== undefined) return known;
  if (read.size > MOST_READ) read.clear();
  const seal = openSeal(secret, signature);
  read.set(signature, seal);
  return seal;
}

/** Each comes back with every request of its conversation. */
const reads = new WeakMap<Buffer, Map<string, Seal | null>>();
const MOST_READ = 10_000;

function getRead(secret: Buffer): Map<string, Seal | null> {
  const read = reads.get(secret) ?? new Map<string, Seal | null>();
  reads.set(secret, read);
  return read;
}

function openSeal(secret: Buffer, signature: string): Seal | null {
  const payload = signature.slice(MAC_LENGTH);
  const given = Buffer.from(signature.slice(0, MAC_LENGTH));
  const wanted = Buffer.from(mac(secret, payload));
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return null;
  const [family, tools, system, prefix, previous, depth, text, run, runIndex, runLength] = JSON.parse(
    Buffer.from(payload, 'base64').toString(),
  );
  return { family, tools, system, prefix, previous, depth, text, run, runIndex, runLength };
}

/** Names a block among others. */
export function sealId(signature: string): string {
  return signature.slice(0, MAC_LENGTH);
}

function mac(secret: Buffer, payload: string): string {
  return createHmac('sha256', secret).update(payload).digest('base64').slice(0, MAC_LENGTH);
}
