import { setImmediate as nextTick } from 'node:timers/promises';
import { runAtOnce, runInSlices, type Steps } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { grouped, LruMap } from '../../common/map.ts';
import { type CapturedTurn, isCleanOrigin, type MemoryLine } from '../../common/turn.ts';
import { DOCUMENT } from '../ingest/documents.ts';
import {
  createExternalTextTrackers,
  findRepeatedText,
  type RepeatedText,
  repeatsTurns,
} from '../ingest/external-text.ts';
import { isImported } from '../ingest/imported-turn.ts';
import { joinParts } from '../ingest/join-parts.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { slimTurn } from '../ingest/redact-turn.ts';
import type { Reports } from '../ingest/reports.ts';
import { type BufferedTurn, createSessionCache, type Session, type SessionCache } from '../ingest/session-cache.ts';
import type { TurnRegistry } from '../ingest/turn-registry.ts';
import { readTurn, readTurnPart } from '../ingest/turn-trust.ts';
import { isDraft } from '../model/node.ts';
import type { JournalTurn, TurnText } from '../model/turn.ts';
import type { TopicShiftReading } from '../models/model.ts';
import { createShownText, type ShownText } from '../text/repetition.ts';
import { type CompactionReason, type CompactionRule, decideCompaction, needsReading } from './compaction.ts';
import type { Compactor } from './compactor.ts';
import type { ModelUpgrades } from './model-upgrades.ts';
import { compileRules } from './rules-model.ts';
import type { ToolRounds } from './tool-rounds.ts';
import type { TopicDetector } from './topic-detector.ts';
import { repeatsMemory } from './turn-state.ts';

/** Reading a longer message takes tens of milliseconds. */
const LONG_CHARS = 50_000;
/** Size limit of turns waiting to be written; a rejected turn is offered again with the next request. */
const PENDING_CHARS = 128_000_000;
/** With `llm: off` compaction only bounds memory use. */
const OFF_RULE: CompactionRule = { minL1Buffer: 200, maxL1Buffer: 200, loadThreshold: 6 };
const SENSED = 5;
const SESSIONS_SHOWN = 200;
const MOST_SHOWN = 100;
const MOST_BEFORE = 10;
/** A history that is captured late is told apart from what is said now: a node has one time. */
const APART_MS = 6 * 3_600_000;
/** Older drafts are not queued for the model after a restart. */
const UPGRADE_MS = 15 * 86_400_000;

export type PipelineParts = Omit<
  ServiceParts,
  'nodeFiles' | 'index' | 'model' | 'local' | 'quota' | 'redactor' | 'randomHex' | 'indexer' | 'snapshooter'
> & {
  readonly config: Pick<Config, 'llm' | 'compaction'>;
  readonly compactor: Compactor;
  readonly toolRounds: ToolRounds;
  readonly modelUpgrades: ModelUpgrades;
  readonly topicDetector: TopicDetector;
  readonly reports: Reports;
  /** Keeps what a turn states. Never rejects. */
  readonly facts: { readTurn(turn: TurnText, source: Pick<JournalTurn, 'project' | 'sessionId'>): Promise<void> };
};

interface State extends PipelineParts {
  readonly rule: CompactionRule;
  /** Nothing is compacted unasked. */
  readonly isPatient: boolean;
  readonly sessions: SessionCache;
  readonly heardBy: ReturnType<typeof createExternalTextTrackers>;
  readonly shownText: ShownText;
  /** Memory lines by session; those that one prompt recalled are one text. */
  readonly shown: LruMap<string, readonly string[]>;
  pendingChars: number;
  /** Set by the first turn. */
  compiled: Promise<void> | null;
  closed: boolean;
}

/** Turns captured turns into durable nodes: in order per session, sessions in parallel. */
export type Pipeline = ReturnType<typeof createPipeline>;

