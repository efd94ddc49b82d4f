import { runAtOnce } from '../../common/async.ts';
import { getQuotations, isRecord, toText } from '../../common/text.ts';
import {
  type CapturedMessage,
  type CapturedTurn,
  getSource,
  hasInterruption,
  isCleanOrigin,
  isContinuation,
  lowestOrigin,
  type Origin,
  readRefusal,
  readUserTexts,
  type SourcedText,
} from '../../common/turn.ts';
import type { JournalTurn, TurnPart, TurnText } from '../model/turn.ts';
import { imageMark } from '../text/content-type.ts';
import { type FlowText, repeatedLines, repeatedParagraphs } from '../text/repetition.ts';
import { type Block, contentText, digestText, findTexts, getBlocks, isText, stripInjected } from './content-blocks.ts';
import { DOCUMENT, documentText } from './documents.ts';
import { commandOrigin, isInside } from './shell-command.ts';

type Marked = CapturedTurn & Partial<Pick<JournalTurn, 'files' | 'echoes' | 'recalled' | 'origins' | 'repeats'>>;

/**
 * The readable text of a turn with the origin of each part. After a result from outside the project, everything that
 * the assistant writes in the turn is `external`, and so is each paragraph that repeats earlier external text.
 */
export const readTurn = (turn: Marked): TurnText => readTurnPart(turn, false).text;

type Reading = ReturnType<typeof newReading>;

function newReading(turn: Marked, tainted: boolean) {
  const { projectDir, model, origins: known = {} } = turn;
  const isDocument = model === DOCUMENT;
  const hasKnown = Object.keys(known).length > 0;
  return {
    projectDir,
    isDocument,
    /** From a file: neither the user nor the assistant wrote it in this conversation. */
    isCopy: isDocument || turn.imported === 'file',
    isUntyped: turn.untyped === true,
    getOrigin: (text: string): Origin | undefined => {
      const origin = hasKnown ? known[digestText(text)] : undefined;
      // Claude Code's hook also reports what a schedule, a task or another session says in place of the user.
      return origin === 'user' && (turn.untyped === true || getSource(text, false) === 'external') ? undefined : origin;
    },
    user: [] as string[],
    queued: [] as string[],
    parts: [] as TurnPart[],
    flow: [] as FlowText[],
    repeats: new Set(turn.repeats),
    echoes: new Set(turn.echoes === true ? [] : turn.echoes),
    uses: new Map<string, Block>(),
    tainted: tainted || turn.echoes === true,
  };
}

/** Reads a part of a turn. @param tainted  whether the preceding parts were, as is returned for the next one */
export function readTurnPart(turn: Marked, tainted: boolean) {
  const reading = newReading(turn, tainted);
  const { parts, flow, queued, isCopy } = reading;
  for (const message of turn.messages) {
    if (message.role === 'user')
      readUserMessage(message, reading, turn.merged === true && message === turn.messages[0]);
    else if (message.role === 'system') readSystemMessage(message, reading);
    else for (const block of getBlocks(message)) readAssistantBlock(block, reading);
  }
  const prompts = [...reading.user, ...queued];
  const user = prompts.join('\n\n');
  const isEchoed = parts.some(({ passages = [] }) => passages.some(({ origin }) => origin === 'external'));
  const origins: Origin[] = [...parts.map((part) => part.origin), ...(isEchoed ? ['external' as const] : [])];
  if (user !== '' || origins.length === 0) origins.push(isCopy || getQuotations(user) !== '' ? 'tool' : 'user');
  const more = {
    ...(queued.length > 0 ? { queued } : {}),
    ...(prompts.length > 1 ? { prompts } : {}),
    ...(isCopy ? { userOrigin: 'tool' as const } : {}),
    ...(turn.files ? { files: turn.files } : {}),
    ...(turn.recalled ? { recalled: turn.recalled } : {}),
    ...(turn.unfinished ? { unfinished: turn.unfinished } : {}),
    ...(reading.repeats.size > 0 ? { repeats: reading.repeats } : {}),
    ...(reading.echoes.size > 0 ? { echoes: reading.echoes } : {}),
  };
  const text: TurnText = { turnId: turn.turnId, atMs: turn.atMs, origin: lowestOrigin(origins), user, parts, ...more };
  return { text, tainted: reading.tainted, flow };
}

const SKILLS = new Set(['Skill', 'SlashCommand']);

