import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { createMutex } from '../../common/async.ts';
import { CometError } from '../../common/errors.ts';
import {
  appendDurably,
  ensureDir,
  inspectPrivateFile,
  readFileIfPresent,
  writeFileAtomic,
} from '../../common/files.ts';
import { isRecord, parseJson, toRecord } from '../../common/text.ts';
import { createIdSetFile } from '../storage/fs/set-files.ts';
import { type FadedFacts, ShareState, type StateFile } from './parts.ts';
import { BLOCK_ID } from './row.ts';

const LISTS = ['known', 'turns', 'peers', 'refused'] as const;
/** Changes are appended until they take this much beside the whole. */
const SPARE_BYTES = 1_000_000;

type SavedState = Omit<ShareState, 'outbox'>;
type Lines = Readonly<Record<string, unknown>>;

/**
 * `state.jsonl`, mode 0600: it holds the machine's private key. Each line is what changed: of many thousand memories
 * few do, and writing all of them each time would hold up requests. Rows that wait are in a file of their own, whose
 * bytes go when they have left.
 */
export function createStateFile(dir: string): StateFile & { isThere(): boolean } {
  const [file, outboxFile] = [path.join(dir, 'state.jsonl'), path.join(dir, 'outbox.json')];
  let saved: { readonly state: SavedState; readonly sequences: ReadonlySet<number> } | null = null;
  let queued: ReadonlySet<number> = new Set();
  let [bytes, most] = [0, 0];

  const broken = (which: string): CometError =>
    new CometError('share_failed', `${which} cannot be read; comet-cc share leave, then join again`);

  async function writeOutbox(outbox: ShareState['outbox'], sequences: ReadonlySet<number>): Promise<void> {
    await writeFileAtomic(outboxFile, JSON.stringify(outbox));
    queued = sequences;
  }

  /** Of many rows that are sent in batches not all that are left are written after each. */
  function isShort(outbox: ShareState['outbox'], sequences: ReadonlySet<number>): boolean {
    if (sequences.size === queued.size) return false;
    const first = outbox[0]?.sequence ?? 0;
    const isSent = [...queued].every((sequence) => sequences.has(sequence) || sequence < first);
    return !isSent || sequences.size <= queued.size / 2;
  }

  async function writeState(state: SavedState): Promise<void> {
    const line = saved === null ? null : JSON.stringify(getChanges(saved.state, state));
    if (line === '{}') return;
    if (line !== null && bytes + line.length <= most) {
      await appendDurably(file, `\n${line}\n`);
      bytes += line.length;
      return;
    }
    const whole = JSON.stringify(state);
    await writeFileAtomic(file, whole);
    bytes = whole.length;
    most = 2 * whole.length + SPARE_BYTES;
  }

  return {
    isThere: () => existsSync(file),
    async load() {
      const text = await readPrivate(file);
      if (text === null) return null;
      const outboxText = (await readPrivate(outboxFile)) ?? '[]';
      const read = ShareState.safeParse({ ...folded(text.split('\n')), outbox: parseJson(outboxText) });
      if (!read.success) throw broken(read.error.issues[0]?.path[0] === 'outbox' ? outboxFile : file);
      const { outbox, ...state } = read.data;
      saved = null;
      const last = state.confirmed?.sequence ?? -1;
      // Rows that were written before the state that they belong to are made again.
      return { ...state, outbox: outbox.filter(({ sequence }) => sequence > last && sequence < state.next) };
    },
    async save({ outbox, ...state }) {
      await ensureDir(dir);
      const sequences = new Set(outbox.map(({ sequence }) => sequence));
      const { sequences: before = null } = saved ?? {};
      const isMore = before === null || outbox.some(({ sequence }) => !before.has(sequence));
      // Rows are there before the state names them, and until it says that they have left.
      if (isMore) await writeOutbox(outbox, sequences);
      await writeState(state);
      if (!isMore && isShort(outbox, sequences)) await writeOutbox(outbox, sequences);
      saved = { state, sequences };
    },
    async remove() {
      saved = null;
      await Promise.all([file, outboxFile].map((each) => rm(each, { force: true })));
    },
  };
}

/** Members of lists that changed, null for those that are gone, and other values as they are. */
function getChanges(before: SavedState, after: SavedState): Lines {
  const changes = getMembers({ ...before }, { ...after });
  for (const name of LISTS) if (name in changes) changes[name] = getMembers(before[name], after[name]);
  return changes;
}

function getMembers(before: Lines, after: Lines): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  for (const id in after) if (after[id] !== before[id]) changes[id] = after[id];
  for (const id in before) if (!(id in after)) changes[id] = null;
  return changes;
}

/** What the lines say together. */
function folded(lines: readonly string[]): Lines {
  const state: Record<string, unknown> = { known: {}, turns: {}, peers: {}, refused: {} };
  for (const line of lines) {
    // The last one may be torn by a power cut; what it said is done again.
    for (const [name, value] of Object.entries(toRecord(parseJson(line)))) {
      const list = LISTS.some((each) => each === name) ? state[name] : null;
      if (!isRecord(list) || !isRecord(value)) state[name] = value;
      else
        for (const [id, member] of Object.entries(value)) {
          if (member === null) delete list[id];
          else list[id] = member;
        }
    }
  }
  return state;
}

/** One key a line, until they are noted in the state. */
export function createFadedFile(file: string): FadedFacts {
  const [exclusive, keySet] = [createMutex(), createIdSetFile(file, BLOCK_ID)];
  return {
    load: () => exclusive(keySet.load),
    add: (keys) => exclusive(() => keySet.add(keys)),
    drop: (keys) =>
      exclusive(async () => {
        const left = (await keySet.load()).filter((key) => !keys.includes(key));
        if (left.length === 0) await rm(file, { force: true });
        else await writeFileAtomic(file, `${left.join('\n')}\n`);
      }),
  };
}

/** The first line of a file of the user's; null where there is none. @throws CometError `unsafe_file` */
export async function readPassphrase(file: string): Promise<string | null> {
  return (await readPrivate(file))?.split(/\r?\n/)[0] || null;
}

async function readPrivate(file: string): Promise<string | null> {
  const problem = inspectPrivateFile(file);
  if (problem === 'missing') return null;
  if (problem !== null) throw new CometError('unsafe_file', `${file} is not private (${problem}); chmod 600 it`);
  return readFileIfPresent(file);
}
