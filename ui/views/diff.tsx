import type { DiffRow as Row } from '../diff.ts';

const SIGNS = { place: '', same: ' ', removed: '−', added: '+' } as const;

export function DiffRow({ row: { kind, text } }: { row: Row }) {
  return (
    <pre class={kind}>
      <span class="sign">{SIGNS[kind]}</span>
      {text}
    </pre>
  );
}
