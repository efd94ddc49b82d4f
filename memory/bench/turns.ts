import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { CapturedTurn } from '../../common/turn.ts';
import { DOCUMENT } from '../ingest/documents.ts';
import { joinParts } from '../ingest/join-parts.ts';
import { readTurn } from '../ingest/turn-trust.ts';
import { parseDocument, parseSection } from '../model/markdown.ts';
import { getAnswers, type TurnText } from '../model/turn.ts';
import { readRecords } from '../storage/fs/log-file.ts';
import { latestTurns } from '../storage/fs/turn-log.ts';

/** A turn of the journal, whole. */
export interface PastTurn {
  /** In the folder of its project: the one it was said in may be gone, or stand in another project by now. */
  readonly turn: CapturedTurn;
  readonly project: string;
  readonly read: TurnText;
  /** Prompt and answers. */
  readonly text: string;
}

/** Every turn of a conversation in the journal, oldest first. Reads the files only: a daemon may be writing them. */
export async function readPastTurns(journalDir: string, isLeftOut: (turnId: string) => boolean): Promise<PastTurn[]> {
  const turns: PastTurn[] = [];
  for (const file of await findFiles(journalDir, '.log')) {
    // Imported turns are told as if they were captured: the importer would ask for whole sessions.
    const joined = joinParts(latestTurns(readRecords(await readFile(file))));
    for (const { seq: _, parts: __, tail: ___, imported: ____, project, ...turn } of joined.turns) {
      if (turn.part !== undefined || turn.model === DOCUMENT || isLeftOut(turn.turnId)) continue;
      const read = readTurn(turn);
      turns.push({
        turn: { ...turn, projectDir: path.resolve('/', project) },
        project,
        read,
        text: [read.user, ...getAnswers(read)].join('\n'),
      });
    }
  }
  return turns.sort((one, other) => one.turn.atMs - other.turn.atMs);
}

/** The memory of each turn, by the node files. */
export async function readNodeIds(nodesDir: string): Promise<ReadonlyMap<string, string>> {
  const ids = new Map<string, string>();
  for (const file of await findFiles(nodesDir, '.md')) {
    const document = parseDocument(await readFile(file, 'utf8'));
    if (typeof document === 'string') continue;
    for (const { raw } of document.sections) {
      const parsed = parseSection(raw, document.head);
      if (parsed.kind === 'node') for (const turnId of parsed.node.turns) ids.set(turnId, parsed.node.node_id);
    }
  }
  return ids;
}

async function findFiles(dir: string, ending: string): Promise<string[]> {
  const names = await readdir(dir, { recursive: true }).catch((): string[] => []);
  return names.filter((name) => name.endsWith(ending)).map((name) => path.join(dir, name));
}
