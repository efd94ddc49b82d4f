import path from 'node:path';
import type { FileReferences } from '../ingest/file-references.ts';
import { isSearched } from '../model/node.ts';
import { memoryLine } from './format-memory.ts';
import { ASKED_MS, type Recaller } from './recall.ts';
import { staleNote } from './staleness.ts';
import type { RecallHit, SearchOptions } from './types.ts';

export interface FileSearchParts {
  readonly recaller: Pick<Recaller, 'search'>;
  readonly files: Pick<FileReferences, 'getAnchor' | 'freshness'>;
}

export function createFileSearch({ recaller, files }: FileSearchParts): Recaller['search'] {
  async function searchFile(file: string, query: string, options: Options): Promise<readonly RecallHit[]> {
    const anchor = files.getAnchor(file);
    if (anchor === null) return query === '' ? [] : recaller.search(query, options);
    const { directory } = anchor;
    const nodes = anchor.nodes.filter(isSearched);
    const scope = { ...options, projectDir: options.projectDir ?? directory };
    const hits = await recaller.search(query === '' ? anchor.path : query, scope);
    const about = nodes.filter((node) => options.sessionId === undefined || node.session_id === options.sessionId);
    const byId = new Map(hits.map((hit) => [hit.node.node_id, hit]));
    const freshness = await files.freshness(about, directory, ASKED_MS);
    const anchored = about.slice(0, options.top).map((node): RecallHit => {
      const changed = freshness.get(node.node_id)?.changes ?? [];
      const line = memoryLine(node, null, { note: staleNote(changed) });
      const hit = byId.get(node.node_id) ?? { node, score: 0, line, raw: null, lanes: {} };
      return { ...hit, anchored: true, ...(changed.length === 0 ? {} : { changed }) };
    });
    if (query !== '') anchored.sort((left, right) => right.score - left.score);
    const ids = new Set(about.map((node) => node.node_id));
    const name = path.basename(file).toLowerCase();
    const others = hits.filter((hit) => !ids.has(hit.node.node_id) && (query !== '' || names(hit, name)));
    return [...anchored, ...others].slice(0, options.top);
  }

  return async (query, { file, ...options }) =>
    file === undefined ? recaller.search(query, options) : searchFile(file, query.trim(), options);
}

type Options = Omit<SearchOptions, 'file'>;

function names({ node, raw }: RecallHit, name: string): boolean {
  return [node.summary, node.trigger, raw?.text ?? ''].some((text) => text.toLowerCase().includes(name));
}
