import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { useQuery } from '../client.ts';
import { amount, count, projectName, projectNames } from '../format.ts';
import { forgetPlace, List } from '../list.tsx';
import { Answer, Empty, Select, showAddress, Time } from '../parts.tsx';
import { getHash, type Route } from '../route.ts';
import type { Input, UiHit, UiSearch } from '../types.ts';
import { NodePanel } from './node.tsx';

const MOST = 500;
/** Ranked ones: a search takes longer the more it ranks. */
const RANKED = 50;
const MOST_RANKED = 200;
const AGES = [
  ['', 'any time'],
  ['1', 'today'],
  ['7', 'last 7 days'],
  ['30', 'last 30 days'],
] as const;

const NOTHING = { q: '', project: '', kind: '', origin: '', importance: '', days: '', quarantine: '' };
type Search = typeof NOTHING;

/** Outlives the view: what was typed is there again when the user comes back. */
const search = signal<Search>(NOTHING);
/** The query of which all is shown that can be ranked. */
const whole = signal('');

export function Memory({ id, query: linked }: Pick<Route, 'id' | 'query'>) {
  useAddress(id, linked);
  const wanted = searchInput(search.value);
  const [asked, setAsked] = useState(wanted);
  const results = useQuery('ui/search', asked, ['memory']);
  const isBehind = results.isOld || JSON.stringify(wanted) !== JSON.stringify(asked);
  useLayoutEffect(() => {
    // The engine finishes each search that it began, so letters that come meanwhile are one search.
    if (isBehind && !results.isOld) setAsked(wanted);
  });
  return (
    <div class={id === '' ? 'view fill' : 'view fill has-node'}>
      <div class="split">
        <section class="fill" aria-label="Search" aria-busy={isBehind}>
          <h1>Memory</h1>
          <search class="row filters">
            <input
              type="search"
              dir="auto"
              aria-label="Search memory"
              placeholder="Search memory ( / )"
              value={search.value.q}
              onInput={(event) => set({ q: event.currentTarget.value })}
              onKeyDown={(event) => event.key === 'ArrowDown' && focusList(event)}
            />
            <FilterFields projects={results.data?.projects ?? []} />
          </search>
          <Answer of={results}>{(data) => <Hits data={data} chosen={id} />}</Answer>
        </section>
        {id !== '' && <NodePanel key={id} id={id} />}
      </div>
    </div>
  );
}

/** In the address of the view, the search outlives a reload and can be linked. */
function useAddress(id: string, linked: Route['query']): void {
  useLayoutEffect(() => {
    if (Object.keys(linked).length === 0) return;
    search.value = { ...NOTHING, ...Object.fromEntries(Object.entries(linked).filter(([name]) => name in NOTHING)) };
  }, [linked]);
  useEffect(() => {
    const query = Object.fromEntries(Object.entries(search.value).filter(([, value]) => value !== ''));
    return showAddress({ view: 'memory', id, query });
  }, [id, search.value]);
}

function set(change: Partial<Search>): void {
  search.value = { ...search.value, ...change };
  forgetPlace(getPlace());
}

const getPlace = (): string => JSON.stringify(search.value);

function focusList(event: KeyboardEvent): void {
  event.preventDefault();
  document.querySelector<HTMLElement>('[aria-label="Memories"]')?.focus();
}

function searchInput({ q: query, days, quarantine, ...words }: Search): Input<'ui/search'> {
  const given = Object.fromEntries(Object.entries(words).filter(([, value]) => value !== ''));
  // Whole days of the user's zone, so that the same filter is the same question.
  const now = new Date();
  const firstDay = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1 - Number(days));
  const since = days === '' ? {} : { sinceMs: firstDay.getTime() };
  const limit = query.trim() === '' ? MOST : query === whole.value ? MOST_RANKED : RANKED;
  return { query, limit, ...given, ...since, ...(quarantine === '' ? {} : { quarantine: true }) };
}

function FilterFields({ projects }: { projects: readonly string[] }) {
  const chosen = search.value;
  const lists = {
    project: projectNames(projects).map((name, at) => [projects[at] ?? '', name] as const),
    kind: ['turn', 'tool', 'document', 'note', 'group'].map((each) => [each, each] as const),
    origin: ['user', 'assistant', 'tool', 'external'].map((each) => [each, each] as const),
    importance: ['HIGH', 'MED', 'LOW'].map((each) => [each, each.toLowerCase()] as const),
  };
  return (
    <>
      {Object.entries(lists).map(([name, values]) => (
        <Select
          key={name}
          label={name}
          value={chosen[name as keyof typeof lists]}
          of={[['', `any ${name}`], ...values]}
          onChoose={(value) => set({ [name]: value })}
        />
      ))}
      <Select label="time" value={chosen.days} of={AGES} onChoose={(days) => set({ days })} />
      <label>
        <input
          type="checkbox"
          checked={chosen.quarantine !== ''}
          onChange={(event) => set({ quarantine: event.currentTarget.checked ? 'only' : '' })}
        />{' '}
        quarantined
      </label>
    </>
  );
}

function Hits({ data: { hits, total, projects }, chosen }: { data: UiSearch; chosen: string }) {
  // These may answer an earlier question: only what they say themselves is true of them.
  if (projects.length === 0) {
    return (
      <Empty title="No memories yet">
        They are made while you work. Start a session with <code>comet-cc run claude</code>, or read what Claude Code
        kept: <code>comet-cc memory import claude</code>.
      </Empty>
    );
  }
  if (hits.length === 0) {
    return (
      <Empty title="Nothing fits">
        <button
          type="button"
          onClick={() => {
            search.value = NOTHING;
            document.querySelector<HTMLElement>('input[type=search]')?.focus();
          }}
        >
          Clear search and filters
        </button>
      </Empty>
    );
  }
  const place = getPlace();
  const isCut = hits.some(({ why }) => why !== '') && (total > hits.length || hits.length === MOST_RANKED);
  const far = hits.filter(({ isFar }) => isFar === true).length;
  return (
    <>
      <p class="row muted">
        <span role="status">
          {isCut ? 'best ' : total > hits.length ? `first ${amount(hits.length)} of ` : ''}
          {count(isCut ? hits.length : total, 'memory', 'memories')}
          {far > 0 && `; ${far === hits.length ? 'all' : far} in grey fit too little for recall`}
        </span>
        {isCut && hits.length < MOST_RANKED && (
          <button type="button" class="plain" onClick={() => (whole.value = search.value.q)}>
            Show more
          </button>
        )}
      </p>
      <List
        // Another search begins at its best.
        key={place}
        place={place}
        label="Memories"
        items={hits}
        getKey={(hit) => hit.node_id}
        rowHeight={76}
        chosen={chosen}
        onOpen={(hit) => (location.hash = getHash({ view: 'memory', id: hit.node_id }))}
        row={(hit) => <Hit hit={hit} />}
      />
    </>
  );
}

function Hit({ hit }: { hit: UiHit }) {
  return (
    <div class={hit.isFar ? 'line far' : 'line'}>
      <b>{hit.title}</b>
      <span class="clip">{hit.summary}</span>
      <span class="muted facts">
        <span>{projectName(hit.project)}</span>
        <Time at={hit.created_at} />
        <span>{hit.origin}</span>
        {hit.pinned && <span class="badge">pinned</span>}
        {hit.quarantined && <span class="badge warn">quarantined</span>}
        {hit.why !== '' && <span>{hit.why}</span>}
      </span>
    </div>
  );
}
