import { setImmediate as nextTick } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { memoize } from '../../common/map.ts';
import { trimEnd } from '../../common/text.ts';
import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import type { Fact, MemoryNode, StatementRef } from '../model/node.ts';
import { getAnswers, type TurnText } from '../model/turn.ts';
import type { KnownStatement } from '../models/model.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import { getAnchors, topicTokens } from '../text/keywords.ts';
import { hasPairedScript, tokenize } from '../text/tokenizer.ts';
import { currentSummary, isClosed, isPast, summaryParts, toldBy } from '../text/validity.ts';

/** Nodes processed before yielding to the event loop. */
const NODES_PER_SLICE = 500;
/** Newest nodes of a project searched for known statements, and statements shown to a model. */
const MAX_SEARCHED_NODES = 1_000;
const MAX_KNOWN_STATEMENTS = 40;
const MIN_SHARED_TOPICS = 2;

/** Finds statements that newer ones supersede. */
export type Revisions = ReturnType<typeof createRevisions>;

export function createRevisions(catalogue: Pick<NodeRegistry, 'all'>) {
  return {
    /**
     * Returns everything to save: `fresh`, closed where newer nodes supersede it, and the older nodes it supersedes.
     *
     * @param named  per node of `fresh`, statements its writer names as superseded
     * @param turns  the turns of `fresh`: evidence for what the writer names
     */
    async apply(
      fresh: readonly MemoryNode[],
      named: readonly (readonly StatementRef[])[] = [],
      turns: readonly TurnText[] = [],
    ): Promise<readonly MemoryNode[]> {
      const changed = new Map(fresh.map((node) => [node.node_id, node]));
      const naming = new Map(fresh.map((node, at) => [node.node_id, getNaming(node, named[at] ?? [], turns)]));
      const close = (former: MemoryNode, next: MemoryNode): void => {
        const now = changed.get(former.node_id) ?? former;
        const closed = closeSuperseded(now, next, naming.get(next.node_id));
        if (closed !== now) changed.set(former.node_id, closed);
      };
      const ordered = fresh.toSorted((a, b) => a.valid_from.localeCompare(b.valid_from));
      for (const next of ordered) for (const former of ordered) close(former, next);
      const projects = new Set(fresh.map(({ project }) => project));
      const others = catalogue.all().filter(({ node_id: id, project }) => !changed.has(id) && projects.has(project));
      for (const [at, known] of others.entries()) {
        if (at % NODES_PER_SLICE === NODES_PER_SLICE - 1) await nextTick();
        for (const node of ordered) {
          close(known, node);
          close(node, known);
        }
      }
      return [...changed.values()];
    },

    /** Trusted statements of the project that these turns may supersede, most likely first. */
    knownStatements(project: string, turns: readonly TurnText[]): readonly KnownStatement[] {
      const said = turns.map((turn) => [turn.user, ...getAnswers(turn)].join('\n').slice(0, 20_000));
      const topicWords = new Set(said.flatMap(topicTokens));
      const turnIds = new Set(turns.map(({ turnId }) => turnId));
      const until = new Date(turns.at(-1)?.atMs ?? 0).toISOString();
      const isFormer = (node: MemoryNode): boolean => !isPast(node) && node.valid_from < until;
      const nodes = catalogue.all().filter((node) => node.project === project && isFormer(node));
      return nodes
        .slice(0, MAX_SEARCHED_NODES)
        .filter(({ turns: own }) => !own.some((turnId) => turnIds.has(turnId)))
        .flatMap((node) =>
          openFacts(node).flatMap(({ text, origin, fact }) => {
            const shared = sharedTopics(text, topicWords);
            if (shared === 0 || !isCleanOrigin(origin)) return [];
            return [{ nodeId: node.node_id, fact, text, date: node.valid_from.slice(0, 10), shared }];
          }),
        )
        .sort((a, b) => b.shared - a.shared)
        .slice(0, MAX_KNOWN_STATEMENTS)
        .map(({ shared: _, ...statement }) => statement);
    },
  };
}

