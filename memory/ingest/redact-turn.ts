import { runInSlices, type Steps } from '../../common/async.ts';
import { LruMap, memoize } from '../../common/map.ts';
import { isRecord, sha256, toText, trimEnd } from '../../common/text.ts';
import type { CapturedMessage, CapturedTurn, Origin } from '../../common/turn.ts';
import { DISTINCT, findPrivateTexts, isJson, type Redactor, stringLiterals } from '../../redact/index.ts';
import type { TurnText } from '../model/turn.ts';
import { elide } from '../models/prompts/transcript.ts';
import { contentText, digestText, getBlocks } from './content-blocks.ts';
import { DOCUMENT } from './documents.ts';
import { findCandidates, ownTexts } from './turn-trust.ts';

/** Tool traffic kept per part of a buffered turn; the model reads turns from the journal. */
const BUFFERED_TOOL_CHARS = 4_000;

/**
 * Redacts secrets and private spans, and hashes what is left.
 * @param readEarlier  the stored turns of the session: secrets with a mark in them are known, also after a restart
 */
export async function redactTurn(
  turn: CapturedTurn,
  redactor: Redactor,
  readEarlier: (sessionId: string) => Promise<readonly CapturedTurn[]> = async () => [],
): Promise<Omit<CapturedTurn, 'earlierPrivate'> & { readonly redacted: boolean }> {
  let redacted = false;
  const sessions = getSessions(redactor);
  const marked = sessions.has(turn.sessionId) ? new Map() : findMarks(await readEarlier(turn.sessionId));
  const { known, marks } = sessions.getOrCreate(turn.sessionId, () => ({ known: new Map(), marks: marked }));
  await runInSlices(collectKnown(turn, known));
  if (marks.size > 0) await runInSlices(collectMarked(turn, { known, marks }, redactor));
  const messages: CapturedMessage[] = [];
  const origins: Record<string, Origin> = { ...turn.origins };
  const given = turn.messages.map((each) => (turn.model === DOCUMENT ? each.content : withoutForeignTags(each)));
  const contents = [...given];
  // Also before the place that tells it is a secret.
  for (let found: string[] | null = null; found?.length !== 0; ) {
    const earlier = new Set(known.keys());
    for (const [at, content] of contents.entries()) contents[at] = await redactor.inSlices.json(content, known);
    found = [...known.keys()].filter((text) => !earlier.has(text));
  }
  for (const [at, message] of turn.messages.entries()) {
    const isRedacted = contents[at] !== given[at];
    redacted ||= isRedacted;
    // A hash of the original content would allow guessing a short secret.
    const content = (contents[at] ?? '').replaceAll(POWERLESS, '<');
    const own = isRedacted ? { role: message.role, content, sha256: sha256(content) } : message;
    messages.push(own);
    if (!isRedacted || turn.origins === undefined) continue;
    const before = findCandidates(message).map(digestText);
    for (const [at, text] of findCandidates(own).entries()) {
      const origin = turn.origins[before[at] ?? ''];
      delete origins[before[at] ?? ''];
      if (origin !== undefined) origins[digestText(text)] = origin;
    }
  }
  const { earlierPrivate: _, ...rest } = turn;
  return { ...rest, ...(turn.origins === undefined ? {} : { origins }), messages, redacted };
}

/** Between `<` and the name of a tag: a character of private use, taken out again. */
const POWERLESS = '<\ue0ff';
const PRIVATE_TAG = /<(?=(?:[\s/]|\\[nrtf]){0,17}private)/gi;

/** The tag is the user's: in what files, tools, the client and the assistant say it hides nothing. */
function withoutForeignTags(message: CapturedMessage): string {
  if (message.content.search(PRIVATE_TAG) < 0 || !isJson(message.content)) return message.content;
  const typed = new Set(message.role === 'user' ? ownTexts(message) : []);
  const parts: string[] = [];
  let at = 0;
  for (const { start, end, value } of stringLiterals(message.content)) {
    if (typed.has(value)) continue;
    parts.push(message.content.slice(at, start), message.content.slice(start, end).replace(PRIVATE_TAG, POWERLESS));
    at = end;
  }
  return [...parts, message.content.slice(at)].join('');
}

