import os from 'node:os';
import path from 'node:path';
import type { Command, Option } from 'commander';
import { CometError } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { readOwnFile, removeOwnFile, writeOwnFile } from '../edit-file.ts';

/** A name in every completion script, which tells it from a file of the user. */
const MARK = '_comet_cc';

export function completionScript(shell: 'bash' | 'zsh' | 'fish', program: Command): string {
  const commands = listCommands(program);
  if (shell === 'bash') return bashCompletion(commands);
  return shell === 'zsh' ? zshCompletion(commands) : fishCompletion(commands);
}

/** Where the shell loads the completion of a command from; zsh has no such place of the user's own. */
export function completionFile(shell: string, env: NodeJS.ProcessEnv): string | null {
  const home = os.homedir();
  const data = env['XDG_DATA_HOME'] || path.join(home, '.local', 'share');
  const config = env['XDG_CONFIG_HOME'] || path.join(home, '.config');
  if (shell === 'bash') return path.join(data, 'bash-completion', 'completions', 'comet-cc');
  return shell === 'fish' ? path.join(config, 'fish', 'completions', 'comet-cc.fish') : null;
}

/** @throws CometError `usage` for zsh, `unsafe_file` where the user has a file of that name */
export async function installCompletion(
  paths: HomePaths,
  env: NodeJS.ProcessEnv,
  { shell, script }: { readonly shell: string; readonly script: string },
): Promise<string> {
  const file = completionFile(shell, env);
  const next = 'add to ~/.zshrc: eval "$(comet-cc completion zsh)"';
  if (file === null) throw new CometError('usage', `${shell} loads no completion file by itself; ${next}`);
  await writeOwnFile(paths, { file, content: `${script}\n`, mark: MARK, mode: 0o644 });
  return file;
}

export async function findCompletionFiles(env: NodeJS.ProcessEnv): Promise<string[]> {
  const files = ['bash', 'fish'].map((shell) => completionFile(shell, env) as string);
  const contents = await Promise.all(files.map((file) => readOwnFile(file, MARK).catch(() => null)));
  return files.filter((_, at) => contents[at] !== null);
}

export async function removeCompletion(paths: HomePaths, env: NodeJS.ProcessEnv): Promise<void> {
  for (const file of await findCompletionFiles(env)) await removeOwnFile(paths, file);
}

interface CommandHelp {
  /** Names from below the program down to it; empty for the program itself. */
  readonly path: readonly string[];
  readonly flags: readonly Option[];
  /** Its subcommands, or what its first argument may be. */
  readonly words: readonly { readonly name: string; readonly description: string }[];
}

/** The program and every command below it, as `--help` shows them. */
export function listCommands(command: Command, path: readonly string[] = []): CommandHelp[] {
  const help = command.createHelp();
  const flags = help.visibleOptions(command);
  const below = help.visibleCommands(command);
  const choices = command.registeredArguments[0]?.argChoices ?? [];
  const words = [
    ...below.map((each) => ({ name: each.name(), description: each.description() })),
    ...choices.map((name) => ({ name, description: '' })),
  ];
  return [{ path, flags, words }, ...below.flatMap((each) => listCommands(each, [...path, each.name()]))];
}

/** Each flag with a value, by the words that precede that value. */
function valueFlags(command: CommandHelp): { readonly after: string[]; readonly values: readonly string[] }[] {
  return command.flags.filter(takesValue).map((flag) => ({
    after: flagNames(flag).map((name) => `'${commandPath(command)} ${name}'`),
    values: flag.argChoices ?? [],
  }));
}

const takesValue = ({ required, optional }: Option): boolean => required || optional;

const flagNames = ({ short, long }: Option): string[] => [short, long].filter((name) => name !== undefined);

/** Names joined by slashes, as '/memory/ls'; '' for the program itself. */
const commandPath = ({ path }: Pick<CommandHelp, 'path'>): string => path.map((name) => `/${name}`).join('');

