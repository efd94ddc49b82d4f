import { setImmediate as nextTick } from 'node:timers/promises';
import { runInSlices } from '../common/async.ts';
import { grouped, slices } from '../common/map.ts';
import type { CapturedTurn } from '../common/turn.ts';
import type { Batch } from './compaction/compactor.ts';
import { type StartedAgent, saveSubagent } from './import-subagents.ts';
import { createExternalTextTracker } from './ingest/external-text.ts';
import {
  captureAgent,
  captureImported,
  type ImportedTurn,
  importLink,
  sessionProjects,
  turnContentHash,
  turnContentHashes,
  withSessionDirectory,
} from './ingest/imported-turn.ts';
import { redactTurn, slimTurn } from './ingest/redact-turn.ts';
import { createReports } from './ingest/reports.ts';
import { readTurn, readTurnPart } from './ingest/turn-trust.ts';
import { listTurnsBefore } from './library.ts';
import { isDraft, type MemoryNode } from './model/node.ts';
import type { JournalTurn, TurnText } from './model/turn.ts';
import { TOOL_CHARS } from './models/prompts/summary.ts';
import { countShown } from './models/prompts/transcript.ts';
import type { MemoryParts } from './parts.ts';
import { createShownText } from './text/repetition.ts';

export interface ImportTurnsRequest {
  /** Turns of one session, oldest first. */
  readonly turns: readonly ImportedTurn[];
  readonly imported: 'claude' | 'file';
  /** Counts without importing. */
  readonly dryRun: boolean;
  /** The turns to import; the others are read too, because a turn's id depends on the turns before it. */
  readonly isSelected?: (turn: ImportedTurn) => boolean;
  /** False for a turn from a place or time in which the user turned capture off; all are allowed without it. */
  readonly isAllowed?: (turn: ImportedTurn) => boolean;
  /** True for a turn that another session has, from which this one was forked. */
  readonly isCopy?: (turn: ImportedTurn) => boolean;
  /** Ids of turns that this run has seen in any session; the import adds its own. */
  readonly seen: Set<string>;
  /** Called with the estimated tokens before the model rewrites a batch; absent where drafts are enough. */
  readonly hasBudget?: (tokens: number) => boolean;
}

/** Counts of selected turns; `added`, `known` and `skipped` add up to `turns`. */
export const NO_TURNS = {
  turns: 0,
  added: 0,
  /** In memory before, imported or captured. */
  known: 0,
  /** Skipped, because the user had removed them or memory was paused. */
  skipped: 0,
  /** Transcripts of subagents that were added below turns. */
  agents: 0,
  /** Estimated tokens of the added turns. */
  tokens: 0,
  /** Estimated tokens that the model would read and write. */
  modelTokens: 0,
  /** Batches that the model rewrote, and those that it did not. */
  modelDone: 0,
  modelLeft: 0,
};
type Tally = typeof NO_TURNS;
export type ImportTurnsReport = Readonly<Tally>;

const CHARS_PER_TOKEN = 4;
/** Tokens of a model call besides the turns: instructions and output. */
const CALL_TOKENS = 3_000;
const NODE_TOKENS = 200;
/** Turns written at once: each write rewrites the whole file of the session. */
const TURNS_PER_WRITE = 100;
const CHARS_PER_WRITE = 8_000_000;

/** A turn to import, as it would be written. */
interface Fresh {
  readonly turn: Omit<JournalTurn, 'seq'>;
  readonly text: TurnText;
}

