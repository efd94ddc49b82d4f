import { useEffect, useRef, useState } from 'preact/hooks';
import { call, useQuery } from '../client.ts';
import { projectName } from '../format.ts';
import { List } from '../list.tsx';
import { Answer, change, forget, Line, Select, Tabs, Time } from '../parts.tsx';
import { getHash } from '../route.ts';
import { messageTexts } from '../talk.ts';
import type { Result } from '../types.ts';
import { Versions } from './history.tsx';

type Node = Result<'nodes/show'>;
const TABS = ['summary', 'detail', 'verbatim', 'sources', 'links', 'history'] as const;
type Tab = (typeof TABS)[number];

export function NodePanel({ id }: { id: string }) {
  const node = useQuery('nodes/show', { id, depth: 0 }, ['memory']);
  const [tab, setTab] = useState<Tab>('summary');
  const [isEdited, setEdited] = useState(drafts.has(id));
  const endEdit = (): void => {
    drafts.delete(id);
    setEdited(false);
  };
  return (
    <section class="node fill" aria-label="Memory">
      <p>
        <a href={getHash({ view: 'memory' })}>‹ All memories</a>
      </p>
      <Answer of={node}>
        {(data) => (
          <>
            <Head node={data} onEdit={() => setEdited(true)} />
            {isEdited && <Editor id={id} node={data} onEnd={endEdit} />}
            <Tabs label="Part of the memory" of={TABS} chosen={tab} onChoose={setTab} />
            <Part tab={tab} node={data} />
          </>
        )}
      </Answer>
    </section>
  );
}

function Head({ node, onEdit }: { node: Node; onEdit: () => void }) {
  const id = node.node_id;
  const isPinned = (node.pinned_from ?? node.pinned_in) !== undefined;
  const isHeld = node.status === 'quarantined';
  /** The words of the user and of Claude are never quarantined. */
  const isTold = node.origin === 'tool' || node.origin === 'external';
  return (
    <>
      <h2>{node.title}</h2>
      <p class="facts muted">
        <code>{id}</code>
        <span>{projectName(node.project)}</span>
        <Time at={node.created_at} />
        <span>{node.kind}</span>
        <span>from {node.teammate ?? node.origin}</span>
        <span>written by {node.written_by}</span>
        <span class="badge">{node.status}</span>
        <span class="badge">{node.importance}</span>
      </p>
      <div class="row">
        <button type="button" onClick={onEdit}>
          Edit
        </button>
        <button
          type="button"
          onClick={() =>
            void change(isPinned ? 'Unpinned.' : 'Pinned.', () => call('ui/pin', { ids: [id], pinned: !isPinned }))
          }
        >
          {isPinned ? 'Unpin' : 'Pin'}
        </button>
        {isTold && (
          <button
            type="button"
            onClick={() =>
              void change(isHeld ? 'Released.' : 'Quarantined: it is not recalled.', () =>
                call('ui/quarantine', { ids: [id], quarantined: !isHeld }),
              )
            }
          >
            {isHeld ? 'Release' : 'Quarantine'}
          </button>
        )}
        <button
          type="button"
          class="danger"
          onClick={async () => {
            if (await forget(id)) location.hash = getHash({ view: 'memory' });
          }}
        >
          Forget
        </button>
      </div>
    </>
  );
}

const FIELDS = ['title', 'summary', 'outcome', 'topic_tags', 'importance'] as const;
type Field = (typeof FIELDS)[number];
const LEVELS = ['HIGH', 'MED', 'LOW'].map((each) => [each, each] as const);
const ROWS: Partial<Record<Field, number>> = { summary: 5, outcome: 3 };

/** What was typed and not saved, by id: it is there again when the user comes back. */
const drafts = new Map<string, Partial<Record<Field, string>>>();

function getText(node: Node, field: Field): string {
  const value = node[field];
  return typeof value === 'object' ? value.join(', ') : (value ?? '');
}

function Editor({ id, node, onEnd }: { id: string; node: Node; onEnd: () => void }) {
  /** Only what was typed, so that nothing else is written back. */
  const [typed, setTyped] = useState(drafts.get(id) ?? {});
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    form.current?.querySelector('textarea')?.focus();
    // Only where the focus went with the form.
    return () => {
      if (opener instanceof HTMLElement && document.activeElement === document.body) opener.focus();
    };
  }, []);
  const type = (field: Field, text: string): void => {
    drafts.set(id, { ...typed, [field]: text });
    setTyped({ ...typed, [field]: text });
  };
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (await change('Saved.', () => call('ui/edit', { id: node.node_id, set: { ...typed } }))) onEnd();
  };
  return (
    <form ref={form} class="editor" onSubmit={(event) => void save(event)} aria-label="Edit the memory">
      {FIELDS.map((field) => {
        const value = typed[field] ?? getText(node, field);
        return (
          <label key={field}>
            {field.replace('_', ' ')}
            {field === 'importance' ? (
              <Select value={value} of={LEVELS} onChoose={(level) => type(field, level)} />
            ) : (
              <textarea
                dir="auto"
                rows={ROWS[field] ?? 1}
                value={value}
                onInput={(event) => type(field, event.currentTarget.value)}
              />
            )}
          </label>
        );
      })}
      <div class="row">
        <button type="submit" class="primary">
          Save
        </button>
        <button type="button" onClick={onEnd}>
          Cancel
        </button>
      </div>
    </form>
  );
}

function Part({ tab, node }: { tab: Tab; node: Node }) {
  if (tab === 'summary') return <Summary node={node} />;
  if (tab === 'detail') return <Detail id={node.node_id} />;
  if (tab === 'verbatim') return <Verbatim id={node.node_id} />;
  if (tab === 'history') return <NodeHistory id={node.node_id} />;
  return tab === 'sources' ? <Sources node={node} /> : <Links id={node.node_id} />;
}

