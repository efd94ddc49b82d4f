import { setImmediate as nextTick } from 'node:timers/promises';
import type { CapturedTurn } from '../common/turn.ts';
import type { Redactor } from '../redact/index.ts';
import { type Chunk, chunkDocument, documentDraft, documentSession, documentTurn } from './ingest/chunk-document.ts';
import { stripOwnBlocks } from './ingest/content-blocks.ts';
import { isFromText, type MemoryNode } from './model/node.ts';
import { type ChunkParts, saveChunks } from './save-chunks.ts';
import type { Indexer } from './storage/indexer.ts';
import type { NodeRegistry } from './storage/node-registry.ts';
import type { SnapshotService } from './storage/snapshots.ts';

export interface DocumentRequest {
  /** Absolute path, the identity of the document: importing it again removes chunks that it no longer has. */
  readonly file: string;
  readonly text: string;
  /** Selects the project by a directory in it. */
  readonly projectDir: string;
  /** Also imports chunks that the user removed. */
  readonly again?: boolean;
}

/** Counts of chunks; all but `outdated` add up to `chunks`. */
export interface DocumentReport {
  readonly kind: 'document';
  readonly file: string;
  /** The session that `restoreSession` takes. */
  readonly session_id: string;
  readonly chunks: number;
  readonly added: number;
  /** In memory before, from this file or another one. */
  readonly unchanged: number;
  /** Removed, because the file no longer has them. */
  readonly outdated: number;
  /** Skipped, because the user had removed them. */
  readonly skipped: number;
}

/** Chunks written together; the thread is free between two batches. */
const BATCH = 50;

/** Chunks of a document written so far; with `turns`, bytes of transcripts read. */
export interface ImportProgress {
  readonly file: string;
  readonly done: number;
  readonly total: number;
  readonly turns?: number;
}

/** Imports the user's own files. */
export interface Documents {
  import(request: DocumentRequest): Promise<DocumentReport>;
  progress(): ImportProgress | null;
}

export interface DocumentParts extends ChunkParts {
  readonly projectOf: (directory: string | null) => string;
  readonly redactor: Redactor;
  readonly catalogue: NodeRegistry;
  readonly indexer: Indexer;
  readonly snapshooter: SnapshotService;
  /** The user removed the chunk: it is imported again only on request. */
  readonly isGone: (turnId: string) => boolean;
}

interface Piece {
  readonly chunk: Chunk;
  readonly turn: CapturedTurn;
}

export function createDocuments(parts: DocumentParts): Documents {
  const { journal, projectOf, clock, redactor, catalogue, indexer, snapshooter, store, turnReader } = parts;
  let progress: ImportProgress | null = null;

  async function importText(request: DocumentRequest): Promise<DocumentReport> {
    const { file, projectDir } = request;
    const source = { file, projectDir, project: projectOf(projectDir) };
    const session_id = documentSession(source);
    // Before chunking: half of a secret is not recognized.
    const text = await redactor.full.text(stripOwnBlocks(request.text));
    const pieces = [...new Map(chunkDocument(text).map((chunk) => pieceOf(chunk))).values()];
    const wanted = new Set(pieces.map(({ turn }) => turn.turnId));
    const isHeld = ({ turn }: Piece): boolean => catalogue.nodesCovering(turn.turnId).length > 0;
    const skips = ({ turn }: Piece): boolean => request.again !== true && parts.isGone(turn.turnId);
    const fresh = pieces.filter((piece) => !isHeld(piece) && !skips(piece));
    const outdated = catalogue
      .all()
      .filter((node) => isPieceOf(node) && !node.turns.some((turnId) => wanted.has(turnId)));
    if (fresh.length + outdated.length > 0) await snapshooter.take('import');
    const kept = new Set((await turnReader.turns(session_id)).map(({ turnId }) => turnId));
    for (let at = 0; at < fresh.length; at += BATCH) {
      progress = { file, done: at, total: fresh.length };
      await save(fresh.slice(at, at + BATCH));
      await nextTick();
    }
    await drop(outdated);
    const skipped = pieces.filter((piece) => !isHeld(piece)).length;
    const unchanged = pieces.length - fresh.length - skipped;
    return {
      kind: 'document',
      file,
      session_id,
      chunks: pieces.length,
      added: fresh.length,
      unchanged,
      outdated: outdated.length,
      skipped,
    };

    function pieceOf(chunk: Chunk): readonly [string, Piece] {
      const turn = documentTurn(chunk, source, clock.now());
      return [turn.turnId, { chunk, turn }];
    }

    function isPieceOf(node: MemoryNode): boolean {
      return node.session_id === session_id && isFromText(node);
    }

    async function save(batch: readonly Piece[]): Promise<void> {
      const known = catalogue.tags(source.project);
      await saveChunks(
        batch.map(({ chunk, turn }) => ({ turn, draft: documentDraft(chunk, file, known) })),
        { kind: 'document', project: source.project, link: `document:${file}`, redacted: text !== request.text, kept },
        parts,
      );
    }
  }

  /** Drops chunks that the file no longer has: nodes stay in the snapshot, raw text nowhere. */
  async function drop(outdated: readonly MemoryNode[]): Promise<void> {
    if (outdated.length === 0) return;
    const turnIds = outdated.flatMap((node) => node.turns);
    await store.remove(outdated.map((node) => node.node_id));
    const sessionId = outdated[0]?.session_id ?? '';
    await journal.remove(sessionId, turnIds);
    turnReader.drop(turnIds);
    await indexer.optimize();
  }

  return {
    import: (request) =>
      importText(request).finally(() => {
        progress = null;
      }),
    progress: () => progress,
  };
}
