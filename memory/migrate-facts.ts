import { readdir, rename, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { systemClock } from '../common/async.ts';
import { Config } from '../common/config.ts';
import { syncDir } from '../common/files.ts';
import { silentLog } from '../common/log.ts';
import type { HomePaths } from '../common/paths.ts';
import { compareText } from '../common/text.ts';
import { getStatements, openFacts } from './facts.ts';
import type { MemoryNode } from './model/node.ts';
import type { FactFiles } from './storage/fact-files.ts';
import { openFactFiles } from './storage/fs/fact-files.ts';
import { openNodeFiles } from './storage/fs/node-files.ts';

type Paths = Pick<
  HomePaths,
  'nodesDir' | 'briefsDir' | 'memoryBackupDir' | 'factsDir' | 'ontologyFile' | 'ontologyConsentsFile'
>;

/**
 * Reads the statements of nodes as candidates for facts, with the dates of their turns; those that the ontology does not
 * name stay what they are, and no node changes. The files appear all at once, so that it may be killed and run again; a
 * home that has facts has read its turns already.
 */
export async function migrateNodeFacts(paths: Paths): Promise<void> {
  const { factsDir } = paths;
  if ((await readdir(factsDir).catch(() => [])).length > 0) return;
  const { nodes } = await (await openNodeFiles(paths)).load();
  const fresh = `${factsDir}-new`;
  await rm(fresh, { recursive: true, force: true });
  await writeFacts(nodes, { ...paths, factsDir: fresh });
  await rmdir(factsDir).catch(() => undefined);
  await rename(fresh, factsDir);
  await syncDir(path.dirname(factsDir));
}

async function writeFacts(nodes: readonly MemoryNode[], paths: Paths): Promise<void> {
  const files = await openFactFiles(paths, () => undefined);
  const texts = new Map<string, string>();
  const facts = await openFacts({
    factFiles: heldFiles(files, texts),
    config: Config.parse({}),
    clock: systemClock,
    redactor: { text: (text) => text },
    turnRegistry: { session: () => undefined, sessions: () => new Map(), areAbandoned: () => false },
    log: {
      ...silentLog,
      warn: (_, fields) => {
        throw fields?.['error'];
      },
    },
  });
  const turnNodes = nodes.filter(({ kind }) => kind === 'turn');
  for (const node of turnNodes.toSorted((one, other) => compareText(one.valid_from, other.valid_from))) {
    const source = { project: node.project, sessionId: node.session_id };
    const turn = getStatements(node);
    await facts.readPast(turn, source);
    for (let at = 1; at < node.turns.length; at += 1) await facts.readPast({ ...turn, user: '', parts: [] }, source);
  }
  await facts.close();
  for (const [name, after] of texts) await files.replace({ name, before: null, after });
}

/** Thousands of turns change the same few files, which are written once. */
function heldFiles(files: FactFiles, texts: Map<string, string>): FactFiles {
  const ontologies = new Map<string, ReturnType<FactFiles['ontology']>>();
  return {
    ...files,
    texts: async () => texts,
    async replace({ name, after }) {
      if (after === null) texts.delete(name);
      else texts.set(name, after);
      return true;
    },
    ontology(scope) {
      const state = ontologies.get(scope) ?? files.ontology(scope);
      ontologies.set(scope, state);
      return state;
    },
  };
}
