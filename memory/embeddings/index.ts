export { probeDimensions } from './endpoint-embedder.ts';
