import { describe } from 'vitest';
import { createHashEmbedder } from '../../../../memory/adapters/hash-encoder.ts';
import { createMemoryIndex } from '../../../../memory/adapters/memory-index.ts';
import { nodeIndexContract } from '../../../contract/node-index.ts';

describe('the index in memory', () => {
  nodeIndexContract(async () => createMemoryIndex(createHashEmbedder()));
});
