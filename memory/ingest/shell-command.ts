import path from 'node:path';
import type { Origin } from '../../common/turn.ts';

/** Directories of third-party files inside a project. */
const FOREIGN_DIRECTORY = /(^|[\\/])(node_modules|site-packages|\.venv|bower_components|vendor)([\\/]|$)/;
const URL_IN_TEXT = /\b(?:https?|ftps?|wss?|ssh|git|file):\/\//i;

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** Programs that print what their arguments and input say, or nothing of others. */
const READERS = words(`
  [ [[ awk basename bat cat cd chmod cmp column comm command cp cut date declare df diff dirname du echo egrep exit expand
  export expr false fgrep file find fold grep head hexdump id jq join kill less ln local ls md5sum mkdir more mv nl nproc
  od paste pgrep printf ps pwd read readlink realpath return rev rg rm rmdir sed seq set sha1sum sha256sum shasum shift shopt
  sleep sort stat strings tac tail tee test touch tr tree true type uname uniq unset uuidgen wait wc which whoami xxd yq`);
/** They print no more of the files that they are given than their names. */
const SILENT = words('[ [[ mkdir rm rmdir test touch');
/** Test and build tools, formatters, linters. */
const BUILDERS = words(`
  ant ava bazel bazelisk biome black c8 cabal clang clang-format cmake coverage ctest cypress depcheck esbuild eslint
  flake8 g++ gcc gofmt golangci-lint gotestsum gradle gradlew isort javac jest just knip madge make markdownlint meson mill
  mocha mvn mvnw mypy ninja nose2 nox nx nyc phpstan phpunit playwright prettier pylint pyright pytest rake rimraf rollup
  rspec rubocop ruff rustc rustfmt sbt shellcheck staticcheck stylelint svelte-check swc swiftlint tap tox ts-node tsc tsup
  tsx turbo vite vitest vue-tsc webpack xcodebuild`);
