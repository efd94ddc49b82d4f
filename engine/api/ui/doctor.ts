import path from 'node:path';
import { readPart } from '../../../common/files.ts';
import { builtFile, type HomePaths } from '../../../common/paths.ts';
import { isRecord, parseJson } from '../../../common/text.ts';
import { guardStatus } from '../../lifecycle/control.ts';

const PROGRAM = builtFile('bin', 'comet-cc.js');
const DOCTOR_MS = 60_000;
/** An answer serves every tab for this long. */
const FRESH_MS = 30_000;
const LOG_BYTES = 64 * 1024;
const LOG_LINES = 200;

export type Health = ReturnType<typeof createHealth>;

/** What only other processes and the disk know of the engine. */
export function createHealth({ paths, env, now }: { paths: HomePaths; env: NodeJS.ProcessEnv; now: () => number }) {
  let newest: { readonly atMs: number; readonly checks: ReturnType<typeof runDoctor> } | null = null;
  return {
    /** Of `doctor`, at most 30 s old. */
    checks(): ReturnType<typeof runDoctor> {
      if (newest === null || now() - newest.atMs > FRESH_MS) newest = { atMs: now(), checks: runDoctor(env) };
      return newest.checks;
    },
    async daemon() {
      const guard = await guardStatus(paths.guardSocket).catch(() => null);
      return guard === null ? null : { pid: guard.pid, state: guard.engine.state, restarts: guard.engine.restarts };
    },
    /** The newest lines, oldest first; they were redacted when they were written. */
    async log() {
      const text = await readPart(path.join(paths.logsDir, 'engine.log'), -LOG_BYTES, LOG_BYTES).catch(() => '');
      return text.split('\n').flatMap(readLine).slice(-LOG_LINES);
    },
  };
}

const STATES = { ok: 'ok', problem: 'fail', unknown: 'warn' } as const;

async function runDoctor(env: NodeJS.ProcessEnv) {
  const options = { env, extendEnv: false, reject: false, timeout: DOCTOR_MS, stdin: 'ignore' } as const;
  const { execa } = await import('execa');
  const { stdout } = await execa(process.execPath, [PROGRAM, 'doctor', '--json'], options);
  const report = parseJson(stdout);
  const checks = isRecord(report) && Array.isArray(report['checks']) ? report['checks'] : [];
  if (checks.length > 0) {
    return checks.filter(isRecord).map(({ id, state, detail, fix }) => {
      const texts = { name: String(id), detail: String(detail), fix: String(fix) };
      return { ...texts, state: STATES[state as keyof typeof STATES] };
    });
  }
  return [{ name: 'doctor', state: STATES.unknown, detail: 'the checks gave no answer', fix: 'comet-cc doctor' }];
}

/** None of a line whose beginning is cut off. */
function readLine(line: string) {
  const entry = parseJson(line);
  if (!isRecord(entry)) return [];
  const { at, level, process: _, message, ...details } = entry;
  const more = Object.keys(details).length === 0 ? '' : ` ${JSON.stringify(details)}`;
  return [{ at: String(at), level: String(level), message: `${String(message)}${more}` }];
}
