import { runAtOnce } from '../../common/async.ts';
import { clip, escaped, neutralLine, oneLine, unquoted } from '../../common/text.ts';
import type { CapturedTurn } from '../../common/turn.ts';
import { attributedOrigin } from '../../memory/compaction/attribution.ts';
import { detailByRules, detectTopicShiftByRules, summarizeByRules } from '../../memory/compaction/rules-summary.ts';
import { endsStatement, getEnding } from '../../memory/compaction/supersede-rules.ts';
import { readFlow } from '../../memory/compaction/topic-detector.ts';
import { wordDrift } from '../../memory/compaction/topic-shift.ts';
import { readTurnState, repeatsMemory } from '../../memory/compaction/turn-state.ts';
import { hashVector } from '../../memory/embeddings/static-embedder.ts';
import { DEFAULT_ONTOLOGY } from '../../memory/facts/default-ontology.ts';
import { extractFacts } from '../../memory/facts/extract-facts.ts';
import { extractByRules } from '../../memory/facts/rules.ts';
import { createTranscriptReader } from '../../memory/ingest/claude-transcript.ts';
import { stripInjected, stripOwnBlocks } from '../../memory/ingest/content-blocks.ts';
import { chunkDocument } from '../../memory/ingest/documents.ts';
import { createExternalTextTracker, createRepeatedTextFinder } from '../../memory/ingest/external-text.ts';
import { touchedFiles } from '../../memory/ingest/file-references.ts';
import { redactTurn, slimTurn } from '../../memory/ingest/redact-turn.ts';
import { commandOrigin } from '../../memory/ingest/shell-command.ts';
import { taskChanges } from '../../memory/ingest/task-list.ts';
import { readTurn } from '../../memory/ingest/turn-trust.ts';
import { parseTurnLines } from '../../memory/ingest/turns-jsonl.ts';
import { withAbsoluteDates, withPassedDates } from '../../memory/model/dates.ts';
import { escapeHeadings, parseBriefFile, parseDocument, parseFrontMatter } from '../../memory/model/markdown.ts';
import { getParts, spokenText, type TurnText } from '../../memory/model/turn.ts';
import { renderTranscript } from '../../memory/models/prompts/transcript.ts';
import { containedShare } from '../../memory/recall/passages.ts';
import { hasInstructions } from '../../memory/recall/quarantine.ts';
import { asksExact, asksPast, namesCall, recallQuery } from '../../memory/recall/query.ts';
import { computeCoverage, weighTerms } from '../../memory/recall/relevance-filter.ts';
import { namedDate } from '../../memory/search/dates.ts';
import { asksWhen, tellsTime } from '../../memory/search/ranking.ts';
import { parseArchive, scrubLine } from '../../memory/storage/archive.ts';
import { getActions, getUrls } from '../../memory/text/actions.ts';
import { findShown, getModality } from '../../memory/text/content-type.ts';
import { contentTokens, getAnchors, getTags } from '../../memory/text/keywords.ts';
import { isNearDuplicate, isSameMatter } from '../../memory/text/paraphrase.ts';
import { repeatedOrigin } from '../../memory/text/repetition.ts';
import {
  findTask,
  getConcept,
  getValues,
  isAsking,
  isNoise,
  split,
  splitSentences,
} from '../../memory/text/sentences.ts';
import { readStateQuery } from '../../memory/text/state-query.ts';
import { findStatements } from '../../memory/text/statements.ts';
import { entityTokens, isPairedScript, tokenize } from '../../memory/text/tokenizer.ts';
import { typedText, withoutMarkup } from '../../memory/text/typed-text.ts';
import { createAssembler, createSseDecoder, messageFromJson } from '../../proxy/http/response.ts';
import { ConversationCache, parseConversation } from '../../proxy/wire/conversation.ts';
import { scanBody } from '../../proxy/wire/json.ts';
import { canonicalizeMessage, shapeMessage } from '../../proxy/wire/message.ts';
import { classifyApiError } from '../../proxy/wire/validate.ts';
import { createRedactor, findPrivateTexts } from '../../redact/index.ts';
import { getTurn, message } from './turns.ts';