export function createPipeline(parts: PipelineParts) {
  const { config, getProject, clock, log, toolRounds } = parts;
  const isPatient = config.llm === 'off' || config.compaction.idleMs === 0;
  const sessions = createSessionCache({
    mayEvictBuffered: isPatient,
    onError: (sessionId, error) => log.error('could not store a turn', { sessionId, error }),
    onEvict: toolRounds.evict,
  });
  const rule = config.llm === 'off' ? OFF_RULE : config.compaction;
  const heardBy = createExternalTextTrackers();
  const shownText = createShownText();
  const own = { sessions, heardBy, shownText, shown: new LruMap<string, readonly string[]>(SESSIONS_SHOWN) };
  const state: State = { ...parts, rule, isPatient, ...own, pendingChars: 0, compiled: null, closed: false };
  return {
    capture(turns: readonly CapturedTurn[]): void {
      for (const turn of turns) {
        if (state.closed) return;
        if (turn.subagent) {
          parts.reports.addAgent(turn);
          continue;
        }
        void notice(state, turn.sessionId, getProject(turn.projectDir));
        offer(state, turn);
      }
    },
    awaitCaptures: (sessionId: string): Promise<void> => run(state, sessions.restore(sessionId), async () => {}),
    prepare: (sessionId: string, turnIds: readonly string[]): void => prepare(state, sessionId, turnIds),
    /** For a new session, compacts the tails of its project's other sessions, so that it can recall them. */
    notice: (sessionId: string, project: string): Promise<void> => notice(state, sessionId, project),
    /** Registers what a prompt recalled, and the memory lines that the conversation has already. */
    showed(sessionId: string, lines: readonly MemoryLine[], earlier: ReadonlySet<string>): void {
      for (const { text, origin } of lines) if (!isCleanOrigin(origin)) heardBy(sessionId, clock.now()).addText(text);
      const recalled = lines.map(({ text }) => text).join('\n');
      const texts = new Set([...earlier, ...(state.shown.get(sessionId) ?? []), recalled]);
      state.shown.set(sessionId, [...texts].slice(-MOST_SHOWN));
    },
    reported: parts.reports.addPrompt,
    /** Reads the session's journal once. */
    hydrate(sessionId: string): Promise<void> {
      const session = sessions.restore(sessionId);
      const read = async (): Promise<void> => {
        await hydrate(state, session);
        await decide(state, session);
      };
      return run(state, session, read, true);
    },
    /** True once nodes cover every turn offered before; false on failure. */
    compactTail: (sessionId: string): Promise<boolean> => compactTail(state, sessions.restore(sessionId), true),
    compactTails: (): Promise<void> => compactTails(state),
    async close(): Promise<void> {
      state.closed = true;
      for (const { idle } of sessions.all()) if (idle !== null) clearTimeout(idle);
      if (config.llm !== 'off') await compactTails(state);
      else await Promise.all(sessions.all().map((session) => session.serial(async () => {})));
    },
  };
}

function run(
  { taskQueue, sessions }: State,
  session: Session,
  work: () => Promise<void>,
  passes = false,
): Promise<void> {
  return taskQueue.run('ingest', () => sessions.run(session, work, passes));
}

async function notice(state: State, sessionId: string, project: string): Promise<void> {
  const { sessions, config } = state;
  if (sessions.has(sessionId)) return;
  sessions.restore(sessionId).project = project;
  if (config.llm === 'off' || project === '') return;
  const waiting = sessions.all().filter(({ buffer }) => buffer.some((turn) => turn.project === project));
  const evicted = sessions.evictedWithTurns(project).map(sessions.restore);
  await Promise.all([...waiting, ...evicted].map((session) => compactTail(state, session, true)));
  state.modelUpgrades.release();
}

