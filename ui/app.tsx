import { signal } from '@preact/signals';
import type { FunctionComponent } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { link, update, version } from './client.ts';
import { Icon } from './icons.tsx';
import { GO, pressKey } from './keys.ts';
import { areKeysOn, dropNotice, Notices, switchKeys, takeBack } from './parts.tsx';
import { getHash, parseRoute, type Route, VIEWS, type View } from './route.ts';
import { Graph } from './views/graph.tsx';
import { Health } from './views/health.tsx';
import { Library } from './views/library.tsx';
import { Memory } from './views/memory.tsx';
import { Now } from './views/now.tsx';
import { Savings } from './views/savings.tsx';
import { Session } from './views/session.tsx';

const PAGES: Record<View, readonly [name: string, FunctionComponent<Pick<Route, 'id' | 'query'>>]> = {
  now: ['Now', Now],
  savings: ['Savings', Savings],
  session: ['Sessions', Session],
  memory: ['Memory', Memory],
  graph: ['Graph', Graph],
  library: ['Library', Library],
  health: ['Health', Health],
};

const route = signal(parseRoute(location.hash));
addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash);
  // What was said of the last view; a way back stays.
  dropNotice(undefined);
});

export function App() {
  useKeys();
  const { view, id, query } = route.value;
  const [name, Page] = PAGES[view];
  useEffect(() => {
    document.title = `${name} · comet-cc`;
  }, [view]);
  useFocus();
  if (link.value === 'expired' && version.value === '') return <Expired />;
  return (
    <div class="shell">
      <a class="skip" href={location.hash || '#/now'} onClick={skip}>
        Skip to content
      </a>
      <Nav view={view} />
      <main tabIndex={-1}>
        <Banner />
        <Page id={id} query={query} />
      </main>
      <Notices />
      <Help />
    </div>
  );
}

/** Where the focus went with what was left, the next Tab leads into the view, not through the list of views. */
function useFocus(): void {
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current && document.activeElement === document.body) document.querySelector('main')?.focus();
    isFirst.current = false;
  }, [route.value]);
}

function skip(event: Event): void {
  event.preventDefault();
  document.querySelector('main')?.focus();
}

function Nav({ view }: { view: View }) {
  return (
    <nav aria-label="Views">
      <p class="brand">
        comet-cc <span class="muted">{version.value}</span>
      </p>
      {VIEWS.map((each) => (
        <a key={each} href={getHash({ view: each })} aria-current={each === view ? 'page' : undefined}>
          <Icon name={each} />
          <span>{PAGES[each][0]}</span>
        </a>
      ))}
      <button type="button" class="plain keys" onClick={openHelp}>
        Keys <kbd>?</kbd>
      </button>
    </nav>
  );
}

const START = 'Run comet-cc start; this page then connects again by itself, and what you typed is kept.';

function Banner() {
  const updated = `comet-cc ${update.value} runs now. Load this page again; what you typed into it is lost then.`;
  const text = {
    ...(update.value === '' ? {} : { live: updated }),
    lost: 'The engine restarts. This page connects again by itself; what you typed is kept.',
    stopped: `comet-cc was stopped. ${START}`,
    gone: `The engine does not come back. ${START}`,
    expired: 'This browser is not signed in any more. Run comet-cc ui for a new link; what you typed is kept.',
  }[link.value as string];
  return (
    <div role="status" class="banner-place">
      {text !== undefined && <p class="banner">{text}</p>}
    </div>
  );
}

function Expired() {
  return (
    <main class="expired">
      <h1>This browser is not signed in</h1>
      <p>
        Run <code>comet-cc ui</code> in a terminal. It opens this page with a link that works once.
      </p>
    </main>
  );
}

function openHelp(): void {
  document.querySelector<HTMLDialogElement>('dialog.help')?.showModal();
}

function Help() {
  const keys: readonly (readonly [string, string])[] = [
    ['/', 'search memory'],
    ...Object.entries(GO).map(([key, view]) => [`g ${key}`, PAGES[view][0].toLowerCase()] as const),
    ['↑ ↓', 'move in a list'],
    ['Enter', 'open what is marked'],
    ['[ ]', 'previous and next request of a session'],
    ['← →', 'move a task to another column'],
    ['u', 'undo the last change'],
    ['?', 'this list'],
  ];
  return (
    <dialog class="help" aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <dl>
        {keys.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <label>
        <input
          type="checkbox"
          defaultChecked={areKeysOn()}
          onChange={({ currentTarget }) => switchKeys(currentTarget.checked)}
        />{' '}
        Characters are shortcuts in this browser
      </label>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

const TYPES = 'input:not([type=checkbox]):not([type=range]), textarea, select';

function useKeys(): void {
  const goAtMs = useRef<number | null>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const { target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || !(target instanceof Element)) return;
      if (target.matches(TYPES) || target.closest('dialog') !== null) {
        if (event.key === 'Escape' && target instanceof HTMLElement) target.blur();
        return;
      }
      if (!areKeysOn()) return;
      const action = pressKey(goAtMs.current, event.key, event.timeStamp);
      goAtMs.current = action === 'go' ? event.timeStamp : null;
      if (action === null || action === 'go') return;
      event.preventDefault();
      if (action === 'help') openHelp();
      else if (action === 'undo') void takeBack();
      else if (action === 'search') focusSearch();
      else {
        location.hash = getHash({ view: action.go });
        // The next Tab leads into the view, not through the list of views.
        document.querySelector('main')?.focus();
      }
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

function focusSearch(): void {
  const focus = (): void => document.querySelector<HTMLInputElement>('input[type=search]')?.focus();
  if (route.value.view === 'memory') focus();
  else {
    location.hash = getHash({ view: 'memory' });
    // The view is drawn in the frame after the next event.
    setTimeout(() => requestAnimationFrame(focus));
  }
}