/** Units that an attacker may repeat up to the longest text that Claude reads. */
export const UNITS: Readonly<Record<string, string>> = {
  hex: '0123456789abcdef',
  base64url: 'Zm9vYmFy_0-Q',
  dots: '.',
  dashes: '-',
  slashes: '/',
  colons: 'a:a:',
  pairs: 'a=b&',
  spaces: ' ',
  tabs: '\t',
  newlines: '\n',
  'blank lines': ' \n\t\n',
  words: 'no if is to set ',
  Hangul: '한',
  'Hangul words': '이제 사용 ',
  Han: '你好再见',
  quotes: '"',
  'escaped quotes': '\\"',
  brackets: '[{(',
  'closing brackets': ')}]',
  backticks: '`',
  fences: ' ```\r',
  'fenced lines': '```\n',
  tags: '<',
  'open tags': '<a ',
  'our tags': '<comet-cc-memory ',
  'private tags': '<private>',
  pipes: '|',
  digits: '1',
  dates: '2026-01-02 ',
  marks: 'á́',
  emoji: '👩‍👩‍👧',
  capitals: 'A_',
  sentences: 'Ok, we are. ',
  passwords: 'password is a1.',
  settings: 'KEY=a',
  statements: ';KEY=a',
  keys: 'eyJ.eyJ.',
  addresses: 'https://a:a@',
  begins: '-----BEGIN ',
  lists: '# - 1. ',
};
/** What stands before the repetition, so that a rule begins to match. */
export const LEADS = ['', 'The password is a1'];

/** Reads a text as the program does, through one of its functions. */
export type Read = (text: string) => unknown;

const redactor = createRedactor({ markKey: Buffer.alloc(32, 7) });

const result = (text: string): CapturedTurn =>
  getTurn('look', [
    message('assistant', [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: text } }]),
    message('user', [{ type: 'tool_result', tool_use_id: 'toolu_1', content: text }]),
    message('assistant', [{ type: 'text', text: 'Done.' }]),
  ]);
const said = (text: string): CapturedTurn => getTurn(text, [message('assistant', [{ type: 'text', text }])]);
const turnText = (text: string): TurnText => readTurn(said(text));
const answered = (text: string): TurnText => readTurn(result(text));
const body = (text: string): Buffer =>
  Buffer.from(
    JSON.stringify({ model: 'claude-opus-4-8', messages: [{ role: 'user', content: [{ type: 'text', text }] }] }),
  );