/** A function and its registration; also for bash 3.2, which has neither maps nor `mapfile`. */
export function bashCompletion(commands: readonly CommandHelp[]): string {
  return [
    '_comet_cc() {',
    `  local IFS=$' \\t\\n' current="\${COMP_WORDS[COMP_CWORD]}" place='' words='' flags='' at`,
    '  for ((at = 1; at < COMP_CWORD; at++)); do',
    `    case "$place/\${COMP_WORDS[at]}" in`,
    `      ${commands.slice(1).map(commandPath).join(' | ')}) place="$place/\${COMP_WORDS[at]}" ;;`,
    '    esac',
    '  done',
    `  case "$place \${COMP_WORDS[COMP_CWORD - 1]}" in`,
    ...commands.flatMap(valueFlags).map(({ after, values }) => {
      const words = values.length === 0 ? '' : `$(compgen -W '${values.join(' ')}' -- "$current")`;
      return `    ${after.join(' | ')}) COMPREPLY=(${words}); return ;;`;
    }),
    '  esac',
    '  case "$place" in',
    ...commands.map(bashPlaceCase),
    '  esac',
    '  if [[ $current == -* ]]; then words=$flags; fi',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    'complete -o default -F _comet_cc comet-cc',
  ].join('\n');
}

function bashPlaceCase(command: CommandHelp): string {
  const words = command.words.map(({ name }) => name).join(' ');
  const flags = command.flags.flatMap(flagNames).join(' ');
  return `    '${commandPath(command)}') words='${words}' flags='${flags}' ;;`;
}

/** For a zsh whose `compinit` has run. */
export function zshCompletion(commands: readonly CommandHelp[]): string {
  return [
    '#compdef comet-cc',
    '_comet_cc() {',
    "  local place='' word",
    '  local -a names flags',
    `  for word in "\${(@)words[2,CURRENT-1]}"; do`,
    '    case "$place/$word" in',
    `      (${commands.slice(1).map(commandPath).join('|')}) place="$place/$word" ;;`,
    '    esac',
    '  done',
    `  case "$place \${words[CURRENT-1]}" in`,
    ...commands.flatMap(valueFlags).map(({ after, values }) => {
      return `    (${after.join('|')}) ${values.length === 0 ? '_files' : `compadd -- ${values.join(' ')}`}; return ;;`;
    }),
    '  esac',
    '  case "$place" in',
    ...commands.map(zshPlaceCase),
    '  esac',
    `  if [[ "\${words[CURRENT]}" == -* ]]; then _describe -o option flags`,
    `  elif (( $#names )); then _describe command names`,
    '  else _files; fi',
    '}',
    'compdef _comet_cc comet-cc',
  ].join('\n');
}

function zshPlaceCase(command: CommandHelp): string {
  const names = command.words.map(({ name, description }) => described(name, description));
  const flags = command.flags.flatMap((flag) => flagNames(flag).map((name) => described(name, flag.description)));
  return `    ('${commandPath(command)}') names=(${names.join(' ')}) flags=(${flags.join(' ')}) ;;`;
}

function described(name: string, description: string): string {
  const text = description === '' ? name : `${name}:${description}`;
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Conditions compare the words before the cursor without flags: no group of commands has a flag with a value. */
export function fishCompletion(commands: readonly CommandHelp[]): string {
  return [
    'function __comet_cc_words',
    '    set -l tokens (commandline -opc)',
    '    set -e tokens[1]',
    "    string match -v -- '-*' $tokens",
    'end',
    'function __comet_cc_at',
    '    set -l words (__comet_cc_words)',
    '    test "$words" = "$argv"',
    'end',
    'function __comet_cc_in',
    '    set -l words (__comet_cc_words)',
    '    set -l last (count $argv)',
    '    test (count $words) -ge $last; and test "$words[1..$last]" = "$argv"',
    'end',
    'complete -c comet-cc -e',
    ...commands.flatMap((command) => [...wordLines(command), ...command.flags.map((flag) => flagLine(command, flag))]),
  ].join('\n');
}

function wordLines({ path, words }: CommandHelp): string[] {
  const at = quoted(['__comet_cc_at', ...path].join(' '));
  return words.map(({ name, description }) => `complete -c comet-cc -n ${at} -f -a ${name}${detail(description)}`);
}

function flagLine({ path }: CommandHelp, flag: Option): string {
  const where = quoted(path.length === 0 ? '__comet_cc_at' : ['__comet_cc_in', ...path].join(' '));
  const names = flagNames(flag).map((name) => name.replace(/^--/, ' -l ').replace(/^-/, ' -s '));
  const value = flag.argChoices ? ` -x -a ${quoted(flag.argChoices.join(' '))}` : takesValue(flag) ? ' -r' : '';
  return `complete -c comet-cc -n ${where}${names.join('')}${value}${detail(flag.description)}`;
}

const detail = (description: string): string => (description === '' ? '' : ` -d ${quoted(description)}`);

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
