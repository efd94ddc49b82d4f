import { newDocument, parseDocument, renderDocument } from '../../memory/model/markdown.ts';
import type { MemoryNode } from '../../memory/model/node.ts';
import { fits, joinFiles, readNodeFile, says, withNodes, withoutSections } from '../../memory/storage/fs/node-files.ts';
import type { NodeFiles } from '../../memory/storage/node-files.ts';

/** Node files that are texts in a map, by their paths. */
export interface TextFiles extends NodeFiles {
  texts: Map<string, string>;
}

type Read = (file: string, text: string) => ReturnType<typeof readNodeFile>;

export const readTexts = (texts: ReadonlyMap<string, string>, read: Read = readNodeFile) =>
  joinFiles([...texts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([file, text]) => read(file, text)));

export function createTextFiles(): TextFiles {
  const known = new Map<string, { readonly text: string; readonly nodes: ReturnType<Read> }>();
  // A file is parsed again where its text has changed, as on a disk.
  const readKnown: Read = (file, text) => {
    const last = known.get(file);
    if (last?.text === text) return last.nodes;
    const nodes = readNodeFile(file, text);
    known.set(file, { text, nodes });
    return nodes;
  };
  const files: TextFiles = {
    texts: new Map(),
    async load() {
      return readTexts(files.texts, readKnown);
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
    const place = readTexts(files.texts, readKnown).places.get(node.node_id)?.[0];
    const document = place === undefined ? '' : parseDocument(files.texts.get(place) ?? '');
    if (place !== undefined && typeof document !== 'string' && fits(document, node)) {
      files.texts.set(place, renderDocument(withNodes(document, [node]).document));
      return;
    }
    const file = `own/${node.node_id}.md`;
    files.texts.set(file, renderDocument(withNodes(newDocument(node), [node]).document));
  }
  return files;
}
