import { DEFAULT_ONTOLOGY } from '../../memory/facts/default-ontology.ts';
import type { FactFiles, OntologyState } from '../../memory/storage/fact-files.ts';

/** Fact files without a disk: texts by name. */
export function createMemoryFactFiles(texts = new Map<string, string>()): FactFiles {
  const state: OntologyState = { ontology: DEFAULT_ONTOLOGY, problems: [] };
  return {
    getName: (scope) => (scope === '' ? 'user.md' : `${scope.toLowerCase().replace(/[^a-z0-9]/g, '-')}.md`),
    getPath: (name) => name,
    texts: async () => new Map(texts),
    async replace({ name, before, after }) {
      if ((texts.get(name) ?? null) !== before) return false;
      if (after === null) texts.delete(name);
      else texts.set(name, after);
      return true;
    },
    ontology: async () => state,
  };
}
