import { setTimeout as after, setImmediate as nextTick } from 'node:timers/promises';
import { createMutex } from '../common/async.ts';
import { CometError } from '../common/errors.ts';
import { slices } from '../common/map.ts';
import { clip } from '../common/text.ts';
import type { CapturedTurn } from '../common/turn.ts';
import type { Archives } from './archive.ts';
import { buildNodes } from './compaction/build-nodes.ts';
import { createTurnImport } from './import-turns.ts';
import { stripOwnBlocks } from './ingest/content-blocks.ts';
import { chunkDocument, documentDraft, documentSession, documentTurn } from './ingest/documents.ts';
import { readTurn } from './ingest/turn-trust.ts';
import { isFromText, type MemoryNode } from './model/node.ts';
import type { ProposedNode } from './models/model.ts';
import type { MemoryParts } from './parts.ts';
import { getAnchors, getTags } from './text/keywords.ts';

export type Import = ReturnType<typeof createImports>['imports'];

/** What enters memory from files, from transcripts, and on request. */
export function createImports(parts: MemoryParts & { readonly archives: Archives; readonly started: Promise<void> }) {
  const { archives, started, taskQueue, turnRegistry } = parts;
  const documents = createDocuments(parts);

  /** One at a time; `flush` waits for them. */
  function queued<I, O>(run: (request: I) => Promise<O>): (request: I) => Promise<O> {
    const lock = createMutex();
    return async (request) => {
      await started;
      return taskQueue.run('ingest', () => lock(() => run(request)));
    };
  }

  return {
    imports: {
      importArchive: archives.importArchive,
      /** Imports a text in chunks of at most 2,000 characters; known chunks stay as they are. */
      importDocument: queued(documents.import),
      hasTurns: (sessionId: string): Promise<boolean> =>
        started.then(() => turnRegistry.session(sessionId) !== undefined),
      /** Imports past turns with their own time; known turns stay as they are. */
      importTurns: queued(createTurnImport(parts)),
      /**
       * Saves a note; a known one stays as it is.
       * @throws CometError `node_invalid` where redaction leaves nothing, or the user had the same note removed
       */
      remember: queued(createNotes(parts)),
    },
    progress: documents.progress,
  };
}

interface ChunkSource {
  readonly kind: 'document' | 'note';
  readonly project: string;
  /** Added to the nodes' `source_links`. */
  readonly link: string;
  readonly redacted: boolean;
  /** Ids of turns that the journal already has. */
  readonly kept: ReadonlySet<string>;
}

/** Makes chunks of one session durable, raw and as one node each, without a model. */
async function saveChunks(
  chunks: readonly { readonly turn: CapturedTurn; readonly draft: Omit<ProposedNode, 'turns'> }[],
  { kind, project, link, redacted, kept }: ChunkSource,
  { journal, clock, turnRegistry, store, turnReader, compactor }: MemoryParts,
): Promise<readonly MemoryNode[]> {
  const shown = [];
  for (const { turn } of chunks) {
    const own = { ...turn, project, redacted };
    const record = kept.has(turn.turnId) ? { ...own, seq: 0 } : await journal.append(own);
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
    newId: compactor.newId,
  }).map((node) => ({ ...node, source_links: [link] }));
  await store.save(nodes, shown);
  return nodes;
}

