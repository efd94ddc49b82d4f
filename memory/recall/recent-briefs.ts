import { DOCUMENT } from '../ingest/chunk-document.ts';
import type { NodeFiles, StoredBrief } from '../storage/node-files.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';

const BRIEFS_TRIED = 6;

/** Of the sessions whose memories are the newest; there may be thousands, and a prompt waits. */
export async function recentBriefs(
  { catalogue, nodeFiles }: { readonly catalogue: Pick<NodeRegistry, 'all'>; readonly nodeFiles: NodeFiles },
  { project, sessionId }: { readonly project: string; readonly sessionId: string },
): Promise<StoredBrief[]> {
  const ids = new Set<string>();
  for (const node of catalogue.all()) {
    if (node.project !== project || node.written_by === DOCUMENT || node.session_id === sessionId) continue;
    if (ids.add(node.session_id).size === BRIEFS_TRIED) break;
  }
  const briefs = await Promise.all([...ids].map((id) => nodeFiles.readBrief(id)));
  return briefs.flatMap((brief) => brief ?? []);
}
