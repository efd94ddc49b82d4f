import { useEffect, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { type Column, dayName, dayNumber, getColumns, inUnit } from '../chart.ts';
import { useQuery } from '../client.ts';
import { amount, money, projectName, share } from '../format.ts';
import { List } from '../list.tsx';
import { Empty, Figure, isDark, Tabs, View } from '../parts.tsx';
import { getHash } from '../route.ts';
import type { Row, UiSavings } from '../types.ts';

const UNITS = ['money', 'tokens'] as const;
type Unit = (typeof UNITS)[number];
const BY = ['day', 'session', 'project'] as const;

export function Savings() {
  const savings = useQuery('ui/savings', {}, ['request']);
  return (
    <View title="Savings" of={savings}>
      {(data) =>
        data.days.length === 0 ? (
          <Empty title="Nothing was counted yet">
            The ledger compares each request with what it would have cost untouched. Start a session:{' '}
            <code>comet-cc run claude</code>.
          </Empty>
        ) : (
          <SavingsView data={data} />
        )
      }
    </View>
  );
}

function SavingsView({ data }: { data: UiSavings }) {
  const [unit, setUnit] = useState<Unit>('money');
  const [by, setBy] = useState<(typeof BY)[number]>('day');
  const sum = (key: keyof Row): number => data.days.reduce((all, day) => all + day[key], 0);
  return (
    <>
      <dl class="figures">
        <Figure label="Net saved" value={money(sum('net_saved_usd'))} note={`of ${money(sum('untouched_usd'))}`} />
        <Figure label="Sent" value={amount(sum('sent'))} note={`of ${amount(sum('original'))} tokens`} />
        <Figure label="Read from the cache" value={share(sum('cache_read'), sum('sent')) || '–'} />
        <Figure label="Memory's own calls" value={money(sum('own_usd'))} note={`${amount(sum('own'))} tokens`} />
      </dl>
      <div class="row">
        <Tabs label="Unit" of={UNITS} chosen={unit} onChoose={setUnit} />
      </div>
      <Chart columns={getColumns(data.days, unit)} days={data.days.map(({ day }) => day)} unit={unit} />
      <div class="row">
        <Tabs label="Rows" of={BY} getName={(each) => `by ${each}`} chosen={by} onChoose={setBy} />
      </div>
      <Table by={by} unit={unit} data={data} />
    </>
  );
}

function Chart({ columns, days, unit }: { columns: readonly Column[]; days: readonly string[]; unit: Unit }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current as HTMLDivElement;
    const style = getComputedStyle(element);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    const numbers = days.map(dayNumber);
    const [first = 0, last = 0] = [numbers[0], numbers.at(-1)];
    const show = unit === 'money' ? money : amount;
    const axis = { stroke: color('--muted'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false } };
    const options: UPlot.Options = {
      width: element.clientWidth,
      height: 220,
      padding: [null, 24, null, null],
      legend: { live: true },
      scales: {
        // One day alone has no width.
        x: { time: false, range: () => (first === last ? [first - 3, last + 3] : [first, last]) },
      },
      axes: [
        // A step below a day would write the same day twice.
        {
          ...axis,
          ...{ space: 80, incrs: [1, 2, 3, 7, 14, 30, 60, 90, 180, 365] },
          values: (_, ticks) => ticks.map((tick) => dayName(tick, { month: 'short', day: '2-digit' }, 'en')),
        },
        { ...axis, size: 70, values: (_, ticks) => ticks.map(show) },
      ],
      series: [
        { label: 'day', value: (_, at) => (at === null ? '–' : dayName(at)) },
        ...columns.map(({ name, tone }) => ({
          label: name,
          stroke: color(tone),
          width: 2,
          points: { show: days.length < 40 },
          value: (_: UPlot, value: number | null) => (value === null ? '–' : show(value)),
        })),
      ],
    };
    const plot = new UPlot(options, [numbers, ...columns.map(({ values }) => [...values])], element);
    const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 220 }));
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
    // While an answer streams the same figures come each second, and a new drawing loses what the mouse points at.
  }, [JSON.stringify([columns, days, unit]), isDark.value]);
  const text = columns.map(({ name, values }) => `${name}: ${(unit === 'money' ? money : amount)(values.at(-1) ?? 0)}`);
  return <div class="chart" ref={place} role="img" aria-label={`By day. On the newest day, ${text.join(', ')}`} />;
}

interface Line {
  readonly key: string;
  readonly name: string;
  readonly row: Row;
  readonly href?: string;
}

function getLines(by: (typeof BY)[number], { days, sessions, projects }: UiSavings): Line[] {
  if (by === 'day') return days.toReversed().map((row) => ({ key: row.day, name: row.day, row }));
  if (by === 'project') return projects.map((row) => ({ key: row.project, name: projectName(row.project), row }));
  return sessions.map((row) => ({
    key: row.session_id,
    name: row.title || row.session_id,
    row,
    href: getHash({ view: 'session', id: row.session_id }),
  }));
}

const HEADS = ['untouched', 'sent', 'own calls', 'saved', 'cache read', 'cache written'] as const;

function Table({ by, unit, data }: { by: (typeof BY)[number]; unit: Unit; data: UiSavings }) {
  const show = unit === 'money' ? money : amount;
  return (
    <>
      <p class="cells head" aria-hidden="true">
        <span>{by}</span>
        {HEADS.map((head) => (
          <span key={head}>{head}</span>
        ))}
      </p>
      <List
        label={`Savings by ${by}`}
        items={getLines(by, data)}
        getKey={({ key }) => key}
        rowHeight={37}
        row={({ name, row, href }) => {
          const { untouched, sent, own, saved } = inUnit(row, unit);
          return (
            <p class="cells">
              <span>{href === undefined ? name : <a href={href}>{name}</a>}</span>
              <span>{show(untouched)}</span>
              <span>{show(sent)}</span>
              <span>{show(own)}</span>
              <span class={saved < 0 ? 'warn' : ''}>{show(saved)}</span>
              <span>{amount(row.cache_read)}</span>
              <span>{amount(row.cache_write)}</span>
            </p>
          );
        }}
      />
    </>
  );
}