/** Of other programs, only these subcommands; `*` may follow a prefix. */
const SUBCOMMANDS: Readonly<Record<string, ReadonlySet<string>>> = {
  git: words(`add am annotate apply bisect blame branch cat-file check-ignore checkout cherry cherry-pick clean commit config
    describe diff for-each-ref format-patch fsck gc grep init log ls-files ls-tree merge merge-base mv name-rev notes push
    range-diff rebase reflog reset restore rev-list rev-parse revert rm shortlog show show-ref stash status switch
    symbolic-ref tag worktree`),
  npm: words('run run-script test t start lint build ls'),
  pnpm: words('run test t start lint build ls'),
  yarn: words('run test start lint build'),
  bun: words('run test build'),
  cargo: words('bench build b check c clean clippy doc fmt metadata nextest r run t test tree version'),
  go: words('build clean doc env fmt generate list run test tool version vet'),
  deno: words('bench check fmt lint task test'),
  dotnet: words('build clean format msbuild run test'),
  swift: words('build package run test'),
  mix: words('compile credo dialyzer format test'),
  zig: words('build fmt test'),
  stack: words('build test'),
  dune: words('build exec test runtest'),
  flutter: words('analyze build test'),
  dart: words('analyze compile format test'),
  composer: words('run-script test'),
  mise: words('run'),
};
/** Programs that run another one, after their options. */
const RUNNERS = words(
  'builtin env exec nice nohup stdbuf time timeout xargs bundle-exec poetry-run uv-run pipenv-run hatch-run',
);
/** They run what a package manager finds, and download what it does not find: only for tools of the list above. */
const PACKAGE_RUNNERS = words('npx bunx pnpm-exec npm-exec yarn-exec');
const TWO_WORDS = words('bundle-exec poetry-run uv-run pipenv-run hatch-run pnpm-exec npm-exec yarn-exec');
/** With a file of the project; code among their arguments comes from anywhere. */
const INTERPRETERS = words('bash bun deno node perl php python python3 ruby sh ts-node tsx zsh');
const MODULES = words('black build compileall coverage flake8 isort mypy nox pylint pytest ruff tox unittest');
/** Their first argument is a pattern or a script. */
const SEARCHERS = words('awk egrep fgrep grep jq rg sed yq');
const MESSAGES = words('commit notes stash tag');
/** What scripts of awk and sed do to read or run something else; a space stands for several. */
const READS_OTHERS = /\bsystem\s?\(|\bgetline\b|\/inet\/|(?:^|[;{\d/$])\s?(?:[rRwW]\s[/~.]|e(?:\s|$))/m;
/** Programs of the system, and those that a package manager put into the project. */
const INSTALLED = /(?:(?:^|\/)(?:node_modules\/\.bin|\.?venv\/bin)|^(?:\/usr)?\/bin)\/[\w.-]+$/;
const KEYWORDS = words('! do done elif else fi if in then until while { } esac');
const MOST_CHARS = 20_000;
const MOST_DEPTH = 4;

/** `tool` where all programs only read the project, test it or build it: others may print what is from elsewhere. */
export function commandOrigin(command: string, projectDir: string | null): Origin {
  if (projectDir === null || command.length > MOST_CHARS) return 'external';
  return readsProject(command, { projectDir, dir: projectDir, variables: new Map(), written: new Set() }, 0)
    ? 'tool'
    : 'external';
}

interface Shell {
  readonly projectDir: string;
  dir: string;
  /** Values that the command itself assigned. */
  readonly variables: Map<string, string>;
  /** Files that the command itself wrote. */
  readonly written: Set<string>;
}

function readsProject(command: string, shell: Shell, depth: number): boolean {
  if (depth > MOST_DEPTH) return false;
  const parsed = parseCommands(withoutHeredocs(command));
  if (parsed === null) return false;
  for (const inner of parsed.substituted) if (!readsProject(inner, { ...shell }, depth + 1)) return false;
  return parsed.commands.every((own) => mayRun(own, shell, depth));
}

/** The bodies of here-documents are texts that the assistant wrote; of one, only what the shell runs in it is left. */
function withoutHeredocs(command: string): string {
  const lines = command.split('\n');
  const pieces: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] as string;
    const mark = /<<-?\s*(['"]?)(\w+)\1/.exec(line);
    const end = mark === null ? -1 : lines.findIndex((each, index) => index > at && each.trim() === mark[2]);
    // Without its end it is something else: `grep '<<EOF'`, `cat <<< word`.
    pieces.push(mark === null || end < 0 ? line : line.replace(mark[0], ''));
    if (mark === null || end < 0) continue;
    const substituted = mark[1] === '' ? parseQuoted(lines.slice(at + 1, end).join('\n'))?.substituted : [];
    pieces.push(...(substituted?.map((inner) => `true $(${inner})`) ?? ['?']));
    // What runs the text is not looked at further: only programs that copy it are allowed.
    at = end;
  }
  return pieces.join('\n');
}

interface Parsed {
  readonly commands: readonly (readonly string[])[];
  /** What stands in `$( )` and in backticks. */
  readonly substituted: readonly string[];
}

/** Words of the simple commands of a command line; null where it cannot be read. */
function parseCommands(text: string): Parsed | null {
  const commands: string[][] = [];
  const substituted: string[] = [];
  let own: string[] = [];
  let word: string | null = null;
  const endWord = (): void => {
    if (word !== null) own.push(word);
    word = null;
  };
  const endCommand = (): void => {
    endWord();
    if (own.length > 0) commands.push(own);
    own = [];
  };
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] as string;
    if (char === "'") {
      const end = text.indexOf("'", at + 1);
      if (end < 0) return null;
      word = (word ?? '') + text.slice(at + 1, end);
      at = end;
    } else if (char === '"' || char === '`' || (char === '$' && text[at + 1] === '(')) {
      const end =
        char === '"' ? endOfQuote(text, at) : char === '`' ? text.indexOf('`', at + 1) : endOfParen(text, at + 1);
      if (end < 0) return null;
      const inner = text.slice(at + (char === '$' ? 2 : 1), end);
      if (char === '"') {
        const quoted = parseQuoted(inner);
        if (quoted === null) return null;
        substituted.push(...quoted.substituted);
        word = (word ?? '') + quoted.text;
      } else {
        substituted.push(inner);
        word = word ?? '';
      }
      at = end;
    } else if (char === '\\') {
      word = (word ?? '') + (text[at + 1] ?? '').replace('\n', '');
      at += 1;
    } else if (char === '#' && word === null) {
      const end = text.indexOf('\n', at);
      at = end < 0 ? text.length : end - 1;
    } else if (/^(?:<\(|\$')/.test(text.slice(at, at + 2))) return null;
    else if (/[ \t]/.test(char)) endWord();
    else if (/[;\n|()]/.test(char) || (char === '&' && text[at - 1] !== '>' && text[at + 1] !== '>')) endCommand();
    else if (char === '>' || char === '<') {
      if (!/^\d$/.test(word ?? 'x')) endWord();
      word = null;
      while (/[>&|<]/.test(text[at + 1] ?? '')) at += 1;
      own.push(char);
    } else word = (word ?? '') + char;
  }
  endCommand();
  return { commands, substituted };
}

function parseQuoted(text: string): { readonly text: string; readonly substituted: readonly string[] } | null {
  const substituted: string[] = [];
  let plain = '';
  for (let at = 0; at < text.length; at += 1) {
    const isParen = text.startsWith('$(', at);
    if (!isParen && text[at] !== '`') {
      plain += text[at];
      continue;
    }
    const end = isParen ? endOfParen(text, at + 1) : text.indexOf('`', at + 1);
    if (end < 0) return null;
    substituted.push(text.slice(at + (isParen ? 2 : 1), end));
    at = end;
  }
  return { text: plain, substituted };
}

function endOfQuote(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text.startsWith('$(', at)) {
      const end = endOfParen(text, at + 1);
      if (end < 0) return -1;
      at = end;
    } else if (text[at] === '"') return at;
  }
  return -1;
}

function endOfParen(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === "'") {
      const end = text.indexOf("'", at + 1);
      if (end < 0) return -1;
      at = end;
    } else if (text[at] === '(') depth += 1;
    else if (text[at] === ')') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return -1;
}

