import { createMutex } from '../common/async.ts';
import type { Config } from '../common/config.ts';
import { getOnly, type Problem } from '../common/errors.ts';
import { LruMap } from '../common/map.ts';
import { compareText, withoutQuotations } from '../common/text.ts';
import { isCleanOrigin } from '../common/turn.ts';
import type { Redactor } from '../redact/index.ts';
import type { Embedder } from './embeddings/embedder.ts';
import { findSimilarity } from './embeddings/static-embedder.ts';
import { type DropReason, type ExtractedFact, extractFacts, type FactTurn } from './facts/extract-facts.ts';
import { type Fact, isOfUser } from './facts/fact.ts';
import { type FactStore, getKey, type Similarity, type TurnSource } from './facts/fact-store.ts';
import { type Concept, conceptNamed, type Ontology } from './facts/ontology.ts';
import { extractByRules } from './facts/rules.ts';
import { fuzzySimilarity, isComparable } from './facts/similarity.ts';
import type { ServiceParts } from './ingest/parts.ts';
import type { TurnRegistry } from './ingest/turn-registry.ts';
import type { MemoryNode } from './model/node.ts';
import type { TurnText } from './model/turn.ts';
import type { ChangingFacts } from './pages/format-facts.ts';
import { hasInstructions } from './recall/quarantine.ts';
import type { ArchivedPage } from './storage/archive.ts';
import type { FactFiles } from './storage/fact-files.ts';
import { FactRegistry, type Scope } from './storage/fact-registry.ts';
import { isClosed } from './text/validity.ts';

/** A fact as commands and tools show it. */
export type FactView = Readonly<ReturnType<typeof getViews>[number]>;

export interface ConceptView extends Omit<Concept, 'examples'> {
  readonly name: string;
  /** Key of the project that adds it; '' for the user's. */
  readonly project: string;
}

interface Parts extends Pick<ServiceParts, 'clock' | 'log'> {
  readonly factFiles: FactFiles;
  readonly config: Pick<Config, 'facts'>;
  /** Absent where values are compared by their words. */
  readonly embedder?: Pick<Embedder, 'embed'>;
  readonly redactor: Pick<Redactor, 'text'>;
  readonly turnRegistry: Pick<TurnRegistry, 'session' | 'sessions' | 'areAbandoned'>;
  /** Told of facts that a person wrote into the file of a project, before they are dropped from it. */
  readonly onFade?: (project: string, facts: readonly Fact[]) => Promise<void>;
}

interface State extends Pick<Parts, 'clock' | 'turnRegistry' | 'redactor' | 'onFade'> {
  readonly scopes: FactRegistry;
  readonly vectors: Pick<ReturnType<typeof createVectorSimilarity>, 'prepare'> | null;
  /** Whether it was not said only in a turn that the user went back behind. */
  readonly counts: (fact: Fact) => boolean;
  /** Candidates of models that were dropped, since the start. */
  readonly dropped: Map<DropReason, number>;
}

interface Source {
  readonly project: string;
  readonly sessionId: string;
  readonly isPast?: boolean;
}

type SummaryBatch = Source & { readonly turns: readonly TurnText[] };

export type Facts = Awaited<ReturnType<typeof openFacts>>;

/** A session without a turn for this long is over. */
const SESSION_MS = 86_400_000;
const MARK = '[REDACTED:';
/** What may follow a value that a negation names in short: `redis` for `Redis for the cache`. */
const QUALIFIER = /^ (?:for|as|in|on|at|with|to|from|because|when|everywhere|instead)\b/;

