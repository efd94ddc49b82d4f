import { isRecord } from '../../common/json.ts';
import type { CapturedTurn } from '../../common/turn.ts';
import { type Block, blocksOf, stringOf } from './content-blocks.ts';

/** Tools whose input names the one file they read or write, and where. */
const FILE_TOOLS: Readonly<Record<string, string>> = {
  Read: 'file_path',
  Edit: 'file_path',
  MultiEdit: 'file_path',
  Write: 'file_path',
  NotebookEdit: 'notebook_path',
  NotebookRead: 'notebook_path',
};
const MOST_NAMED = 40;
const MOST_WORDS = 30;
/** Beyond this a command is a script or a paste, and its words are no list of files. */
const COMMAND_CHARS = 4_000;

/** Paths that a turn's tool calls name, as they were given: those of file tools, then words of commands. */
export function touchedFiles(turn: CapturedTurn): string[] {
  const calls = turn.messages
    .filter((message) => message.role === 'assistant')
    .flatMap((message) => blocksOf(message).filter((block) => block['type'] === 'tool_use'));
  const named = calls.flatMap((call) => pathOf(call));
  const words = calls.flatMap((call) => commandWords(call));
  return [...new Set([...named.slice(-MOST_NAMED), ...words.slice(-MOST_WORDS)])];
}

function pathOf(call: Block): string[] {
  const key = FILE_TOOLS[stringOf(call['name'])];
  const path = key === undefined ? '' : stringOf(inputOf(call)[key]);
  return path === '' ? [] : [path];
}

/** Words that could be files; whoever asks the disk knows which of them are. */
function commandWords(call: Block): string[] {
  const name = stringOf(call['name']);
  if (name !== 'Bash' && name !== 'PowerShell') return [];
  const command = stringOf(inputOf(call)['command']).slice(0, COMMAND_CHARS);
  // What is followed by a bracket is called: `node -e "console.log(1)"`.
  const found = [...command.matchAll(/([^\s'"`;&|<>(){}=,:]+)(?=([(]?))/g)];
  const words = found.flatMap(([, word = '', bracket]) => (bracket === '' ? [word] : []));
  return words.filter((word) => /[./]/.test(word) && !/^[-~]|[*?$[\]!^\\]|^[./]+$/.test(word));
}

function inputOf(call: Block): Block {
  const input = call['input'];
  return isRecord(input) ? input : {};
}
