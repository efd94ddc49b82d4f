export { probeDimensions } from './endpoint-embedder.ts';
export { missingPackages } from './model-encoder.ts';
