import type { FunctionComponent } from 'preact';
import { useState } from 'preact/hooks';
import { useQuery } from '../client.ts';
import { conceptRows } from '../facts.ts';
import { count, projectName } from '../format.ts';
import { List } from '../list.tsx';
import { Answer, Empty, forget, Line, LinkedText, Problems, Tabs } from '../parts.tsx';
import { getHash } from '../route.ts';
import type { Result } from '../types.ts';
import { Board } from './board.tsx';
import { Versions } from './history.tsx';

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
        onChoose={(each) => (location.hash = getHash({ view: 'library', id: each }))}
      />
      <Page name={rest.join('/')} />
    </div>
  );
}

function Index() {
  const index = useQuery('library/index', {}, ['library', 'tasks']);
  return (
    <Answer of={index}>
      {({ text }) =>
        text === '' ? (
          <Empty title="No index yet">It is written with the first topic page or task.</Empty>
        ) : (
          <pre class="text scroll" tabIndex={0} role="group" aria-label="Index">
            <LinkedText text={text} />
          </pre>
        )
      }
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
                getKey={(topic) => topic.name}
                rowHeight={54}
                chosen={name}
                onOpen={(topic) => (location.hash = getHash({ view: 'library', id: `topics/${topic.name}` }))}
                row={(topic) => (
                  <Line title={topic.title}>
                    {topic.scope === 'user' ? 'every project' : projectName(topic.project)}
                    {topic.updated !== null && ` · ${count(topic.statements, 'statement')} · ${topic.updated}`}
                  </Line>
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

const TOPIC_TABS = ['statements', 'history'] as const;

function Topic({ name }: { name: string }) {
  const [tab, setTab] = useState<(typeof TOPIC_TABS)[number]>('statements');
  const topic = useQuery('topics/read', { name }, ['library']);
  return (
    <section class="fill node" aria-label="Topic">
      <Answer of={topic}>
        {({ title, lines }) => (
          <>
            <h2>{title}</h2>
            <Tabs label="Part of the topic" of={TOPIC_TABS} chosen={tab} onChoose={setTab} />
            {tab === 'history' ? (
              <Versions kind="topic" name={name} />
            ) : (
              <List
                label="Statements"
                items={lines}
                rowHeight={32}
                row={({ section, text, reported }, at) => (
                  <>
                    {section !== lines[at - 1]?.section && section !== '' && <h3>{section}</h3>}
                    <p class={section === 'Before' ? 'text muted' : 'text'}>
                      <LinkedText text={text} /> {reported && <span class="badge">reported</span>}
                    </p>
                  </>
                )}
              />
            )}
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
            <LinkedText text={text} />
          </pre>
        )
      }
    </Answer>
  );
}

/** The ontology, with the facts of each concept. */
function Facts() {
  const facts = useQuery('facts/list', {}, ['library', 'memory']);
  const concepts = useQuery('facts/concepts', {}, ['library']);
  return (
    <Answer of={concepts}>
      {({ concepts: known }) => (
        <Answer of={facts}>
          {({ facts: all, problems }) => (
            <>
              <Problems of={problems} />
              {all.length === 0 && (
                <p class="muted">
                  No fact is known yet. Facts come from what you say about yourself and your project; these are the
                  concepts that they can be about.
                </p>
              )}
              <List
                label="Concepts and their facts"
                items={conceptRows(known, all)}
                getKey={({ key }) => key}
                rowHeight={62}
                row={(row) => (row.kind === 'concept' ? <Concept {...row} /> : <Fact fact={row.fact} />)}
              />
            </>
          )}
        </Answer>
      )}
    </Answer>
  );
}

function Concept({ concept, facts }: { concept: Result<'facts/concepts'>['concepts'][number]; facts: number }) {
  const { name, label, project, persistence_class: lasts, salience_weight: weight, cardinality, eviction } = concept;
  const most = cardinality === 'unlimited' ? '' : ` of at most ${cardinality}, the ${EVICTED[eviction]} goes first`;
  return (
    <div class="line">
      <span class="facts">
        <h2>{name}</h2>
        <span class="badge">{lasts.replace('_', ' ')}</span>
        {project !== '' && <span class="badge">only in {projectName(project)}</span>}
        <span class="muted">
          {count(facts, 'fact')}
          {most} · weight {weight}
        </span>
      </span>
      <span class="muted clip">{label}</span>
    </div>
  );
}

const EVICTED = { recency: 'oldest', salience: 'weakest' } as const;

function Fact({ fact }: { fact: Result<'facts/list'>['facts'][number] }) {
  return (
    <div class="line fact">
      <span class="facts">
        <b>{fact.value}</b>
        <span class="muted">
          {projectName(fact.project || '*')} · said by {fact.origin}
          {fact.valid_to !== null && ' · no longer so'}
        </span>
        <button type="button" class="push" aria-label={`Forget ${fact.value}`} onClick={() => void forget(fact.id)}>
          Forget
        </button>
      </span>
      <meter min="0" max="1" value={fact.salience} aria-label={`Salience ${fact.salience.toFixed(2)}`} />
    </div>
  );
}