/** Facts that fade: what holds for the user and for each project. Files are read before each change. */
export async function openFacts(parts: Parts) {
  const { factFiles: files, config, clock, embedder, log } = parts;
  const { similarity: threshold, compare } = config.facts;
  const isByMeaning = threshold < 1 && compare === 'meaning' && embedder !== undefined;
  const vectors = isByMeaning ? createVectorSimilarity(threshold, embedder) : null;
  const similarity = vectors ?? (threshold < 1 ? fuzzySimilarity(threshold) : null);
  const scopes = new FactRegistry({ files, clock, similarity });
  const { areAbandoned } = parts.turnRegistry;
  const counts: State['counts'] = ({ asserted, turn_id }) => asserted > 1 || !areAbandoned([turn_id]);
  const state: State = { ...parts, scopes, vectors, counts, dropped: new Map() };
  const mutex = createMutex();
  const exclusive = <T>(work: () => T | Promise<T>): Promise<T> =>
    mutex(async () => {
      await scopes.load();
      return work();
    });
  /** Never rejects: a turn is kept whatever becomes of its facts. */
  const keep = ({ sessionId }: Source, work: () => Promise<void>): Promise<void> =>
    exclusive(work).catch((error: unknown) => log.warn('facts of a turn were not kept', { sessionId, error }));
  await scopes.load();
  return {
    /** Reads what changed on disk. Never rejects. */
    refresh: () => exclusive(() => undefined).catch((error: unknown) => log.warn('facts could not be read', { error })),
    readTurn: (turn: TurnText, source: Source): Promise<void> => keep(source, () => readTurn(state, turn, source)),
    /** As `readTurn`, of history: what lasts is as weak as if it had been kept then. */
    readPast: (turn: TurnText, source: Source): Promise<void> =>
      keep(source, () => readTurn(state, turn, { ...source, isPast: true })),
    /** Keeps what a model found in turns that were read before. */
    readSummary: (batch: SummaryBatch, candidates: readonly unknown[]): Promise<void> =>
      keep(batch, () => readSummary(state, batch, candidates)),
    /** What facts of a project may be about, as it was read last; null before the first turn there. */
    getOntology: (project: string): Ontology | null => newestState(scopes, project)?.ontology ?? null,
    /** Drops what held for the session only. */
    endSession: (sessionId: string): Promise<void> =>
      exclusive(async () => {
        for (const { project } of scopes.near(null))
          await scopes.change(project, (store) => store.endSession(sessionId));
      }),
    /** Removes facts whose newest evidence is in these turns. */
    forgetTurns: (turnIds: ReadonlySet<string>): Promise<void> => exclusive(() => scopes.removeTurns(turnIds)),
    /** The user's and those of a project, by concept, the most salient first; null: of every project. */
    list: (project: string | null) =>
      exclusive(() => ({ facts: listed(state, project).filter(state.counts), problems: scopes.problems() })),
    /** What facts may be about: the user's concepts, and those that projects add. */
    concepts: (): Promise<readonly ConceptView[]> => exclusive(() => getConcepts(state)),
    /** By id, unambiguous prefix, or last six characters. @throws CometError `not_found`, `ambiguous_id` */
    find: (prefix: string, project: string | null) => exclusive(() => resolveFact(prefix, listed(state, project))),
    /**
     * Erases facts by id, or all of a concept, of a project and of the user; null: everywhere.
     * @throws as `find`; nothing is changed
     */
    forget: (inputs: readonly string[], project: string | null): Promise<readonly FactView[]> =>
      exclusive(async () => {
        const all = listed(state, project);
        const removals = inputs.flatMap((name) => {
          const ofConcept = all.filter(({ concept }) => concept === name);
          return ofConcept.length > 0 ? ofConcept : [resolveFact(name, all)];
        });
        for (const { id, project: own } of removals) await scopes.change(own, (store) => store.forget(id));
        return removals;
      }),
    /** What may stand in a system channel, as it was read last; null where there is nothing. */
    current(project: string): ChangingFacts | null {
      const { ontology } = newestState(scopes, project) ?? {};
      const findViews = (of: 'facts' | 'closed'): FactView[] => {
        const views = scopes.near(project).flatMap((scope) => getViews(scope, state.redactor, scope.store[of]));
        return views.filter((fact) => state.counts(fact) && !hasInstructions(fact.value));
      };
      return ontology === undefined ? null : { ontology, facts: findViews('facts'), closed: findViews('closed') };
    },
    /** Writes files of an archive, see `FactRegistry.restore`. */
    restore: (pages: readonly ArchivedPage[], adds: boolean, keepsFiles = true): Promise<void> =>
      exclusive(() => scopes.restore(new Map(pages.map(({ name, text }) => [name, text])), adds, keepsFiles)),
    /** Files as they are, with the project of each, and whether all can be read. */
    texts: () =>
      exclusive(() => ({
        files: scopes.near(null).flatMap(({ project, text }) => (text === null ? [] : [{ project, text }])),
        isWhole: scopes.problems().length === 0,
      })),
    /** Changes what a person wrote into the file of a project; '' for the user's. */
    rewrite: (project: string, change: (text: string | null) => string | null): Promise<void> =>
      exclusive(() => scopes.rewrite(project, change)),
    problems: (): readonly Problem[] => scopes.problems(),
    /** Candidates of models that were dropped since the start, by reason. */
    dropped: (): Readonly<Record<string, number>> => Object.fromEntries(state.dropped),
    /** Writes decay that was not written yet. */
    close: (): Promise<void> =>
      exclusive(async () => {
        for (const scope of scopes.near(null)) await scopes.save(scope);
      }),
  };
}

/** Applies what rules find in a turn, once for each turn of the user. */
async function readTurn(state: State, turn: TurnText, source: Source): Promise<void> {
  const { ontology } = ((await state.scopes.of(source.project)) ?? (await state.scopes.of('')))?.state ?? {};
  if (ontology === undefined) return;
  const parts = saidIn(turn);
  const { facts } = extractFacts({ ontology, turn: parts, candidates: extractByRules(parts) });
  await apply(state, facts, { ...source, turnId: turn.turnId, atMs: turn.atMs });
}