/** Imports past turns of one session, oldest first. */
export function createTurnImport(parts: MemoryParts): (request: ImportTurnsRequest) => Promise<ImportTurnsReport> {
  const { getProject, redactor, turnRegistry, files, pipeline, turnReader, store, removal } = parts;

  const isCovered = (turnId: string): boolean => turnRegistry.aliases(turnId).some(store.isSettled);

  /** Turns of a session, or the one it was forked from, by content hash; of imported ones those whose id is another now. */
  async function keptBefore(sessionId: string, { imported: by }: ImportTurnsRequest, now: readonly CapturedTurn[]) {
    const sayings = new Map<string, string[]>();
    if (turnRegistry.session(sessionId) === undefined) return sayings;
    await pipeline.hydrate(sessionId);
    const ids = new Set(now.map(({ turnId }) => turnId));
    const own = await turnReader.turns(sessionId);
    for (const { imported, ...turn } of [...(await listTurnsBefore(own[0], parts)), ...own]) {
      // The id hashes the project, and that of a folder changes where it is removed or joins another.
      if (imported !== undefined && (imported !== by || ids.has(turn.turnId) || !isCovered(turn.turnId))) continue;
      for (const contentHash of turnContentHashes(sessionId, readTurn(turn)))
        sayings.set(contentHash, [...(sayings.get(contentHash) ?? []), turn.turnId]);
    }
    return sayings;
  }

  async function asFresh(turn: CapturedTurn, own: Repeated & { readonly project: string }): Promise<Fresh> {
    const marks = files.getNames(turn);
    const stamped = { ...(await redactTurn(turn, redactor)), ...own, ...(marks.length === 0 ? {} : { files: marks }) };
    return { turn: stamped, text: readTurn(stamped) };
  }

  return async (request) => {
    const [first] = request.turns;
    const tally = { ...NO_TURNS };
    if (first === undefined) return tally;
    const { sessionId } = first;
    const projects = sessionProjects(request.turns, getProject);
    const turns = withSessionDirectory(request.turns, projects);
    const captures = await captureTurns({ ...request, turns }, projects[0] ?? '');
    const sayings = await keptBefore(sessionId, request, captures);
    const repetitionIn = traceRepetition();
    const batch: Fresh[] = [];
    const started: StartedAgent[] = [];
    const noteAgents = (turn: CapturedTurn, { agents = [] }: ImportedTurn): void =>
      void started.push(...agents.map((agent, index) => ({ turn, agent, index })));
    let chars = 0;
    const flush = async (): Promise<void> => {
      chars = 0;
      await writeTurns(batch.splice(0), request, tally, parts);
    };
    for (const [at, turn] of captures.entries()) {
      const past = request.turns[at] as ImportedTurn;
      const repeated = await repetitionIn(turn);
      if (request.isSelected?.(past) === false) continue;
      tally.turns += 1;
      const isHeld = turnRegistry.isRecorded(turn.turnId) && isCovered(turn.turnId);
      const isKnown = isHeld || request.seen.has(turn.turnId) || request.isCopy?.(past) === true;
      request.seen.add(turn.turnId);
      if (isKnown) {
        tally.known += 1;
        if (isHeld && request.isAllowed?.(past) !== false) noteAgents(turn, past);
        continue;
      }
      if (request.isAllowed?.(past) === false) {
        tally.skipped += 1;
        continue;
      }
      const project = projects[at] as string;
      if (batch[0] !== undefined && batch[0].turn.project !== project) await flush();
      const fresh = await asFresh(turn, { ...repeated, project });
      const contentHash = turnContentHash(sessionId, fresh.text);
      const same = sayings.get(contentHash)?.shift();
      if (removal.isGone(turn.turnId) || removal.isGone(contentHash)) tally.skipped += 1;
      else if (same !== undefined) {
        noteAgents({ ...turn, turnId: same }, past);
        tally.known += 1;
      } else {
        noteAgents(turn, past);
        chars += turn.messages.reduce((sum, { content }) => sum + content.length, 0);
        if (batch.push(fresh) >= TURNS_PER_WRITE || chars >= CHARS_PER_WRITE) await flush();
      }
      await nextTick();
    }
    await flush();
    for (const one of started) if (await saveSubagent(one, request, parts)) tally.agents += 1;
    if (request.hasBudget && !request.dryRun) await upgradeDrafts(sessionId, request.hasBudget, tally, parts);
    return tally;
  };
}

/** With the origins of what their subagents and their commands in the background brought. */
async function captureTurns({ turns, imported }: ImportTurnsRequest, project: string): Promise<CapturedTurn[]> {
  const captures = captureImported(turns, imported, project);
  const reports = createReports();
  for (const [at, turn] of captures.entries()) {
    for (const [index, agent] of (turns[at]?.agents ?? []).entries())
      reports.addAgent(captureAgent(agent, turn, index));
  }
  const known: CapturedTurn[] = [];
  for (const turn of captures) known.push(await runInSlices(reports.read(turn)));
  return known;
}

