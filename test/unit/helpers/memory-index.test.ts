import { describe } from 'vitest';
import { nodeIndexContract } from '../../contract/node-index.ts';
import { createHashEmbedder } from '../../helpers/hash-embedder.ts';
import { createMemoryIndex } from '../../helpers/memory-index.ts';

describe('the index in memory', () => {
  nodeIndexContract(async () => createMemoryIndex(createHashEmbedder()));
});
