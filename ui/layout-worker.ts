import iterate from 'graphology-layout-forceatlas2/iterate.js';
import { getPlaces, layoutMatrices } from './graph.ts';

const STEPS = 240;
/** Times that the page draws meanwhile; each draws every node again. */
const ANSWERS = { few: 30, many: 10 };
const MANY_NODES = 2_000;

interface Task {
  readonly places: Float32Array;
  readonly links: readonly (readonly [number, number])[];
}

/** Lays a graph out beside the page, and posts the positions of its nodes as it goes. */
addEventListener('message', ({ data: { places, links } }: MessageEvent<Task>) => {
  const { nodes, edges } = layoutMatrices(places, links);
  const settings = {
    ...{ edgeWeightInfluence: 1, scalingRatio: 8, slowDown: 2 },
    // Else what is linked to nothing drifts so far away that the others become one spot.
    ...{ linLogMode: true, strongGravityMode: true, gravity: 0.3 },
    ...{ barnesHutOptimize: places.length > 1_000, barnesHutTheta: 0.8 },
  };
  const batch = STEPS / (places.length / 2 > MANY_NODES ? ANSWERS.many : ANSWERS.few);
  const go = (step: number): void => {
    for (let each = 0; each < batch; each += 1) iterate(settings, nodes, edges);
    postMessage({ places: getPlaces(nodes), done: (step + batch) / STEPS });
    if (step + batch < STEPS) setTimeout(go, 0, step + batch);
  };
  go(0);
});
