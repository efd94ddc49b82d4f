import { barLength, contextBar, phaseBar } from '../bars.ts';
import { useQuery } from '../client.ts';
import { amount, count, duration, money, projectName, share, whole } from '../format.ts';
import { List } from '../list.tsx';
import { Empty, Figure, Problems, Time, View } from '../parts.tsx';
import { getHash } from '../route.ts';
import type { UiOverview } from '../types.ts';

type Live = UiOverview['sessions'][number];

export function Now() {
  const overview = useQuery('ui/overview', {}, ['status', 'request', 'memory']);
  return (
    <View title="Now" of={overview}>
      {(data) => <Overview data={data} />}
    </View>
  );
}

function Overview({ data: { sessions, savings, queue, nodes, paused, problems } }: { data: UiOverview }) {
  const widest = Math.max(...sessions.map(barLength), 0);
  const waiting = queue.sensor + queue.compacter + queue.indexer;
  return (
    <>
      {paused.everywhere !== null && (
        <p class="banner">
          Memory is paused everywhere. Resume it in <a href={getHash({ view: 'health' })}>Health</a>.
        </p>
      )}
      <Problems of={problems} />
      <dl class="figures">
        <Figure
          label="Saved today"
          value={money(savings.today.net_saved_usd)}
          note={`of ${money(savings.today.untouched_usd)}`}
        />
        <Figure
          label="Context saved today"
          value={share(savings.today.original - savings.today.sent, savings.today.original) || '–'}
          note={`${amount(savings.today.original)} tokens received`}
        />
        <Figure label="Memories" value={whole.format(nodes)} />
        <Figure label="Memory queue" value={String(waiting)} note={waiting === 0 ? 'all stored' : 'being stored'} />
      </dl>
      {sessions.length === 0 ? (
        <Empty title="No session has sent a request yet">
          Start one in a project: <code>comet-cc run claude</code>. It appears here with its first prompt.
        </Empty>
      ) : (
        <>
          <Legend />
          <List
            class="cards"
            label="Sessions"
            items={sessions}
            getKey={(each) => each.session_id}
            rowHeight={150}
            row={(each) => <Card session={each} widest={widest} />}
            onOpen={(each) => (location.hash = getHash({ view: 'session', id: each.session_id }))}
          />
        </>
      )}
    </>
  );
}

function Legend() {
  return (
    <ul class="legend" aria-label="Parts of a context">
      {(['sent', 'recalled', 'added', 'trimmed'] as const).map((name) => (
        <li key={name}>
          <i class={`swatch ${name}`} /> {name}
        </li>
      ))}
    </ul>
  );
}

function Card({ session, widest }: { session: Live; widest: number }) {
  const { received_tokens: received, sent_tokens: sent } = session;
  const cost = share(session.sent_usd, session.untouched_usd);
  return (
    <article class="card">
      <header>
        <h2>{session.title || session.session_id}</h2>
        {session.streaming && <span class="badge live">answering</span>}
        <span class="muted push">
          {projectName(session.project)} · <Time at={session.at} />
        </span>
      </header>
      <div class="bar" role="img" aria-label={barText(session)}>
        {contextBar(session, widest).map(({ name, percent }) => (
          <i key={name} class={name} style={{ width: `${percent}%` }} />
        ))}
      </div>
      <p class="facts">
        <span>
          <b>{amount(received)}</b> received
        </span>
        <span>
          <b>{amount(sent)}</b> sent
        </span>
        <span>
          <b>{session.recalled}</b> recalled
        </span>
        <span>{count(session.requests, 'request')}</span>
        <span>plan {session.epoch ?? '–'}</span>
        <span>{session.decision}</span>
        <span>
          <b>{money(session.saved_usd)}</b> saved{cost === '' ? '' : `, costs ${cost} of untouched`}
        </span>
      </p>
      {session.trimming_off !== null && <p class="warn">Trimming is off: {session.trimming_off}</p>}
      <Phases phases={session.phases} />
    </article>
  );
}

function barText(session: Live): string {
  return contextBar(session, 0)
    .map(({ name, tokens }) => `${amount(tokens)} tokens ${name}`)
    .join(', ');
}

/** Of the last request; those of the engine are too short for a bar beside the model's. */
function Phases({ phases }: Pick<Live, 'phases'>) {
  if (phases.length === 0) return null;
  return (
    <div class="phases muted">
      <div class="bar thin" aria-hidden="true">
        {phaseBar(phases).map(({ name, percent }) => (
          <i key={name} class={name} style={{ width: `${percent}%` }} />
        ))}
      </div>
      <p class="facts">
        <span>Last request</span>
        {phases.map(({ name, ms }) => (
          <span key={name}>
            {PHASES[name]} {duration(ms)}
          </span>
        ))}
      </p>
    </div>
  );
}

const PHASES: Readonly<Record<Live['phases'][number]['name'], string>> = {
  ...{ parse: 'parse', decide: 'decide', recall: 'recall', plan: 'plan', splice: 'splice', store: 'store' },
  ...{ upstream: 'first byte', answer: 'answer' },
};
