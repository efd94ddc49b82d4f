import path from 'node:path';
import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { parseJson } from '../../common/text.ts';
import { migrateNodeFacts, migrateNodeFiles } from '../../memory/index.ts';

/** The version of the home's files; raised when an older program cannot read them or would damage them. */
const SCHEMA = 4;

/** Brings a home from the schema before to `to`. Runs again after a kill, so it must be idempotent. */
interface Migration {
  readonly to: number;
  /** @returns what it changed, for the stamp and the log; null where there was nothing to change */
  run(paths: HomePaths): Promise<HomeUpgrade | null>;
}

interface HomeUpgrade {
  readonly at: string;
  readonly files: number;
  /** Files and sections that do not validate, and stay as they are. */
  readonly kept: number;
  /** Where the files are as they were. */
  readonly backup: string;
}

const MIGRATIONS: readonly Migration[] = [
  { to: 2, run: migrateToNodeKinds },
  // Sections have their fields last. Those of schema 2 are read as they are, and rewritten when they change.
  { to: 3, run: async () => null },
  // Statements of nodes that the ontology names become facts; nodes stay as they are.
  { to: 4, run: (paths) => migrateNodeFacts(paths).then(() => null) },
];

/** Node files get YAML fields, and each node a kind and an author. */
async function migrateToNodeKinds({ nodesDir, briefsDir, memoryBackupDir }: HomePaths): Promise<HomeUpgrade | null> {
  const backup = path.join(memoryBackupDir, 'schema-1');
  const { files, kept } = await migrateNodeFiles({ nodesDir, briefsDir, backupDir: backup });
  return files + kept === 0 ? null : { at: new Date().toISOString(), files, kept, backup };
}

const Stamp = z.looseObject({ schema: z.int().nonnegative(), upgradingTo: z.int().positive().optional() });

/**
 * Migrates the stores of the home to this program's schema, before any of them is opened.
 * @returns what was changed, where something was
 * @throws CometError `schema_newer` when a newer program wrote them, began to, or the stamp cannot be read; nothing
 *   below the home may be written to then
 */
export async function openSchema(
  paths: HomePaths,
  { schema = SCHEMA, migrations = MIGRATIONS }: { schema?: number; migrations?: readonly Migration[] } = {},
): Promise<HomeUpgrade | null> {
  const file = path.join(paths.home, 'schema.json');
  const stamp = await readStamp(file);
  const newest = Math.max(stamp.schema, stamp.upgradingTo ?? 0);
  if (newest > schema) {
    const what = `this home was written by a newer comet-cc (schema ${newest}, this one knows ${schema})`;
    throw new CometError('schema_newer', `${what}: nothing is read or kept until that is installed again`);
  }
  if (stamp.schema === schema) return null;
  const due = migrations.filter(({ to }) => to > stamp.schema).toSorted((a, b) => a.to - b.to);
  if (due.length === 0) {
    // A read-only disk has nothing to upgrade; the next start tries again.
    await write(file, { schema }).catch(() => undefined);
    return null;
  }
  // An older program must not open a half-migrated store.
  await write(file, { schema: stamp.schema, upgradingTo: schema });
  let upgrade: HomeUpgrade | null = null;
  for (const migration of due) upgrade = (await migration.run(paths)) ?? upgrade;
  await write(file, upgrade === null ? { schema } : { schema, upgrade });
  return upgrade;
}

async function readStamp(file: string): Promise<z.infer<typeof Stamp>> {
  const text = await readFileIfPresent(file);
  if (text === null) return { schema: 0 };
  const { data, error: cause } = Stamp.safeParse(parseJson(text));
  if (data !== undefined) return data;
  const todo = 'remove it if no newer comet-cc was ever used here';
  throw new CometError('schema_newer', `${file} cannot be read, so nothing is read or kept; ${todo}`, { cause });
}

function write(file: string, stamp: z.infer<typeof Stamp> & { readonly upgrade?: HomeUpgrade }): Promise<void> {
  return writeFileAtomic(file, `${JSON.stringify(stamp)}\n`);
}