/** Number of topics that `said` has too; 0 if too few to be about the same. */
function sharedTopics(text: string, topicWords: ReadonlySet<string>): number {
  const topics = topicTokens(text).filter((token) => token.length > 1 || /\P{ASCII}|\d/u.test(token));
  const shared = topics.filter((token) => topicWords.has(token)).length;
  return shared < Math.min(MIN_SHARED_TOPICS, topics.length) ? 0 : shared;
}

/** What the writer of a node names as superseded, and what the user said in its turns. */
type Naming = NonNullable<ReturnType<typeof getNaming>>;

function getNaming(node: MemoryNode, refs: readonly StatementRef[], turns: readonly TurnText[]) {
  if (refs.length === 0) return undefined;
  const own = turns.filter(({ turnId, origin, userOrigin }) => {
    return node.turns.includes(turnId) && userOrigin === undefined && origin !== 'external';
  });
  return { refs, userTopics: new Set(own.flatMap(({ user }) => topicTokens(user.slice(0, 20_000)))) };
}

interface Statement {
  readonly text: string;
  readonly origin: Origin;
  readonly polarity: Fact['polarity'];
  /** Index in the node's facts; null for a part of the summary or a decision that no fact repeats. */
  readonly fact: number | null;
}

function openStatements(node: MemoryNode): Statement[] {
  const parts = summaryParts(node).map(
    ({ text, isUsers }) => ({ text, origin: isUsers ? 'user' : node.origin }) as const,
  );
  const isFact = toldBy(node.facts);
  const rest = [...parts, ...(node.decisions ?? [])].filter(({ text }) => !isFact(text));
  return [
    ...openFacts(node),
    ...rest.map(({ text, origin }): Statement => ({ text, origin, polarity: 'positive', fact: null })),
  ];
}

/** Facts that are not superseded, each as one text. */
export function openFacts(node: MemoryNode): (Statement & { readonly fact: number })[] {
  return node.facts.flatMap((fact, at) => {
    if (isClosed(fact)) return [];
    const words = new Set(tokenize(fact.value));
    const isNamed = tokenize(fact.concept).every((token) => words.has(token));
    const text = isNamed ? fact.value : `${fact.concept}: ${fact.value}`;
    return [{ text, origin: fact.origin ?? node.origin, polarity: fact.polarity, fact: at }];
  });
}

/**
 * Closes the facts of `former` that `next` supersedes; a superseded statement without a fact becomes a closed fact, and
 * a node without open statements is closed as a whole. Returns the same node if nothing changes. A less trusted
 * origin never supersedes a more trusted one; what a writer names counts as the user's if the user spoke of it.
 */
export function closeSuperseded(former: MemoryNode, next: MemoryNode, naming?: Naming): MemoryNode {
  if (!isBefore(former, next)) return former;
  const refs = naming?.refs.filter(({ nodeId }) => nodeId === former.node_id) ?? [];
  const own = getEndings(next);
  if (refs.length === 0 && (own.length === 0 || !mayEnd(own, former))) return former;
  const closed = openStatements(former).filter(({ text, origin, fact }) => {
    if (own.some((ending) => isAtLeast(ending.origin, origin) && endsStatement(ending, text))) return true;
    if (!refs.some((ref) => ref.fact === null || ref.fact === fact)) return false;
    const by = sharedTopics(text, naming?.userTopics ?? new Set()) > 0 ? 'user' : next.origin;
    return isAtLeast(by, origin);
  });
  return closed.length === 0 ? former : withClosed(former, closed, next);
}

/** Carries the closed facts of replaced nodes over to their successor. */
export function withRevisionsOf(heir: MemoryNode, formers: readonly MemoryNode[]): MemoryNode {
  const own = formers.filter(({ turns }) => turns.some((turnId) => heir.turns.includes(turnId)));
  const closed = own.flatMap(({ facts }) => facts.filter(isClosed));
  const last = own.at(-1);
  if (closed.length === 0 || last === undefined) return heir;
  const isClosedBy = toldBy(closed);
  const open = heir.facts.filter((fact) => !isClosedBy(`${fact.concept}: ${fact.value}`));
  return closeIfSuperseded({ ...heir, facts: [...open, ...closed] });
}

