import { useMemo } from 'preact/hooks';
import { useQuery } from '../client.ts';
import { diffRows } from '../diff.ts';
import { when } from '../format.ts';
import { Answer, Empty, now } from '../parts.tsx';
import type { Result } from '../types.ts';
import { Diff } from './diff.tsx';

/** What each kept change did to a text, newest first. */
export function Versions({ kind, name }: { kind: 'memory' | 'topic'; name: string }) {
  const history = useQuery('ui/history', { kind, name }, ['memory', 'library']);
  return <Answer of={history}>{(data) => <Changes history={data} />}</Answer>;
}

const BEFORE: Readonly<Record<string, string>> = {
  edit: 'an edit',
  rm: 'a removal',
  import: 'an import',
  rollback: 'a rollback',
  consolidate: 'the pages were written',
};

function Changes({ history: { now: text, versions } }: { history: Result<'ui/history'> }) {
  const rows = useMemo(
    () =>
      diffRows(
        versions.map(({ at, reason, text: removed }, place) => ({
          at: `until ${when(at, now.value)}, before ${BEFORE[reason] ?? reason}`,
          removed,
          added: versions[place - 1]?.text ?? text,
          bytes: 0,
        })),
      ),
    [versions],
  );
  if (rows.length === 0) {
    return <Empty title="No earlier version is kept">The last 20 changes of memory are kept as snapshots.</Empty>;
  }
  return <Diff label="Earlier versions, newest first" rows={rows} />;
}
