import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { silentLog } from '../../common/log.ts';
import { type ClaudeCliOptions, createClaudeCli } from '../../memory/models/claude-code.ts';

/** A stand-in for the `claude` program: `body` is what it does, with `prompt`, `argv` and `answer()` at hand. */
export interface StubClaude {
  readonly dir: string;
  readonly bin: string;
  /** What each call saw, oldest first. */
  calls(): { argv: string[]; env: Record<string, string>; prompt: string; cwd: string; pid: number }[];
  model(options?: Partial<ClaudeCliOptions>): ReturnType<typeof createClaudeCli>;
  dispose(): void;
}

const PRELUDE = `
const fs = require('node:fs');
const { spawn } = require('node:child_process');
const argv = process.argv.slice(2);
const prompt = fs.readFileSync(0, 'utf8');
const seen = { argv, env: process.env, prompt, cwd: process.cwd(), pid: process.pid };
fs.appendFileSync(__dirname + '/calls.jsonl', JSON.stringify(seen) + '\\n');
const nth = fs.readFileSync(__dirname + '/calls.jsonl', 'utf8').trim().split('\\n').length;
const system = argv[argv.indexOf('--system-prompt') + 1];
const labels = [...new Set([...prompt.matchAll(/^\\[(t\\d+)\\]/gm)].map((match) => match[1]))];
const usage = { input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 5 };
const reading = { logic_flow: 'BROKEN', load_level: 3, redundancy_detected: false };
const node = { summary: 'the shop database listens on 5433', trigger: 'When I connect to the shop database',
  topic_tags: ['database'], importance: 'HIGH', recall_mode: 'active', turns: labels,
  facts: [{ concept: 'port', value: '5433', polarity: 'positive', evidence: labels.slice(0, 1) }] };
const archive = { nodes: [node], brief: { active: [{ text: 'shop on 5433', sources: labels.slice(0, 1) }], hints: [] } };
const detail = { detail: 'It listens on 5433. The user said so. Nothing is open.' };
const answer = () => (/logic_flow/.test(system) ? reading : /detailed summary/.test(system) ? detail : archive);
const result = (extra) => ({ type: 'result', subtype: 'success', is_error: false, usage, ...extra });
const print = (value) => process.stdout.write(JSON.stringify(value));
`;

export const ANSWERS = 'print(result({ structured_output: answer() }));';

export function stubClaude(body: string): StubClaude {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'comet-cc-stub-'));
  const bin = path.join(dir, 'claude.cjs');
  writeFileSync(bin, `#!${process.execPath}\n${PRELUDE}\n${body}\n`);
  chmodSync(bin, 0o700);
  const log = path.join(dir, 'calls.jsonl');
  const made: ReturnType<typeof createClaudeCli>[] = [];
  return {
    dir,
    bin,
    calls: () => {
      if (!existsSync(log)) return [];
      const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1);
      return lines.map((line) => JSON.parse(line) as ReturnType<StubClaude['calls']>[number]);
    },
    model(options = {}) {
      const cwd = path.join(dir, 'neutral');
      mkdirSync(cwd, { recursive: true });
      const model = createClaudeCli({
        bin,
        models: {
          sensor: 'haiku',
          summarizer: 'sonnet',
          sensorTimeoutMs: 20_000,
          detail: 'haiku',
          detailTimeoutMs: 20_000,
          bundle: 'haiku',
          bundleTimeoutMs: 20_000,
          summarizerTimeoutMs: 20_000,
          maxChildren: 2,
        },
        environment: { env: { PATH: process.env['PATH'] }, bundleFile: '/none', userCa: '', userProxy: {} },
        cwd,
        redact: (text) => text,
        now: () => Date.now(),
        log: silentLog,
        graceMs: 200,
        ...options,
      });
      made.push(model);
      return model;
    },
    dispose: () => rmSync(dir, { recursive: true, force: true }),
  };
}
