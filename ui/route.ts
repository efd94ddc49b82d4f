export const VIEWS = ['now', 'savings', 'session', 'memory', 'graph', 'library', 'health'] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  /** Of a node in `memory`, a session in `session`, a part in `library`; '' for none. */
  readonly id: string;
  /** Of the search in `memory`. */
  readonly query: string;
}

/** `#/memory?q=port`, `#/node/ID`, `#/session/ID`; anything else is the first view. */
export function parseRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#?\/?/, '').split('?');
  const [name = '', ...rest] = path.split('/');
  const id = decoded(rest.join('/'));
  const query = new URLSearchParams(search).get('q') ?? '';
  if (name === 'node') return { view: 'memory', id, query };
  const view = VIEWS.find((each) => each === name);
  return view === undefined ? { view: 'now', id: '', query: '' } : { view, id, query };
}

export function getHash({ view, id = '', query = '' }: Partial<Route> & Pick<Route, 'view'>): string {
  const name = view === 'memory' && id !== '' ? 'node' : view;
  const path = id === '' ? `#/${name}` : `#/${name}/${encodeURIComponent(id)}`;
  return query === '' ? path : `${path}?q=${encodeURIComponent(query)}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
