/**
 * What a reader says of statements that rules put on pages, months later: `useful`; `weak`, where it is true and little
 * depends on it; `junk`, where it is an account of the day's work, a request, or a remark without its context. Labels
 * are attached to digests; no text is kept.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import type { Memory } from '../../memory/index.ts';
import { createHistory } from '../coding/history.ts';
import { BENCH } from '../paths.ts';
import type { Corpus } from '../real/corpus.ts';
import { openRealMemory } from '../real/product.ts';

const FLUSH_MS = 300_000;
const Label = z.enum(['useful', 'weak', 'junk']);
const NORMAL_95 = 1.96;

export interface DrawnStatement {
  readonly digest: string;
  readonly text: string;
  readonly group: string;
}

export interface GroupReport {
  readonly statements: number;
  readonly useful: number;
  readonly weak: number;
  readonly junk: number;
  readonly unlabeled: number;
  /** Share of junk among the labeled, with its 95 % interval (Wilson's). */
  readonly junk_share: number | null;
  readonly junk_interval: readonly [number, number] | null;
}

/** Of the sessions by id. */
export function getHalf({ turns }: Corpus): (sessionId: string) => string {
  const sessions = [...new Set(turns.map(({ sessionId }) => sessionId))].sort();
  return (sessionId) => (sessions.indexOf(sessionId) < sessions.length / 2 ? 'real, first half' : 'real, second half');
}

/** Every statement of every page, by the session of its first memory. */
export async function getStatements(
  { library }: Memory,
  getGroup: (sessionId: string) => string,
): Promise<DrawnStatement[]> {
  const sessions = new Map(library.list({}).map(({ node_id, session_id }) => [node_id, session_id]));
  const { topics } = await library.listTopics({});
  const pages = await Promise.all(topics.map(({ name }) => library.readTopic(name, {})));
  return pages.flatMap(({ lines }) =>
    lines.map(({ text: line }) => {
      const text = withoutMarks(line);
      const nodeId = /\(.{0,2}(mem_\d{8}_\d{6}_[0-9a-f]{6})/.exec(line)?.[1] ?? '';
      return { text, digest: getDigest(text), group: getGroup(sessions.get(nodeId) ?? '') };
    }),
  );
}

/** Of an invented history of many services. */
export async function codingStatements(seed: number): Promise<DrawnStatement[]> {
  const home = await mkdtemp(path.join(tmpdir(), 'comet-bench-'));
  const memory = await openRealMemory(home);
  try {
    memory.capture.captureTurns(createHistory(seed).turns);
    if (!(await memory.maintenance.flush(FLUSH_MS))) throw new Error('memory did not come to rest');
    await memory.maintenance.dream({ dryRun: false });
    return await getStatements(memory, () => 'invented services');
  } finally {
    await memory.maintenance.close();
    await rm(home, { recursive: true, force: true });
  }
}

/** All of the real ones, then invented ones in the order of their digests. */
export function drawStatements(all: readonly DrawnStatement[], most: number): DrawnStatement[] {
  const inOrder = [...new Map(all.map((each) => [each.digest, each])).values()].sort((one, other) =>
    one.digest < other.digest ? -1 : 1,
  );
  const isReal = ({ group }: DrawnStatement): boolean => group.startsWith('real');
  return [...inOrder.filter(isReal), ...inOrder.filter((each) => !isReal(each))].slice(0, most);
}

/** By group, and of all together. */
export function judgeStatements(drawn: readonly DrawnStatement[]): Readonly<Record<string, GroupReport>> {
  const labels = readLabels();
  const groups = [...new Set(drawn.map(({ group }) => group))].sort();
  const judge = (own: readonly DrawnStatement[]): GroupReport => {
    const said = own.map(({ digest }) => labels[digest]);
    const count = (label: string | undefined): number => said.filter((each) => each === label).length;
    const [useful, weak, junk, unlabeled] = [count('useful'), count('weak'), count('junk'), count(undefined)];
    const labeled = own.length - unlabeled;
    const junk_share = labeled === 0 ? null : rounded(junk / labeled);
    return {
      ...{ statements: own.length, useful, weak, junk, unlabeled, junk_share },
      junk_interval: labeled === 0 ? null : wilson(junk, labeled),
    };
  };
  return Object.fromEntries([
    ...groups.map((name) => [name, judge(drawn.filter(({ group }) => group === name))] as const),
    ['all', judge(drawn)],
  ]);
}

export function readLabels(): Readonly<Record<string, z.infer<typeof Label>>> {
  const file = path.join(BENCH, 'library/labels.json');
  return z.record(z.string(), Label).parse(JSON.parse(readFileSync(file, 'utf8')));
}

function wilson(count: number, of: number): readonly [number, number] {
  const share = count / of;
  const square = NORMAL_95 ** 2 / of;
  const middle = share + square / 2;
  const spread = NORMAL_95 * Math.sqrt((share * (1 - share)) / of + square / (4 * of));
  return [rounded((middle - spread) / (1 + square)), rounded((middle + spread) / (1 + square))];
}

function rounded(share: number): number {
  return Math.round(Math.max(0, share) * 1_000) / 1_000;
}

function withoutMarks(line: string): string {
  return line
    .replace(/ \(\[?mem_[^)]*(?:\)[^)]*)*\)$/, '')
    .replace(/ \[valid_\w+:: [\d-]+\]/g, '')
    .replace(/^- /, '');
}

function getDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
