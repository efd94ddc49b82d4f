import { type CommandShape, type FlagShape, placeOf } from './command-tree.ts';

/** For a zsh whose `compinit` has run. */
export function zshCompletion(shapes: readonly CommandShape[]): string {
  return [
    '#compdef comet-cc',
    '_comet_cc() {',
    "  local place='' word",
    '  local -a names flags',
    `  for word in "\${(@)words[2,CURRENT-1]}"; do`,
    '    case "$place/$word" in',
    `      (${shapes.slice(1).map(placeOf).join('|')}) place="$place/$word" ;;`,
    '    esac',
    '  done',
    `  case "$place \${words[CURRENT-1]}" in`,
    ...shapes.flatMap(valueCases),
    '  esac',
    '  case "$place" in',
    ...shapes.map(placeCase),
    '  esac',
    `  if [[ "\${words[CURRENT]}" == -* ]]; then _describe -o option flags`,
    `  elif (( $#names )); then _describe command names`,
    '  else _files; fi',
    '}',
    'compdef _comet_cc comet-cc',
  ].join('\n');
}

function valueCases(shape: CommandShape): string[] {
  return shape.flags
    .filter((flag) => flag.takesValue)
    .map(({ short, long, values }) => {
      const names = [short, long].flatMap((name) => (name === null ? [] : `'${placeOf(shape)} ${name}'`));
      return `    (${names.join('|')}) ${values.length === 0 ? '_files' : `compadd -- ${values.join(' ')}`}; return ;;`;
    });
}

function placeCase(shape: CommandShape): string {
  const names = shape.words.map(({ name, description }) => described(name, description));
  const flags = shape.flags.flatMap(({ short, long, description }: FlagShape) =>
    (short === null ? [long] : [short, long]).map((name) => described(name, description)),
  );
  return `    ('${placeOf(shape)}') names=(${names.join(' ')}) flags=(${flags.join(' ')}) ;;`;
}

function described(name: string, description: string): string {
  const text = description === '' ? name : `${name}:${description}`;
  return `'${text.replaceAll("'", "'\\''")}'`;
}
