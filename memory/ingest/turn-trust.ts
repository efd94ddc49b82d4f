import path from 'node:path';
import { type CapturedTurn, lowestOrigin, type Origin } from '../../common/turn.ts';
import type { JournalTurn, TurnPart, TurnText } from '../model/turn.ts';
import { isContinuation } from '../text/compaction-summary.ts';
import { DOCUMENT, documentText } from './chunk-document.ts';
import { type Block, blocksOf, contentText, isClientText, stringOf, stripInjected } from './content-blocks.ts';

const SHELL_TAG = /<(bash-input|bash-stdout|bash-stderr|local-command-stdout|local-command-stderr)>/g;
/** Of a command: `! ls`, or `/context` with what the client printed. */
const SHELL = /^(?:\/[\w:-]{1,60}\s[\s\S]{0,400}?)?<(?:bash-|local-command-)/;

interface Reading {
  readonly projectDir: string | null;
  readonly isDocument: boolean;
  /** From a file: neither the user nor the assistant wrote it in this conversation. */
  readonly isCopy: boolean;
  readonly user: string[];
  readonly parts: TurnPart[];
  readonly uses: Map<string, Block>;
  tainted: boolean;
}

type Marked = CapturedTurn & Partial<Pick<JournalTurn, 'files' | 'echoes' | 'recalled'>>;

/**
 * The readable text of a turn with the origin of each part. After a result from outside the project, everything that
 * the assistant writes in the turn is `external`. A turn that repeats earlier external text is tainted from its start.
 */
export function readTurn(turn: Marked): TurnText {
  return readTurnPart(turn, false).text;
}

/** Reads a part of a turn. @param tainted  whether the preceding parts were; the result says it for the next part */
export function readTurnPart(turn: Marked, tainted: boolean): { text: TurnText; tainted: boolean } {
  const { projectDir, model } = turn;
  const isDocument = model === DOCUMENT;
  const isCopy = isDocument || turn.imported === 'file';
  const startsTainted = tainted || turn.echoes === true;
  const reading: Reading = {
    projectDir,
    isDocument,
    isCopy,
    user: [],
    parts: [],
    uses: new Map(),
    tainted: startsTainted,
  };
  for (const message of turn.messages) {
    if (message.role === 'system') continue;
    for (const block of blocksOf(message)) {
      if (message.role === 'user') readUserBlock(block, reading);
      else readAssistantBlock(block, reading);
    }
  }
  const user = reading.user.join('\n\n');
  const origins: Origin[] = reading.parts.map((part) => part.origin);
  if (user !== '' || origins.length === 0) origins.push(isCopy ? 'tool' : 'user');
  const more = {
    ...(isCopy ? { userOrigin: 'tool' as const } : {}),
    ...(turn.files ? { files: turn.files } : {}),
    ...(turn.recalled ? { recalled: turn.recalled } : {}),
  };
  const { parts, tainted: isTainted } = reading;
  const text = { turnId: turn.turnId, atMs: turn.atMs, origin: lowestOrigin(origins), user, parts, ...more };
  return { text, tainted: isTainted };
}

function readUserBlock(block: Block, reading: Reading): void {
  if (block['type'] === 'tool_result') readResult(block, reading);
  else if (block['type'] === 'image') reading.user.push('[image]');
  else if (reading.isDocument) readDocument(block, reading);
  else if (block['type'] === 'text') readUserText(stripInjected(stringOf(block['text'])), reading);
}

function readDocument(block: Block, reading: Reading): void {
  add(reading, { kind: 'assistant', origin: 'tool', tool: '', text: documentText(block) });
}

function readUserText(text: string, reading: Reading): void {
  if (isContinuation(text)) {
    reading.tainted = true;
    add(reading, { kind: 'assistant', origin: 'external', tool: '', text });
    return;
  }
  if (isClientText(text)) {
    // What a background task or another agent says may come from anywhere.
    reading.tainted = true;
    add(reading, { kind: 'tool_result', origin: 'external', tool: '', text });
    return;
  }
  const typed = SHELL.test(text) ? readShellTags(text, reading) : text;
  if (typed !== '') reading.user.push(typed);
}

