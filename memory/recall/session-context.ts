import type { Config } from '../../common/config.ts';
import type { Scope } from '../../common/policy.ts';
import { countTokens } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import { cleanBriefLines, inShort, isTakenBack } from '../compaction/brief.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { getTaskLists } from '../ingest/turn-registry.ts';
import { withPassedDates } from '../model/dates.ts';
import { type Claim, isFromText, type MemoryNode, type StoredBrief } from '../model/node.ts';
import type { Tasks } from '../tasks/tasks.ts';
import { isClosed, isPast, toldBy } from '../text/validity.ts';
import { memoryLine } from './format-memory.ts';
import { handedItems, handOver, lastBrief, openTasks, openThreads, tells } from './handoff.ts';
import { atTime, readProjectState, shortStateLine, withoutAbandoned } from './project-state.ts';
import type { MemoryLine, OpenBlock, SessionContext } from './types.ts';

/** Passive lines and handed-over lines each get this budget. */
const BYTES_PER_TOKEN = 3.5;
const THREADS = '## Open in Other Sessions';
/** Of a model's brief, as titles of its memories name subjects. */
const DEEDS = 5;

/** The session's brief (or the project's latest), and the passive and pinned lines; with scope `session`, its own only. */
export type OpenContext = (sessionId: string, projectDir: string | null, scope?: Scope) => Promise<SessionContext>;

type Parts = Pick<ServiceParts, 'nodeFiles' | 'getProject' | 'clock' | 'turnRegistry' | 'catalogue' | 'log'> & {
  readonly config: Pick<Config, 'recall' | 'inject'>;
  readonly tasks: Pick<Tasks, 'questions'>;
  readonly library: Pick<OpenBlock, 'lines'>;
};

/** Memory for the system prompt; constant within a plan. */
export function createSessionContext(parts: Parts): OpenContext {
  const { config, nodeFiles, getProject, clock, turnRegistry, catalogue, tasks, library, log } = parts;
  function passive(project: string, isNear: (node: MemoryNode) => boolean): MemoryNode[] {
    return catalogue
      .all()
      .filter((node) => isNear(node) && isCleanOrigin(node.origin) && !isPast(node))
      .filter((node) => node.project === project || (node.pinned_in ?? []).includes(project))
      .filter((node) => node.recall_mode !== 'active' || (node.pinned_in ?? []).includes(project))
      .filter((node) => rank(node, project) < 0 || !turnRegistry.areAbandoned(node.turns))
      .toSorted((one, other) => rank(one, project) - rank(other, project))
      .slice(0, config.recall.passiveLines);
  }

  /** False if a fact of the claim's source turns has been superseded, or the user went back behind them. */
  function holds({ text, sources }: Claim): boolean {
    const nodes = sources
      .flatMap((turnId) => turnRegistry.aliases(turnId))
      .flatMap((turnId) => catalogue.nodesCovering(turnId));
    const facts = nodes.flatMap((id) => catalogue.get(id)?.facts.filter(isClosed) ?? []);
    return !isTakenBack({ text, sources }, turnRegistry) && !toldBy(facts)(text);
  }

  function current(brief: StoredBrief): StoredBrief {
    const active = brief.active
      .filter(holds)
      .map((claim) => ({ ...claim, text: withPassedDates(claim.text, clock.now()) }));
    return { ...brief, active, hints: brief.hints.filter(holds) };
  }

  return async (sessionId, projectDir, scope) => {
    const alone = scope === 'session';
    const project = getProject(projectDir);
    const questions = tasks.questions(sessionId, project).catch((error: unknown) => {
      log.warn('due tasks could not be read', { error });
      return [];
    });
    const own = await nodeFiles.readBrief(sessionId);
    const briefs = alone || project === '' ? [] : await recentBriefs({ catalogue, nodeFiles }, { project, sessionId });
    const shown = own ?? lastBrief(briefs, { project, sessionId });
    const start = { project, sessionId, nowMs: clock.now() };
    const all = alone || project === '' ? [] : catalogue.all().filter((node) => node.project === project);
    const near = withoutAbandoned(all, turnRegistry);
    const state = readProjectState(near);
    const isSettled = (line: string): boolean => state.settled.some((item) => tells(line, item));
    const clean = shown === null ? [] : cleanBriefLines(current(shown));
    const isModels = near.some((node) => node.session_id === shown?.session_id && node.author.by === 'model');
    const briefLines = (own === null ? inShort(clean, isModels ? DEEDS : 0) : clean).filter((line) => !isSettled(line));
    const most = config.inject.handoffNodes;
    const pinned = project === '' ? [] : passive(project, (node) => !alone || node.session_id === sessionId);
    const items = handedItems(state, { sessionId, most, told: briefLines }).filter(
      ({ node }) => !pinned.includes(node),
    );
    // Briefs tell what is open in other sessions only where nodes do not.
    const threads = items.length > 0 || alone ? [] : openThreads(briefs.map(current), { ...start, shown });
    const left = [...(alone ? [] : openTasks(getTaskLists(turnRegistry), start)), ...threads.map(({ text }) => text)];
    const open = left.length === 0 ? [] : [THREADS, ...left.map((text) => `- ${text}`)];
    const listed = new Set([...pinned, ...items.map(({ node }) => node)]);
    const handed = handOver(near, { project, sessionId, most: most - items.length });
    const others = handed.filter((node) => !listed.has(node));
    const maxBytes = config.recall.passiveTokens * BYTES_PER_TOKEN;
    const brief = [...(await questions), ...briefLines, ...open];
    const lines = [
      ...getLines(pinned, maxBytes),
      ...items.map(atTime(clock.now())).map(shortStateLine),
      ...getLines(others, maxBytes),
    ];
    const given = takeWithin(config.inject.systemTokens, [...brief, ...lines.map(({ text }) => text)], countTokens);
    const block = alone ? [] : library.lines({ project, sessionId, told: given });
    return { brief, lines, ...(block.length === 0 ? {} : { library: block }) };
  };
}

function takeWithin<T>(budget: number, items: readonly T[], measure: (item: T) => number): T[] {
  let left = budget;
  return items.filter((item) => {
    left -= measure(item);
    return left >= 0;
  });
}

function getLines(nodes: readonly MemoryNode[], maxBytes: number): MemoryLine[] {
  const lines = nodes.map((node) => memoryLine(node, null));
  return takeWithin(maxBytes, lines, ({ text }) => Buffer.byteLength(text));
}

function rank(node: MemoryNode, project: string): number {
  if (node.pinned_from !== undefined || (node.pinned_in ?? []).includes(project)) return -1;
  return ['HIGH', 'MED', 'LOW'].indexOf(node.importance);
}

const BRIEFS_TRIED = 6;

/** Reads briefs of the most recent sessions only, since a project may have thousands. */
export async function recentBriefs(
  { catalogue, nodeFiles }: Pick<ServiceParts, 'catalogue' | 'nodeFiles'>,
  { project, sessionId }: { readonly project: string; readonly sessionId: string },
): Promise<StoredBrief[]> {
  const ids = new Set<string>();
  for (const node of catalogue.all()) {
    if (node.project !== project || isFromText(node) || node.session_id === sessionId) continue;
    if (ids.add(node.session_id).size === BRIEFS_TRIED) break;
  }
  return (await Promise.all([...ids].map((id) => nodeFiles.readBrief(id)))).flatMap((brief) => brief ?? []);
}