/** What topic detection and rule-made drafts need of a buffered turn. */
export function slimTurn(turn: TurnText): TurnText {
  const parts = turn.parts.map((part) => {
    return part.kind === 'assistant' ? part : { ...part, text: elide(part.text, BUFFERED_TOOL_CHARS) };
  });
  return { ...turn, parts };
}

const MAX_SESSIONS = 500;
const MAX_KNOWN = 400;
const MIN_SPAN_CHARS = 8;
const MIN_WORD_CHARS = 6;

interface Secrets {
  /**
   * Types of text that the user marked private in a session, and of secrets found in it, also redacted where they are
   * repeated. Kept in memory only; captured turns carry the earlier private texts of their conversation.
   */
  readonly known: Map<string, string>;
  /** Types of secrets of earlier runs, by their digests. */
  readonly marks: ReadonlyMap<string, string>;
}

const getSessions = memoize((_: Redactor) => new LruMap<string, Secrets>(MAX_SESSIONS));

const MARK = /\[REDACTED:(\w{1,30}):([0-9a-f]{8})\]/g;
/** In JSON text. */
const WORD = /[^\s"'`\\<>(){}[\],;|]{8,300}/g;

function findMarks(turns: readonly CapturedTurn[]): Map<string, string> {
  const texts = turns.flatMap(({ messages }) => messages.map(({ content }) => content));
  return new Map(texts.flatMap((text) => [...text.matchAll(MARK)].map(([, type = '', digest = '']) => [digest, type])));
}

function* collectMarked({ messages }: CapturedTurn, { known, marks }: Secrets, redactor: Redactor): Steps<void> {
  const words = new Set(messages.flatMap(({ content }) => content.match(WORD) ?? []));
  // Also the value of an assignment.
  const values = [...words].map((word) => word.slice(word.search(/[=:]/) + 1));
  for (const text of new Set([...words, ...values].map((each) => trimEnd(each, '.,:!?')))) {
    yield;
    const type = DISTINCT.test(text) ? marks.get(redactor.digest(text)) : undefined;
    if (type !== undefined) known.set(text, type);
  }
}

/** Commands of which the one word that they print is a secret. */
const SHOWS =
  /openssl rand|wg gen\w{3}|token_(?:hex|urlsafe)|randomBytes|pwgen|(?:printenv |echo "?\$\{?)\w{0,40}(?:KEY|TOKEN|SECRET|PASS|PWD)|auth (?:token|print-)|get-\w{1,9}-(?:token|value)|secrets? (?:versions access|show)|-decryption|vault (?:kv )?(?:get|read)|\bop (?:read|item get)|\bpass show|find-\w{1,9}-password|config:get|output -raw|\bcat [^|]{0,99}(?:master\.key|secret|token|passw)|(?:secret|token|passw|key)[^|]{0,200}\|[^|]{0,40}base64 -/i;

function* collectKnown(turn: CapturedTurn, known: Map<string, string>): Steps<void> {
  const typed: string[] = [];
  const shows = new Set<unknown>();
  for (const message of turn.messages) {
    if (message.role === 'user') typed.push(...ownTexts(message));
    for (const { id, input, tool_use_id, content } of getBlocks(message)) {
      if (isRecord(input) && SHOWS.test(toText(input['command']).slice(0, 1_000))) shows.add(id);
      const shown = shows.has(tool_use_id) ? contentText(content).trim() : '';
      if (DISTINCT.test(shown)) known.set(shown, 'secret');
    }
    yield;
  }
  for (const span of [...(turn.earlierPrivate ?? []), ...findPrivateTexts(typed.join('\n'))].flatMap(getSpans)) {
    known.delete(span);
    known.set(span, 'private');
  }
  for (const oldest of [...known.keys()].slice(0, -MAX_KNOWN)) known.delete(oldest);
}

/** The whole text, its lines and sentences, and words that look like identifiers. */
function getSpans(text: string): string[] {
  const spans = [text, ...text.split('\n'), ...text.split(/(?<=[.!?;])\s+|\n/)].map(trimPunctuation);
  const words = text.split(/[^\p{L}\p{N}_@./:=+-]+/u).map(trimPunctuation);
  return [
    ...spans.filter((span) => span.length >= MIN_SPAN_CHARS && /\s/.test(span)),
    ...words.filter((word) => word.length >= MIN_WORD_CHARS && /\d/.test(word)),
  ];
}

const trimPunctuation = (text: string): string => trimEnd(text.trim(), '.!?,:;');
