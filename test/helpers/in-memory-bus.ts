import type { Bus } from '../../memory/share/bus.ts';
import type { Row } from '../../memory/share/row.ts';

/** A bus for machines of one process. */
export function createInMemoryBus(): Bus {
  const logs = new Map<string, Row[]>();
  const changes = new Map<string, number>();
  const note = (machine: string): void => void changes.set(machine, (changes.get(machine) ?? 0) + 1);
  const getRows = (machine: string): Row[] => logs.get(machine) ?? [];
  return {
    machines: async () => [...logs.keys()],
    append: async (machine, rows) => {
      note(machine);
      if (rows.length > 0) logs.set(machine, [...getRows(machine), ...rows]);
    },
    read: async (machine, from, limit) =>
      getRows(machine)
        .filter(({ sequence }) => sequence === 0 || sequence >= from)
        .slice(0, limit + 1),
    stamp: async (machine) => (logs.has(machine) ? String(changes.get(machine)) : null),
    last: async (machine) => getRows(machine).at(-1) ?? null,
    erase: async (machine, sequences) => {
      note(machine);
      const kept = getRows(machine).filter(({ sequence }) => !sequences.includes(sequence));
      if (kept.length > 0) logs.set(machine, kept);
      else logs.delete(machine);
    },
    drop: async (machine) => {
      logs.delete(machine);
    },
    close: () => undefined,
  };
}