function offer(state: State, { formerId, ...turn }: CapturedTurn): void {
  const { turnRegistry, log, sessions } = state;
  if (state.crashMarks.isSkipped(turn.turnId)) return;
  const others = [...(turn.unfinishedIds ?? []), ...(formerId === undefined ? [] : [formerId])];
  // Removed by the user under that id, or on its way to the journal.
  if (others.some((id) => turnRegistry.isReserved(id) && !turnRegistry.isRecorded(id))) return;
  if (!turnRegistry.reserve(turn.turnId)) return;
  const chars = turn.messages.reduce((sum, message) => sum + message.content.length, 0);
  if (state.pendingChars > 0 && state.pendingChars + chars > PENDING_CHARS) {
    turnRegistry.release(turn.turnId);
    log.warn('write queue is full; a turn will be captured later', { sessionId: turn.sessionId });
    return;
  }
  state.pendingChars += chars;
  const session = sessions.restore(turn.sessionId);
  const leave = (): void => {
    state.pendingChars -= chars;
  };
  void run(state, session, async () => {
    const form = await ingest(state, session, turn, formerId).finally(leave);
    if (form === null) return;
    state.pendingChars += chars;
    // Stored after callers that wait for these captures have continued: they only need the turn to be known.
    const work = async () => void (await store(state, session, form, true));
    void run(state, session, () => state.crashMarks.during('read', [form], work)).finally(leave);
  });
}

/** @returns the turn where it is another form of a known one, and still has to be stored */
async function ingest(
  state: State,
  session: Session,
  captured: CapturedTurn,
  formerId?: string,
): Promise<CapturedTurn | null> {
  const { turnRegistry, crashMarks } = state;
  const release = (error: unknown): never => {
    turnRegistry.release(captured.turnId);
    throw error;
  };
  state.compiled ??= runInSlices(compileRules());
  await state.compiled;
  // It marks what it reads.
  await hydrate(state, session).catch(release);
  if (formerId !== undefined && (await isStoredAs(state, formerId, captured.key).catch(release))) {
    turnRegistry.addForm(captured.turnId, formerId);
    return null;
  }
  const read = async () => {
    const { unfinishedIds = [], ...own } = captured;
    const known = unfinishedIds.filter((id) => turnRegistry.getSession(id) === session.id);
    const marked = await inSlices(captured, state.reports.read(own));
    const turn = { ...marked, ...(known.length === 0 ? {} : { unfinishedIds: known }) };
    if (await recognize(state, session, turn)) return { form: turn, isNew: false };
    return { form: null, isNew: await store(state, session, turn, false) };
  };
  const { form, isNew } = await crashMarks.during('read', [captured], read).catch(release);
  if (isNew) await decide(state, session);
  return form;
}

/** Registers a turn that is known in another form. Where redaction changes the text, it is found when it is stored. */
async function recognize({ turnRegistry, getProject }: State, session: Session, turn: CapturedTurn): Promise<boolean> {
  if (turn.part !== undefined) return false;
  // Yield: a long history must not block running streams.
  await nextTick();
  return turnRegistry.recognize({ ...turn, project: getProject(turn.projectDir) || session.project }, readTurn(turn));
}

/** Whether a former version stored the turn that begins with this prompt under `turnId`, with what followed it. */
async function isStoredAs(state: State, turnId: string, key: string): Promise<boolean> {
  const sessionId = state.turnRegistry.getSession(turnId);
  if (sessionId === undefined) return false;
  const forms = state.turnRegistry.aliases(turnId);
  return (await readable(state, sessionId)).some((turn) => turn.key === key && forms.includes(turn.turnId));
}

