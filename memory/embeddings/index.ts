export { probeDimensions } from './endpoint-embedder.ts';
export { missingPackages } from './open-encoder.ts';
