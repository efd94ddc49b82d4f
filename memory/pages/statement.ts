import { sha256, trimEnd } from '../../common/text.ts';
import { isCleanOrigin, type Origin } from '../../common/turn.ts';
import { assertsValue } from '../compaction/supersede-rules.ts';
import { isBundled, isGroup, isRedirect, type MemoryNode } from '../model/node.ts';
import { type SectionName, statementText, toSlug } from '../model/page.ts';
import { hasInstructions, isQuarantined } from '../recall/quarantine.ts';
import { isReminder } from '../tasks/trigger.ts';
import { getAreas } from '../text/keywords.ts';
import { findPerson, getValues, isAsking, isNoise, type PersonAttribute, STANDING } from '../text/sentences.ts';
import { contentTags } from '../text/tags.ts';
import { isPast, summaryParts } from '../text/validity.ts';

/** What one thing has one value of at a time; a value that names no person has no subject. */
export interface Attribute {
  readonly name: PersonAttribute['name'] | 'version' | 'environment' | 'value';
  /** Lower case; '' where the text itself is compared. */
  readonly subject: string;
}

/** What a node says that a page may take. */
export interface Candidate {
  /** Twelve hex digits, the same as long as node and text are. */
  readonly id: string;
  readonly nodeId: string;
  readonly text: string;
  readonly project: string;
  /** When it was said, ISO 8601. */
  readonly at: string;
  readonly origin: Origin;
  readonly section: SectionName;
  readonly scope: 'user' | 'project';
  readonly topic: string;
  /** Of an attribute that one thing has one value of at a time; null for others. */
  readonly attribute: Attribute | null;
  /** From when it no longer held, where a newer node says so. */
  readonly endedAt: string | null;
}

export const PROFILE = 'user_profile';
const PEOPLE = 'people';
const CONVENTIONS = 'conventions';
const LEAST_CHARS = 12;
const MOST_CHARS = 240;

const FIRST_PERSON = /^(?:i|my)\b/i;
const TASTE =
  /^(?:please )?(?:i (?:always |never |really |usually )?(?:prefer|like|love|hate|dislike|want (?:you to|all|my))\b|my (?:name|editor|shell|time ?zone|pronouns|preferred|favou?rite|native)\b|call me\b|(?:always |please )?(?:answer|reply|respond|write|speak)(?: to)? me (?:in|with)\b)/i;
const VERSION =
  /\b(?:version|upgrad\w+|downgrad\w+|node|python|java|go|rust|typescript|postgres\w*) (?:is |are |to |now ){0,3}v?\d+(?:\.\d+)*\b/i;
