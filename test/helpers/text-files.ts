import { newDocument, parseDocument, renderDocument } from '../../memory/model/markdown.ts';
import type { MemoryNode } from '../../memory/model/node.ts';
import { fits, joinFiles, readNodeFile, says, withNodes, withoutSections } from '../../memory/storage/fs/node-files.ts';
import type { NodeFiles } from '../../memory/storage/node-files.ts';

/** Node files that are texts in a map, by their paths. */
export interface TextFiles extends NodeFiles {
  texts: Map<string, string>;
}

export const readTexts = (texts: ReadonlyMap<string, string>) =>
  joinFiles([...texts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([file, text]) => readNodeFile(file, text)));

export function createTextFiles(): TextFiles {
  const files: TextFiles = {
    texts: new Map(),
    async load() {
      return readTexts(files.texts);
    },
    async save(nodes, read) {
      for (const node of nodes) if (read === undefined || stands(read.get(node.node_id))) put(node);
    },
    drop: (ids) => files.remove(ids),
    async remove(ids) {
      for (const [file, text] of files.texts) {
        const left = withoutSections(text, new Set(ids));
        if (left === '') files.texts.delete(file);
        else files.texts.set(file, left);
      }
    },
    readBrief: async () => null,
    writeBrief: async () => {},
    briefs: async () => [],
  };

  const stands = (node: MemoryNode | undefined): boolean =>
    [...files.texts.values()].some((text) => {
      const document = parseDocument(text);
      return typeof document !== 'string' && says(document, node);
    });

  function put(node: MemoryNode): void {
    const place = readTexts(files.texts).places.get(node.node_id)?.[0];
    const known = place === undefined ? '' : parseDocument(files.texts.get(place) ?? '');
    if (place !== undefined && typeof known !== 'string' && fits(known, node)) {
      files.texts.set(place, renderDocument(withNodes(known, [node]).document));
      return;
    }
    const file = `own/${node.node_id}.md`;
    files.texts.set(file, renderDocument(withNodes(newDocument(node), [node]).document));
  }
  return files;
}
