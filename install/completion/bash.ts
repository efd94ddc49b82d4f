import { type CommandShape, placeOf } from './command-tree.ts';

/** A function and its registration; runs in bash 3.2 too, which knows neither maps nor `mapfile`. */
export function bashCompletion(shapes: readonly CommandShape[]): string {
  return [
    '_comet_cc() {',
    `  local IFS=$' \\t\\n' current="\${COMP_WORDS[COMP_CWORD]}" place='' words='' flags='' at`,
    '  for ((at = 1; at < COMP_CWORD; at++)); do',
    `    case "$place/\${COMP_WORDS[at]}" in`,
    `      ${shapes.slice(1).map(placeOf).join(' | ')}) place="$place/\${COMP_WORDS[at]}" ;;`,
    '    esac',
    '  done',
    `  case "$place \${COMP_WORDS[COMP_CWORD - 1]}" in`,
    ...shapes.flatMap(valueCases),
    '  esac',
    '  case "$place" in',
    ...shapes.map(placeCase),
    '  esac',
    '  if [[ $current == -* ]]; then words=$flags; fi',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    'complete -o default -F _comet_cc comet-cc',
  ].join('\n');
}

/** After a flag that takes one, a value: ours to name, or a file. */
function valueCases(shape: CommandShape): string[] {
  return shape.flags
    .filter((flag) => flag.takesValue)
    .map(({ short, long, values }) => {
      const names = [short, long].flatMap((name) => (name === null ? [] : `'${placeOf(shape)} ${name}'`));
      const reply =
        values.length === 0 ? 'COMPREPLY=()' : `COMPREPLY=($(compgen -W '${values.join(' ')}' -- "$current"))`;
      return `    ${names.join(' | ')}) ${reply}; return ;;`;
    });
}

function placeCase(shape: CommandShape): string {
  const words = shape.words.map(({ name }) => name).join(' ');
  const flags = shape.flags.flatMap(({ short, long }) => (short === null ? long : [short, long])).join(' ');
  return `    '${placeOf(shape)}') words='${words}' flags='${flags}' ;;`;
}