/** Each candidate belongs to the first turn that has its evidence; what no turn has is dropped and counted. */
async function readSummary(state: State, batch: SummaryBatch, candidates: readonly unknown[]): Promise<void> {
  const { scopes, dropped } = state;
  const ontology = (await scopes.of(batch.project))?.state.ontology;
  if (ontology === undefined || candidates.length === 0) return;
  let left = candidates;
  for (const turn of batch.turns) {
    const parts = saidIn(turn);
    const extractions = left.map((candidate) => ({
      candidate,
      ...extractFacts({ ontology, turn: parts, candidates: [candidate] }),
    }));
    left = extractions.filter(({ facts }) => facts.length === 0).map(({ candidate }) => candidate);
    const facts = extractions.flatMap((each) => each.facts);
    const source = { turnId: turn.turnId, sessionId: batch.sessionId, project: batch.project, atMs: turn.atMs };
    if (facts.length > 0) await apply(state, facts, { ...source, isLate: true });
  }
  const texts = { user: '', assistant: '' };
  for (const [reason, count] of Object.entries(extractFacts({ ontology, turn: texts, candidates: left }).dropped))
    if (count > 0) dropped.set(reason as DropReason, (dropped.get(reason as DropReason) ?? 0) + count);
}

async function apply(
  state: State,
  newFacts: readonly ExtractedFact[],
  { project, isPast = false, ...turn }: TurnSource & Source,
) {
  // What is about the user holds in every project, and a file of one may lead the assistant to say it.
  const isOwn = ({ concept, origin }: ExtractedFact): boolean => origin === 'user' || !isOfUser(concept);
  const facts = newFacts.filter((fact) => isOwn(fact) && !(fact.value.includes(MARK) || hasInstructions(fact.value)));
  if (state.vectors !== null && facts.length > 0) {
    const existing = [...state.scopes.near(project)].flatMap(({ store }) => [...store.facts, ...store.closed]);
    const near = existing.filter(({ concept }) => facts.some((each) => each.concept === concept));
    await state.vectors.prepare([...facts, ...near].map(({ value }) => value));
  }
  for (const key of new Set(['', project])) {
    const own = facts.filter(({ concept }) => isOfUser(concept) === (key === ''));
    const source = isPast ? { ...turn, turnsSince: countTurnsSince(state, key, turn) } : turn;
    await state.scopes.change(
      key,
      (store) => {
        const over = endOldSessions(state, store, source.sessionId);
        const fresh = source.isLate ? own.filter((each) => !isReadFrom(store, each, source.turnId)) : own;
        return { over, ...store.applyTurn(withQualified(fresh, store.facts), source) };
      },
      async ({ over, ...changes }) => {
        const byHand = [...over, ...changes.evicted, ...changes.pruned].filter(({ turn_id }) => turn_id === '');
        if (byHand.length > 0) await state.onFade?.(key, byHand);
        return over.length > 0 || Object.values(changes).some(({ length }) => length > 0);
      },
    );
  }
}

/** Turns of other sessions that began later, in a project; in every one where it is ''. */
function countTurnsSince({ turnRegistry }: State, project: string, { sessionId, atMs }: TurnSource): number {
  let turns = 0;
  for (const [id, session] of turnRegistry.sessions()) {
    const isNear = project === '' || session.project === project;
    if (id !== sessionId && isNear && session.firstAtMs > atMs) turns += session.turns;
  }
  return turns;
}

/** Rules found it in the turn already. */
function isReadFrom({ facts, closed }: FactStore, { concept, value, polarity }: ExtractedFact, turnId: string) {
  return (polarity === 'asserted' ? facts : closed).some(
    (fact) => fact.concept === concept && fact.turn_id === turnId && getKey(fact.value) === getKey(value),
  );
}

function newestState(scopes: FactRegistry, project: string): Scope['state'] | undefined {
  const near = scopes.near(project).toSorted((one, other) => compareText(one.project, other.project));
  return near.at(-1)?.state;
}

function endOldSessions({ turnRegistry, clock }: State, store: FactStore, ownId: string): readonly Fact[] {
  const lastMs = new Map<string, number>();
  for (const { session_id: id, valid_from: from } of store.facts) {
    const knownMs = Math.max(lastMs.get(id) ?? 0, turnRegistry.session(id)?.lastAtMs ?? 0);
    if (id !== ownId) lastMs.set(id, Math.max(knownMs, Date.parse(from)));
  }
  const over = [...lastMs].filter(([, atMs]) => clock.now() - atMs > SESSION_MS);
  return over.flatMap(([id]) => store.endSession(id));
}

