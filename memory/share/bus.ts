import type { Row } from './row.ts';

/**
 * One log for each machine on storage that every machine can read. A machine writes to its own log only, so that no two
 * writers meet. Rows are as they were given; whether to believe them is the reader's decision.
 *
 * All may throw CometError `share_failed`, saying what to check; what was done until then is safe to repeat.
 */
export interface Bus {
  machines(): Promise<string[]>;
  /** Adds rows with the numbers that follow, all or none; the first call makes the log. */
  append(machine: string, rows: readonly Row[]): Promise<void>;
  /** The first row, and up to `limit` rows from this number on, ascending; none where there is no log. */
  read(machine: string, from: number, limit: number): Promise<Row[]>;
  /** Changes with each change or replacement of the log; null where there is no log, or a damaged one. */
  stamp(machine: string): Promise<string | null>;
  /** Null where there is no log that can be read: its machine publishes it again. */
  last(machine: string): Promise<Row | null>;
  /** Removes these rows and every older version that holds their bytes. */
  erase(machine: string, sequences: readonly number[]): Promise<void>;
  /** Removes the log. */
  drop(machine: string): Promise<void>;
  close(): void;
}
