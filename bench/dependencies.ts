import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { execa } from 'execa';
import { builtFile } from '../common/paths.ts';

/** Prints docs/DEPENDENCIES.md from package.json, node_modules and the npm registry. */

const REASONS: Readonly<Record<string, string>> = {
  '@hono/node-server': "the dashboard's listener: hono on Node's own HTTP server; loaded once comet-cc ui was used",
  '@modelcontextprotocol/sdk':
    'the MCP server: the official implementation of the protocol; only its stdio server is loaded',
  '@lancedb/lancedb': 'the index of memory: vectors and full text in one embedded table, prebuilt, no install script',
  'apache-arrow': "the schema of LanceDB's tables; the version that LanceDB asks its host to bring",
  chokidar: 'sees node files that a person edits, on every platform',
  'chrono-node': 'reads the times of tasks as people write them; only English, and only where one is read',
  commander: 'the command line: options, help, usage errors',
  croner: 'when the cron forms of tasks come, in local time with its changes',
  execa: 'starts `claude -p`, git and trust store tools without a shell',
  fuzzball: 'whether two values of facts are paraphrases, where `facts.similarity` allows that; loaded only then',
  fzstd: 'reads zstd answers beside the stream; Node 20 has no zstd of its own',
  hono: "the dashboard's routes, cookies and stream of events; the MCP server brings both packages anyway",
  'http-mitm-proxy': 'HTTP inside an intercepted CONNECT; one file uses it, with one fixed leaf',
  'image-size': 'the format and size of images that a prompt shows',
  'jsonc-parser': "edits Claude Code's and editors' settings with comments and order kept",
  'node-forge': 'makes the name-constrained root and the leaf; Node can sign but not build certificates',
  yaml: 'the front matter of node files, which Obsidian and other markdown tools read',
  'string-width': 'how many columns of a terminal a text takes, CJK and emoji included',
  undici: 'one pool of kept-alive connections to the API, with raw headers and back-pressure',
  zod: 'one schema for configuration, model output and files: types, defaults and messages',
};

interface Manifest {
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const root = builtFile('..');
const rows = await Promise.all(Object.keys(manifestIn(root).dependencies ?? {}).map(row));
const all = closure(Object.keys(manifestIn(root).dependencies ?? {}).map((name) => located(name, root)));
console.log(`# Production dependencies

Printed by \`npm run docs:dependencies\`; a test checks the list against package.json. Versions are exact: Node 20 is still served, so some are not the newest (decision 0001). Sizes are those installed on ${process.platform}-${process.arch}; "brings" counts what comes with a package, and what two of them share is counted for both. The last column is the newest release that the registry has, with the day on which it says it came: a registry that copies another says when it took the copy, so a release may be older.

| package | version | why | licence | MB | brings | newest release |
|---|---|---|---|---|---|---|
${rows.join('\n')}

In all ${all.size} packages, ${megabytes([...all])} MB. comet-cc works with every install script switched off.

LanceDB names two optional packages that comet-cc never loads, \`openai\` and \`@huggingface/transformers\`; npm adds them where it can (the second brings \`onnxruntime-node\`, whose install script fetches more) and goes on where it cannot.

Among the development dependencies, \`s3rver\` 3.7.1 (MIT) is the S3 server of the sharing tests. Its development has ended and it brings old packages, so it is loaded by tests only, on loopback. It does not list folders that hold only folders and has no conditional writes; \`memory/share/lancedb/bus.ts\` works without both.`);

async function row(name: string): Promise<string> {
  const folder = located(name, root);
  const { version, license } = manifestIn(folder);
  const below = [...closure([folder])].filter((other) => other !== folder);
  const brought = below.length === 0 ? 'nothing' : `${below.length}, ${megabytes(below)} MB`;
  const why = REASONS[name];
  if (why === undefined) throw new Error(`say in bench/dependencies.ts why ${name} is needed`);
  return `| ${name} | ${version} | ${why} | ${license} | ${megabytes([folder])} | ${brought} | ${await newest(name)} |`;
}

async function newest(name: string): Promise<string> {
  const { stdout } = await execa('npm', ['view', name, 'dist-tags', 'time', '--json'], { cwd: root });
  const asked = JSON.parse(stdout) as unknown;
  const seen = (Array.isArray(asked) ? asked[0] : asked) as {
    'dist-tags': { latest: string };
    time: Record<string, string>;
  };
  const { latest } = seen['dist-tags'];
  return `${latest}, ${seen.time[latest]?.slice(0, 10) ?? 'unknown'}`;
}

/** The folders of `starts` and of all that they load, as installed here. */
function closure(starts: readonly string[]): Set<string> {
  const found = new Set(starts);
  for (const folder of found) {
    const { dependencies, optionalDependencies } = manifestIn(folder);
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const at = lookUp(name, folder);
      if (at !== null) found.add(at);
    }
  }
  return found;
}

function located(name: string, from: string): string {
  const at = lookUp(name, from);
  if (at === null) throw new Error(`${name} is not installed; run npm install`);
  return at;
}

/** Null for an optional package of another platform. */
function lookUp(name: string, from: string): string | null {
  for (let folder = from; folder.startsWith(root); folder = path.dirname(folder)) {
    const at = path.join(folder, 'node_modules', name);
    if (existsSync(path.join(at, 'package.json'))) return at;
  }
  return null;
}

function manifestIn(folder: string): Manifest {
  return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as Manifest;
}

function megabytes(folders: readonly string[]): string {
  const bytes = folders.reduce((sum, folder) => sum + getSize(folder), 0);
  return (bytes / 1e6).toFixed(1);
}

/** Without packages nested inside, which are counted as what they are. */
function getSize(folder: string): number {
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const at = path.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' ? sum : sum + getSize(at);
    return sum + (entry.isFile() ? statSync(at).size : 0);
  }, 0);
}
