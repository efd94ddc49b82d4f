import path from 'node:path';
import type { Origin } from '../../common/turn.ts';
import { type Block, stringOf } from './content-blocks.ts';

/** Built-in tools whose result comes from this machine; any tool not named here or below is external. */
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

/** Tools that read files: local as long as the path is inside the project. */
const READERS = new Set(['Read', 'NotebookRead', 'Grep', 'Glob', 'LS', 'LSP']);
const PATH_KEYS = ['file_path', 'notebook_path', 'path', 'filePath'];

/** Directories inside a project that hold other people's files. */
const FOREIGN_DIRECTORY = /(^|[\\/])(node_modules|site-packages|\.venv|bower_components)([\\/]|$)/;

const URL_IN_TEXT = /\b(?:https?|ftp|wss?|ssh|git):\/\//i;
/** Programs whose output is somebody else's text. */
const FETCHERS =
  /(?:^|[\s;&|(`"'/])(?:curl|wget|aria2c|http|https|xh|lynx|w3m|gh|glab|ssh|scp|sftp|rsync|nc|ncat|netcat|telnet|ftp|docker\s+(?:pull|run)|kubectl|aws|gcloud|az|git\s+(?:-\S+\s+(?:[^-\s]\S*\s+)?){0,4}(?:clone|fetch|pull|submodule|ls-remote|remote\s+update)|(?:npm|pnpm|yarn|bun)\s+(?:view|info|show|search|create|init\s+[^-\s]|dlx|x)|pip3?\s+(?:download|index))(?=$|[\s;&|)`"'])/i;
/** A runner is local as long as it runs what is installed: told to install, or given a version, it fetches. */
const FETCHING_RUNNER =
  /(?:^|[\s;&|(`"'/])(?:npx|bunx|uvx|pipx\s+run|npm\s+exec)\s+(?:-\S+\s+){0,6}(?:-y|--yes|-p|--package\S*|--from|@?[\w./-]+@[\w.^~*-]+)(?=$|[\s;&|)`"'])/i;

/** Where the result of a tool call comes from; `use` is its `tool_use` block, undefined for an orphan. */
export function toolOrigin(use: Block | undefined, projectDir: string | null): Origin {
  if (use === undefined || use['type'] !== 'tool_use') return 'external';
  const name = stringOf(use['name']);
  const input = (use['input'] ?? {}) as Block;
  if (LOCAL.has(name)) return 'tool';
  if (READERS.has(name)) return readsInside(name, input, projectDir) ? 'tool' : 'external';
  if (name === 'Bash' || name === 'PowerShell') return commandOrigin(stringOf(input['command']), projectDir);
  return 'external';
}

/** `external` for a command that fetches, or that names a path outside the project. */
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
