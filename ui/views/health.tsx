import { useState } from 'preact/hooks';
import { call, useQuery } from '../client.ts';
import { amount, count, duration, projectName, share } from '../format.ts';
import { List } from '../list.tsx';
import { change, Figure, Problems, Select, Tabs, Time, View } from '../parts.tsx';
import type { UiHealth } from '../types.ts';

export function Health() {
  const health = useQuery('ui/health', {}, ['status']);
  return (
    <View title="Health" of={health}>
      {(data) => <Report data={data} />}
    </View>
  );
}

const TABS = ['checks', 'log'] as const;

function Report({ data }: { data: UiHealth }) {
  const [tab, setTab] = useState<(typeof TABS)[number]>('checks');
  const { daemon, llm, budget } = data;
  const used = budget.sessions.reduce((sum, { tokens }) => sum + tokens, 0);
  return (
    <>
      <dl class="figures">
        <Figure label="comet-cc" value={data.version} note={`Node ${data.node}`} />
        <Figure
          label="Engine"
          value={`${Math.round(data.rss / 2 ** 20)} MB`}
          note={`up ${duration(data.uptime_ms)}, pid ${data.pid}`}
        />
        {daemon !== null && (
          <Figure
            label="Daemon"
            value={daemon.state}
            note={`${count(daemon.restarts, 'restart')} of the engine, pid ${daemon.pid}`}
          />
        )}
        <Figure
          label="Model of memory"
          value={llm.backend}
          note={budget.daily_tokens > 0 ? `${amount(used)} of ${amount(budget.daily_tokens)} tokens a day` : undefined}
        />
      </dl>
      {data.quota.map(({ name, used: part, resets }) => (
        <label key={name} class="quota">
          Quota {name}: {share(part, 1)} used
          {resets !== null && (
            <>
              , resets <Time at={resets} />
            </>
          )}
          <meter min="0" max="1" high={0.8} value={part} />
        </label>
      ))}
      <Pauses paused={data.paused} />
      <Problems of={data.problems} />
      <Tabs label="Report" of={TABS} chosen={tab} onChoose={setTab} />
      {tab === 'checks' ? <Checks checks={data.checks} /> : <Log log={data.log} />}
    </>
  );
}

const MODES = { off: 'no memory at all', private: 'recall, but keep nothing' } as const;
type Mode = keyof typeof MODES;

function Pauses({ paused: { everywhere, projects } }: Pick<UiHealth, 'paused'>) {
  const [mode, setMode] = useState<Mode>('off');
  return (
    <section aria-label="Pause">
      {everywhere === null ? (
        <div class="row">
          <Select
            label="What a pause leaves"
            value={mode}
            of={Object.entries(MODES) as [Mode, string][]}
            onChoose={setMode}
          />
          <button type="button" onClick={() => void change('Paused everywhere.', () => call('ui/pause', { mode }))}>
            Pause everywhere
          </button>
        </div>
      ) : (
        <p class="banner">
          Paused everywhere ({MODES[everywhere.mode]}), until <Until at={everywhere.until} />.{' '}
          <button type="button" onClick={() => void change('Resumed.', () => call('ui/resume', {}))}>
            Resume
          </button>
        </p>
      )}
      {Object.entries(projects).map(([project, pause]) => (
        <p key={project} class="banner">
          Paused in {projectName(project)} ({MODES[pause.mode]}), until <Until at={pause.until} />.{' '}
          <button
            type="button"
            onClick={() => void change('Resumed.', () => call('ui/resume', { projectDir: project }))}
          >
            Resume
          </button>
        </p>
      ))}
    </section>
  );
}

function Until({ at }: { at: string | null }) {
  return at === null ? <>you resume</> : <Time at={at} />;
}

const MARKS = { ok: '✓', warn: '!', fail: '✗' } as const;

function Checks({ checks }: Pick<UiHealth, 'checks'>) {
  return (
    <List
      label="Checks"
      items={checks}
      getKey={({ name }) => name}
      rowHeight={42}
      row={({ name, state, detail, fix }) => (
        <p class={`check ${state}`}>
          <span role="img" aria-label={state}>
            {MARKS[state]}
          </span>
          <span>
            <b>{name}</b> {detail}
            {fix !== '' && <span class="muted"> {fix}</span>}
          </span>
        </p>
      )}
    />
  );
}

const LEVELS = ['all', 'warn', 'error'] as const;

function Log({ log }: Pick<UiHealth, 'log'>) {
  const [level, setLevel] = useState<(typeof LEVELS)[number]>('all');
  const shown = log.filter((each) => level === 'all' || each.level === level || each.level === 'error').toReversed();
  return (
    <>
      <Tabs label="Level" of={LEVELS} chosen={level} onChoose={setLevel} />
      {shown.length === 0 && <p class="muted">The log has no such entry.</p>}
      <List
        class="log"
        label="Log, newest first"
        items={shown}
        rowHeight={28}
        row={({ at, level: kind, message }) => (
          <p class={kind}>
            <Time at={at} /> <b>{kind}</b> {message}
          </p>
        )}
      />
    </>
  );
}