type Repeated = Pick<JournalTurn, 'repeats' | 'echoes'>;

/** What the assistant repeats of what earlier turns of the session read. */
function traceRepetition(): (turn: CapturedTurn) => Promise<Repeated> {
  const shown = createShownText();
  const heard = createExternalTextTracker();
  return async (turn) => {
    const { text, flow } = readTurnPart(turn, false);
    const repeats = await runInSlices(shown.read(turn.sessionId, flow, text.user, turn.projectDir));
    const echoes = await runInSlices(heard.findEchoes(text, turn.projectDir));
    const hasEchoes = echoes === true || echoes.length > 0;
    const whole = hasEchoes ? readTurn({ ...turn, echoes }) : text;
    await runInSlices(heard.addTurn(whole, turn.messages, turn.projectDir));
    return { ...(repeats.length === 0 ? {} : { repeats }), ...(hasEchoes ? { echoes } : {}) };
  };
}

/** Counts a batch of turns and, unless it is a dry run, writes them with their draft nodes and brief. */
async function writeTurns(
  batch: readonly Fresh[],
  request: ImportTurnsRequest,
  tally: Tally,
  { config, journal, turnRegistry, compactor, facts, files, toolRounds, turnReader }: MemoryParts,
): Promise<void> {
  const [first] = batch;
  if (first === undefined) return;
  for (const run of slices(batch, config.compaction.maxL1Buffer)) {
    const texts = run.map(({ text }) => text);
    tally.added += run.length;
    tally.tokens += getTokens(texts);
    tally.modelTokens += callTokens(texts);
  }
  if (request.dryRun) return;
  const added = batch.filter(({ turn }) => !turnRegistry.isRecorded(turn.turnId));
  await Promise.all(
    added.map(async ({ turn, text }) => {
      const record = await journal.append(turn);
      files.noteProject(turn.projectDir, turn.atMs);
      turnRegistry.record(record, text);
      turnReader.keep(text);
    }),
  );
  const { sessionId, project } = first.turn;
  for (const { text } of added) await facts.readPast(text, { sessionId, project });
  const asBatch = (turns: readonly TurnText[]): Batch => {
    const past = { atMs: turns.at(-1)?.atMs ?? 0, links: [importLink(request.imported)] };
    return { sessionId, project, reason: 'external', turns, past };
  };
  const turns = batch.map(({ text }) => slimTurn(text));
  const batches = slices(turns, config.compaction.maxL1Buffer).map(asBatch);
  const stoodIn = await compactor.draftNodes(batches, (nodes) => toolRounds.getChildren(nodes, turns));
  // The next start of this session or of its project shows it.
  await compactor.writeLocalBrief(asBatch(turns), stoodIn);
}

/** Has the model rewrite the drafts of a session, those of earlier imports too. */
async function upgradeDrafts(
  sessionId: string,
  hasBudget: (tokens: number) => boolean,
  tally: Tally,
  { catalogue, turnReader, modelUpgrades }: MemoryParts,
): Promise<void> {
  const own = catalogue.all().filter((node) => node.session_id === sessionId && isPastDraft(node));
  const batches = grouped(own, (node) => node.created_at);
  const byId = new Map((await turnReader.ofSession(sessionId)).map((text) => [text.turnId, text]));
  for (const nodes of batches.values()) {
    const turns = nodes.flatMap((node) => node.turns.flatMap((turnId) => byId.get(turnId) ?? []));
    if (hasBudget(callTokens(turns)) && (await modelUpgrades.upgrade(nodes))) tally.modelDone += 1;
    else tally.modelLeft += 1;
  }
}

const isPastDraft = (node: MemoryNode): boolean =>
  isDraft(node) && node.depth_level === 1 && node.source_links.includes(importLink('claude'));

function getTokens(turns: readonly TurnText[], maxToolChars?: number): number {
  return Math.ceil(turns.reduce((sum, turn) => sum + countShown(turn, maxToolChars), 0) / CHARS_PER_TOKEN);
}

function callTokens(turns: readonly TurnText[]): number {
  return getTokens(turns, TOOL_CHARS) + CALL_TOKENS + turns.length * NODE_TOKENS;
}
