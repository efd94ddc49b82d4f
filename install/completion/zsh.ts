import { type CommandHelp, commandPath, type FlagHelp, valueFlags } from './command-tree.ts';

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
    ...commands.flatMap(valueCases),
    '  esac',
    '  case "$place" in',
    ...commands.map(placeCase),
    '  esac',
    `  if [[ "\${words[CURRENT]}" == -* ]]; then _describe -o option flags`,
    `  elif (( $#names )); then _describe command names`,
    '  else _files; fi',
    '}',
    'compdef _comet_cc comet-cc',
  ].join('\n');
}

function valueCases(command: CommandHelp): string[] {
  return valueFlags(command).map(
    ({ after, values }) =>
      `    (${after.join('|')}) ${values.length === 0 ? '_files' : `compadd -- ${values.join(' ')}`}; return ;;`,
  );
}

function placeCase(command: CommandHelp): string {
  const names = command.words.map(({ name, description }) => described(name, description));
  const flags = command.flags.flatMap(({ short, long, description }: FlagHelp) =>
    (short === null ? [long] : [short, long]).map((name) => described(name, description)),
  );
  return `    ('${commandPath(command)}') names=(${names.join(' ')}) flags=(${flags.join(' ')}) ;;`;
}

function described(name: string, description: string): string {
  const text = description === '' ? name : `${name}:${description}`;
  return `'${text.replaceAll("'", "'\\''")}'`;
}