/** @param isRest  the message began with the results of the turn before, which may have started a skill */
function readUserMessage(message: CapturedMessage, reading: Reading, isRest: boolean): void {
  const blocks = getBlocks(message);
  const uses = blocks.flatMap((block) =>
    block['type'] === 'tool_result' ? [reading.uses.get(toText(block['tool_use_id']))] : [],
  );
  const isSkill = uses.some((use) => SKILLS.has(toText(use?.['name'])));
  const all = findTexts(blocks);
  const texts = readUserTexts(all, {
    answers: isSkill || (isRest && hasInterruption(all)) ? 'skill' : uses.length > 0 ? 'tool' : null,
    isReported: (text) => reading.getOrigin(text) === 'user',
  });
  let at = 0;
  for (const block of blocks) {
    if (reading.isDocument) add(reading, { kind: 'assistant', origin: 'tool', tool: '', text: documentText(block) });
    else if (block['type'] === 'tool_result') readResult(block, reading);
    else if (block['type'] === 'image') reading.user.push(imageMark(block['source']));
    else if (isText(block)) {
      const own = texts[at++] ?? [];
      readTexts(reading.isUntyped ? own.map((each) => untyped(each, 'external')) : own, reading);
    }
  }
}

/** What was not queued cannot have been typed here. */
function untyped(each: SourcedText, source: 'external' | 'client'): SourcedText {
  return each.source === 'typed' && each.isQueued !== true ? { ...each, source } : each;
}

/** The client also says here what comes from elsewhere, and what was typed meanwhile. */
function readSystemMessage(message: CapturedMessage, reading: Reading): void {
  for (const own of readUserTexts(findTexts(getBlocks(message))))
    readTexts(
      own.map((each) => untyped(each, 'client')),
      reading,
    );
}

/** The text blocks of a user message that hold typed words, or stand for an earlier conversation. */
export function ownTexts(message: CapturedMessage): string[] {
  const blocks = getBlocks(message);
  const texts = blocks.filter(isText).map((block) => toText(block['text']));
  const read = readUserTexts(texts, { answers: blocks.length > texts.length ? 'tool' : null });
  return texts.filter((text, at) => isContinuation(text) || (read[at] ?? []).some(({ source }) => source === 'typed'));
}

/** The text blocks and results of a message, and commands as they were typed. */
export function findCandidates(message: CapturedMessage): string[] {
  return getBlocks(message).flatMap((block) => {
    if (block['type'] === 'tool_result') return [contentText(block['content'])];
    if (!isText(block)) return [];
    const [text = ''] = findTexts([block]);
    return [text, readUserTexts([text]).flat()[0]?.text ?? ''];
  });
}

function readTexts(texts: readonly SourcedText[], reading: Reading): void {
  for (const { source, text, command, isQueued } of texts) {
    if (source === 'typed') {
      if (command !== undefined && commandOrigin(command, reading.projectDir) === 'external') reading.tainted = true;
      (isQueued ? reading.queued : reading.user).push(text);
    } else if (source === 'client') {
      reading.flow.push({ by: 'shown', text });
    } else {
      // What a background task, another agent or an earlier conversation says may come from anywhere.
      const own = source === 'external' ? (reading.getOrigin(text) ?? source) : source;
      const kind = isContinuation(text) ? 'assistant' : 'tool_result';
      // What is said behind a summary is compared with it, as with what earlier turns read.
      if (own === 'external' && kind !== 'assistant') reading.tainted = true;
      const origin = reading.tainted ? 'external' : own;
      // A summary also repeats what was said before it.
      if (kind === 'tool_result') reading.flow.push({ by: 'shown', text });
      add(reading, { kind, origin, tool: source === 'tool' ? 'Bash' : '', text });
    }
  }
}

