import { constants } from 'node:fs';
import { open, readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { createMutex } from '../../../common/async.ts';
import { CometError, type Problem } from '../../../common/errors.ts';
import { createFree, ensureDir, orMissing, syncDir, writeFileAtomic } from '../../../common/files.ts';
import type { JournalTurn } from '../../model/turn.ts';
import { parseTurn, renderTurn } from '../../model/turn-schema.ts';
import { removeDurably } from './file-cache.ts';

type Draft = Omit<JournalTurn, 'seq'>;

/** What is known of the file after it was looked at; null until then and after a failed write. */
interface LogEnd {
  readonly bytes: number;
  readonly nextSeq: number;
}

export type SessionLog = ReturnType<typeof createSessionLog>;

/** The journal file of one session. Calls run one after the other; appends that wait share one sync. */
export function createSessionLog(file: string, report: (problem: Problem) => void) {
  const exclusive = createMutex();
  let waiting: { turn: Draft; resolve: (record: JournalTurn) => void; reject: (error: unknown) => void }[] = [];
  let end: LogEnd | null = null;

  const alone = <T>(work: () => Promise<T>): Promise<T> =>
    exclusive(work).catch((error: unknown) => {
      throw toLogError(file, error);
    });

  async function look(): Promise<{ records: JournalTurn[]; payloads: readonly Buffer[]; state: LogEnd }> {
    const bytes = (await readFile(file).catch(orMissing)) ?? Buffer.alloc(0);
    const { payloads, soundBytes, damage } = readFrames(bytes);
    if (damage === 'torn') {
      await truncateLog(file, soundBytes);
      report({ file, message: 'the last turn was not written to its end; the unfinished bytes were cut off' });
    } else if (damage === 'corrupt') {
      const copy = await createFree((number) => `${file}.damaged-${number}`, bytes);
      await writeFileAtomic(file, Buffer.concat(payloads.map(encodeFrame)));
      report({ file, message: `damaged bytes were skipped; the file as it was is kept as ${path.basename(copy)}` });
    }
    const records = payloads.flatMap((payload) => parseTurn(payload.toString('utf8')) ?? []);
    const state: LogEnd = {
      bytes: payloads.reduce((sum, payload) => sum + HEADER_BYTES + payload.length, 0),
      nextSeq: records.reduce((next, { seq }) => Math.max(next, seq + 1), end?.nextSeq ?? 0),
    };
    end = state;
    return { records, payloads, state };
  }

  async function writeWaiting(): Promise<void> {
    const batch = waiting;
    waiting = [];
    try {
      const state = end ?? (await look()).state;
      const records = batch.map(({ turn }, at): JournalTurn => ({ ...turn, seq: state.nextSeq + at }));
      const frames = Buffer.concat(records.map((record) => encodeFrame(Buffer.from(renderTurn(record)))));
      await appendSynced(file, frames, state.bytes);
      end = { bytes: state.bytes + frames.length, nextSeq: state.nextSeq + records.length };
      batch.forEach(({ resolve }, at) => {
        resolve(records[at] as JournalTurn);
      });
    } catch (error) {
      end = null;
      for (const { reject } of batch) reject(toLogError(file, error));
    }
  }

  return {
    append: (turn: Draft): Promise<JournalTurn> =>
      new Promise((resolve, reject) => {
        waiting.push({ turn, resolve, reject });
        if (waiting.length === 1) void alone(writeWaiting);
      }),

    read: () => alone(async () => (await look()).records),

    remove: (turnIds: ReadonlySet<string>): Promise<void> =>
      alone(async () => {
        const { payloads } = await look();
        const rest = payloads.filter((payload) => !turnIds.has(parseTurn(payload.toString('utf8'))?.turnId ?? ''));
        if (rest.length < payloads.length) await replace(file, rest);
        // A removed turn must leave nothing behind; the readable part of the damaged file was copied before.
        const dir = path.dirname(file);
        const names = (await readdir(dir)).filter((name) => name.startsWith(`${path.basename(file)}.damaged-`));
        await Promise.all(names.map((name) => rm(path.join(dir, name), { force: true })));
        await look();
      }),

    settled: () => exclusive(async () => {}),
  };
}

export function readRecords(bytes: Buffer): JournalTurn[] {
  return readFrames(bytes).payloads.flatMap((payload) => parseTurn(payload.toString('utf8')) ?? []);
}

/** On failure the file is cut back to `soundBytes`, so that no half frame stands before the next one. */
async function appendSynced(file: string, bytes: Buffer, soundBytes: number): Promise<void> {
  const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants;
  // Somebody may have taken the folder away meanwhile.
  if (soundBytes === 0) await ensureDir(path.dirname(file));
  await using handle = await open(file, O_APPEND | O_CREAT | O_WRONLY | (O_NOFOLLOW ?? 0), 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.datasync();
  } catch (error) {
    await handle.truncate(soundBytes);
    throw error;
  }
  if (soundBytes === 0) await syncDir(path.dirname(file));
}

async function truncateLog(file: string, bytes: number): Promise<void> {
  await using handle = await open(file, 'r+');
  await handle.truncate(bytes);
  await handle.sync();
}

async function replace(file: string, payloads: readonly Buffer[]): Promise<void> {
  if (payloads.length > 0) return writeFileAtomic(file, Buffer.concat(payloads.map(encodeFrame)));
  await removeDurably(file);
}

function toLogError(file: string, cause: unknown): CometError {
  if (cause instanceof CometError) return cause;
  const code = (cause as NodeJS.ErrnoException).code ?? 'unknown';
  return new CometError('journal_failed', `${file} cannot be read or written (${code}); check space and permissions`, {
    cause,
  });
}

export const HEADER_BYTES = 8;
const MAX_PAYLOAD_BYTES = 512 * 1024 * 1024;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** `[u32 length][u32 crc32][payload]`, little endian. The payload is the UTF-8 text of a JSON object. */
export function encodeFrame(payload: Buffer): Buffer {
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header.writeUInt32LE(payload.length, 0);
  header.writeUInt32LE(crc32(payload), 4);
  return Buffer.concat([header, payload]);
}

/**
 * Reads every frame whose checksum holds; where one does not, the next one is looked for byte by byte.
 * @returns `soundBytes`: the file may be cut here without losing a frame. `damage`: `torn` where the last write did not
 *   end, `corrupt` where bytes between or after whole frames were lost
 */
export function readFrames(bytes: Buffer) {
  const payloads: Buffer[] = [];
  let at = 0;
  let soundBytes = 0;
  let skipped = false;
  while (at < bytes.length) {
    const payload = frameAt(bytes, at);
    if (payload === null) {
      at = nextFrame(bytes, at + 1);
      if (at === -1) break;
      skipped = true;
      continue;
    }
    payloads.push(payload);
    at += HEADER_BYTES + payload.length;
    soundBytes = at;
  }
  const tail = bytes.subarray(soundBytes);
  const rescued = tail.length > 0 ? payloadOfWrongLength(tail) : null;
  if (rescued !== null) payloads.push(rescued);
  const isTorn = tail.length < HEADER_BYTES || tail.readUInt32LE(0) > tail.length - HEADER_BYTES;
  const isCorrupt = rescued !== null || skipped || (tail.length > 0 && !isTorn);
  const damage = isCorrupt ? ('corrupt' as const) : tail.length > 0 ? ('torn' as const) : ('none' as const);
  return { payloads, soundBytes, damage };
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
