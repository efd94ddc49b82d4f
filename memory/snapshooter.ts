import type { Catalogue } from './catalogue.ts';
import { type Archive, parseArchive, renderArchive, scrubArchive } from './core/archive.ts';
import type { MemoryDeps } from './deps.ts';

/** Memory as it was before a change. Raw turns are in no snapshot: the journal has them. */
export interface Snapshooter {
  take(reason: 'edit' | 'rm' | 'import' | 'rollback'): Promise<string>;
  read(id: string): Promise<Archive>;
  /** What is removed for good is removed from the past too; `isLive` spares nodes that only share a turn with it. */
  scrub(ids: ReadonlySet<string>, ends: ReadonlySet<string>, isLive: (id: string) => boolean): Promise<void>;
}

type Parts = Pick<MemoryDeps, 'nodeFiles' | 'snapshots'> & { readonly catalogue: Catalogue };

export function createSnapshooter({ nodeFiles, snapshots, catalogue }: Parts): Snapshooter {
  return {
    async take(reason) {
      const archive = { nodes: catalogue.every(), briefs: await nodeFiles.briefs() };
      return (await snapshots.write(reason, renderArchive(archive, 'jsonl'))).id;
    },
    read: async (id) => parseArchive(await snapshots.read(id)),
    scrub: (ids, ends, isLive) =>
      snapshots.rewrite((text) => {
        const archive = parseArchive(text);
        const scrubbed = scrubArchive(
          archive,
          ({ node_id, turns }) => ids.has(node_id) || (turns.some((end) => ends.has(end)) && !isLive(node_id)),
          ends,
        );
        return renderArchive(scrubbed, 'jsonl');
      }),
  };
}