const ASSIGNMENT = /^([A-Za-z_]\w*)=(.*)$/s;

function mayRun(all: readonly string[], shell: Shell, depth: number): boolean {
  const own = all.map((word) => expanded(word, shell));
  if (own.includes(null)) return false;
  let rest = own as string[];
  while (KEYWORDS.has(rest[0] ?? '')) rest = rest.slice(1);
  if (rest[0] === 'for' || rest[0] === 'case') {
    if (rest[0] === 'for')
      shell.variables.set(rest[1] ?? '', rest.slice(3).find((word) => !isOwnPath(word, shell)) ?? '.');
    return true;
  }
  for (let set = ASSIGNMENT.exec(rest[0] ?? ''); set !== null; set = ASSIGNMENT.exec(rest[0] ?? '')) {
    shell.variables.set(set[1] as string, set[2] as string);
    rest = rest.slice(1);
  }
  const left = rest.filter((word, at) => {
    const isTarget = rest[at - 1] === '>';
    if (isTarget) shell.written.add(word);
    return word !== '>' && !isTarget;
  });
  return left.length === 0 || mayRunProgram(left, shell, depth);
}

function mayRunProgram(own: readonly string[], shell: Shell, depth: number): boolean {
  if (depth > MOST_DEPTH) return false;
  const [program = '', ...args] = own;
  const isPath = /[\\/]/.test(program) && !INSTALLED.test(program);
  if (isPath && !isOwnPath(program, shell)) return false;
  if (program === 'source' || program === '.') return args.length === 1 && INSTALLED.test(args[0] as string);
  const name = path.posix.basename(program).replace(/(?<=python3?)\.\d+$/, '');
  const two = `${name}-${args[0] ?? ''}`;
  if (RUNNERS.has(name) || TWO_WORDS.has(two) || PACKAGE_RUNNERS.has(name)) {
    const inner = innerCommand(TWO_WORDS.has(two) ? args.slice(1) : args, name);
    if (inner.length === 0) return name === 'env' || name === 'xargs';
    const isPackage = PACKAGE_RUNNERS.has(name) || PACKAGE_RUNNERS.has(two);
    if (isPackage && !BUILDERS.has(inner[0] as string)) return false;
    return mayRunProgram(inner, shell, depth + 1);
  }
  if (!getInputs(name, args).every((word) => isOwnPath(word, shell))) return false;
  if (name === 'cd') {
    shell.dir = getFlavour(shell.projectDir).resolve(shell.dir, args.find((word) => !word.startsWith('-')) ?? '/');
    return isInside(shell.dir, shell.projectDir);
  }
  if (name === 'find') return findRuns(args, shell, depth);
  if (name === 'git') return isOwnGit(args);
  if (READERS.has(name))
    return !((name === 'awk' || name === 'sed') && READS_OTHERS.test(withSingleSpaces(args.join('\n'))));
  if (args.some((word) => URL_IN_TEXT.test(word))) return false;
  const allowed = SUBCOMMANDS[name];
  if (allowed?.has(args.find((word) => !word.startsWith('-') && !word.startsWith('+')) ?? '')) return true;
  if (INTERPRETERS.has(name)) return runsOwnFile(args);
  return isPath || BUILDERS.has(name);
}

