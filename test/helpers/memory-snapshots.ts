import { CometError } from '../../common/errors.ts';
import type { SnapshotInfo, Snapshots } from '../../memory/storage/fs/snapshot-files.ts';

/** Snapshots that last as long as the test, `most` of them. */
export function createMemorySnapshots(most = 20): Snapshots {
  const kept: { info: SnapshotInfo; text: string }[] = [];
  let made = 0;
  return {
    list: async () => kept.map(({ info }) => info),
    async write(reason, text) {
      made += 1;
      const at = new Date(1_800_000_000_000 + made).toISOString();
      const info = { id: `snapshot-${made}-${reason}`, at, reason, bytes: text.length };
      kept.unshift({ info, text });
      kept.splice(most);
      return info;
    },
    async read(prefix) {
      const found = kept.filter(({ info }) => info.id.startsWith(prefix));
      if (found.length > 1) throw new CometError('ambiguous_id', prefix);
      if (found[0] === undefined) throw new CometError('not_found', prefix);
      return found[0].text;
    },
    async rewrite(change) {
      for (const each of kept) each.text = await change(each.text);
    },
  };
}
