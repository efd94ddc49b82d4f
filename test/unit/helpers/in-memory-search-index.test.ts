import { describe } from 'vitest';
import { searchIndexContract } from '../../contract/search-index.ts';
import { createHashEmbedder } from '../../helpers/hash-embedder.ts';
import { createInMemorySearchIndex } from '../../helpers/in-memory-search-index.ts';

describe('the search index in memory', () => {
  searchIndexContract(async () => createInMemorySearchIndex(createHashEmbedder()));
});
