import { describe } from 'vitest';
import { createHashEmbedder } from '../../../memory/embeddings/hash-encoder.ts';
import { nodeIndexContract } from '../../contract/node-index.ts';
import { createMemoryIndex } from '../../helpers/memory-index.ts';

describe('the index in memory', () => {
  nodeIndexContract(async () => createMemoryIndex(createHashEmbedder()));
});