/** Returns the text outside shell tags; stops at an unclosed tag. */
function readShellTags(text: string, reading: Reading): string {
  const left: string[] = [];
  let at = 0;
  for (const match of text.matchAll(SHELL_TAG)) {
    const [open, tag] = match as unknown as [string, string];
    if (match.index < at) continue;
    const end = text.indexOf(`</${tag}>`, match.index);
    if (end < 0) break;
    left.push(text.slice(at, match.index), readShell(tag, text.slice(match.index + open.length, end), reading));
    at = end + tag.length + 3;
  }
  return [...left, text.slice(at)].join('').trim();
}

/** A `!command`: the user typed the input, a program wrote the output. */
function readShell(tag: string, body: string, reading: Reading): string {
  if (tag === 'bash-input') {
    if (commandOrigin(body, reading.projectDir) === 'external') reading.tainted = true;
    return `! ${body}`;
  }
  const origin = reading.tainted ? 'external' : 'tool';
  add(reading, { kind: 'tool_result', origin, tool: 'Bash', text: body.trim() });
  return '';
}

function readResult(block: Block, reading: Reading): void {
  const use = reading.uses.get(stringOf(block['tool_use_id']));
  const said = contentText(block['content']);
  const origin = isOwnAnswer(stringOf(use?.['name']), said) ? 'tool' : toolOrigin(use, reading.projectDir);
  if (origin === 'external') reading.tainted = true;
  const text = stripInjected(said);
  add(reading, { kind: 'tool_result', origin, tool: stringOf(use?.['name']), text });
}

function readAssistantBlock(block: Block, reading: Reading): void {
  const type = stringOf(block['type']);
  const origin = reading.tainted ? 'external' : reading.isCopy ? 'tool' : 'assistant';
  if (type === 'text') {
    add(reading, { kind: 'assistant', origin, tool: '', text: stripInjected(stringOf(block['text'])) });
  } else if (type.endsWith('tool_use')) {
    reading.uses.set(stringOf(block['id']), block);
    const text = JSON.stringify(block['input'] ?? {});
    add(reading, { kind: 'tool_use', origin, tool: stringOf(block['name']), text });
  } else if (type.endsWith('tool_result')) {
    reading.tainted = true;
    add(reading, { kind: 'tool_result', origin: 'external', tool: type, text: contentText(block['content']) });
  }
}

function add(reading: Reading, part: TurnPart): void {
  if (part.text !== '' || part.kind !== 'assistant') reading.parts.push(part);
}

/** Built-in tools with a local result; every tool not listed here or below is external. */
const LOCAL = new Set([
  'Write',
  'Edit',
  'MultiEdit',
  'NotebookEdit',
  'TodoWrite',
  'TodoRead',
  'TaskCreate',
  'TaskUpdate',
  'TaskList',
  'TaskGet',
  'EnterPlanMode',
  'ExitPlanMode',
  'AskUserQuestion',
  'KillShell',
  'StructuredOutput',
  'ToolSearch',
]);

/** Local for paths inside the project. */
const READERS = new Set(['Read', 'NotebookRead', 'Grep', 'Glob', 'LS', 'LSP']);
const PATH_KEYS = ['file_path', 'notebook_path', 'path', 'filePath'];

/** Directories of third-party files inside a project. */
const FOREIGN_DIRECTORY = /(^|[\\/])(node_modules|site-packages|\.venv|bower_components)([\\/]|$)/;

