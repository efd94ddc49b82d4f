import { setTimeout as after } from 'node:timers/promises';
import { CometError } from '../common/errors.ts';
import type { Redactor } from '../redact/index.ts';
import { documentSession, documentTurn } from './ingest/chunk-document.ts';
import { stripOwnBlocks } from './ingest/content-blocks.ts';
import type { MemoryNode } from './model/node.ts';
import { type ChunkParts, saveChunks } from './save-chunks.ts';
import type { Indexer } from './storage/indexer.ts';
import type { NodeRegistry } from './storage/node-registry.ts';
import { anchorsOf, tagsOf } from './text/keywords.ts';
import { clip } from './text/sanitize-line.ts';

export interface NoteRequest {
  readonly text: string;
  /** Absolute; the memory of this directory's project takes it in. */
  readonly projectDir: string;
}

/** Stands where a document has its path; no file has a relative one. */
const NOTE = 'note';
const SUMMARY_CHARS = 600;
const TRIGGER_CHARS = 300;
/** Whoever has something noted may ask for it at once; a whole index that is made anew is not waited for. */
const INDEXED_MS = 2_000;

/** `isNew` is false where the same note is in memory already. */
export interface SavedNote {
  readonly node: MemoryNode;
  readonly isNew: boolean;
}

export interface NoteParts extends ChunkParts {
  readonly projectOf: (directory: string | null) => string;
  readonly redactor: Redactor;
  readonly catalogue: NodeRegistry;
  readonly isGone: (turnId: string) => boolean;
  readonly indexer: Pick<Indexer, 'settled'>;
}

/**
 * What a program asks to have remembered. Who made it ask is not known, so that its origin is `tool`: found when it is
 * looked for, never in a system channel.
 */
export function createNotes(parts: NoteParts): (request: NoteRequest) => Promise<SavedNote> {
  const { projectOf, clock, redactor, catalogue, turnReader, indexer, isGone } = parts;

  async function remember(request: NoteRequest): Promise<SavedNote> {
    const text = redactor.text(stripOwnBlocks(request.text)).trim();
    if (text === '')
      throw new CometError('node_invalid', 'nothing is left of it to remember; say it in your own words');
    const project = projectOf(request.projectDir);
    const source = { file: NOTE, projectDir: request.projectDir, project };
    const turn = documentTurn({ from: 0, to: text.length, text, headings: [] }, source, clock.now());
    const [held] = catalogue.nodesCovering(turn.turnId).flatMap((id) => catalogue.get(id) ?? []);
    if (held !== undefined) return { node: held, isNew: false };
    if (isGone(turn.turnId)) {
      throw new CometError('node_invalid', 'the user had just this removed from memory; it is not taken in again');
    }
    const about = anchorsOf(text).join(', ');
    const draft = {
      summary: clip(text.replace(/\s+/g, ' '), SUMMARY_CHARS),
      trigger: clip(`When I need what was noted${about === '' ? '' : ` about ${about}`}`, TRIGGER_CHARS),
      topic_tags: tagsOf('', text, catalogue.tags(project)),
      importance: 'MED',
      recall_mode: 'active',
      facts: [],
      origin: 'tool',
    } as const;
    const kept = new Set((await turnReader.turns(documentSession(source))).map(({ turnId }) => turnId));
    const noted = { kind: 'note', project, link: NOTE, redacted: text !== request.text.trim(), kept } as const;
    const [node] = await saveChunks([{ turn, draft }], noted, parts);
    if (node === undefined) throw new Error('a note has one node');
    await Promise.race([indexer.settled(), after(INDEXED_MS, undefined, { ref: false })]);
    return { node, isNew: true };
  }

  return remember;
}
