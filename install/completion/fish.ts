import type { CommandHelp, FlagHelp } from './command-tree.ts';

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

function flagLine({ path }: CommandHelp, { short, long, description, takesValue, values }: FlagHelp): string {
  const where = quoted(path.length === 0 ? '__comet_cc_at' : ['__comet_cc_in', ...path].join(' '));
  const names = `${short === null ? '' : ` -s ${short.slice(1)}`} -l ${long.slice(2)}`;
  const value = values.length > 0 ? ` -x -a ${quoted(values.join(' '))}` : takesValue ? ' -r' : '';
  return `complete -c comet-cc -n ${where}${names}${value}${detail(description)}`;
}

function detail(description: string): string {
  return description === '' ? '' : ` -d ${quoted(description)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