interface DocumentRequest {
  /** Absolute path, the identity of the document: importing it again removes chunks that it no longer has. */
  readonly file: string;
  readonly text: string;
  /** Selects the project by a directory in it. */
  readonly projectDir: string;
  /** Also imports chunks that the user removed. */
  readonly again?: boolean;
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
function createDocuments(parts: MemoryParts) {
  const { journal, getProject, clock, redactor, catalogue, indexer, snapshooter, store, turnReader } = parts;
  let progress: ImportProgress | null = null;

  /** Counts of chunks; all but `outdated` add up to `chunks`. */
  async function importText(request: DocumentRequest) {
    const { projectDir } = request;
    const file = redactor.text(request.file);
    const source = { file, projectDir, project: getProject(projectDir) };
    const session_id = documentSession(source);
    // Before chunking: half of a secret is not recognized.
    const text = await redactor.inSlices.text(stripOwnBlocks(request.text));
    const read = chunkDocument(text).map((chunk) => ({ chunk, turn: documentTurn(chunk, source, clock.now()) }));
    const pieces = new Map(read.map((piece) => [piece.turn.turnId, piece]));
    const isHeld = (turnId: string): boolean => catalogue.nodesCovering(turnId).length > 0;
    const skips = (turnId: string): boolean => request.again !== true && parts.removal.isGone(turnId);
    const fresh = [...pieces.values()].filter(({ turn: { turnId } }) => !isHeld(turnId) && !skips(turnId));
    const own = catalogue.all().filter((node) => node.session_id === session_id && isFromText(node));
    const outdated = own.filter((node) => !node.turns.some((turnId) => pieces.has(turnId)));
    if (fresh.length + outdated.length > 0) await snapshooter.take('import');
    const kept = new Set((await turnReader.turns(session_id)).map(({ turnId }) => turnId));
    const { project } = source;
    const redacted = text !== request.text;
    const marks = { kind: 'document', project, link: `document:${file}`, redacted, kept } as const;
    for (const [at, batch] of slices(fresh, BATCH).entries()) {
      progress = { file, done: at * BATCH, total: fresh.length };
      const knownTags = catalogue.tags(project);
      const drafted = batch.map(({ chunk, turn }) => ({ turn, draft: documentDraft(chunk, file, knownTags) }));
      await saveChunks(drafted, marks, parts);
      await nextTick();
    }
    await drop(outdated);
    const skipped = [...pieces.keys()].filter((turnId) => !isHeld(turnId)).length;
    const [chunks, added] = [pieces.size, fresh.length];
    return {
      kind: 'document' as const,
      file,
      /** The session that `restoreSession` takes. */
      session_id,
      ...{ chunks, added, unchanged: chunks - added - skipped },
      /** Removed, because the file no longer has them. */
      outdated: outdated.length,
      /** Because the user had removed them. */
      skipped,
    };
  }

  /** Drops chunks that the file no longer has: nodes stay in the snapshot, raw text nowhere. */
  async function drop(outdated: readonly MemoryNode[]): Promise<void> {
    if (outdated.length === 0) return;
    const turnIds = outdated.flatMap((node) => node.turns);
    await store.remove(outdated.map((node) => node.node_id));
    await journal.remove(outdated[0]?.session_id ?? '', turnIds);
    turnReader.drop(turnIds);
    await indexer.optimize();
  }

  return {
    import: (request: DocumentRequest) =>
      importText(request).finally(() => {
        progress = null;
      }),
    progress: (): ImportProgress | null => progress,
  };
}

/** Replaces the path of a document; no file has a relative one. */
const NOTE = 'note';
const SUMMARY_CHARS = 600;
const TRIGGER_CHARS = 300;
/** A note should be found at once, but a rebuild of the whole index is not waited for. */
const INDEXED_MS = 2_000;

/** Notes of programs have the origin `tool`; `isNew` is false where the same note is in memory already. */
function createNotes(parts: MemoryParts) {
  const { getProject, clock, redactor, catalogue, turnReader, indexer, removal } = parts;

  return async (request: Pick<DocumentRequest, 'text' | 'projectDir'>) => {
    const text = (await redactor.inSlices.text(stripOwnBlocks(request.text))).trim();
    if (text === '')
      throw new CometError('node_invalid', 'nothing is left of the note after redaction; say it in your own words');
    const project = getProject(request.projectDir);
    const source = { file: NOTE, projectDir: request.projectDir, project };
    const turn = documentTurn({ from: 0, to: text.length, text, headings: [] }, source, clock.now());
    const [held] = catalogue.nodesCovering(turn.turnId).flatMap((id) => catalogue.get(id) ?? []);
    if (held !== undefined) return { node: held, isNew: false };
    if (removal.isGone(turn.turnId))
      throw new CometError('node_invalid', 'the user removed this very note from memory; it is not saved again');
    const about = getAnchors(text).join(', ');
    const draft = {
      summary: clip(text.replace(/\s+/g, ' '), SUMMARY_CHARS),
      trigger: clip(`When I need what was noted${about === '' ? '' : ` about ${about}`}`, TRIGGER_CHARS),
      topic_tags: getTags('', text, catalogue.tags(project)),
      importance: 'MED',
      recall_mode: 'active',
      facts: [],
      origin: 'tool',
    } as const;
    const keptIds = new Set((await turnReader.turns(documentSession(source))).map(({ turnId }) => turnId));
    const noted = { kind: 'note', project, link: NOTE, redacted: text !== request.text.trim(), kept: keptIds } as const;
    const [node] = await saveChunks([{ turn, draft }], noted, parts);
    if (node === undefined) throw new Error('a note has one node');
    await Promise.race([indexer.settled(), after(INDEXED_MS, undefined, { ref: false })]);
    return { node, isNew: true };
  };
}