/** `project`: key of its project; '' for the user's, in every project. */
function getViews({ state, store, project }: Scope, redactor: Pick<Redactor, 'text'>, facts = store.facts) {
  return facts.map((fact) => {
    const { label, persistence_class } = conceptNamed(state.ontology, fact.concept) as Concept;
    const texts = { value: redactor.text(fact.value), evidence: redactor.text(fact.evidence) };
    return { ...fact, ...texts, project, label, persistence_class };
  });
}

function listed({ scopes, redactor }: State, project: string | null): FactView[] {
  return scopes
    .near(project)
    .flatMap((scope) => getViews(scope, redactor))
    .sort((one, other) => compareText(one.concept, other.concept) || other.salience - one.salience);
}

async function getConcepts({ scopes }: State): Promise<ConceptView[]> {
  const user = await scopes.of('');
  const all = [...(user === null ? [] : [user]), ...scopes.near(null)];
  const views = new Map<string, ConceptView>();
  for (const { project, state } of all) {
    for (const [name, { examples: _, ...concept }] of Object.entries(state.ontology.concepts)) {
      const isOfUser = user !== null && conceptNamed(user.state.ontology, name) !== null;
      const key = isOfUser ? name : `${project} ${name}`;
      if (!views.has(key)) views.set(key, { name, project: isOfUser ? '' : project, ...concept });
    }
  }
  return [...views.values()].sort((one, other) => compareText(one.name, other.name));
}

function resolveFact(prefix: string, all: readonly FactView[]): FactView {
  const fits = (id: string): boolean => id.startsWith(prefix) || (prefix.length >= 6 && id.endsWith(prefix));
  const fitting = all.filter(({ id }) => prefix !== '' && fits(id));
  const exact = fitting.filter(({ id }) => id === prefix);
  const none = `no fact ${prefix}; see comet-cc facts ls`;
  return getOnly(exact.length > 0 ? exact : fitting, none, `${prefix} fits several facts; give more of the id`);
}

/** What the user typed, and what the assistant says of its own; text from outside is in neither. */
export function saidIn({ user, prompts = [user], userOrigin, parts, recalled }: TurnText): FactTurn {
  const spoken = recalled === true ? [] : parts.filter(({ kind }) => kind === 'assistant');
  const own = spoken.flatMap(({ origin, text, passages = [{ origin, text }] }) => passages);
  const answer = own.filter(({ origin }) => isCleanOrigin(origin)).map(({ text }) => text);
  const typed = (userOrigin === undefined ? prompts : []).map(withoutQuotations);
  return { user: typed.join('\n\n'), prompts: typed, assistant: answer.join('\n\n') };
}

/** A negation also ends what says more of the same thing. */
function withQualified(extracted: readonly ExtractedFact[], facts: readonly Fact[]): ExtractedFact[] {
  return extracted.flatMap((each) => {
    if (each.polarity === 'asserted') return [each];
    const start = each.value.toLowerCase();
    const longer = facts.filter(({ concept, value }) => {
      const text = value.toLowerCase();
      return concept === each.concept && text.startsWith(start) && QUALIFIER.test(text.slice(start.length));
    });
    return [each, ...longer.map(({ value }) => ({ ...each, value }))];
  });
}

/** What holds of a node's statements, as one turn. */
export function getStatements(node: MemoryNode): TurnText {
  const open = node.facts.filter((fact) => !isClosed(fact));
  const saidBy = (speaker: 'user' | 'assistant'): string =>
    open.flatMap(({ origin = node.origin, value }) => (origin === speaker ? value : [])).join('\n\n');
  return {
    turnId: open[0]?.evidence[0] ?? node.turns.at(-1) ?? '',
    atMs: Date.parse(node.valid_from),
    origin: node.origin,
    user: saidBy('user'),
    parts: [{ kind: 'assistant', origin: 'assistant', tool: '', text: saidBy('assistant') }],
  };
}

const MOST_VECTORS = 2_000;

/** Paraphrases by the cosine of the embedder's vectors; `prepare` computes those of values that `score` will get. */
function createVectorSimilarity(threshold: number, embedder: Pick<Embedder, 'embed'>) {
  const vectors = new LruMap<string, Float32Array>(MOST_VECTORS);
  return {
    threshold,
    score(one, other) {
      if (!isComparable(one, other)) return 0;
      return findSimilarity(vectors.peek(one) ?? null, vectors.peek(other) ?? null) ?? 0;
    },
    /** Without vectors only equal values are the same. */
    async prepare(values: readonly string[]): Promise<void> {
      const keys = [...new Set(values.map((value) => value.trim().toLowerCase()))];
      const fresh = keys.filter((key) => vectors.get(key) === undefined);
      const embeddings = fresh.length === 0 ? [] : await embedder.embed(fresh).catch(() => []);
      for (const [at, { vector }] of embeddings.entries()) vectors.set(fresh[at] as string, vector);
    },
  } satisfies Similarity & { prepare(values: readonly string[]): Promise<void> };
}
