import type { FunctionComponent } from 'preact';
import { call, useQuery } from '../client.ts';
import { count, projectName } from '../format.ts';
import { List } from '../list.tsx';
import { Answer, change, Empty, Problems, Tabs } from '../parts.tsx';
import { hashOf } from '../route.ts';
import { Board } from './board.tsx';

const PARTS = ['index', 'topics', 'tasks', 'inbox', 'facts'] as const;
type Part = (typeof PARTS)[number];

const PAGES: Record<Part, FunctionComponent<{ name: string }>> = {
  index: Index,
  topics: Topics,
  tasks: Board,
  inbox: Inbox,
  facts: Facts,
};

/** @param id  `topics/NAME`, or a part alone */
export function Library({ id }: { id: string }) {
  const [first = '', ...rest] = id.split('/');
  const part = PARTS.find((each) => each === first) ?? 'index';
  const Page = PAGES[part];
  return (
    <div class="view fill">
      <h1>Library</h1>
      <Tabs
        label="Part of the library"
        of={PARTS}
        chosen={part}
        onChoose={(each) => (location.hash = hashOf({ view: 'library', id: each }))}
      />
      <Page name={rest.join('/')} />
    </div>
  );
}

function Index() {
  const index = useQuery('library/block', {}, ['library', 'tasks']);
  return (
    <Answer of={index}>
      {({ text }) => (
        <pre class="text scroll" tabIndex={0} role="group" aria-label="Index">
          {text}
        </pre>
      )}
    </Answer>
  );
}

function Topics({ name }: { name: string }) {
  const topics = useQuery('topics/list', {}, ['library']);
  return (
    <Answer of={topics}>
      {({ topics: all, problems }) => (
        <>
          <Problems of={problems} />
          {all.length === 0 ? (
            <Empty title="No topic page yet">
              They are written from what you decide and repeat; the first ones come after a session is closed.
            </Empty>
          ) : (
            <div class={name === '' ? 'split' : 'split has-node'}>
              <List
                label="Topics"
                items={all}
                keyOf={(topic) => topic.name}
                rowHeight={54}
                chosen={name}
                onOpen={(topic) => (location.hash = hashOf({ view: 'library', id: `topics/${topic.name}` }))}
                row={(topic) => (
                  <div class="line">
                    <b>{topic.title}</b>
                    <span class="muted">
                      {topic.scope === 'user' ? 'every project' : projectName(topic.project)} ·{' '}
                      {count(topic.statements, 'statement')}
                      {topic.updated !== null && ` · ${topic.updated}`}
                    </span>
                  </div>
                )}
              />
              {name !== '' && <Topic key={name} name={name} />}
            </div>
          )}
        </>
      )}
    </Answer>
  );
}

function Topic({ name }: { name: string }) {
  const topic = useQuery('topics/read', { name }, ['library']);
  return (
    <section class="fill node" aria-label="Topic">
      <Answer of={topic}>
        {({ title, lines }) => (
          <>
            <h2>{title}</h2>
            <List
              label="Statements"
              items={lines}
              keyOf={(_, at) => String(at)}
              rowHeight={32}
              row={({ section, text, reported }, at) => (
                <>
                  {section !== lines[at - 1]?.section && section !== '' && <h3>{section}</h3>}
                  <p class="text">
                    {text} {reported && <span class="badge">reported</span>}
                  </p>
                </>
              )}
            />
          </>
        )}
      </Answer>
    </section>
  );
}

function Inbox() {
  const inbox = useQuery('inbox/show', {}, ['tasks', 'library']);
  return (
    <Answer of={inbox}>
      {({ text, day }) =>
        text === '' ? (
          <Empty title={`Nothing came in on ${day}`}>
            Tasks that are due and the brief of the night arrive here. Add a task:{' '}
            <code>comet-cc task add "renew the key" --at "friday 9:00"</code>.
          </Empty>
        ) : (
          <pre class="text scroll" tabIndex={0} role="group" aria-label="Inbox">
            {text}
          </pre>
        )
      }
    </Answer>
  );
}

function Facts() {
  const facts = useQuery('facts/list', {}, ['library', 'memory']);
  return (
    <Answer of={facts}>
      {({ facts: all }) =>
        all.length === 0 ? (
          <Empty title="No fact is known yet">Facts come from what you say about yourself and your project.</Empty>
        ) : (
          <List
            label="Facts"
            items={all}
            keyOf={({ id }) => id}
            rowHeight={58}
            row={(fact) => (
              <div class="line fact">
                <span class="facts">
                  <b>{fact.value}</b>
                  <span class="muted">
                    {fact.label} · {fact.persistence_class} · {projectName(fact.project || '*')} · said by {fact.origin}
                    {fact.valid_to !== null && ' · no longer so'}
                  </span>
                  <button
                    type="button"
                    class="push"
                    aria-label={`Forget ${fact.value}`}
                    onClick={() => void change('Forgotten.', () => call('facts/forget', { names: [fact.id] }))}
                  >
                    Forget
                  </button>
                </span>
                <meter min="0" max="1" value={fact.salience} aria-label={`Salience ${fact.salience.toFixed(2)}`} />
              </div>
            )}
          />
        )
      }
    </Answer>
  );
}