export const READERS: Readonly<Record<string, Read>> = {
  'redactor, own rules': (text) => redactor.text(text),
  'redactor, JSON': (text) => redactor.json(JSON.stringify({ token: text, text })),
  'redactor, in slices': (text) => redactor.inSlices.text(text),
  'private texts': findPrivateTexts,
  'redacted turn': (text) => redactTurn(said(`<private>a ${text}</private>`), redactor),
  'one line': (text) => [oneLine(text), escaped(text), clip(text, 100), unquoted(new SyntaxError(text))],
  'neutral line': (text) => neutralLine(text, 200),
  'turn of a tool result': answered,
  'turn of a prompt': turnText,
  'slim turn': (text) => [slimTurn(turnText(text)), getParts(spokenText(turnText(text)), 'user')],
  'injected text': (text) => [stripInjected(text), stripOwnBlocks(text)],
  'typed text': (text) => [typedText(text), withoutMarkup(text)],
  'command origin': (text) => commandOrigin(text, '/home/dev/shop'),
  'file references': (text) => touchedFiles(result(text)),
  'task changes': (text) => taskChanges(answered(text)),
  'turn with repeated external text': (text) => {
    const echoed = readTurn({ ...said(text), echoes: [1] });
    return [echoed, repeatedOrigin(text, [echoed], 'assistant')];
  },
  'external text': (text) => {
    const tracker = createExternalTextTracker();
    tracker.addText(text);
    return runAtOnce(tracker.findEchoes(turnText(text)));
  },
  'repeated text': (text) => runAtOnce(runAtOnce(createRepeatedTextFinder(text)).search(turnText(text))),
  chunks: (text) => chunkDocument(text),
  'imported lines': (text) => {
    const reader = createTranscriptReader('s', 0);
    for (const line of text.split('\n')) reader.line(line);
    return [tried(() => parseTurnLines(text, '')), reader];
  },
  'transcript of a text': (text) =>
    renderTranscript([turnText(text), answered(text)], { labels: new Map(), maxChars: 20_000 }),
  sentences: (text) => [split(text), splitSentences(text)],
  statements: findStatements,
  'signs of a sentence': (text) => [
    isAsking(text),
    isNoise(text, 'user'),
    isNoise(text, 'assistant'),
    getConcept(text),
  ],
  values: getValues,
  tokens: (text) => [tokenize(text), isPairedScript(text)],
  'entity tokens': entityTokens,
  keywords: (text) => [getAnchors(text), getTags(text, text, ['a-b']), contentTokens(text)],
  paraphrase: (text) => [isSameMatter(text, `${text} a`, 0.5), isNearDuplicate(text, `${text} a`)],
  'content type': (text) => [getModality([turnText(text)]), findShown(text)],
  actions: (text) => [getActions([answered(text)]), getUrls([answered(text)])],
  'hashed vector': (text) => hashVector(text, 64),
  'turn state of a prompt': (text) => readTurnState(turnText(text), turnText(text)),
  'turn state of a result': (text) => readTurnState(answered(text)),
  'repeated memory': (text) => [repeatsMemory(turnText(text), [text.slice(0, 400)]), findTask(text)],
  'topic shift': (text) => {
    const input = { sessionId: 's', buffer: [turnText(text)], turn: turnText(text) };
    return [detectTopicShiftByRules(input), readFlow(input), wordDrift(input.turn, input.buffer)];
  },
  summary: (text) => {
    const turns = [turnText(text), answered(text)];
    const summary = summarizeByRules({ project: 'p', turns, knownTags: [], brief: '' } as never);
    return [summary, detailByRules({ turns, summary: text })];
  },
  attribution: (text) => {
    const turn: TurnText = { ...turnText(text), origin: 'tool' };
    return [text, text.slice(0, 2_000), 'The port is 5433.'].map((each) =>
      attributedOrigin(each, [turn.turnId], [turn]),
    );
  },
  supersession: (text) => {
    const ending = getEnding('We use 5433 as port instead of 5432.');
    return [
      getEnding(text),
      getEnding(text.slice(0, 400)),
      ending !== null && endsStatement(ending, text.slice(0, 400)),
    ];
  },
  facts: (text) => {
    const turn = { user: text, assistant: text };
    const candidate = { concept: 'Work.Goal', value: text, polarity: 'asserted', evidence: text };
    return [extractByRules(turn), extractFacts({ ontology: DEFAULT_ONTOLOGY, turn, candidates: [candidate] })];
  },
  dates: (text) => [withAbsoluteDates(text, 0), withPassedDates(text, 0)],
  query: (text) => [recallQuery(text, [text]), asksPast(text), asksExact(text), namesCall(text)],
  'query terms': (text) => computeCoverage(weighTerms(text, new Map()), text),
  'query of a state': readStateQuery,
  'query of a time': (text) => [asksWhen(text), tellsTime(text), namedDate(text, 0)],
  passages: (text) => containedShare(text, text),
  instructions: hasInstructions,
  'node file': (text) => [
    parseDocument(text),
    parseDocument(`schema: 2\n\n## mem_20260101_000000_abcdef\n- a: ${text}`),
  ],
  'front matter': (text) => [parseFrontMatter(`---\nschema: 2\na: ${text}\n---\n`), parseBriefFile(text)],
  headings: escapeHeadings,
  archive: (text) => [
    tried(() => parseArchive(text)),
    tried(() => scrubLine(text, { ids: new Set(), turnIds: new Set(), isGone: () => false })),
  ],
  'event stream': (text) => {
    const decoder = createSseDecoder();
    for (let at = 0; at < text.length; at += 1_000) decoder.push(Buffer.from(text.slice(at, at + 1_000)));
    return decoder.push(Buffer.from('\n\n'));
  },
  'text deltas': (text) => deltas(text, (part) => ({ type: 'text_delta', text: part })),
  'input deltas': (text) => deltas(text, (part) => ({ type: 'input_json_delta', partial_json: part })),
  citations: (text) => deltas(text, (part) => ({ type: 'citations_delta', citation: { cited_text: part } })),
  'array deltas': (text) => deltas(text, (part) => ({ type: 'other_delta', citations: [part] })),
  message: (text) => messageFromJson(JSON.stringify({ type: 'message', content: [{ type: 'text', text }] })),
  request: (text) => [scanBody(body(text)), scanBody(Buffer.from(text))],
  conversation: (text) => parseConversation(body(text), new ConversationCache()),
  'shape of a message': (text) => {
    const one = { role: 'user', content: [{ type: 'text', text }] };
    return [canonicalizeMessage(one), shapeMessage(one)];
  },
  refusal: classifyApiError,
};

function deltas(text: string, getDelta: (part: string) => object): unknown {
  const assembler = createAssembler();
  const push = (data: object): void => assembler.push({ event: 'message', data: JSON.stringify(data) });
  push({ type: 'message_start', message: { content: [] } });
  push({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: [] } });
  for (let at = 0; at < text.length; at += 32) {
    push({ type: 'content_block_delta', index: 0, delta: getDelta(text.slice(at, at + 32)) });
  }
  return assembler.result();
}

function tried(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return error;
  }
}
