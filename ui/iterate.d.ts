declare module 'graphology-layout-forceatlas2/iterate.js' {
  /** One step: changes the positions in `nodes`. */
  export default function iterate(settings: object, nodes: Float32Array, edges: Float32Array): unknown;
}
