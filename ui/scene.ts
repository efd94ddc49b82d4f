import Graphology from 'graphology';
import Sigma from 'sigma';
import { drawDiscNodeHover, NodePointProgram } from 'sigma/rendering';
import type { CameraState } from 'sigma/types';
import { type ColorBy, neighbors, nodeColors, nodeSize, spiral } from './graph.ts';
import type { UiGraph } from './types.ts';

/** With fewer nodes, small ones have their titles too. */
const FEW = 500;
/** With more links, they are not drawn while the graph moves. */
const MANY_LINKS = 4_000;
const LABEL_CHARS = 36;
/** The title of the node below the mouse has white ground, in the dark too. */
const ON_WHITE = '#1b2028';

export interface Look {
  readonly color: ColorBy;
  /** Nodes after it are hidden. */
  readonly untilMs: number;
  /** The others are dimmed; null: none. */
  readonly focus: ReadonlySet<number> | null;
  readonly marked: number | null;
}

export interface Scene {
  show(look: Look): void;
  /** @returns where the camera was */
  close(): CameraState;
}

export function hasWebGl(): boolean {
  return document.createElement('canvas').getContext('webgl2') !== null;
}

interface SceneOptions {
  /** Of an earlier scene; null for the whole graph. */
  readonly camera: CameraState | null;
  /** Of the layout, 0 to 1. */
  readonly onProgress: (done: number) => void;
  /** With the index of a node; null for the ground. */
  readonly onClick: (node: number | null) => void;
}

/** Draws with WebGL, and arranges the nodes in a worker. */
export function drawGraph(place: HTMLElement, data: UiGraph, { camera, onProgress, onClick }: SceneOptions): Scene {
  const style = getComputedStyle(place);
  const [text, line, dim] = ['--text', '--edge', '--dim'].map((name) => style.getPropertyValue(name).trim()) as [
    string,
    string,
    string,
  ];
  const graph = toGraph(data);
  let look: Look = { color: 'project', untilMs: Number.POSITIVE_INFINITY, focus: null, marked: null };
  let colors = nodeColors(data.nodes, look.color);
  const isHidden = (at: number): boolean => (data.nodes[at]?.at ?? 0) > look.untilMs;
  const sigma = new Sigma(graph, place, {
    labelColor: { color: text },
    labelFont: style.fontFamily,
    defaultDrawNodeHover: (place, node, own) =>
      drawDiscNodeHover(place, node, { ...own, labelColor: { color: ON_WHITE } }),
    labelRenderedSizeThreshold: data.nodes.length < FEW ? 4 : nodeSize(30, data.nodes.length),
    defaultEdgeColor: line,
    nodeProgramClasses: { circle: Points },
    hideEdgesOnMove: data.links.length > MANY_LINKS,
    zIndex: true,
    nodeReducer(key, node) {
      const at = Number(key);
      const isNear = look.focus === null || look.focus.has(at);
      return {
        ...node,
        color: isNear ? (colors[at] as string) : dim,
        label: isNear ? node['label'] : '',
        hidden: isHidden(at),
        highlighted: at === look.marked,
        zIndex: isNear ? 1 : 0,
      };
    },
    edgeReducer(key, edge) {
      const [from, to] = data.links[Number(key)] as readonly [number, number, string];
      const isNear = look.focus === null || (look.focus.has(from) && look.focus.has(to));
      return { ...edge, hidden: !isNear || isHidden(from) || isHidden(to) };
    },
  });
  if (camera !== null) sigma.getCamera().setState(camera);
  hoverOnlyAtRest(sigma);
  ignoreClickOfPull(sigma);
  const showHighlights = hideEmptyLayers(sigma);
  sigma.on('clickNode', ({ node }) => onClick(Number(node)));
  sigma.on('clickStage', () => onClick(null));
  const worker = arrange(data, graph, onProgress);
  return {
    show(next) {
      if (next.color !== look.color) colors = nodeColors(data.nodes, next.color);
      look = next;
      showHighlights(look.marked !== null);
      sigma.refresh({ skipIndexation: true });
    },
    close() {
      const last = sigma.getCamera().getState();
      worker.terminate();
      sigma.kill();
      return last;
    },
  };
}