/** Compares what the writer wrote, ignoring later supersession, links, parent and detail. */
export function isSameWork(before: MemoryNode, after: MemoryNode): boolean {
  if (before === after) return true;
  const kept = before.facts.length;
  return isDeepStrictEqual(asWritten(before, kept), asWritten(after, kept)) && after.facts.slice(kept).every(isClosed);
}

function asWritten(node: MemoryNode, facts: number): unknown {
  const { links: _, parent_node_id: __, depth_level: ___, kind: ____kind, ...rest } = node;
  const { valid_to: ____, superseded_by: _____, superseded_as: ______, ...whole } = rest;
  const { detailed_summary: _7, detailed_by: _8, detailed_origin: _9, ...written } = whole;
  const stated = node.facts.slice(0, facts).map(({ concept, value, polarity, evidence }) => {
    return { concept, value, polarity, evidence };
  });
  return { ...written, facts: stated };
}

function isBefore(former: MemoryNode, next: MemoryNode): boolean {
  if (former.node_id === next.node_id || isPast(former) || isPast(next) || former.pinned_from !== undefined)
    return false;
  if (former.project !== next.project || former.turns.some((turnId) => next.turns.includes(turnId))) return false;
  return former.valid_from < next.valid_from;
}

const isAtLeast = (origin: Origin, other: Origin): boolean => lowestOrigin([origin, other]) === other;

function withClosed(former: MemoryNode, closed: readonly Statement[], next: MemoryNode): MemoryNode {
  const end = { valid_to: next.valid_from, superseded_by: next.node_id };
  const places = new Set(closed.map(({ fact }) => fact));
  const facts = former.facts.map((fact, at) => (places.has(at) ? { ...fact, ...end } : fact));
  const added = closed
    .filter(({ fact }) => fact === null)
    .map(
      ({ text, origin, polarity }): Fact => ({
        concept: getAnchors(text).slice(0, 2).join(' or ') || 'statement',
        value: text,
        polarity,
        evidence: [...former.turns],
        origin,
        valid_from: former.valid_from,
        ...end,
      }),
    );
  return closeIfSuperseded({ ...former, facts: [...facts, ...added] });
}

function closeIfSuperseded(node: MemoryNode): MemoryNode {
  const closed = node.facts.filter(isClosed);
  if (closed.length < node.facts.length || currentSummary(node) !== null) return node;
  const last = closed.toSorted((a, b) => (a.valid_to ?? '').localeCompare(b.valid_to ?? '')).at(-1);
  return {
    ...node,
    valid_to: last?.valid_to ?? null,
    superseded_by: last?.superseded_by ?? null,
    superseded_as: 'revised',
  };
}

type SaidEnding = Ending & { readonly origin: Origin };

/** What the user's sentences end, and what the assistant says that it replaced. */
const getEndings = memoize((node: MemoryNode): readonly SaidEnding[] =>
  openStatements(node).flatMap(({ text, origin }): SaidEnding[] => {
    const ending = origin === 'user' || (origin === 'assistant' && DONE.test(text)) ? getEnding(text) : null;
    const { fresh = [], assertion = null } = ending ?? {};
    const mayEnd = origin === 'user' || fresh.length > 0 || (assertion?.isNew === true && assertion.kind === 'figure');
    return ending === null || !mayEnd ? [] : [{ ...ending, origin }];
  }),
);

/** What a sentence is about that gives something another value, in its words; '' for any other sentence. */
export function getChanged(text: string): string {
  const subject = getEnding(text)?.assertion?.subject ?? [];
  const words = text.match(WORD) ?? [];
  const changed = words.filter((word) => getUnits(word).some((unit) => subject.includes(unit)));
  return changed.map((word) => word.replace(/[.:]+$/, '')).join(' ');
}

/** Whether a sentence says which value an attribute of a named thing has. */
export function assertsValue(text: string): boolean {
  const assertion = getAssertion(getClaim(text, ENDING_RULES), ENDING_RULES);
  return assertion !== null && assertion.kind !== 'word' && assertion.subject.length > 0;
}

