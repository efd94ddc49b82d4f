import { createHash } from 'node:crypto';
import { type MemoryNode, nodeId } from '../../memory/model/node.ts';
import type { JournalTurn } from '../../memory/model/turn.ts';
import { contentDigest } from '../../memory/storage/index-writer.ts';

/** A made-up history that is the same for the same number; every text is made when it is asked for, none is kept. */
export interface Corpus {
  readonly turns: number;
  readonly sessions: readonly string[];
  session(at: number): JournalTurn[];
  nodes(): MemoryNode[];
  /** A question about one turn, in words of which some are only there. */
  question(nth: number): { readonly text: string; readonly turn: string };
}

export const PROJECT_DIR = '/srv/bench';
const TURNS_PER_SESSION = 100;
const TURNS_PER_NODE = 3;
const FIRST_MS = Date.parse('2025-01-01T08:00:00Z');
const TURN_MS = 240_000;
const AREAS =
  'billing invoice checkout search login session webhook export import mail report audit cache queue scheduler worker gateway proxy upload thumbnail ledger refund tax currency tenant profile permission token metric alert dashboard deploy migration replica backup index parser lexer renderer layout theme router reducer fixture snapshot build bundle'.split(
    ' ',
  );
const THINGS =
  'timeout retry limit port flag default path schema column handler client writer reader buffer pool lock batch window header cookie secret region bucket topic partition offset cursor page filter sort batch size threshold interval backoff quota budget version release branch tag label owner reviewer runbook'.split(
    ' ',
  );
const VERBS =
  'decided changed moved renamed removed raised lowered fixed broke tested measured documented reverted merged split cached indexed validated logged skipped'.split(
    ' ',
  );
const FILLERS =
  'because after before while since although the team a customer staging production locally again twice never always with without under load on friday in review during the incident for now until later as agreed'.split(
    ' ',
  );
/** Words that were never spoken, as a long history has thousands. */
const RARE = Array.from({ length: 6_000 }, (_, at) => {
  const parts = 'ba ce di fo gu la me ni po ru sa te vi wo za chi dra gle pro sti'.split(' ');
  return [at % 20, Math.floor(at / 20) % 20, Math.floor(at / 400)].map((part) => parts[part]).join('');
});
const WORDS = [...FILLERS, ...AREAS, ...THINGS, ...VERBS, ...RARE];
const ENDINGS = ['.ts', '.py', '.go', '.sql', '.yaml', '.md'];

export function createCorpus(turns: number): Corpus {
  const count = Math.ceil(turns / TURNS_PER_SESSION);
  const sessions = Array.from({ length: count }, (_, at) => `session-${String(at).padStart(6, '0')}`);
  const getTurns = (at: number): number => Math.min(TURNS_PER_SESSION, turns - at * TURNS_PER_SESSION);
  return {
    turns,
    sessions,
    session: (at) => Array.from({ length: getTurns(at) }, (_, nth) => turnAt(at * TURNS_PER_SESSION + nth)),
    nodes: () =>
      sessions.flatMap((_, at) =>
        Array.from({ length: Math.ceil(getTurns(at) / TURNS_PER_NODE) }, (__, nth) => {
          const first = at * TURNS_PER_SESSION + nth * TURNS_PER_NODE;
          const last = Math.min(first + TURNS_PER_NODE, at * TURNS_PER_SESSION + getTurns(at));
          return getNode(first, last);
        }),
      ),
    question(nth) {
      const at = Math.floor(getRandom(nth * 7_919 + 13)() * turns);
      const { subject, name, verb } = getTopic(at);
      return { text: `why was the ${subject.join(' ')} ${verb}, and what does ${name} do?`, turn: getEnd(at) };
    },
  };
}

/** One more turn, as the pipeline would hand it to the index. */
export function turnAt(at: number): JournalTurn {
  const sessionId = `session-${String(Math.floor(at / TURNS_PER_SESSION)).padStart(6, '0')}`;
  const { subject, name, file, value, verb, random } = getTopic(at);
  const filler = (words: number): string => Array.from({ length: words }, () => anyWord(random)).join(' ');
  const user = `In ${file} we ${verb} the ${subject.join(' ')}: ${filler(18)}. Is ${name} still right?`;
  const answer = `Yes. ${name} is ${value} now; ${filler(30)}. The ${subject[1]} ${filler(8)}, see ${file}.`;
  const message = (role: 'user' | 'assistant', text: string) => {
    const content = JSON.stringify([{ type: 'text', text }]);
    return { role, content, sha256: hex(content) } as const;
  };
  return {
    key: hex(`key ${at}`),
    turnId: getEnd(at),
    sessionId,
    projectDir: PROJECT_DIR,
    model: 'claude-opus-4-8',
    atMs: FIRST_MS + at * TURN_MS,
    messages: [message('user', user), message('assistant', answer)],
    seq: at % TURNS_PER_SESSION,
    project: PROJECT_DIR,
    redacted: false,
  };
}

export function getNode(first: number, last: number): MemoryNode {
  const topics = Array.from({ length: last - first }, (_, nth) => getTopic(first + nth));
  const atMs = FIRST_MS + first * TURN_MS;
  const at = new Date(atMs).toISOString();
  const { subject, name, verb } = topics[0] as Topic;
  const summary = topics
    .map((each) => `${each.subject.join(' ')} ${each.verb}, ${each.name} is ${each.value}`)
    .join('; ');
  const node: MemoryNode = {
    node_id: nodeId(atMs, hex(`node ${first}`)),
    session_id: turnAt(first).sessionId,
    project: PROJECT_DIR,
    depth_level: 1,
    recall_mode: 'active',
    topic_tags: [subject[0], subject[1]],
    importance: 'MED',
    summary,
    detailed_summary: null,
    trigger: `When I ask why the ${subject.join(' ')} was ${verb} or about ${name}`,
    parent_node_id: null,
    links: [],
    source_links: [],
    capsule: null,
    origin: 'user',
    valid_from: at,
    valid_to: null,
    superseded_by: null,
    compaction_reason: 'topic_shift',
    created_at: at,
    turns: topics.map((_, nth) => getEnd(first + nth)),
    kind: 'turn',
    author: { by: 'model', model: 'claude' },
    status: 'current',
    facts: [],
  };
  if (contentDigest(node) === '') throw new Error('a node must have a digest');
  return node;
}

interface Topic {
  readonly subject: readonly [string, string, string];
  readonly name: string;
  readonly file: string;
  readonly value: number;
  readonly verb: string;
  readonly random: () => number;
}

function getTopic(at: number): Topic {
  const random = getRandom(at);
  const subject = [pick(AREAS, random), pick(RARE, random), pick(THINGS, random)] as const;
  const number = Math.floor(random() * 4_000);
  const name = `${subject[0]}${capital(subject[2])}${number}`;
  const file = `src/${subject[0]}/${subject[1]}-${subject[2]}${number % 97}${pick(ENDINGS, random)}`;
  return { subject, name, file, value: Math.floor(random() * 90_000), verb: pick(VERBS, random), random };
}

/** The nth word is said about one nth as often as the first. */
function anyWord(random: () => number): string {
  return WORDS[Math.floor(WORDS.length ** random()) - 1] as string;
}

function getEnd(at: number): string {
  return hex(`end ${at}`);
}

function hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)] as T;
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** mulberry32 */
export function getRandom(seed: number): () => number {
  let state = (seed + 1) * 0x9e3779b1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
