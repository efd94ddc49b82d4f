import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setInterval as every } from 'node:timers/promises';
import { execa } from 'execa';
import { CLI } from '../paths.ts';

const LOOK_MS = 500;

/** Resident memory of the demo's engine, MB: the most that was seen of it, and the last. */
export async function demoMemory(): Promise<{ most: number; last: number }> {
  const demo = spawn(process.execPath, [CLI, 'demo'], { stdio: 'ignore' });
  const over = new AbortController();
  const exited = once(demo, 'exit').then(([code]) => {
    over.abort();
    return code as number;
  });
  const seen = { most: 0, last: 0 };
  try {
    for await (const _ of every(LOOK_MS, null, { signal: over.signal })) {
      const mb = await engineMb(demo.pid as number);
      if (mb > 0) Object.assign(seen, { most: Math.max(seen.most, mb), last: mb });
    }
  } catch (error) {
    if (!over.signal.aborted) throw error;
  }
  const code = await exited;
  if (code !== 0) throw new Error(`the demo ended with ${code}`);
  return seen;
}

/** 0 while no engine descends from the process. */
async function engineMb(ancestor: number): Promise<number> {
  const { stdout } = await execa('ps', ['-eo', 'pid=,ppid=,rss=,args=']);
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/));
  const parentOf = new Map(rows.map(([pid, parent]) => [Number(pid), Number(parent)]));
  const descends = (pid: number): boolean => {
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = parentOf.get(at)) {
      if (at === ancestor) return true;
    }
    return false;
  };
  const engine = rows.find((row) => row.some((part) => part.endsWith('bin/engine.js')) && descends(Number(row[0])));
  return Math.round(Number(engine?.[2] ?? 0) / 1024);
}