/** @returns whether the session has another turn */
async function store(state: State, session: Session, turn: CapturedTurn, isForm: boolean): Promise<boolean> {
  const { turnRegistry, getProject, files, heardBy, shownText, toolRounds } = state;
  let stored: JournalTurn;
  let repeatedText: RepeatedText;
  try {
    if (!isForm && turnRegistry.isRecorded(turn.turnId)) return false;
    session.project = getProject(turn.projectDir) || session.project;
    const marks = await files.getMarks(turn);
    const { text, flow } = readTurnPart(turn, false);
    const repeated = await inSlices(turn, shownText.read(session.id, flow, text.user, turn.projectDir));
    const repeats = repeated.length === 0 ? {} : { repeats: repeated };
    const earlier = async () => joinParts(await readable(state, session.id), turnRegistry.canonicalId).turns;
    repeatedText = await findRepeatedText(turn, earlier);
    const heard = heardBy(session.id, turn.atMs);
    const found = await inSlices(turn, heard.findEchoes(text, turn.projectDir, repeatedText));
    const echoes = found === true || found.length > 0 ? { echoes: found } : {};
    const isAgain = repeatsMemory(text, state.shown.get(session.id) ?? []) || (await repeatsTurns(text, earlier));
    const recalled = isAgain ? { recalled: true as const } : {};
    const named = marks.length === 0 ? {} : { files: marks };
    const stamp = { project: session.project, ...named, ...echoes, ...recalled, ...repeats };
    if (turn.part !== undefined) {
      await toolRounds.ingest(turn, stamp);
      return false;
    }
    const appended = await toolRounds.append(turn, stamp);
    if (appended === null) return false;
    stored = appended;
  } catch (error) {
    turnRegistry.release(turn.turnId);
    throw error;
  }
  await inSlices(turn, take(state, session, stored, repeatedText, !stored.redacted));
  await state.facts.readTurn(readTurnPart(stored, false).text, stored);
  return true;
}

/** Reads a turn with a long message in slices. */
async function inSlices<T>({ messages }: Pick<CapturedTurn, 'messages'>, work: Steps<T>): Promise<T> {
  return messages.some(({ content }) => content.length > LONG_CHARS) ? runInSlices(work) : runAtOnce(work);
}

/** The records of a session without those that the process died of. */
async function readable({ journal, crashMarks }: State, sessionId: string): Promise<JournalTurn[]> {
  return (await journal.read(sessionId)).filter(({ turnId }) => !crashMarks.isSkipped(turnId));
}

/** Registers a durable turn and buffers it unless a node covers it. @param isRead  as shown text */
function* take(
  state: State,
  session: Session,
  stored: JournalTurn,
  repeats: RepeatedText,
  isRead: boolean,
): Steps<void> {
  const { files, heardBy, turnRegistry, turnReader, store } = state;
  const { text, flow } = readTurnPart(stored, false);
  yield;
  if (!isRead) yield* state.shownText.read(session.id, flow, text.user, stored.projectDir);
  files.noteProject(stored.projectDir, stored.atMs);
  yield* heardBy(session.id, stored.atMs).addTurn(text, stored.messages, stored.projectDir, repeats);
  // After an eviction the turns are known but may still lack a node.
  const isOwn = turnRegistry.record(stored, text) || isFirst(turnRegistry, session, stored.turnId);
  turnReader.keep({ ...text, turnId: turnRegistry.aliases(text.turnId)[0] ?? text.turnId });
  const { unfinishedIds = [] } = stored;
  if (isOwn) session.buffer = session.buffer.filter(({ turnId }) => !unfinishedIds.includes(turnId));
  // The importer writes the nodes of documents and imported turns.
  const isCaptured = stored.model !== DOCUMENT && stored.imported === undefined;
  if (isOwn && isCaptured && !turnRegistry.aliases(text.turnId).some(store.isSettled))
    session.buffer.push({ ...slimTurn(text), project: stored.project });
}

function isFirst(turnRegistry: TurnRegistry, session: Session, turnId: string): boolean {
  const isWaiting = session.buffer.some((turn) => turn.turnId === turnId);
  return !isWaiting && turnRegistry.canonicalId(turnId) === turnId && turnRegistry.getSession(turnId) === session.id;
}

