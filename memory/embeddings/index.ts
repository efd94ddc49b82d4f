export { missingPackages } from './encoders.ts';
export { probeDimensions } from './endpoint-embedder.ts';
