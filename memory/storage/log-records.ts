import { crc32 } from 'node:zlib';

export const HEADER_BYTES = 8;
const MAX_PAYLOAD_BYTES = 512 * 1024 * 1024;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

export interface ReadFrames {
  /** Payloads that could be read, in order. */
  readonly payloads: readonly Buffer[];
  /** Bytes before the tail. The file may be cut here without losing a frame. */
  readonly soundBytes: number;
  /** `torn`: the last write did not end. `corrupt`: bytes between or after whole frames were lost. */
  readonly damage: 'none' | 'torn' | 'corrupt';
}

/** `[u32 length][u32 crc32][payload]`, little endian. The payload is the UTF-8 text of a JSON object. */
export function encodeFrame(payload: Buffer): Buffer {
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header.writeUInt32LE(payload.length, 0);
  header.writeUInt32LE(crc32(payload), 4);
  return Buffer.concat([header, payload]);
}

/** Reads every frame whose checksum holds; where one does not, the next one is looked for byte by byte. */
export function readFrames(bytes: Buffer): ReadFrames {
  const payloads: Buffer[] = [];
  let at = 0;
  let soundBytes = 0;
  let skipped = false;
  while (at < bytes.length) {
    const payload = frameAt(bytes, at);
    if (payload === null) {
      const next = nextFrame(bytes, at + 1);
      if (next === -1) break;
      skipped = true;
      at = next;
      continue;
    }
    payloads.push(payload);
    at += HEADER_BYTES + payload.length;
    soundBytes = at;
  }
  const tail = bytes.subarray(soundBytes);
  const rescued = tail.length > 0 ? payloadOfWrongLength(tail) : null;
  if (rescued !== null) return { payloads: [...payloads, rescued], soundBytes, damage: 'corrupt' };
  if (skipped || (tail.length > 0 && !looksTorn(tail))) return { payloads, soundBytes, damage: 'corrupt' };
  return { payloads, soundBytes, damage: tail.length > 0 ? 'torn' : 'none' };
}

function frameAt(bytes: Buffer, at: number): Buffer | null {
  if (at + HEADER_BYTES > bytes.length) return null;
  const length = bytes.readUInt32LE(at);
  const end = at + HEADER_BYTES + length;
  if (length < 2 || length > MAX_PAYLOAD_BYTES || end > bytes.length) return null;
  // The braces are looked at first: a checksum over each false start would make the search quadratic.
  if (bytes[at + HEADER_BYTES] !== OPEN_BRACE || bytes[end - 1] !== CLOSE_BRACE) return null;
  const payload = bytes.subarray(at + HEADER_BYTES, end);
  return crc32(payload) === bytes.readUInt32LE(at + 4) ? payload : null;
}

function nextFrame(bytes: Buffer, from: number): number {
  let brace = bytes.indexOf(OPEN_BRACE, from + HEADER_BYTES);
  while (brace !== -1) {
    if (frameAt(bytes, brace - HEADER_BYTES) !== null) return brace - HEADER_BYTES;
    brace = bytes.indexOf(OPEN_BRACE, brace + 1);
  }
  return -1;
}

/** A last frame whose length alone was damaged still proves itself by its checksum. */
function payloadOfWrongLength(tail: Buffer): Buffer | null {
  const payload = tail.subarray(HEADER_BYTES);
  if (payload[0] !== OPEN_BRACE || payload.at(-1) !== CLOSE_BRACE) return null;
  return crc32(payload) === tail.readUInt32LE(4) ? payload : null;
}

function looksTorn(tail: Buffer): boolean {
  if (tail.length < HEADER_BYTES) return true;
  return tail.readUInt32LE(0) > tail.length - HEADER_BYTES;
}
