import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ensureDir, writeFileAtomic } from '../../common/files.ts';
import type { Log } from '../../common/log.ts';
import type { StoredUsage, UsageStore } from './budget.ts';

const amount = z.number().nonnegative();
const Kept = z.strictObject({
  day: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
  calls: amount,
  tokens: amount,
  cost_usd: amount,
  limits: z.array(z.strictObject({ name: z.string().max(60), utilization: amount, resetAtMs: amount })).max(100),
});

/** Stores today's model usage and the last reported limits. An unreadable file counts as empty. */
export function createUsageFile(file: string, log: Log): UsageStore {
  return {
    async load(): Promise<StoredUsage | null> {
      try {
        const { cost_usd: costUsd, limits: windows, ...rest } = Kept.parse(JSON.parse(await readFile(file, 'utf8')));
        return { ...rest, costUsd, windows };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
          log.warn("could not read today's model usage; counting from zero", { file, error });
        }
        return null;
      }
    },
    async save({ costUsd, windows, ...rest }) {
      await ensureDir(path.dirname(file));
      await writeFileAtomic(file, `${JSON.stringify({ ...rest, cost_usd: costUsd, limits: windows })}\n`);
    },
  };
}