async function hydrate(state: State, session: Session): Promise<void> {
  session.hydration ??= readJournal(state, session).catch((error: unknown) => {
    // Allow a retry once the disk works again.
    session.hydration = null;
    throw error;
  });
  await session.hydration;
}

async function readJournal(state: State, session: Session): Promise<void> {
  const { turnRegistry, crashMarks, toolRounds } = state;
  const isAgain = turnRegistry.session(session.id) !== undefined;
  const records = await readable(state, session.id);
  const restore = (part: JournalTurn): Promise<void> =>
    crashMarks.during('read', [part], async () => void toolRounds.restore(part));
  for (const record of records) if (record.part !== undefined) await restore(record);
  // Only now the other forms of the parts are known.
  const { turns, parts } = joinParts(records, turnRegistry.canonicalId);
  for (const part of parts) if (part.part === undefined) await restore(part);
  for (const [at, stored] of turns.entries()) {
    session.project = stored.project || session.project;
    if (stored.part === undefined) {
      await crashMarks.during('read', [stored], async () => {
        state.reports.noteCommands(stored);
        const repeats = await findRepeatedText(stored, () => turns.slice(0, at));
        await inSlices(stored, take(state, session, stored, repeats, false));
      });
    }
    // Yield: reading a long history must not block running streams.
    await nextTick();
  }
  await toolRounds.draftNodes(session.id);
  if (!isAgain) requeueDrafts(state, session);
}

/** After a restart, queues recent drafts again, per batch: its drafts are of one time and project. */
function requeueDrafts({ clock, catalogue, modelUpgrades }: State, session: Session): void {
  const since = new Date(clock.now() - UPGRADE_MS).toISOString();
  const own = catalogue.all().filter((node) => node.session_id === session.id && node.created_at >= since);
  const recent = own.filter((node) => isDraft(node) && !isImported(node)).toReversed();
  const batches = grouped(recent, ({ created_at, project }) => `${created_at} ${project}`);
  for (const drafts of batches.values()) modelUpgrades.add(drafts);
}

async function decide(state: State, session: Session): Promise<void> {
  armIdle(state, session);
  const overflow = decideCompaction(session.buffer.length, null, state.rule);
  if (overflow !== null) await compact(state, session, overflow.turns, overflow.reason);
  else if (needsReading(session.buffer.length, state.rule)) sense(state, session);
}

function armIdle(state: State, session: Session): void {
  if (session.idle !== null) clearTimeout(session.idle);
  if (state.isPatient || session.buffer.length === 0 || state.closed) return;
  const { idleMs } = state.config.compaction;
  const silentMs = state.clock.now() - (session.buffer.at(-1)?.atMs ?? 0);
  const waitMs = Math.min(idleMs, Math.max(0, idleMs - silentMs));
  session.idle = setTimeout(() => void compactTail(state, session), waitMs).unref();
}

/** One reading per session at a time, of the newest turn, in the background. */
function sense(state: State, session: Session): void {
  const turn = session.buffer.at(-1);
  if (session.sensing || state.closed || turn === undefined) return;
  session.sensing = true;
  const buffer = session.buffer.slice(-1 - SENSED, -1);
  void state.taskQueue.run('sensor', async () => {
    const reading = await state.topicDetector.detect({ sessionId: session.id, buffer, turn });
    session.sensing = false;
    void run(state, session, () => apply(state, session, turn, reading));
  });
}

async function apply(state: State, session: Session, turn: BufferedTurn, reading: TopicShiftReading): Promise<void> {
  const at = session.buffer.indexOf(turn);
  if (at < 0) return;
  const rule = state.rule;
  const decision = decideCompaction(at + 1, reading, rule);
  if (decision !== null) await compact(state, session, decision.turns, decision.reason);
  if (session.buffer.at(-1) !== turn && needsReading(session.buffer.length, rule)) sense(state, session);
}