/** The arguments that may name files; the others are texts and patterns. */
function getInputs(name: string, args: readonly string[]): readonly string[] {
  if (name === 'echo' || name === 'printf' || (name === 'git' && MESSAGES.has(args[0] ?? ''))) return [];
  if (SILENT.has(name) && !args.some((word) => /[*?[{]|^-\w*v/.test(word))) return [];
  if (!SEARCHERS.has(name)) return args;
  const pattern = args.findIndex((word) => word !== '' && !word.startsWith('-'));
  return args.filter((_, at) => at !== pattern);
}

/** The command behind the options of a program that runs it. */
function innerCommand(args: readonly string[], runner: string): readonly string[] {
  let at = 0;
  while (/^-|^\d|^[A-Za-z_]\w*=/.test(args[at] ?? '')) {
    // These make a package runner download.
    if (PACKAGE_RUNNERS.has(runner) && /^-(?:y|p|-yes|-package|-from)/.test(args[at] as string)) return ['?'];
    at += /^-[nILPds]$/.test(args[at] as string) && runner === 'xargs' ? 2 : 1;
  }
  return args.slice(at);
}

function findRuns(args: readonly string[], shell: Shell, depth: number): boolean {
  const runs: string[][] = [];
  for (const word of args) {
    if (/^-(?:exec|ok)(?:dir)?$/.test(word)) runs.push([]);
    else if (word !== '{}' && word !== '+') runs.at(-1)?.push(word);
  }
  return runs.every((run) => mayRunProgram(run, shell, depth + 1));
}

function isOwnGit(args: readonly string[]): boolean {
  let at = 0;
  while ((args[at] ?? '').startsWith('-')) at += /^-[cC]$/.test(args[at] as string) ? 2 : 1;
  const command = args[at] ?? '';
  const rest = args.slice(at + 1);
  if (command === 'remote') return rest.length === 0 || rest[0] === '-v' || rest[0] === 'get-url';
  // Settings may name programs to run.
  if (args.slice(0, at).some((word) => word === '-c')) return false;
  return command === '' || (SUBCOMMANDS['git'] as ReadonlySet<string>).has(command);
}

/** Also tests and checks that an interpreter brings along. */
function runsOwnFile(args: readonly string[]): boolean {
  const at = args.findIndex((word) => !word.startsWith('-'));
  const options = args.slice(0, at < 0 ? undefined : at);
  if (options.some((word) => /^(?:-[a-z]*[ceE]|--eval|--print|-p|-pe|-r)$/.test(word))) return false;
  if (options.includes('-m')) return MODULES.has(args[at] ?? '');
  if (options.some((word) => word === '--version' || word === '-v' || word === '-V')) return true;
  return at >= 0 && args[at] !== '>' && args[at] !== '<';
}

const withSingleSpaces = (text: string): string =>
  text.replace(/\s+/g, (spaces) => (spaces.includes('\n') ? '\n' : ' '));

/** The word with variables that the command assigned; null where it uses another one. */
function expanded(word: string, { variables }: Shell): string | null {
  let isKnown = true;
  const value = word.replace(/\$(?:\{(\w+)[^}]*\}?|(\w+)|[?!#$@*])/g, (_, braced?: string, bare?: string) => {
    const name = braced ?? bare;
    if (name === undefined || /^\d$/.test(name)) return '';
    if (name === 'PWD') return '.';
    if (!variables.has(name)) isKnown = false;
    return variables.get(name) ?? '';
  });
  return isKnown ? value : null;
}

/** Whether no part of a word names a place outside the project. */
function isOwnPath(word: string, { dir, projectDir, written }: Shell): boolean {
  if (URL_IN_TEXT.test(word) || written.has(word)) return true;
  if (FOREIGN_DIRECTORY.test(word)) return false;
  return word.split(/[=:,\s"'(){}]/).every((part) => {
    if (!/^(?:~|\/|\.\.(?:\/|$))|\/\.\.(?:\/|$)/.test(part) || /^\/dev\/(?!tcp|udp)/.test(part)) return true;
    // A pattern of sed or awk begins with a slash too.
    const isPattern = /^\/(?!(?:etc|tmp|var|opt|home|root|usr|mnt|srv|proc|Users|Volumes)\b)[^/]*\/[a-z]*$/.test(part);
    if (isPattern) return true;
    return isInside(getFlavour(projectDir).resolve(dir, part.startsWith('~') ? '/~' : part), projectDir);
  });
}

export function isInside(file: string, projectDir: string | null): boolean {
  if (projectDir === null || file.startsWith('~') || FOREIGN_DIRECTORY.test(file)) return false;
  const flavour = getFlavour(projectDir);
  const relative = flavour.relative(projectDir, flavour.resolve(projectDir, file));
  return relative !== '..' && !relative.startsWith(`..${flavour.sep}`) && !flavour.isAbsolute(relative);
}

function getFlavour(projectDir: string): path.PlatformPath {
  return /^[A-Za-z]:[\\/]/.test(projectDir) ? path.win32 : path.posix;
}
