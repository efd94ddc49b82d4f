import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { connect } from '@lancedb/lancedb';
import { bytesBelow } from './disk-rig.ts';

/** A secret that must be found nowhere; `name` is what a test says when it is. */
export interface Canary {
  readonly name: string;
  readonly secret: string;
}

/** Names of the canaries that `text` holds: whole, or the longest run of letters and digits, in any case. */
export function canariesIn(text: string, canaries: readonly Canary[]): string[] {
  const lower = text.toLowerCase();
  return canaries.filter(({ secret }) => getNeedles(secret).some((needle) => lower.includes(needle))).map(getName);
}

/** Where below `dir` canaries are, as `file: name`; file names count too. */
export function canariesBelow(dir: string, canaries: readonly Canary[]): string[] {
  return [...bytesBelow(dir)].flatMap(([file, bytes]) =>
    canariesIn(`${file}\n${bytes}`, canaries).map((name) => `${file}: ${name}`),
  );
}

/** Every row of every LanceDB table below `dir`, as text; files of tables may be compressed. */
export async function lanceRows(dir: string): Promise<string[]> {
  const tables = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name.endsWith('.lance'))
    .map((entry) => path.join(entry.parentPath, entry.name));
  const rows: string[] = [];
  for (const table of tables) {
    const connection = await connect(path.dirname(table));
    const opened = await connection.openTable(path.basename(table, '.lance'));
    for (const row of await opened.query().toArray()) rows.push(JSON.stringify(row.toJSON(), plain));
    connection.close();
  }
  return rows;
}

export interface CommandLines {
  /** Each command line once. */
  readonly seen: ReadonlySet<string>;
  stop(): void;
}

const YOUNG_LOOKS = 100;

/** Reads the command lines of all processes that begin from now on, again and again. */
export function watchCommandLines(everyMs = 20): CommandLines {
  const seen = new Set<string>();
  const list = (): string[] => readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const earlier = new Set(list());
  let looks = new Map<string, number>();
  // A process that starts becomes another program at once; later that is rare, so an old one is read every tenth time.
  const look = (isLast = false): void => {
    looks = new Map(list().map((pid) => [pid, (looks.get(pid) ?? 0) + 1]));
    for (const [pid, count] of looks) {
      if (earlier.has(pid) || (!isLast && count > YOUNG_LOOKS && count % 10 > 0)) continue;
      try {
        seen.add(readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '));
      } catch {
        // It ended while we looked.
      }
    }
  };
  const timer = setInterval(() => look(), everyMs);
  return {
    seen,
    stop() {
      clearInterval(timer);
      look(true);
    },
  };
}

function getNeedles(secret: string): string[] {
  const runs = secret.split(/[^A-Za-z0-9]+/).toSorted((one, other) => other.length - one.length);
  return [secret, ...runs.filter((run) => run.length >= 14).slice(0, 1)].map((needle) => needle.toLowerCase());
}

function getName({ name }: Canary): string {
  return name;
}

function plain(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