/** Cheap pre-check on the text of a node. */
function mayEnd(own: readonly Ending[], { summary, facts, decisions = [] }: MemoryNode): boolean {
  const allText = [
    summary,
    ...decisions.map(({ text }) => text),
    ...facts.flatMap(({ concept, value }) => [concept, value]),
  ];
  const text = allText.join(' ').toLowerCase();
  // A stem lacks at most the last letter of its word.
  const begins = (word: string): string => (word.length > 4 ? word.slice(0, -1) : word);
  return own.some(({ shared }) => shared.every((word) => text.includes(begins(word))));
}

/** How a sentence ends what others say: something is given up or replaced, or an attribute has a new value. */
interface Ending {
  /** Words that an ended statement has. */
  readonly shared: readonly string[];
  /** What is given up, and what comes instead. */
  readonly old: readonly string[];
  readonly fresh: readonly string[];
  readonly assertion: Assertion | null;
}

/** Whose attribute has which value. */
interface Assertion {
  readonly kind: 'figure' | 'path' | 'name' | 'word';
  readonly value: string;
  readonly subject: readonly string[];
  readonly attributes: readonly string[];
  /** Says that it changed. */
  readonly isNew: boolean;
}

/** Longer texts are pasted. */
const MAX_CHARS = 400;
const NAME = String.raw`(?:--?)?[\p{L}\p{N}_@][\p{L}\p{N}_@./:#+%-]*(?:\(\))?`;
const STOP =
  '(?:to|with|by|for|in|on|from|at|and|or|as|because|since|so|when|everywhere|any|now|is|are|was|durch|für|por|para|auf)';
/** Up to four words before a preposition. */
const TERM = `(?:(?:using|use|support for|our|port|version|der|die|das|den|el|la|los|las) )*((?!${STOP} )${NAME}(?: (?!${STOP}\\b)${NAME}){0,3})`;
const CHANGE =
  '(?:switch|mov|migrat|chang|go|convert|upgrad|downgrad|bump|rais|lower|increas|decreas|reduc|set|wechsel|cambia|migra|pasa)\\p{L}*';
