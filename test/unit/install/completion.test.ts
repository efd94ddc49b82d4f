import { execFileSync, spawnSync } from 'node:child_process';
import { Argument, Command, Option } from 'commander';
import { describe, expect, it } from 'vitest';
import { bashCompletion, fishCompletion, listCommands, zshCompletion } from '../../../install/completion/index.ts';

const program = new Command('comet-cc').version('1.0.0', '-V, --version', "it's `the` $version");
program
  .command('env')
  .description("the user's own")
  .addOption(new Option('--shell <name>', 'syntax').choices(['bash', 'fish']));
const memory = program.command('memory').description('what is remembered');
memory.command('ls').option('--session <id>', 'of this one').option('--json', 'as JSON');
memory.command('show').argument('<id>');
program.command('completion').addArgument(new Argument('<shell>').choices(['bash', 'zsh']));

const shapes = listCommands(program);
const installed = (shell: string): boolean => spawnSync(shell, ['--version']).error === undefined;

const read = (shell: string, flags: string[], input: string) => spawnSync(shell, flags, { input, encoding: 'utf8' });

/** What bash offers at the end of `line`, the script having been sourced for real. */
function offered(line: string): string[] {
  const words = line.split(' ');
  const script = [
    bashCompletion(shapes),
    `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})`,
    `COMP_CWORD=${words.length - 1}`,
    '_comet_cc',
    `printf '%s\\n' "\${COMPREPLY[@]}"`,
  ].join('\n');
  const out = execFileSync('bash', ['--norc', '--noprofile', '-u'], { input: script, encoding: 'utf8' });
  return out.split('\n').filter((word) => word !== '');
}

describe.runIf(installed('bash'))('completion in bash', () => {
  it.each<[string, string[]]>([
    ['comet-cc ', ['env', 'memory', 'completion', 'help']],
    ['comet-cc me', ['memory']],
    ['comet-cc -', ['-V', '--version', '-h', '--help']],
    ['comet-cc memory ', ['ls', 'show', 'help']],
    ['comet-cc memory ls --', ['--session', '--json', '--help']],
    ['comet-cc memory ls --json --se', ['--session']],
    ['comet-cc memory ls --session ', []],
    ['comet-cc memory ls --session memory --j', ['--json']],
    ['comet-cc memory show ', []],
    ['comet-cc env --shell ', ['bash', 'fish']],
    ['comet-cc env --shell f', ['fish']],
    ['comet-cc completion ', ['bash', 'zsh']],
    ['comet-cc nothing-like-this -', ['-V', '--version', '-h', '--help']],
  ])('offers after `%s` what may stand there', (line, words) => {
    expect(offered(line)).toEqual(words);
  });
});

describe('completion scripts', () => {
  it.runIf(installed('bash'))('bash reads its own without an error', () => {
    expect(read('bash', ['-n'], bashCompletion(shapes))).toMatchObject({ status: 0, stderr: '' });
  });

  it.runIf(installed('zsh'))('zsh reads its own without an error', () => {
    expect(read('zsh', ['-n'], zshCompletion(shapes))).toMatchObject({ status: 0, stderr: '' });
  });

  it.runIf(installed('fish'))('fish reads its own without an error', () => {
    expect(read('fish', ['--no-execute'], fishCompletion(shapes))).toMatchObject({ status: 0, stderr: '' });
  });

  it('quote what descriptions say', () => {
    expect(zshCompletion(shapes)).toContain(`'--version:it'\\''s \`the\` $version'`);
    expect(fishCompletion(shapes)).toContain(`-s V -l version -d 'it\\'s \`the\` $version'`);
    expect(fishCompletion(shapes)).toContain(`-n '__comet_cc_in memory ls' -l session -r -d 'of this one'`);
  });
});
