import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useQuery } from '../client.ts';
import { count, day, projectName, whole } from '../format.ts';
import { around, COLORS_BY, type ColorBy, legend, neighbors, timeRange } from '../graph.ts';
import { List } from '../list.tsx';
import { Empty, isDark, Line, Tabs, View } from '../parts.tsx';
import { getHash } from '../route.ts';
import { drawGraph, hasWebGl, type Scene } from '../scene.ts';
import type { UiGraph } from '../types.ts';

export function Graph() {
  const graph = useQuery('ui/graph', {}, ['memory']);
  return (
    <View title="Graph" of={graph}>
      {(data) =>
        data.nodes.length === 0 ? (
          <Empty title="Nothing to draw yet">
            Memories and their links appear here once a session has made some: <code>comet-cc run claude</code>.
          </Empty>
        ) : (
          <GraphView data={data} />
        )
      }
    </View>
  );
}

function GraphView({ data }: { data: UiGraph }) {
  const [color, setColor] = useState<ColorBy>('project');
  const [oldest, newest] = useMemo(() => timeRange(data.nodes), [data]);
  const [until, setUntil] = useState(1);
  /** A place would be that of another node once memory has changed. */
  const [markedId, setMarkedId] = useState<string | null>(null);
  const place = data.nodes.findIndex(({ id }) => id === markedId);
  const marked = place < 0 ? null : place;
  const setMarked = (at: number | null): void => setMarkedId(data.nodes[at ?? -1]?.id ?? null);
  const near = useMemo(() => neighbors(data), [data]);
  const untilMs = oldest + (newest - oldest) * until;
  const isDrawn = useMemo(hasWebGl, []);
  const shown = isDrawn ? data.nodes.length - data.nodes.filter(({ at }) => at > untilMs).length : 0;
  return (
    <>
      <div class="row filters">
        <Tabs label="Color" of={COLORS_BY} getName={(each) => `by ${each}`} chosen={color} onChoose={setColor} />
        <label class="slider">
          Until {day(untilMs)}
          <input
            type="range"
            min="0"
            max="1"
            step="0.005"
            value={until}
            onInput={(event) => setUntil(Number(event.currentTarget.value))}
          />
        </label>
        <span class="muted">
          {isDrawn && `${whole.format(shown)} of `}
          {count(data.nodes.length, 'node')}, {count(data.links.length, 'link')}
          {data.left_out > 0 && `; ${whole.format(data.left_out)} older ones are left out`}
        </span>
      </div>
      {isDrawn && <Legend nodes={data.nodes} color={color} />}
      {!isDrawn && <p class="banner">This browser has no WebGL, so the graph is shown as a list.</p>}
      <div class={isDrawn ? 'split drawn' : 'split'}>
        {isDrawn && (
          <Canvas data={data} color={color} untilMs={untilMs} near={near} marked={marked} onMark={setMarked} />
        )}
        <Nodes data={data} near={near} untilMs={untilMs} onMark={setMarked} />
      </div>
      {isDrawn && marked !== null && <Marked data={data} marked={marked} near={near} onMark={setMarked} />}
    </>
  );
}

function Legend({ nodes, color }: { nodes: UiGraph['nodes']; color: ColorBy }) {
  const names = useMemo(() => legend(nodes, color), [nodes, color]);
  return (
    <ul class="legend" aria-label="Colors">
      {names.map(({ name, color: background }) => (
        <li key={name}>
          <i class="swatch round" style={{ background }} /> {name}
        </li>
      ))}
    </ul>
  );
}

interface CanvasProps {
  readonly data: UiGraph;
  readonly color: ColorBy;
  readonly untilMs: number;
  readonly near: readonly (readonly number[])[];
  readonly marked: number | null;
  readonly onMark: (node: number | null) => void;
}

function Canvas({ data, color, untilMs, near, marked, onMark }: CanvasProps) {
  const place = useRef<HTMLDivElement>(null);
  const scene = useRef<Scene | null>(null);
  const camera = useRef<ReturnType<Scene['close']> | null>(null);
  const [done, setDone] = useState(0);
  // A layout effect ends before its place is removed, where a frame that waits to be drawn would fail.
  useLayoutEffect(() => {
    const options = { camera: camera.current, onProgress: setDone, onClick: onMark };
    const drawn = drawGraph(place.current as HTMLElement, data, options);
    scene.current = drawn;
    return () => {
      camera.current = drawn.close();
    };
  }, [data, isDark.value]);
  useEffect(() => {
    const focus = marked === null ? null : around(marked, 2, near);
    scene.current?.show({ color, untilMs, focus, marked });
  }, [data, isDark.value, color, untilMs, marked]);
  return (
    <div class="graph">
      <div ref={place} class="canvas" role="img" aria-label={`Graph of ${count(data.nodes.length, 'node')}`} />
      {done < 1 && (
        <label class="layout">
          Arranging <progress value={done} />
        </label>
      )}
    </div>
  );
}

/** A memory, or those that name a topic or file. */
function getHref({ kind, id, title }: UiGraph['nodes'][number]): string {
  return getHash(kind === 'memory' ? { view: 'memory', id } : { view: 'memory', query: { q: title } });
}

/** What is near a node, for the keyboard and for people who cannot see the drawing. */
function Marked({ data, marked, near, onMark }: Pick<CanvasProps, 'data' | 'near' | 'onMark'> & { marked: number }) {
  const node = data.nodes[marked];
  if (node === undefined) return null;
  return (
    <div class="marked" role="status">
      <b>{node.title}</b>
      <span class="muted">
        {node.kind} · {projectName(node.project)} · {count(near[marked]?.length ?? 0, 'link')}
      </span>
      <a href={getHref(node)}>Open</a>
      <button type="button" onClick={() => onMark(null)}>
        Show all
      </button>
    </div>
  );
}

/** The way to each node with the keyboard: in the drawing it is marked, and Enter opens it. */
function Nodes({ data, near, untilMs, onMark }: Pick<CanvasProps, 'data' | 'near' | 'untilMs' | 'onMark'>) {
  const byLinks = useMemo(() => {
    const nodes = data.nodes.map((node, index) => ({ ...node, index, links: near[index]?.length ?? 0 }));
    return nodes.sort((a, b) => b.links - a.links || b.at - a.at);
  }, [data]);
  const items = useMemo(() => byLinks.filter(({ at }) => at <= untilMs), [byLinks, untilMs]);
  return (
    <List
      label="Nodes, most linked first"
      items={items}
      getKey={({ id }) => id}
      rowHeight={54}
      onActive={({ index }) => onMark(index)}
      onOpen={(node) => (location.hash = getHref(node))}
      row={(node) => (
        <Line title={node.title}>
          {node.kind} · {projectName(node.project)} · {count(node.links, 'link')}
        </Line>
      )}
    />
  );
}
