import type { Clock } from '../common/async.ts';
import type { CapturedTurn } from '../common/turn.ts';
import { buildNodes } from './compaction/build-nodes.ts';
import type { TurnReader } from './ingest/turn-reader.ts';
import type { TurnRegistry } from './ingest/turn-registry.ts';
import { readTurn } from './ingest/turn-trust.ts';
import type { MemoryNode } from './model/node.ts';
import type { ProposedNode } from './models/language-model.ts';
import type { Store } from './storage/node-store.ts';
import type { Journal } from './storage/turn-log.ts';

export interface ChunkParts {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly turnRegistry: TurnRegistry;
  readonly store: Store;
  readonly turnReader: TurnReader;
  readonly newId: () => string;
}

/** A text from outside any conversation, as a turn, and the draft of its node. */
export interface Chunk {
  readonly turn: CapturedTurn;
  readonly draft: Omit<ProposedNode, 'turns'>;
}

export interface ChunkSource {
  readonly kind: 'document' | 'note';
  readonly project: string;
  /** Added to the nodes' `source_links`. */
  readonly link: string;
  readonly redacted: boolean;
  /** Ids of turns that the journal already has. */
  readonly kept: ReadonlySet<string>;
}

/** Makes chunks of one session durable, raw and as one node each, without a model. */
export async function saveChunks(
  chunks: readonly Chunk[],
  { kind, project, link, redacted, kept }: ChunkSource,
  { journal, clock, turnRegistry, store, turnReader, newId }: ChunkParts,
): Promise<readonly MemoryNode[]> {
  const shown = [];
  for (const { turn } of chunks) {
    const stored = { ...turn, seq: 0, project, redacted };
    const { seq: _, ...unstored } = stored;
    const record = kept.has(turn.turnId) ? stored : await journal.append(unstored);
    const read = readTurn(record);
    turnRegistry.record(record, read);
    turnReader.keep(read);
    shown.push(read);
  }
  const drafts = chunks.map(({ draft, turn }) => ({ ...draft, turns: [turn.turnId] }));
  const nodes = buildNodes(drafts, {
    sessionId: chunks[0]?.turn.sessionId ?? '',
    project,
    reason: 'external',
    kind,
    author: { by: 'rules' },
    nowMs: clock.now(),
    shown,
    newId,
  }).map((node) => ({ ...node, source_links: [link] }));
  await store.save(nodes, shown);
  return nodes;
}