async function compact(state: State, session: Session, count: number, reason: CompactionReason): Promise<void> {
  const { compactor, crashMarks, toolRounds, modelUpgrades, turnRegistry } = state;
  for (let left = Math.min(count, session.buffer.length); left > 0; ) {
    const next = session.buffer.slice(0, Math.min(left, state.rule.maxL1Buffer));
    const { project } = next[0] as BufferedTurn;
    // A folder may change in a session; a turn that a process died of, or that may continue, is compacted alone.
    const isElsewhere = (turn: BufferedTurn, at: number): boolean =>
      turn.project !== project || turn.atMs - (next[at - 1] ?? turn).atMs > APART_MS;
    const isAlone = (turn: BufferedTurn): boolean => turn.unfinished === true || crashMarks.isSuspect(turn.turnId);
    const isLeft = ({ turnId }: TurnText): boolean => turnRegistry.areAbandoned([turnId]);
    const isApart = isLeft(next[0] as BufferedTurn);
    const end = next.findIndex((turn, at) => isElsewhere(turn, at) || isAlone(turn) || isLeft(turn) !== isApart);
    const turns = end < 0 ? next : next.slice(0, Math.max(1, end));
    const before = session.before.findLast((turn) => !isLeft(turn));
    const batch = { sessionId: session.id, project, reason, turns, before };
    const marked = turns.map(({ turnId, atMs }) => ({ sessionId: session.id, turnId, atMs }));
    const drafts = await crashMarks.during('compact', marked, () =>
      compactor.draftNodes([batch], (fresh) => toolRounds.getChildren(fresh, turns)),
    );
    await compactor.takeTasks(drafts.nodes, batch);
    session.buffer = session.buffer.slice(turns.length);
    left -= turns.length;
    // The next turn follows none of these, and no brief tells them.
    if (isApart) continue;
    session.before = [...session.before, ...turns].slice(-MOST_BEFORE);
    if (!modelUpgrades.add(drafts.nodes)) await compactor.writeLocalBrief(batch, drafts);
  }
}

/** @param briefNow  write a rule-made brief at once: the next session cannot wait for the model */
async function compactTail(state: State, session: Session, briefNow = false): Promise<boolean> {
  let isDone = false;
  await run(state, session, async () => {
    await hydrate(state, session);
    const project = session.buffer.at(-1)?.project ?? '';
    const turns = session.buffer.filter((turn) => turn.project === project);
    if (briefNow && turns.length > 0 && !turns.some(({ turnId }) => state.crashMarks.isSuspect(turnId))) {
      const before = session.before.findLast(({ turnId }) => !state.turnRegistry.areAbandoned([turnId]));
      await state.compactor.writeLocalBrief({ sessionId: session.id, project, reason: 'forced', turns, before });
    }
    await compact(state, session, session.buffer.length, 'forced');
    state.modelUpgrades.release(session.id);
    isDone = true;
  });
  return isDone;
}

async function compactTails(state: State): Promise<void> {
  const { sessions } = state;
  await Promise.all(sessions.all().map((session) => compactTail(state, session)));
  for (const id of sessions.evictedWithTurns()) await compactTail(state, sessions.restore(id));
}

function prepare(state: State, sessionId: string, turnIds: readonly string[]): void {
  const { turnRegistry, sessions, toolRounds } = state;
  const wanted = new Set(turnIds.flatMap((turnId) => turnRegistry.aliases(turnId)));
  for (const id of new Set([sessionId, ...[...wanted].flatMap((turnId) => turnRegistry.getSession(turnId) ?? [])])) {
    const session = sessions.restore(id);
    void run(state, session, async () => {
      await hydrate(state, session);
      const last = session.buffer.findLastIndex((turn) =>
        turnRegistry.aliases(turn.turnId).some((turnId) => wanted.has(turnId)),
      );
      await compact(state, session, last + 1, 'forced');
      await toolRounds.draftNodes(id);
    });
  }
}
