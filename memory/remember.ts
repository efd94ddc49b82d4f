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
  /** Absolute; selects the project. */
  readonly projectDir: string;
}

/** Replaces the path of a document; no file has a relative one. */
const NOTE = 'note';
const SUMMARY_CHARS = 600;
const TRIGGER_CHARS = 300;
/** A note should be found at once, but a rebuild of the whole index is not waited for. */
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

/** Saves notes of programs. Who asked a program to note something is unknown, so the origin is `tool`. */
export function createNotes(parts: NoteParts): (request: NoteRequest) => Promise<SavedNote> {
  const { projectOf, clock, redactor, catalogue, turnReader, indexer, isGone } = parts;

  async function remember(request: NoteRequest): Promise<SavedNote> {
    const text = redactor.text(stripOwnBlocks(request.text)).trim();
    if (text === '')
      throw new CometError('node_invalid', 'nothing is left of the note after redaction; say it in your own words');
    const project = projectOf(request.projectDir);
    const source = { file: NOTE, projectDir: request.projectDir, project };
    const turn = documentTurn({ from: 0, to: text.length, text, headings: [] }, source, clock.now());
    const [held] = catalogue.nodesCovering(turn.turnId).flatMap((id) => catalogue.get(id) ?? []);
    if (held !== undefined) return { node: held, isNew: false };
    if (isGone(turn.turnId)) {
      throw new CometError('node_invalid', 'the user removed this very note from memory; it is not saved again');
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