/** Claude Code's words where a subagent began in the background (2.1), whose report comes later. */
const LAUNCH =
  /^Async agent launched successfully\.[^\n]{0,300}\nagentId: \w{1,40} \(internal ID\b[^\n]{0,200}\nThe agent is working in the background\b/;
const LAUNCH_CHARS = 1_500;

/** Of a background task, which the client puts into a result where the model takes no system messages. */
const REPORT = /<system-reminder>\s{0,9}\[SYSTEM NOTIFICATION/;

function readResult(block: Block, reading: Reading): void {
  const use = reading.uses.get(toText(block['tool_use_id']));
  const tool = toText(use?.['name']);
  const whole = contentText(block['content']);
  const mayRefuse = block['is_error'] === true && typeof block['content'] === 'string' && REFUSABLE.has(tool);
  const refusal = mayRefuse ? readRefusal(whole) : null;
  readTexts(refusal?.typed ?? [], reading);
  const texts = refusal?.client ?? whole;
  // The client wrote it: the call did not run, or did not end.
  const isOwn = refusal !== null || isLaunch(use, texts);
  const origin = isOwn ? 'tool' : (reading.getOrigin(texts) ?? toolOrigin(use, reading.projectDir));
  if (origin === 'external' || REPORT.test(texts)) reading.tainted = true;
  // Also what looks injected: the file or program may have written it.
  if (!isCleanOrigin(origin)) reading.flow.push({ by: 'shown', text: texts });
  add(reading, { kind: 'tool_result', origin, tool, text: stripInjected(texts) });
}

function isLaunch(use: Block | undefined, text: string): boolean {
  const isAgent = use?.['name'] === 'Agent' || use?.['name'] === 'Task';
  const isAwaited = isRecord(use?.['input']) && use['input']['run_in_background'] === false;
  return isAgent && !isAwaited && text.length <= LAUNCH_CHARS && LAUNCH.test(text);
}

function readAssistantBlock(block: Block, reading: Reading): void {
  const type = toText(block['type']);
  const origin = reading.tainted ? 'external' : reading.isCopy ? 'tool' : 'assistant';
  if (isText(block)) {
    const text = stripInjected(toText(block['text']));
    reading.flow.push({ by: 'said', text });
    add(reading, { kind: 'assistant', origin, tool: '', text, ...findPassages(text, origin, reading) });
  } else if (type.endsWith('tool_use')) {
    reading.uses.set(toText(block['id']), block);
    const tool = toText(block['name']);
    const text = JSON.stringify(block['input'] ?? {});
    if (WRITERS.has(tool)) reading.flow.push({ by: 'wrote', text });
    if (LISTERS.has(tool)) reading.flow.push({ by: 'said', text });
    const isEcho = getMarks(text, reading).includes(true);
    add(reading, { kind: 'tool_use', origin: isEcho ? 'external' : origin, tool, text });
  } else if (type.endsWith('tool_result')) {
    reading.tainted = true;
    const text = contentText(block['content']);
    reading.flow.push({ by: 'shown', text });
    add(reading, { kind: 'tool_result', origin: 'external', tool: type, text });
  }
}

/** Runs of lines, where some only repeat what was read in the project or came from outside. */
function findPassages(text: string, origin: Origin, reading: Reading): Pick<TurnPart, 'passages'> {
  const { repeats, echoes } = reading;
  if (repeats.size + echoes.size === 0 || !isCleanOrigin(origin)) return {};
  const marks = getMarks(text, reading);
  const passages: { origin: Origin; text: string }[] = [];
  for (const [at, line] of repeatedLines(text, repeats).entries()) {
    const own = marks[at] === true ? 'external' : line.isRepeated ? 'tool' : origin;
    const last = passages.at(-1);
    if (last?.origin === own) last.text += `\n${line.text}`;
    else passages.push({ origin: own, text: line.text });
  }
  return { passages };
}

/** Of each line, whether its paragraph repeats what came from outside. */
function getMarks(text: string, { echoes, projectDir }: Reading): boolean[] {
  return echoes.size === 0 ? [] : runAtOnce(repeatedParagraphs(text, (shingle) => echoes.has(shingle), projectDir));
}

function add(reading: Reading, part: TurnPart): void {
  if (part.text !== '' || part.kind !== 'assistant') reading.parts.push(part);
}

const LISTERS = new Set(['TodoWrite', 'TaskCreate', 'TaskUpdate']);
const WRITERS = new Set(['Write', 'Edit', 'MultiEdit', 'NotebookEdit']);

/**
 * Tools whose errors begin with words of the client (`Exit code 1`, `<tool_use_error>`), so that no file, program or
 * server can begin one with the client's words for a refusal.
 */
const REFUSABLE = new Set([...WRITERS, 'Bash', 'ExitPlanMode']);

/** Built-in tools with a local result; every tool not listed here or below is external. */
const LOCAL = new Set([
  ...WRITERS,
  ...'TodoWrite TodoRead TaskCreate TaskUpdate TaskList TaskGet EnterPlanMode ExitPlanMode'.split(' '),
  ...'AskUserQuestion KillShell StructuredOutput ToolSearch'.split(' '),
]);

/** Local for paths inside the project. */
const READERS = new Set(['Read', 'NotebookRead', 'Grep', 'Glob', 'LS', 'LSP']);
const PATH_KEYS = ['file_path', 'notebook_path', 'path', 'filePath'];

/** Origin of a tool result. @param use  its `tool_use` block, undefined when missing */
export function toolOrigin(use: Block | undefined, projectDir: string | null): Origin {
  if (use === undefined || use['type'] !== 'tool_use') return 'external';
  const name = toText(use['name']);
  const input = (use['input'] ?? {}) as Block;
  if (LOCAL.has(name)) return 'tool';
  if (READERS.has(name)) return readsInside(name, input, projectDir) ? 'tool' : 'external';
  if (name === 'Bash' || name === 'PowerShell') return commandOrigin(toText(input['command']), projectDir);
  return 'external';
}

function readsInside(name: string, input: Block, projectDir: string | null): boolean {
  if (projectDir === null) return false;
  const named = PATH_KEYS.map((key) => toText(input[key])).filter((value) => value !== '');
  const pattern = toText(input['pattern']);
  if (name === 'Glob' && /^(?:\/|~|\.\.)/.test(pattern)) named.push(pattern);
  return named.every((value) => isInside(value, projectDir));
}