const ENVIRONMENT = /\b(?:staging|production|prod|environment|region|cluster|hosts?|url|endpoint|server|env)\b/i;
/** True for the moment, or of one task only. */
const PASSING =
  /\b(?:this (?:file|function|line|branch|commit|pr|error|test|time|one)|these|the (?:above|below|following)|here|today|yesterday|tomorrow|right now|for now|currently (?:failing|running|broken)|already|let'?s see|let me|i(?:'ll| will| am going to|'m going to))\b|[:…]$|^(?:no|yes|ok(?:ay)?|so|and|but|also|then|it|this|that|they|there|if|try|can you|could you|please (?:fix|add|check|run|look|make|change|update|write|create|implement|remove))\b/i;
/** Belongs to the work of its day: a request, an offer, a place in code, or code itself. */
const OF_THE_DAY =
  /\b(?:option [a-z\d]|i['’]d like to|i would like to|you can|now (?:shows|works|passes|correctly|properly)|etc|var(?:y|ies) by)\b|\.\w{1,10}:\d|:=|(?:^|\s)\/\/\s|[:;] \d+$/i;
/** What was done or found, as the assistant and tools tell it. */
const ACCOUNT = /\b(?:was|were|had|did|i|i['’](?:m|ve|ll))\b/i;
/** Tells an experience, sets no rule. */
const EXPERIENCE = /(?<!\b(?:is|are|be|gets?) )\b(?:always|never) (?:been|had|seen|saw|felt|thought|\p{L}+ed)\b/iu;
const CHOICE =
  /\b(?:decid\w+|agreed|chose|chosen|going with|go with|we(?:'ll| will)? (?:use|keep|stay|switch\w*|drop\w*|stick)|let'?s (?:use|keep|stay|switch|drop|stick|go)|we(?:'re| are) (?:using|dropping|switching|moving)|switch\w* (?:\S+ ){0,4}to|(?:replace|drop|dropped|retired) |no longer|instead of|rather than|must|never|always|prefer)\b/i;
const QUOTED_REPLY = /^“([^”]{0,300})”/;

/** Statements that pages may take, in order of the node; everything else stays an episode. */
export function getCandidates(node: MemoryNode): Candidate[] {
  if (node.project === '' || isRedirect(node) || isGroup(node) || isBundled(node) || isQuarantined(node)) return [];
  if (node.kind === 'tool') return [];
  const statements = new Map<string, NodeStatement>();
  for (const each of saidIn(node)) {
    const text = trimEnd(statementText(each.text), '.;');
    if (!statements.has(text)) statements.set(text, { ...each, text });
  }
  return [...statements.values()].flatMap((each) => getCandidate(node, each) ?? []);
}

interface NodeStatement extends Pick<Candidate, 'text' | 'origin' | 'endedAt'> {
  readonly isDecision: boolean;
  /** Chosen by the model that wrote the node. */
  readonly bucket?: string | undefined;
}

function saidIn(node: MemoryNode): NodeStatement[] {
  const wholeEnd = isPast(node) ? node.valid_to : null;
  const facts = node.facts.map(({ value: text, origin = node.origin, valid_to, bucket }): NodeStatement => {
    return { text, origin, isDecision: false, endedAt: valid_to ?? wholeEnd, bucket };
  });
  const getEnd = (text: string): string | null => facts.find((fact) => fact.text === text)?.endedAt ?? wholeEnd;
  const decisions = (node.decisions ?? []).flatMap(({ text, origin, closed, bucket }): NodeStatement[] =>
    closed?.as === 'dropped' ? [] : [{ text, origin, isDecision: true, endedAt: getEnd(text), bucket }],
  );
  const statements = summaryParts(node).flatMap(({ text, isUsers }): NodeStatement[] =>
    isUsers ? [{ text, origin: 'user', isDecision: false, endedAt: getEnd(text) }] : [],
  );
  return [...decisions, ...facts, ...statements];
}

function getCandidate(node: MemoryNode, statement: NodeStatement): Candidate | null {
  const { text, origin, isDecision, endedAt, bucket } = statement;
  if ((bucket !== undefined && !bucket.startsWith('topic:')) || isReminder(text)) return null;
  const attribute = getAttribute(text);
  const chosen = bucket === undefined ? '' : toSlug(bucket.slice('topic:'.length));
  const isChosen = chosen !== '' && isCleanOrigin(origin) && (chosen !== PROFILE || origin === 'user');
  const section = getSection(text, { origin, isDecision, attribute }) ?? (isChosen ? 'Decisions' : null);
  if (section === null || !isLasting(text, { attribute, origin }) || hasInstructions(text)) return null;
  const topic = isChosen ? chosen : getTopic(text, node, { origin, attribute, section });
  if (topic === null) return null;
  const id = statementId(node.node_id, text);
  const { node_id: nodeId, project, valid_from: at } = node;
  const scope = topic === PROFILE ? 'user' : 'project';
  return { id, nodeId, text, project, at, origin, section, attribute, endedAt, topic, scope };
}

/** Twelve hex digits. */
export const statementId = (nodeId: string, text: string): string => sha256(`${nodeId}\n${text}`, 12);

export function getAttribute(text: string): Attribute | null {
  const person = findPerson(text);
  if (person !== null) return person;
  if (!assertsValue(text)) return null;
  const name = VERSION.test(text) ? 'version' : ENVIRONMENT.test(text) ? 'environment' : 'value';
  return { name, subject: '' };
}

/** Null: no statement of a page. What came from outside is reported where it states a value, never adopted. */
function getSection(
  text: string,
  { origin, isDecision, attribute }: Pick<NodeStatement, 'origin' | 'isDecision'> & Pick<Candidate, 'attribute'>,
): SectionName | null {
  if (!isCleanOrigin(origin)) return attribute === null ? null : 'Reported';
  if (attribute !== null) return 'Values';
  if (origin !== 'user') return null;
  if (STANDING.test(text) || TASTE.test(text)) return 'Preferences';
  return isDecision && CHOICE.test(text) ? 'Decisions' : null;
}

/** A whole statement that can be understood months later. */
function isLasting(text: string, { attribute, origin }: Pick<About, 'attribute' | 'origin'>): boolean {
  if (text.length < LEAST_CHARS || text.length > MOST_CHARS || text.endsWith('…')) return false;
  if (isAsking(text) || isNoise(text, 'user') || /https?:\/\/\S{60}|```|\\n|[{}<>|]/.test(text)) return false;
  const [, reply] = QUOTED_REPLY.exec(text) ?? [];
  if (reply !== undefined || EXPERIENCE.test(text)) return false;
  if (attribute?.subject) return true;
  return !(PASSING.test(text) || OF_THE_DAY.test(text) || (origin !== 'user' && ACCOUNT.test(text)));
}

type About = Pick<Candidate, 'origin' | 'attribute' | 'section'>;

/** Null where the subject is not clear. */
function getTopic(text: string, node: MemoryNode, { origin, attribute, section }: About): string | null {
  const isOfPerson = attribute !== null && attribute.subject !== '';
  if (isOfPerson) return origin === 'user' && attribute.subject === 'i' ? PROFILE : PEOPLE;
  if (origin === 'user' && (TASTE.test(text) || FIRST_PERSON.test(text)) && section === 'Preferences') return PROFILE;
  const area = getAreas(text).find((each) => each !== 'bug');
  if (area !== undefined) return area;
  const words = text.toLowerCase();
  const tag = contentTags(node.topic_tags).find((each) => each.length > 2 && words.includes(each.toLowerCase()));
  if (tag !== undefined && toSlug(tag) !== '') return toSlug(tag);
  return section === 'Preferences' || getValues(text).length > 0 ? CONVENTIONS : null;
}
