import type { DiffRow } from '../diff.ts';
import { List } from '../list.tsx';

const SIGNS = { place: '', same: ' ', removed: '−', added: '+' } as const;

export function Diff({ label, rows }: { label: string; rows: readonly DiffRow[] }) {
  return (
    <List
      class="diff"
      label={label}
      items={rows}
      rowHeight={22}
      row={({ kind, text }) => (
        <pre class={kind}>
          <span class="sign">{SIGNS[kind]}</span>
          {text}
        </pre>
      )}
    />
  );
}