function Summary({ node }: { node: Node }) {
  const { decisions = [], open = [], values = [], facts } = node;
  const lists = [
    ['Decisions', decisions.flatMap(({ text, closed }) => (closed ? [] : text))],
    ['Open', open.flatMap(({ text, closed }) => (closed ? [] : text))],
    ['Done or dropped', [...open, ...decisions].flatMap(({ text, closed }) => (closed ? text : []))],
    ['Values', values],
    ['Facts', facts.map(({ concept, value }) => `${concept}: ${value}`)],
    ['Tags', node.topic_tags],
  ] as const;
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Summary">
      <p class="text">{node.summary}</p>
      {node.outcome !== undefined && <p class="text">{node.outcome}</p>}
      {lists.map(
        ([name, texts]) =>
          texts.length > 0 && (
            <div key={name}>
              <h3>{name}</h3>
              <ul>
                {texts.map((text) => (
                  <li key={text}>{text}</li>
                ))}
              </ul>
            </div>
          ),
      )}
    </div>
  );
}

function Detail({ id }: { id: string }) {
  const node = useQuery('nodes/show', { id, depth: 1 }, []);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Detail">
      <Answer of={node}>
        {({ detailed_summary: text, detail_note: note }) => (
          <>
            {note !== undefined && <p class="muted">{note}</p>}
            <p class="text">{text ?? 'There is no detailed summary.'}</p>
          </>
        )}
      </Answer>
    </div>
  );
}

function Verbatim({ id }: { id: string }) {
  const node = useQuery('nodes/show', { id, depth: 2 }, []);
  return (
    <Answer of={node}>
      {({ raw = [] }) =>
        raw.length === 0 ? (
          <p class="muted">No message of it is kept.</p>
        ) : (
          <List
            label="Messages"
            items={raw.flatMap(({ role, content }) => messageTexts(content).map((text) => ({ role, text })))}
            rowHeight={90}
            row={({ role, text }) => (
              <article class="message">
                <h3>{role}</h3>
                <pre>{text}</pre>
              </article>
            )}
          />
        )
      }
    </Answer>
  );
}

function Sources({ node }: { node: Node }) {
  const reason = useQuery('nodes/why', { id: node.node_id }, ['memory']);
  // A memory of an export or of another machine comes without its turns; a group never has any.
  const isKept = ({ turns }: Result<'nodes/why'>): boolean =>
    node.kind === 'group' || turns.some(({ at }) => at !== null);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Sources">
      <Answer of={reason}>
        {(why) => (
          <>
            <p class="muted">
              Written because of: {why.compaction_reason.replace('_', ' ')}. From{' '}
              {isKept(why) ? (
                <a href={getHash({ view: 'session', id: node.session_id })}>this session</a>
              ) : (
                'a session that is not kept here'
              )}
              .
            </p>
            {why.turns.map((turn) => (
              <Turn key={turn.turn} turn={turn} />
            ))}
            {node.source_links.length > 0 && (
              <div>
                <h3>Files and documents</h3>
                <ul>
                  {node.source_links.map((each) => (
                    <li key={each}>{each.split('#')[0]}</li>
                  ))}
                </ul>
              </div>
            )}
          </>
        )}
      </Answer>
    </div>
  );
}

function Turn({ turn: { at, origin, prompt, tools } }: { turn: Result<'nodes/why'>['turns'][number] }) {
  if (at === null) return <p class="muted">A turn whose text is no longer kept.</p>;
  return (
    <div>
      <p class="facts muted">
        <Time at={at} />
        <span>trusted as {origin}</span>
        {tools.length > 0 && <span>has results of {tools.join(', ')}</span>}
      </p>
      <p class="text">{prompt}</p>
    </div>
  );
}

/** What it superseded, what superseded it, and its earlier texts. */
function NodeHistory({ id }: { id: string }) {
  const reason = useQuery('nodes/why', { id }, ['memory']);
  return (
    <>
      <Answer of={reason}>
        {({ replaced, replaces, aliases }) => (
          <div>
            {replaced.map((each) => (
              <p key={each.statement ?? ''}>
                {each.statement ?? 'The whole memory'} was true until{' '}
                {each.valid_to === null ? 'it was replaced' : <Time at={each.valid_to} />}
                {typeof each.by === 'string' && (
                  <>
                    {' '}
                    (now <a href={getHash({ view: 'memory', id: each.by })}>{each.by.slice(-6)}</a>)
                  </>
                )}
              </p>
            ))}
            {replaces.map((each) => (
              <p key={each}>
                It replaces a statement of <a href={getHash({ view: 'memory', id: each })}>{each.slice(-6)}</a>
              </p>
            ))}
            {aliases.length > 0 && <p class="muted">Merged from {aliases.join(', ')}.</p>}
          </div>
        )}
      </Answer>
      <Versions kind="memory" name={id} />
    </>
  );
}

function Links({ id }: { id: string }) {
  const related = useQuery('nodes/related', { id, depth: 2 }, ['memory']);
  return (
    <Answer of={related}>
      {(nodes) =>
        nodes.length === 0 ? (
          <p class="muted">No link leads to or from this memory.</p>
        ) : (
          <List
            label="Linked memories"
            items={nodes}
            getKey={(each) => each.node_id}
            rowHeight={54}
            onOpen={(each) => (location.hash = getHash({ view: 'memory', id: each.node_id }))}
            row={(each) => (
              <Line title={each.title}>
                {projectName(each.project)} · <Time at={each.created_at} />
              </Line>
            )}
          />
        )
      }
    </Answer>
  );
}
