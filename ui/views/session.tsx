import { useEffect, useMemo, useState } from 'preact/hooks';
import { useQuery } from '../client.ts';
import { diffRows } from '../diff.ts';
import { amount, count, money, projectName } from '../format.ts';
import { List } from '../list.tsx';
import { Answer, areKeysOn, Empty, Line, showAddress, Tabs, Time, View } from '../parts.tsx';
import { getHash, type Route } from '../route.ts';
import { talkRows } from '../talk.ts';
import type { UiRequest, UiSession } from '../types.ts';
import { Diff } from './diff.tsx';

export function Session({ id, query }: Pick<Route, 'id' | 'query'>) {
  return id === '' ? <Sessions /> : <One key={id} id={id} query={query} />;
}

function Sessions() {
  const sessions = useQuery('sessions/list', {}, ['memory', 'request']);
  return (
    <View title="Sessions" of={sessions}>
      {(all) =>
        all.length === 0 ? (
          <Empty title="No session is kept yet">
            Start one with <code>comet-cc run claude</code>; its conversation is kept here word for word.
          </Empty>
        ) : (
          <List
            label="Sessions"
            place="sessions"
            items={all}
            getKey={(each) => each.session_id}
            rowHeight={58}
            onOpen={(each) => (location.hash = getHash({ view: 'session', id: each.session_id }))}
            row={(each) => (
              <Line title={each.title || each.session_id}>
                {projectName(each.project)} · {count(each.turns, 'turn')} ·{' '}
                {count(each.node_ids.length, 'memory', 'memories')} · <Time at={each.updated_at} />
              </Line>
            )}
          />
        )
      }
    </View>
  );
}

const TABS = ['conversation', 'difference', 'injected'] as const;
type Tab = (typeof TABS)[number];

function One({ id, query }: Pick<Route, 'id' | 'query'>) {
  const session = useQuery('ui/session', { sessionId: id, from: 0, limit: 20_000 }, ['request', 'memory']);
  return (
    <div class="view fill">
      {session.data === undefined && (
        <h1>
          <a href={getHash({ view: 'session' })}>Sessions</a>
        </h1>
      )}
      <Answer of={session}>{(data) => <SessionView session={data} query={query} />}</Answer>
    </div>
  );
}

function SessionView({ session, query }: { session: UiSession; query: Route['query'] }) {
  const requests = useMemo(() => session.requests.toReversed(), [session]);
  const [tab, setTab] = useState(TABS.find((each) => each === query['tab']) ?? 'conversation');
  /** '' follows the newest. */
  const [chosen, setChosen] = useState(query['request'] ?? '');
  useEffect(() => {
    const shown = { ...(tab === 'conversation' ? {} : { tab }), ...(chosen === '' ? {} : { request: chosen }) };
    return showAddress({ view: 'session', id: session.session_id, query: shown });
  }, [tab, chosen]);
  const getPlace = (id: string): number => {
    const index = requests.findIndex((each) => each.request_id === id);
    return index < 0 ? requests.length - 1 : index;
  };
  const at = getPlace(chosen);
  // Keys may come faster than they are drawn.
  const step = (by: number): void => setChosen((last) => requests[getPlace(last) + by]?.request_id ?? last);
  useBrackets(step);
  return (
    <>
      <h1>{session.title || session.session_id}</h1>
      <p class="muted">
        <a href={getHash({ view: 'session' })}>Sessions</a> · {projectName(session.project)} ·{' '}
        <Time at={session.updated_at} />
      </p>
      <div class="row">
        <Tabs label="Part of the session" of={TABS} chosen={tab} onChoose={setTab} />
        {requests.length > 0 && <Stepper requests={requests} at={at} onStep={step} />}
      </div>
      {tab === 'conversation' ? (
        <Conversation session={session} />
      ) : (
        <Request id={requests[at]?.request_id} tab={tab} />
      )}
    </>
  );
}

