import { type CommandHelp, commandPath, valueFlags } from './command-tree.ts';

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
    ...commands.flatMap(valueCases),
    '  esac',
    '  case "$place" in',
    ...commands.map(placeCase),
    '  esac',
    '  if [[ $current == -* ]]; then words=$flags; fi',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    'complete -o default -F _comet_cc comet-cc',
  ].join('\n');
}

/** Completes the value of the flag before the cursor. */
function valueCases(command: CommandHelp): string[] {
  return valueFlags(command).map(({ after, values }) => {
    const words = values.length === 0 ? '' : `$(compgen -W '${values.join(' ')}' -- "$current")`;
    return `    ${after.join(' | ')}) COMPREPLY=(${words}); return ;;`;
  });
}

function placeCase(command: CommandHelp): string {
  const words = command.words.map(({ name }) => name).join(' ');
  const flags = command.flags.flatMap(({ short, long }) => (short === null ? long : [short, long])).join(' ');
  return `    '${commandPath(command)}') words='${words}' flags='${flags}' ;;`;
}
