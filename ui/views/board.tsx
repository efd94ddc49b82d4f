import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { COLUMNS, columnBeside, getColumns, type Task, type TaskStatus } from '../board.ts';
import { call, useQuery } from '../client.ts';
import { projectName } from '../format.ts';
import { List } from '../list.tsx';
import { Answer, change, Empty, Problems, Select, Time } from '../parts.tsx';

type Move = (task: Task, to: TaskStatus) => Promise<void>;
/** The task whose card takes the focus when it is drawn in that column. */
type Focused = { current: Pick<Task, 'id' | 'status'> | null };

export function Board() {
  const tasks = useQuery('tasks/list', { all: true }, ['tasks']);
  const [moved, setMoved] = useState<ReadonlyMap<string, TaskStatus>>(new Map());
  const focused: Focused = useRef(null);
  useEffect(() => {
    const stored = new Map(tasks.data?.tasks.map(({ id, status }) => [id, status]));
    setMoved((last) => new Map([...last].filter(([id, to]) => stored.get(id) !== to)));
  }, [tasks.data]);
  const move: Move = async (task, to) => {
    if (task.status === to) return;
    focused.current = { id: task.id, status: to };
    setMoved((last) => new Map([...last, [task.id, to]]));
    const isDone = await change(`Moved to ${to}.`, () => call('tasks/status', { id: task.id, status: to }));
    if (isDone) return;
    focused.current = task;
    setMoved(new Map());
  };
  return (
    <Answer of={tasks}>
      {({ tasks: all, problems }) => (
        <>
          <Problems of={problems} />
          {all.length === 0 ? (
            <Empty title="No task yet">
              Add one: <code>comet-cc task add "renew the key" --at "friday 9:00"</code>, or tell Claude to remind you.
            </Empty>
          ) : (
            <div class="board">
              {getColumns(all, moved).map((column) => (
                <Column
                  key={column.status}
                  {...column}
                  focused={focused}
                  onMove={move}
                  onDrop={(id) => drop(all, id, column.status, move)}
                />
              ))}
            </div>
          )}
        </>
      )}
    </Answer>
  );
}

function drop(all: readonly Task[], id: string, to: TaskStatus, move: Move): void {
  const task = all.find((each) => each.id === id);
  if (task !== undefined) void move(task, to);
}

interface ColumnProps {
  readonly status: TaskStatus;
  readonly tasks: readonly Task[];
  readonly focused: Focused;
  readonly onMove: Move;
  readonly onDrop: (id: string) => void;
}

function Column({ status, tasks, focused, onMove, onDrop }: ColumnProps) {
  const [isOver, setOver] = useState(false);
  return (
    <section
      class={isOver ? 'column over' : 'column'}
      aria-label={status}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onDrop(event.dataTransfer?.getData('text/plain') ?? '');
      }}
    >
      <h2>
        {status} <span class="muted">{tasks.length}</span>
      </h2>
      <List
        label={`Tasks that are ${status}`}
        items={tasks}
        getKey={({ id }) => id}
        rowHeight={104}
        row={(task) => <TaskCard task={task} focused={focused} onMove={onMove} />}
      />
    </section>
  );
}

function TaskCard({ task, focused, onMove }: { task: Task; focused: Focused; onMove: Move }) {
  const card = useRef<HTMLElement>(null);
  // A layout effect: after the paint, the card could take the focus from what the user chose meanwhile.
  useLayoutEffect(() => {
    if (focused.current?.id !== task.id || focused.current.status !== task.status) return;
    focused.current = null;
    card.current?.focus();
  }, [task.id, task.status]);
  return (
    <article
      ref={card}
      class="card task"
      draggable
      tabIndex={0}
      onDragStart={(event) => event.dataTransfer?.setData('text/plain', task.id)}
      onKeyDown={(event) => {
        if (event.target !== event.currentTarget) return;
        const to = columnBeside(task.status, event.key);
        if (to !== null) void onMove(task, to);
      }}
    >
      <h3>{task.title}</h3>
      <p class="facts muted">
        <span class={`badge ${task.priority}`}>{task.priority}</span>
        <span>{projectName(task.project || '*')}</span>
        {task.next !== null && (
          <span>
            due <Time at={task.next} />
          </span>
        )}
        {task.next === null && task.fired !== null && task.status === 'active' && (
          <span>
            due since <Time at={task.fired} />
          </span>
        )}
        {task.waits_for.length > 0 && <span>waits for {task.waits_for.join(', ')}</span>}
      </p>
      <Select
        label={`Status of ${task.title}`}
        value={task.status}
        of={COLUMNS.map((each) => [each, each] as const)}
        onChoose={(to) => void onMove(task, to)}
      />
    </article>
  );
}