function useBrackets(step: (by: number) => void): void {
  useEffect(() => {
    const press = ({ key, target }: KeyboardEvent): void => {
      if (!areKeysOn() || (target instanceof Element && target.matches('input, textarea, select'))) return;
      if (key === '[') step(-1);
      if (key === ']') step(1);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  });
}

function Stepper(props: { requests: UiSession['requests']; at: number; onStep: (by: number) => void }) {
  const { requests, at, onStep } = props;
  const request = requests[at];
  if (request === undefined) return null;
  return (
    <div class="stepper">
      <button type="button" aria-label="Previous request" disabled={at === 0} onClick={() => onStep(-1)}>
        ‹
      </button>
      <span aria-live="polite">
        Request {at + 1} of {requests.length}
      </span>
      <button type="button" aria-label="Next request" disabled={at === requests.length - 1} onClick={() => onStep(1)}>
        ›
      </button>
      <span class="muted">
        <Time at={request.at} /> · {amount(request.received_tokens)} → {amount(request.sent_tokens)} ·{' '}
        {money(request.saved_usd)} saved · {request.decision}
      </span>
    </div>
  );
}

function Conversation({ session }: { session: UiSession }) {
  const rows = useMemo(() => talkRows(session), [session]);
  if (rows.length === 0)
    return <Empty title="Nothing of this session is kept">It may have been private, or forgotten.</Empty>;
  return (
    <List
      label="Conversation"
      place={session.session_id}
      items={rows}
      rowHeight={90}
      row={(row) =>
        row.kind === 'stands' ? (
          <div class="stands">
            <p class="muted">{count(row.messages, 'message')} below are no longer sent. This stands for them:</p>
            {row.lines.map((line) => (
              <p key={line.text}>
                {line.text}{' '}
                {line.nodes.map((node) => (
                  <a key={node} href={getHash({ view: 'memory', id: node })}>
                    {node.slice(-6)}
                  </a>
                ))}
              </p>
            ))}
          </div>
        ) : (
          <article class={row.trimmed_by === undefined ? 'message' : 'message trimmed'}>
            <h2>
              {row.role}
              {row.kind === 'text' ? '' : ` · ${row.kind.replace('_', ' ')}`}
              {row.trimmed_by !== undefined && <span class="badge">trimmed</span>}
            </h2>
            <pre>{row.text}</pre>
            {row.left_out !== undefined && (
              <p class="muted">… and {count(row.left_out, 'character')} that are not shown here.</p>
            )}
          </article>
        )
      }
    />
  );
}

function Request({ id, tab }: { id: string | undefined; tab: Tab }) {
  const request = useQuery('ui/request', id === undefined ? null : { requestId: id }, []);
  if (id === undefined)
    return <Empty title="No request of this session is kept">Receipts of the newest requests are kept.</Empty>;
  return (
    <Answer of={request}>
      {(data) => (tab === 'difference' ? <Difference request={data} /> : <Injected request={data} />)}
    </Answer>
  );
}

function Difference({ request }: { request: UiRequest }) {
  const rows = useMemo(() => diffRows(request.changes), [request]);
  const isChanged = request.changes.some(({ kind }) => kind === 'changed');
  if (rows.length === 0) return <Empty title="Sent as received">Nothing of this request was changed.</Empty>;
  const { received, sent, thinking_stripped: thinking } = request;
  return (
    <>
      <p class="facts muted">
        <span>
          <b>{amount(received.bytes)}B</b> received, <b>{amount(sent.bytes)}B</b> sent
        </span>
        {thinking > 0 && <span>{count(thinking, 'old thinking block')} left out</span>}
        {!isChanged && <span>sent as received</span>}
      </p>
      <Diff label="Received against sent" rows={rows} />
      <p class="muted">{request.not_kept.join('; ')}</p>
    </>
  );
}

function Injected({ request: { added, prompt } }: { request: UiRequest }) {
  const others = prompt !== '' && (
    <p class="muted">
      Injected memories passed the relevance filter. See{' '}
      <a href={getHash({ view: 'memory', query: { q: prompt } })}>what else the prompt finds</a>, with those below it in
      grey.
    </p>
  );
  if (added.length === 0) {
    return <Empty title="Nothing was injected">Memory had nothing to add to this request. {others}</Empty>;
  }
  return (
    <>
      <List
        label="Injected lines"
        items={added}
        rowHeight={140}
        row={(each) => (
          <article class="message">
            <h2>
              {CHANNELS[each.channel]} <span class="badge">{each.reason}</span>
            </h2>
            <pre>{each.text}</pre>
            {(each.found ?? []).map((found) => (
              <RecalledNode key={found.nodeId} found={found} />
            ))}
          </article>
        )}
      />
      {others}
    </>
  );
}

const CHANNELS = {
  system: 'System prompt',
  preamble: 'In place of trimmed turns',
  'system-message': 'System message',
  'user-block': 'Beside the prompt',
} as const;

type Finding = NonNullable<UiRequest['added'][number]['found']>[number];

function RecalledNode({ found: { nodeId, score, lanes } }: { found: Finding }) {
  return (
    <p class="facts">
      <a href={getHash({ view: 'memory', id: nodeId })}>{nodeId.slice(-6)}</a>
      <span>score {score.toFixed(3)}</span>
      {Object.entries(lanes).map(([lane, hit]) => (
        <span key={lane} class="muted">
          {lane}: rank {hit.rank}, {hit.score.toFixed(3)}
        </span>
      ))}
    </p>
  );
}
