/**
 * How fast `memory import claude` takes past turns in with the local adapter, through the built engine. Transcripts are
 * made up, in Claude Code's form. Three times are taken: until the command returns, until the index holds everything,
 * and of a second import that finds nothing new. On Linux also the CPU time that the engine took for each turn.
 *
 * Where `../shared/data` has real transcripts, it also tells how many typed prompts they hold, and how many an import has.
 *
 *   npm run bench:import -- [--turns N] [--data DIR] [--json]
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { CLI, DATA } from './paths.ts';
import { unpackCorpus } from './real/corpus.ts';

const PER_SESSION = 50;
const MS_PER_TICK = 10;
const WORDS = 'gateway billing search mail login export audit webhook report stock index cache queue token retry'.split(
  ' ',
);

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '2000' },
    data: { type: 'string', default: DATA },
    json: { type: 'boolean', default: false },
  },
});
const turns = Number(values.turns);
const root = await mkdtemp(path.join(os.tmpdir(), 'cc-import-'));
const env = {
  PATH: process.env['PATH'],
  HOME: root,
  COMET_CC_HOME: path.join(root, 'h'),
  COMET_CC_PORT: '0',
  COMET_CC_LLM: 'local',
};

try {
  const project = path.join(root, 'project');
  await mkdir(project);
  await writeTranscripts(project);
  await comet('start', '--json');
  // Memory opens after the engine does, which is none of the import's work.
  await comet('memory', 'search', 'first words');
  const startedCpuMs = (await engineCpuMs()) ?? 0;
  const fromMs = performance.now();
  const report = JSON.parse(await comet('memory', 'import', 'claude', '--json')) as { added: number };
  const importMs = performance.now() - fromMs;
  await comet('flush', '--timeout', '600');
  const indexedMs = performance.now() - fromMs;
  const cpuMs = await engineCpuMs();
  const again = performance.now();
  const second = JSON.parse(await comet('memory', 'import', 'claude', '--json')) as { added: number };
  const result = {
    turns: report.added,
    seconds: round(importMs / 1_000),
    turns_per_second: round((report.added * 1_000) / importMs),
    indexed_per_second: round((report.added * 1_000) / indexedMs),
    ...(cpuMs === null ? {} : { engine_cpu_ms_per_turn: round((cpuMs - startedCpuMs) / report.added) }),
    again: { added: second.added, seconds: round((performance.now() - again) / 1_000) },
    prompts: await coverage(values.data),
  };
  if (values.json) console.log(JSON.stringify(result, null, 2));
  else {
    console.log(`${result.turns} turns in ${result.seconds} s: ${result.turns_per_second} turns a second`);
    console.log(`until all is in the index: ${result.indexed_per_second} turns a second`);
    if (cpuMs !== null) console.log(`CPU of the engine until then: ${result.engine_cpu_ms_per_turn} ms a turn`);
    if (result.prompts !== null)
      console.log(`typed prompts of real transcripts: ${result.prompts.imported} of ${result.prompts.typed} imported`);
    console.log(`a second run: ${result.again.added} added, ${result.again.seconds} s`);
  }
} finally {
  await comet('stop', '--now').catch(() => undefined);
  await rm(root, { recursive: true, force: true });
}

async function comet(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, ...args], {
    env,
    maxBuffer: 1 << 26,
    cwd: root,
  });
  return stdout;
}

/** Imports the real transcripts and looks for each typed prompt in what is kept of its session. */
async function coverage(data: string): Promise<{ readonly typed: number; readonly imported: number } | null> {
  const corpus = await unpackCorpus(data, root);
  if (corpus === null) return null;
  await comet('memory', 'import', 'claude', '--json');
  const kept = new Map<string, string>();
  const typed = corpus.turns.flatMap((turn) => turn.typed.map((prompt) => ({ prompt, id: turn.sessionId })));
  for (const id of new Set(typed.map((each) => each.id)))
    kept.set(id, words(await comet('memory', 'restore', id, '--json').catch(() => '')));
  const imported = typed.filter(({ prompt, id }) => kept.get(id)?.includes(words(JSON.stringify(prompt)))).length;
  return { typed: typed.length, imported };
}

/** Only letters and digits: quoting and redaction differ in the rest. */
function words(text: string): string {
  return text.replace(/\\+[nrt]/g, '').replace(/[^\p{L}\p{N}]+/gu, '');
}

/** All threads, user and system; null where the system does not tell. */
async function engineCpuMs(): Promise<number | null> {
  const { engine } = JSON.parse(await comet('status', '--json')) as { engine: { pid: number } };
  const stat = await readFile(`/proc/${engine.pid}/stat`, 'utf8').catch(() => null);
  if (stat === null) return null;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

async function writeTranscripts(project: string): Promise<void> {
  const dir = path.join(root, '.claude', 'projects', project.replace(/[^A-Za-z0-9]/g, '-'));
  await mkdir(dir, { recursive: true });
  for (let session = 0; session * PER_SESSION < turns; session += 1) {
    const own = Math.min(PER_SESSION, turns - session * PER_SESSION);
    const lines = Array.from({ length: own }, (_, at) => turnLines(session, at, project)).flat();
    await writeFile(path.join(dir, `s${session}.jsonl`), `${lines.join('\n')}\n`);
  }
}

function turnLines(session: number, at: number, cwd: string): string[] {
  const word = (shift: number): string => WORDS[(session * 7 + at * 3 + shift) % WORDS.length] as string;
  const number = session * 1_000 + at;
  const base = Date.UTC(2026, 0, 1) + session * 86_400_000 + at * 60_000;
  const id = (part: number): string => `${session}-${at}-${part}`;
  const line = (part: number, type: string, content: unknown): string =>
    JSON.stringify({
      type,
      uuid: id(part),
      parentUuid: part === 0 ? (at === 0 ? null : `${session}-${at - 1}-3`) : id(part - 1),
      sessionId: `s${session}`,
      cwd,
      timestamp: new Date(base + part * 1_000).toISOString(),
      message: {
        role: type,
        content,
        ...(type === 'assistant' ? { id: `m${id(part)}`, model: 'claude-opus-4-8' } : {}),
      },
    });
  const file = `src/${word(0)}/${word(1)}.ts`;
  const body = `export const ${word(0)}${number} = ${number}; // ${word(2)} ${word(3)} `.repeat(12);
  return [
    line(
      0,
      'user',
      `Why does the ${word(0)} of ${word(1)} fail with code ${number}? We decided to keep the ${word(2)} on port ${4000 + number}.`,
    ),
    line(1, 'assistant', [
      { type: 'tool_use', id: `t${id(1)}`, name: 'Read', input: { file_path: path.join(cwd, file) } },
    ]),
    line(2, 'user', [{ type: 'tool_result', tool_use_id: `t${id(1)}`, content: body }]),
    line(3, 'assistant', [
      {
        type: 'text',
        text: `The ${word(0)} fails because ${word(1)} sends ${number} twice. I moved the ${word(2)} behind the ${word(3)} and kept port ${4000 + number}.`,
      },
    ]),
  ];
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
