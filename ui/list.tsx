import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { moveInList } from './keys.ts';

interface ListProps<T> {
  readonly items: readonly T[];
  readonly label: string;
  /** By default its place, for lists whose rows never move. */
  readonly getKey?: (item: T, at: number) => string;
  readonly row: (item: T, at: number) => ComponentChildren;
  /** Height of a row before it is measured, in px. */
  readonly rowHeight: number;
  /** Makes each row something to choose, with Enter or a click. */
  readonly onOpen?: (item: T) => void;
  /** With the row that the keyboard is at, or that was clicked. */
  readonly onActive?: (item: T) => void;
  /** Key of the row that is open. */
  readonly chosen?: string;
  /** Names the list for the way back, on which it is scrolled to where it was left. */
  readonly place?: string;
  readonly class?: string;
}

const byPlace = (_: unknown, at: number): string => String(at);

let lists = 0;
/** What lists were scrolled to, with the heights of their rows. */
const left = new Map<
  string,
  Pick<Virtualizer<HTMLDivElement, HTMLElement>, 'measurementsCache'> & { offset: number }
>();

/** It begins at its top the next time. */
export function forgetPlace(place: string): void {
  left.delete(place);
}

/** A list that renders only the rows in sight, however many there are. */
export function List<T>(props: ListProps<T>) {
  const { items, label, getKey = byPlace, row, rowHeight, onOpen, onActive, place = '', class: name = '' } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [, redraw] = useState({});
  /** The key stays with its row when others come before it. */
  const [{ key: activeKey, at: lastAt }, setPlace] = useState({ key: '', at: -1 });
  const id = useMemo(() => `list-${++lists}`, []);
  const virtual = useMemo(() => new Virtualizer<HTMLDivElement, HTMLElement>(getOptions(0, rowHeight, scroller)), []);
  const before = useMemo(() => left.get(place), []);
  virtual.setOptions({
    initialMeasurementsCache: before?.measurementsCache ?? [],
    ...getOptions(items.length, rowHeight, scroller),
    getItemKey: (at) => getKey(items[at] as T, at),
    onChange: () => redraw({}),
  });
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());
  useLayoutEffect(() => {
    const element = scroller.current as HTMLDivElement;
    element.scrollTop = before?.offset ?? 0;
    return () => {
      const { measurementsCache } = virtual;
      if (place !== '') left.set(place, { measurementsCache, offset: element.scrollTop });
    };
  }, []);
  const found = lastAt < 0 ? -1 : items.findIndex((item, at) => getKey(item, at) === activeKey);
  // In place of one that is gone, its neighbor.
  const active = found < 0 ? Math.min(lastAt, items.length - 1) : found;
  const setActive = (at: number): void => {
    const item = items[at];
    if (item === undefined) return;
    setPlace({ key: getKey(item, at), at });
    onActive?.(item);
  };
  const rows = virtual.getVirtualItems();
  const options = onOpen !== undefined;
  const choose = (at: number): void => {
    setActive(at);
    onOpen?.(items[at] as T);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    if (event.key === 'Enter' && active >= 0) choose(active);
    const next = moveInList(event.key, active, items.length);
    if (next === null || event.altKey || event.ctrlKey || event.metaKey) return;
    // Else the browser scrolls, also within a row that is longer than the list; its end is known here alone.
    if (!(options || ['Home', 'End'].includes(event.key))) return;
    event.preventDefault();
    if (options) setActive(next);
    virtual.scrollToIndex(next);
  };
  const isShown = rows.some(({ index }) => index === active);
  return (
    <div
      ref={scroller}
      class={`list ${name}`}
      role={options ? 'listbox' : 'group'}
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={options && isShown ? `${id}-${active}` : undefined}
      onKeyDown={onKeyDown}
      onFocus={({ target, currentTarget }) => {
        // With the keyboard; a click chooses its own row.
        if (options && active < 0 && target === currentTarget && currentTarget.matches(':focus-visible')) setActive(0);
      }}
    >
      <div class="list-body" role="presentation" style={{ height: `${virtual.getTotalSize()}px` }}>
        {rows.map(({ index, key, start }) => (
          <div
            key={key}
            id={`${id}-${index}`}
            ref={(element) => virtual.measureElement(element)}
            data-index={index}
            class={index === active ? 'list-row active' : 'list-row'}
            style={{ transform: `translateY(${start}px)` }}
            role={options ? 'option' : undefined}
            aria-selected={options ? String(key) === props.chosen : undefined}
            onClick={options ? () => choose(index) : undefined}
          >
            {row(items[index] as T, index)}
          </div>
        ))}
      </div>
    </div>
  );
}

function getOptions(count: number, rowHeight: number, scroller: { readonly current: HTMLDivElement | null }) {
  return {
    count,
    estimateSize: () => rowHeight,
    getScrollElement: () => scroller.current,
    overscan: 6,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
  };
}