/** The first term is given up, the second comes instead. */
const REPLACEMENTS = [
  '\\b(?:instead of|rather than|in place of|anstelle von|anstatt|statt|en (?:lugar|vez) de) TERM',
  ', (?:and )?not TERM(?=[.,;!]?$| (?:in|for|on) )',
  '\\b(?:replac|swap|substitut|ersetz|reempla|sustitu)\\p{L}* TERM (?:with|by|for|durch|por) TERM',
  `\\b${CHANGE} (?<about>.{0,60}?)\\b(?:from|von|de) TERM (?:to|auf|zu|nach|a) TERM`,
  '\\brenam\\p{L}* TERM (?:to|as|into) TERM',
  '(?<!\\S)TERM (?:is|was|has been|got) (?:now called|renamed)(?: to)? TERM',
  '\\bmov\\p{L}* (?:off|away from) TERM',
  '(?<!\\S)(?:drop(?:ped)?|removed?|ditch(?:ed)?|retired?|abandon(?:ed)?|g[eo]t rid of) TERM',
  '(?:代替|取代|而不是) ?TERM',
  `(${NAME}) ?대신 ?(${NAME})`,
].map((form) => new RegExp(form.replaceAll('TERM', TERM), 'iu'));
/** The object of a use, and what stands before "instead of", is what comes instead. */
const FRESH = new RegExp(
  `(?:\\buse|\\busing|\\busamos|\\bnehmen wir(?: jetzt)?|用) ?(${NAME})|(${NAME})(?: now| jetzt)?[, ]*$`,
  'giu',
);
/** All that the sentence says is given up. */
const NEGATION =
  /\bno (?:longer|more)\b|\b(?:stop(?:ped)?|quit) (?=\w+ing\b)|(?:n['’]t|\b(?:not|no|never))\b.*\bany ?(?:more|longer)\b|^never\b|\bnicht mehr\b|\bkeine?n?\b.*\bmehr\b|\bya no\b|\bdej\w+ de\b|不再|弃用|더 이상/iu;
export const NEGATIVE = /n['’]t\b|\b(?:not?|never|without|stop(?:ped)?|nicht|keine?n?|nunca)\b|不|没|않|안 /iu;
const NOW =
  /\b(?:now|from now on|instead|actually|correction|as of|jetzt|ab sofort|ahora)\b|现在|改为|改成|이제|\b(?:set|change|raise|lower|bump|increase|decrease|reduce|move|update|upgrade|downgrade|switche?)[ds]?\b.* to (?=\S+\W*$|\S+ \S+\W*$)/iu;
/** Orders a value: `make the free trial 7 days`. */
const ORDER =
  /^(?:(?:and|now|please|ok(?:ay)?|let's)[, ]+)*(?:make|set|mach\p{L}{0,2}|setz\p{L}{0,2}|pon\p{L}{0,2}) (?:the |our |die |den |das |el |la )?(\p{L}[^,;:.]{2,60}?)(?<!\b(?:of|in|at|by|for|with|than|first|last|next|top|least|most)) (?:(?:to|auf|en) )?(?=\d[^,;\s]*(?: \p{L}+)?(?:\W*$|[,;] | (?:instead|now|jetzt)\b))/iu;
/** Questions, guesses, plans, quotes, refusals, additions, and what somebody is doing. */
const DOUBT = [
  /[?？]\W*$|吗|까[.?]?$|^\s*>/u,
  /^\W*(?:should|shall|would|could|can|may|did|does|do(?! not|n)|is|are|was|were|has|have|will|why|how|what|when|where|which|who|whether)\b/i,
  /^\W*(?:(?:and|but|so|now|then|first|good|great|ok(?:ay)?)[,:]? )*(?:it|this|that|they|these|those|there|let me|let's (?:check|see|look)|i(?:['’]ll|['’]m| will| need| can| see)|looking|checking)\b/i,
  /\b(?:if|unless|would|could|might|may|maybe|perhaps|probably|suppos\w+|assum\w+|consider\w*|options?|propos\w+|suggest\w*|recommend\w*|think|wonder\w*|some ?day|eventually|next (?:year|month|quarter)|wenn|falls|vielleicht|könnten?|würden?|sollten?|si|quizás?|podríamos)\b|如果|也许|可能|要不要|만약/iu,
  /\b(?:says?|said|according to|wrote|claims?|rather not|reject\w*|decided against|ruled out|also|too|as well|auch|también)\b|也|도 /iu,
  /(?:n['’]t|\bnot|\bno need to|\bagainst|\bwithout)\b(?: \w+){0,2} (?:replac|drop|remov|switch|mov|migrat|chang|rais|lower|bump|renam|get rid)\w*/i,
];
const QUOTED = /["“”„«»「」『』][^"“”„«»「」『』]*\s[^"“”„«»「」『』]*["“”„«»「」『』]/gu;
const DONE = /\b(?:now|(?:replac|renam|mov|migrat|chang|switch|swapp|upgrad)ed)\b/i;
/** A request is an order, not a question. */
const POLITE =
  /^\W*(?:(?:please|ok(?:ay)?|yes|so|and)[, ]+)*(?:(?:can|could|would|will) you (?:please )?|please )(.*?)\??$/i;
const PLEASE = /[, ]+(?:please|pls|bitte|por favor)\W*$/i;
/** A plain word has to be the object of a verb, a name may follow a preposition. */
const USES_WORD =
  /^(?:us(?:e[sd]?|ing)|with|through|via|support\w*|needs?|requires?|wants?|ships?|on|nutzen|verwenden|mit|usamos|con|por)$/i;
const USES_NAME = /^(?:in|at|by|to|is|returns?|are|from|runs?|called|named|auf|über|ist|en|es)$/i;
const ARTICLE = /^(?:the|our|an?|version|port|den|die|das|el|la)$/i;
const COUPLED = /(?:,|\b(?:and|or|und|y))\s*$|^\s*(?:,\s*(?!(?:not|and) )[\p{L}\p{N}]|(?:and|or|und|y)\b|[+&])/iu;
const VALUE = new RegExp(
  `(?:(?<!\\p{L})(is|are|was|be|to|at|after|of|than|in|on|under|has|have|for|until|every|lasts?|takes?|holds?|allows?|auf|beträgt|ist|es|son|是|为|到)|[=:])(?= (?:(?:now|only|about|de|the|our|jetzt|ahora|port|version) )*([/~.#]{0,2}${NAME}))`,
  'giu',
);
const EQUALS = /^(?:is|are|was|be|beträgt|ist|es|son|是|为|[=:].*)$/i;
/** Verbs of what lasts; others say what somebody does. */
const LASTING =
  /[=:]|\b(?:is|are|was|be|set|chang\w+|rais\w+|lower\w*|bump\w*|increas\w+|decreas\w+|reduc\w+|mov\w+|updat\w+|upgrad\w+|downgrad\w+|switch\w*|listens?|runs?|lives?|expires?|starts?|begins?|keep|keeps|stor\w+|deploys?|points?|posts?|pin|lasts?|allows?|goes|has|have|holds?|takes?|retries|beträgt|ist|läuft|son|es)\b|[是为到]/i;

const stems = (list: string): ReadonlySet<string> =>
  new Set(
    list.split(' ').flatMap((word) => [word, `${word}d`, `${word}ed`, `${word}ing`].flatMap((each) => tokenize(each))),
  );
const LIGHT = stems(
  'use run pin last decide agree remember prefer now actually correction please let go set change raise lower bump increase decrease reduce update upgrade ' +
    'downgrade move switch migrate swap replace rename drop remove get got rid stop never more longer any anymore instead rather ' +
    'than only just still again currently from on off listen live start begin keep have must need want make take do don n ' +
    'doesn isn aren won s t re ve ll ok yes all always everywhere today yesterday last week month year call i support wir ' +
    'nutzen verwenden nehmen jetzt nun ab sofort läuft laufen beträgt ist sind der die das den dem für mit auf und nicht kein keine ' +
    'mehr statt zu von durch über unser ya no ahora usamos usar el la los las de del para por con es son en lugar vez salen sale',
);
/** A sentence may leave them out. */
const ATTRIBUTES = stems(
  'port timeout ttl limit threshold version size count interval budget deadline level mode branch name path url host region ' +
    'default owner format retention length minimum maximum rate retries replica color engine policy strategy schedule service ' +
    'server app file setting value flag variable environment tool command',
);
const CJK_LIGHT =
  /不再|使用|现在|改用|代替|取代|而不是|我们|弃用|改为|改成|[用了的在从是为]|더 이상|이제|사용\p{L}*|쓰지|쓴다|않\p{L}*|대신|(?<=[\p{L}\p{N}])(?:를|을|은|는|이|가|에서|에|로|으로)(?=\s|$|[.,])/gu;
const UNIT =
  /(\d) ?(ms|s|sec\w*|min\w*|h|hours?|days?|weeks?|months?|years?|[kmgt]i?b|percent|times|秒|分钟|小时|天)(?![a-z])/gi;
const WORD = /(?:--?)?[\p{L}\p{N}_@][\p{L}\p{M}\p{N}_@./:#+%-]*/gu;
const MARKED = /\d|\p{L}[._/@:-]\p{L}|\p{Ll}\p{Lu}|^--/u;

/** What the rules look for; benchmarks change one at a time. */
export const ENDING_RULES = {
  replacements: REPLACEMENTS,
  negation: NEGATION,
  /** A statement of this form is not ended. */
  negative: NEGATIVE,
  now: NOW,
  doubt: DOUBT,
  quoted: QUOTED,
  polite: POLITE,
  /** What is given up must be used by the statement, after such a word, and not beside others. */
  usesWord: USES_WORD,
  usesName: USES_NAME,
  coupled: COUPLED,
  lasting: LASTING,
  except: /\b(?:but|only|except|unless)\b/i,
  attributes: ATTRIBUTES,
  maxChars: MAX_CHARS,
};
export type EndingRules = typeof ENDING_RULES;

/** How a sentence ends others, or null. */
export function getEnding(statement: string, rules: EndingRules = ENDING_RULES): Ending | null {
  const text = getClaim(statement, rules);
  const matches =
    text === '' ? undefined : rules.replacements.map((form) => form.exec(text)).find((match) => match !== null);
  if (matches !== undefined) {
    const { about = '' } = matches.groups ?? {};
    const [given = '', instead = ''] = matches.slice(matches.groups === undefined ? 1 : 2);
    const [head, tail] = [
      findClauseBefore(text.slice(0, matches.index)),
      text.slice(matches.index + matches[0].length),
    ];
    const before = [...`${tail} | ${head}`.matchAll(FRESH)].map(([, used = '', last = '']) => used || last);
    const [old, fresh] = [getWords(given), [instead, ...before].flatMap(getWords)];
    const scope = getWords(`${head} ${about} ${findClauseAfter(tail)}`).filter((word) => !fresh.includes(word));
    const isVague = old.length === 0 || rules.except.test(tail);
    return isVague ? null : { shared: [...new Set([...old, ...scope])], old, fresh, assertion: null };
  }
  const negation = rules.negation.exec(text);
  if (negation !== null) {
    const [head, tail] = [text.slice(0, negation.index), text.slice(negation.index + negation[0].length)];
    const shared = getWords(`${findClauseBefore(head)} ${negation[0]} ${findClauseAfter(tail)}`);
    return shared.length === 0 ? null : { shared, old: shared.length === 1 ? shared : [], fresh: [], assertion: null };
  }
  const assertion = getAssertion(text, rules);
  if (assertion === null) return null;
  const { kind, subject, attributes, isNew } = assertion;
  const isSure = isNew || (kind === 'figure' && subject.length > 0 && attributes.length > 0);
  return isSure ? { shared: subject, old: [], fresh: [], assertion } : null;
}

export function endsStatement(
  { shared, old, fresh, assertion }: Ending,
  former: string,
  rules: EndingRules = ENDING_RULES,
): boolean {
  const claim = getClaim(former, rules);
  if (claim === '' || rules.negative.test(claim)) return false;
  const words = new Set(getWords(claim));
  if (!shared.every((word) => words.has(word))) return false;
  if (assertion !== null) return isOther(assertion, getAssertion(claim, rules));
  const isSaid = fresh.length > 0 && fresh.every((word) => words.has(word));
  return !isSaid && (old.length === 0 || isUsed(old, claim, fresh.length > 0, rules));
}

/** Whether a text says that something is used, by itself. */
function isUsed(old: readonly string[], former: string, isReplaced: boolean, rules: EndingRules): boolean {
  const { usesWord, usesName, coupled } = rules;
  if (getEnding(former, rules)?.old.includes(old[0] ?? '') === true) return false;
  if (hasPairedScript(former)) return true;
  for (const { 0: raw, index } of former.matchAll(WORD)) {
    const term = trimEnd(former.slice(index).split(' ', old.length).join(' '), ',.;');
    if (getUnits(raw)[0] !== old[0] || getWords(term).length < old.length) continue;
    const before = (former.slice(0, index).match(WORD) ?? []).filter((word) => !ARTICLE.test(word)).at(-1) ?? '';
    const isName = MARKED.test(raw) || /^\p{Lu}/u.test(raw) || isReplaced || old.length > 1;
    const isCoupled = coupled.test(former.slice(0, index)) || coupled.test(former.slice(index + term.length));
    return !isCoupled && (usesWord.test(before) || (isName && (usesName.test(before) || /[:=]$/.test(before))));
  }
  return false;
}

/** Whether the same attribute of the same thing had another value. */
function isOther(next: Assertion, old: Assertion | null): boolean {
  if (old === null || old.kind !== next.kind || old.value === next.value) return false;
  if (old.subject.length !== next.subject.length) return false;
  const [few, many] = [next.attributes, old.attributes].toSorted((a, b) => a.length - b.length) as [string[], string[]];
  if (!few.every((word) => many.includes(word))) return false;
  return few.length === many.length || (next.isNew && next.subject.length > 0);
}

function getAssertion(claim: string, { lasting, attributes: known, now }: EndingRules): Assertion | null {
  const ordered = claim.replace(/^(?:done|fixed|ok(?:ay)?|erledigt|hecho)[,:;] /i, '').replace(ORDER, '$1 is now ');
  const text = findClauseAfter(ordered.replace(/^[^:,]*\b(?:from now on|correction|as of [^:,]*)[,:]? /i, ''));
  const spaced = text.replace(UNIT, '$1$2').replace(/(?<!\d)[=:](?=\S)|[是为到](?=\s?[\dA-Za-z])/g, ' $& ');
  if (!lasting.test(spaced)) return null;
  const last = [...spaced.matchAll(VALUE)]
    .flatMap(([sign, by, value = '']) => {
      const kind = getKind(value, by ?? sign);
      return kind === null ? [] : [{ kind, value: trimEnd(value, './:').toLowerCase() }];
    })
    .at(-1);
  if (last === undefined) return null;
  const own = getWords(last.value);
  const rest = getWords(spaced).filter((word) => !own.includes(word));
  const attributes = rest.filter((word) => known.has(word));
  const tail = spaced.slice(spaced.toLowerCase().lastIndexOf(last.value) + last.value.length);
  if (last.kind === 'word' && (attributes.length === 0 || getWords(tail).length > 0)) return null;
  return { ...last, subject: rest.filter((word) => !known.has(word)), attributes, isNew: now.test(ordered) };
}

function getKind(value: string, by: string): Assertion['kind'] | null {
  const isEqual = EQUALS.test(by);
  if (/^v?\d/.test(value)) return /^(?:in|under)$/i.test(by) ? null : 'figure';
  if (value.includes('/')) return isEqual || /^(?:in|to|at|under)$/i.test(by) ? 'path' : null;
  if (!isEqual && !/^to$/i.test(by)) return null;
  return MARKED.test(value) || /^[#\p{Lu}]/u.test(value) ? 'name' : 'word';
}

/** A number of a list is no value. */
const LIST = /: 1[.)](?: |$)/;

/** The sentence as a claim; '' if it is none. */
function getClaim(statement: string, { maxChars, quoted, polite, doubt }: EndingRules): string {
  if (statement.length > maxChars || LIST.test(statement)) return '';
  const bare = statement.replace(quoted, ' ').replaceAll('`', '').replace(/\s+/g, ' ').trim();
  const text = (polite.exec(bare)?.[1] ?? bare).replace(PLEASE, '');
  return doubt.some((sign) => sign.test(text)) ? '' : text;
}

/** Stems, names and figures, without words that say nothing of the subject. */
function getWords(text: string): string[] {
  const raw = text.replace(CJK_LIGHT, ' ').replace(UNIT, '$1$2').match(WORD) ?? [];
  return [...new Set(raw.flatMap(getUnits))].filter((unit) => !LIGHT.has(unit));
}

function getUnits(raw: string): readonly string[] {
  const bare = trimEnd(raw, './:()-');
  return MARKED.test(bare) ? [bare.toLowerCase()] : tokenize(bare);
}

/** Leaves out earlier clauses that do not limit the last one. */
function findClauseBefore(text: string): string {
  const clauses = text.split(/[,;!]\s|[.]\s/).filter((clause) => /[\p{L}\p{N}]/u.test(clause));
  return clauses.slice(0, -1).some((each) => /\b(?:in|on|for|at|when|during|bei|für|para)\b/i.test(each))
    ? text
    : (clauses.at(-1) ?? '');
}

function findClauseAfter(text: string): string {
  return (
    text.split(/[,;!]\s|[，；。]|[.](?:\s|$)|\s[—–(]|\s(?:because|since|so that|due to|weil|porque)\s/, 1)[0] ?? ''
  );
}