const URL_IN_TEXT = /\b(?:https?|ftp|wss?|ssh|git):\/\//i;
/** Programs whose output comes from the network. */
const FETCHERS =
  /(?:^|[\s;&|(`"'/])(?:curl|wget|aria2c|http|https|xh|lynx|w3m|gh|glab|ssh|scp|sftp|rsync|nc|ncat|netcat|telnet|ftp|docker\s+(?:pull|run)|kubectl|aws|gcloud|az|git\s+(?:-\S+\s+(?:[^-\s]\S*\s+)?){0,4}(?:clone|fetch|pull|submodule|ls-remote|remote\s+update)|(?:npm|pnpm|yarn|bun)\s+(?:view|info|show|search|create|init\s+[^-\s]|dlx|x)|pip3?\s+(?:download|index))(?=$|[\s;&|)`"'])/i;
/** A runner executes installed packages unless an option or a version makes it download one. */
const FETCHING_RUNNER =
  /(?:^|[\s;&|(`"'/])(?:npx|bunx|uvx|pipx\s+run|npm\s+exec)\s+(?:-\S+\s+){0,6}(?:-y|--yes|-p|--package\S*|--from|@?[\w./-]+@[\w.^~*-]+)(?=$|[\s;&|)`"'])/i;

/** Origin of a tool result. @param use  its `tool_use` block, undefined when missing */
export function toolOrigin(use: Block | undefined, projectDir: string | null): Origin {
  if (use === undefined || use['type'] !== 'tool_use') return 'external';
  const name = stringOf(use['name']);
  const input = (use['input'] ?? {}) as Block;
  if (LOCAL.has(name)) return 'tool';
  if (READERS.has(name)) return readsInside(name, input, projectDir) ? 'tool' : 'external';
  if (name === 'Bash' || name === 'PowerShell') return commandOrigin(stringOf(input['command']), projectDir);
  return 'external';
}

/** `external` for a command that downloads or names a path outside the project. */
export function commandOrigin(command: string, projectDir: string | null): Origin {
  if (URL_IN_TEXT.test(command) || FETCHERS.test(command) || FETCHING_RUNNER.test(command)) return 'external';
  const named = command.match(/(?<=[\s=<'"(:])(?:~|\.\.|\/)[^\s'"`;&|<>()]*/g) ?? [];
  const outside = named.some((word) => !word.startsWith('/dev/') && !isInside(word, projectDir));
  return outside || FOREIGN_DIRECTORY.test(command) ? 'external' : 'tool';
}

function readsInside(name: string, input: Block, projectDir: string | null): boolean {
  if (projectDir === null) return false;
  const named = PATH_KEYS.map((key) => stringOf(input[key])).filter((value) => value !== '');
  const pattern = stringOf(input['pattern']);
  if (name === 'Glob' && /^(?:\/|~|\.\.)/.test(pattern)) named.push(pattern);
  return named.every((value) => isInside(value, projectDir));
}

function isInside(file: string, projectDir: string | null): boolean {
  if (projectDir === null || file.startsWith('~') || FOREIGN_DIRECTORY.test(file)) return false;
  const flavour = /^[A-Za-z]:[\\/]/.test(projectDir) ? path.win32 : path.posix;
  const relative = flavour.relative(projectDir, flavour.resolve(projectDir, file));
  return relative !== '..' && !relative.startsWith(`..${flavour.sep}`) && !flavour.isAbsolute(relative);
}

/** Tool names of comet-cc's MCP server, added by `claude mcp add` or by the plugin. */
const OWN_TOOL =
  /^mcp__(?:comet-cc|plugin_comet-cc_\w+)__(?:get_memory_index|read_memory_node|search_memory|retrieve_memory|remember|forget)$/;

/** Sentence in each answer of comet-cc's own tools that contains external text. */
export const FOREIGN = 'some of it comes from outside this project';

/** An answer of comet-cc's own tools without external text does not taint the turn. */
function isOwnAnswer(tool: string, text: string): boolean {
  return OWN_TOOL.test(tool) && !text.includes(FOREIGN);
}