/** Whether the mouse pulls the graph. */
function isPulled(sigma: Sigma): boolean {
  const { isMouseDown, draggedEvents } = sigma.getMouseCaptor();
  return isMouseDown && draggedEvents > 0;
}

/** One vertex for each node, where a circle has three and covers four times the area. */
class Points extends NodePointProgram {
  override render(params: Parameters<NodePointProgram['render']>[0]): void {
    // It draws every node a second time, to find the one below the mouse: never while the mouse pulls the graph.
    const { pickProgram } = this;
    if (isPulled(this.renderer)) this.pickProgram = null;
    super.render(params);
    this.pickProgram = pickProgram;
  }
}

/**
 * A layer takes as long to show as the whole picture, also an empty one: half of a frame without a graphics card.
 *
 * @returns says whether a node is marked
 */
function hideEmptyLayers(sigma: Sigma): (isMarked: boolean) => void {
  const layers = sigma.getCanvases();
  const show = (name: string, isShown: boolean): void => {
    const layer = layers[name];
    if (layer !== undefined) layer.style.visibility = isShown ? '' : 'hidden';
  };
  let [isMarked, isHovered] = [false, false];
  const showHighlights = (): void => {
    for (const name of ['hovers', 'hoverNodes']) show(name, isMarked || isHovered);
  };
  const hover = (now: boolean) => (): void => {
    isHovered = now;
    showHighlights();
  };
  show('edgeLabels', false);
  showHighlights();
  sigma.on('enterNode', hover(true));
  sigma.on('leaveNode', hover(false));
  sigma.on('beforeRender', () => show('edges', !(isPulled(sigma) && sigma.getSetting('hideEdgesOnMove'))));
  // Nodes can be found again, also where no link is drawn again.
  sigma.getMouseCaptor().on('mouseup', () => sigma.scheduleRender());
  return (now) => {
    isMarked = now;
    showHighlights();
  };
}

/** To find the node below the mouse, the page waits for the graphics card: never while it pulls the graph. */
function hoverOnlyAtRest(sigma: Sigma): void {
  const captor = sigma.getMouseCaptor();
  const hover = captor.listeners('mousemove');
  captor.removeAllListeners('mousemove');
  captor.on('mousemove', (event) => {
    if (!captor.isMouseDown) for (const listener of hover) listener(event);
  });
}

/** Sigma counts the end of a drag as a click, so that a click soon after it would zoom like a double click. */
function ignoreClickOfPull(sigma: Sigma): void {
  const captor = sigma.getMouseCaptor();
  const stop = (event: Event): void => {
    if (captor.draggedEvents >= sigma.getSetting('draggedEventsTolerance')) event.stopImmediatePropagation();
  };
  captor.container.addEventListener('click', stop, { capture: true });
}

function toGraph(data: UiGraph): Graphology {
  const graph = new Graphology({ multi: true, type: 'undirected' });
  const near = neighbors(data);
  const places = spiral(data.nodes.length);
  for (const [at, { title }] of data.nodes.entries()) {
    const size = nodeSize(near[at]?.length ?? 0, data.nodes.length);
    graph.addNode(at, { x: places[2 * at], y: places[2 * at + 1], size, label: shorten(title) });
  }
  for (const [at, [from, to]] of data.links.entries()) graph.addEdgeWithKey(at, from, to, { size: 0.6 });
  return graph;
}

function shorten(title: string): string {
  return title.length > LABEL_CHARS ? `${title.slice(0, LABEL_CHARS - 1)}…` : title;
}

function arrange(data: UiGraph, graph: Graphology, onProgress: SceneOptions['onProgress']): Worker {
  const worker = new Worker(new URL('./layout-worker.ts', import.meta.url), { type: 'module' });
  worker.onmessage = ({ data: { places, done } }: MessageEvent<{ places: Float32Array; done: number }>) => {
    graph.updateEachNodeAttributes(
      (key, node) => Object.assign(node, { x: places[2 * Number(key)], y: places[2 * Number(key) + 1] }),
      { attributes: ['x', 'y'] },
    );
    onProgress(done);
    // Its memory goes with it.
    if (done >= 1) worker.terminate();
  };
  worker.postMessage({ places: spiral(data.nodes.length), links: data.links.map(([from, to]) => [from, to]) });
  return worker;
}
