import { createSerialQueue } from '../common/async.ts';
import type { ArchiveReport, Archives } from './archive.ts';
import {
  createDocuments,
  type DocumentParts,
  type DocumentReport,
  type DocumentRequest,
  type ImportProgress,
} from './import-document.ts';
import {
  createTurnImport,
  type ImportTurnsReport,
  type ImportTurnsRequest,
  type TurnImportParts,
} from './import-turns.ts';
import type { TaskQueue } from './ingest/task-queue.ts';
import { createNotes, type NoteParts, type NoteRequest, type SavedNote } from './remember.ts';

/** What enters memory from files, from transcripts, and on request. */
export interface Import {
  /** Imports an export, all of it or nothing. @throws CometError `node_invalid`, naming line and key */
  importArchive(text: string): Promise<ArchiveReport>;
  /** Imports a text in chunks of at most 2,000 characters; known chunks stay as they are. */
  importDocument(request: DocumentRequest): Promise<DocumentReport>;
  /** Imports past turns with their own time; known turns stay as they are. */
  importTurns(request: ImportTurnsRequest): Promise<ImportTurnsReport>;
  /**
   * Saves a note; a known one stays as it is.
   *
   * @throws CometError `node_invalid` where redaction leaves nothing, or the user had the same note removed
   */
  remember(request: NoteRequest): Promise<SavedNote>;
}

type Parts = DocumentParts &
  TurnImportParts &
  NoteParts & {
    readonly archives: Archives;
    readonly taskQueue: TaskQueue;
    /** Settles when history is read. */
    readonly started: Promise<void>;
  };

export function createImports(parts: Parts): { readonly imports: Import; progress(): ImportProgress | null } {
  const { archives, started, taskQueue } = parts;
  const documents = createDocuments(parts);
  const importTurns = createTurnImport(parts);
  const remember = createNotes(parts);

  /** One at a time; `flush` waits for them. */
  function queued<I, O>(run: (request: I) => Promise<O>): (request: I) => Promise<O> {
    const serial = createSerialQueue(() => undefined);
    return async (request) => {
      await started;
      return new Promise((resolve, reject) => {
        void taskQueue.run('ingest', () => serial(() => run(request).then(resolve, reject)));
      });
    };
  }

  return {
    imports: {
      importArchive: archives.importArchive,
      importDocument: queued(documents.import),
      importTurns: queued(importTurns),
      remember: queued(remember),
    },
    progress: documents.progress,
  };
}
