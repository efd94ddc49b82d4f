export const VIEWS = ['now', 'savings', 'session', 'memory', 'graph', 'library', 'health'] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  /** Of a node in `memory`, a session in `session`, a part in `library`; '' for none. */
  readonly id: string;
  /** Of `memory`: the text of the search as `q`, and its filters. */
  readonly query: Readonly<Record<string, string>>;
}

/** `#/memory?q=port`, `#/node/ID`, `#/session/ID`; anything else is the first view. */
export function parseRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#?\/?/, '').split('?');
  const [name = '', ...rest] = path.split('/');
  const id = decoded(rest.join('/'));
  const query = Object.fromEntries(new URLSearchParams(search));
  if (name === 'node') return { view: 'memory', id, query };
  const view = VIEWS.find((each) => each === name);
  return view === undefined ? { view: 'now', id: '', query: {} } : { view, id, query };
}

export function getHash({ view, id = '', query = {} }: Partial<Route> & Pick<Route, 'view'>): string {
  const name = view === 'memory' && id !== '' ? 'node' : view;
  const path = id === '' ? `#/${name}` : `#/${name}/${encodeURIComponent(id)}`;
  const search = new URLSearchParams(query).toString();
  return search === '' ? path : `${path}?${search}`;
}

/** A link of markdown to a file of the home, or the id of a memory. */
const LINK = /\[([^\]\n]+)\]\(([^()\s]+)\)|\bmem_\d{8}_\d{6}_[0-9a-f]{6}\b/g;

/** The parts of a text of the library; those that link to a topic, task, session or memory have its address. */
export function linkParts(text: string): { readonly text: string; readonly href?: string }[] {
  const parts: { text: string; href?: string }[] = [];
  let end = 0;
  for (const { 0: whole, 1: label = whole, 2: file, index } of text.matchAll(LINK)) {
    const route = file === undefined ? ({ view: 'memory', id: whole } as const) : fileRoute(file);
    if (route === null) continue;
    parts.push({ text: text.slice(end, index) }, { text: label, href: getHash(route) });
    end = index + whole.length;
  }
  return [...parts, { text: text.slice(end) }];
}

function fileRoute(link: string): Parameters<typeof getHash>[0] | null {
  const [file = '', memory = ''] = link.split('#');
  const path = file.replace(/\.md$/, '').split('/').map(decoded);
  const at = path.indexOf('topics');
  if (memory !== '') return { view: 'memory', id: memory };
  if (file.includes('memory/nodes/')) return { view: 'session', id: path.at(-1) ?? '' };
  if (at >= 0) return { view: 'library', id: path.slice(at).join('/') };
  return path.includes('tasks') ? { view: 'library', id: 'tasks' } : null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
