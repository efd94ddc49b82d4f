import type { Config } from '../../common/config.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { EVERYWHERE, type MemoryNode } from '../model/node.ts';
import type { Recaller } from './recall.ts';
import type { RecallHit, RecallRequest } from './types.ts';

interface Parts extends Pick<ServiceParts, 'catalogue' | 'turnReader' | 'getProject'> {
  readonly config: Pick<Config, 'recall'>;
}

/** Files that Claude Code reads itself and sends with every request. */
const CLIENT_FILE = /^document:(?:.*[\\/])?(?:CLAUDE(?:\.local)?|MEMORY)\.md$/;
/** Shorter lines say nothing about where they come from. */
const LEAST_LINE_CHARS = 12;

/** Adds what belongs to every project to a search in one of them, without what the client sends anyway. */
export function withClientDocuments(
  recaller: Recaller,
  { config, catalogue, turnReader, getProject }: Parts,
): Recaller {
  const documents = (isNear: (node: MemoryNode) => boolean): MemoryNode[] =>
    catalogue.all().filter((node) => node.kind === 'document' && isNear(node));
  const isShared = ({ project }: MemoryNode): boolean => project === EVERYWHERE;

  async function sentTurns({ sends, projectDir }: RecallRequest): Promise<Set<string>> {
    const sent = new Set<string>();
    if (sends === undefined) return sent;
    const project = getProject(projectDir);
    const own = documents((node) => isShared(node) || node.project === project);
    const files = own.filter(({ source_links }) => source_links.some((link) => CLIENT_FILE.test(link)));
    for (const turnId of files.flatMap(({ turns }) => turns)) {
      if (isSent((await turnReader.words(turnId))?.text ?? '', sends)) sent.add(turnId);
    }
    return sent;
  }

  return {
    ...recaller,
    async recall(request, signal) {
      const sent = await sentTurns(request);
      const own = { ...request, visibleTurns: new Set([...request.visibleTurns, ...sent]) };
      const hits = await recaller.recall(own, signal);
      const left = config.recall.maxResults - hits.length;
      const isOpen = (node: MemoryNode): boolean => isShared(node) && !node.turns.every((turnId) => sent.has(turnId));
      if ((request.scope ?? config.recall.scope) !== 'project' || left <= 0 || documents(isOpen).length === 0)
        return hits;
      return [...hits, ...(await recaller.recall({ ...own, projectDir: EVERYWHERE }, signal)).slice(0, left)];
    },
    async search(query, options) {
      const hits = await recaller.search(query, options);
      if (options.projectDir === undefined || options.sessionId !== undefined) return hits;
      if (documents(isShared).length === 0) return hits;
      const shared = await recaller.search(query, { ...options, projectDir: EVERYWHERE });
      return [...hits, ...shared].toSorted((one, other) => far(one) - far(other)).slice(0, options.top);
    },
  };
}

const far = ({ isFar }: RecallHit): number => (isFar === true ? 1 : 0);

/** Most of the text: a part of it may be redacted, or have changed since. */
function isSent(text: string, sends: (text: string) => boolean): boolean {
  const all = text.split('\n').map((line) => line.trim());
  const lines = all.filter(({ length }) => length >= LEAST_LINE_CHARS);
  const chars = (some: readonly string[]): number => some.reduce((sum, { length }) => sum + length, 0);
  return lines.length > 0 && chars(lines.filter(sends)) * 2 >= chars(lines);
}
