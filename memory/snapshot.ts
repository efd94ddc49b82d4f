import { CometError } from '../common/errors.ts';
import { parseJson } from '../common/text.ts';
import { renderSection } from './model/markdown.ts';
import type { MemoryNode } from './model/node.ts';
import { MemoryNode as NodeSchema } from './model/node-schema.ts';
import type { MemoryParts } from './parts.ts';

/** What a text was before a change. */
interface Version {
  /** Until when it was so. */
  readonly at: string;
  /** What was about to happen: a snapshot's reason. */
  readonly reason: string;
  readonly text: string;
}

type Parts = MemoryParts & { readonly resolve: (prefix: string) => MemoryNode };

/** How memories and pages changed, as far as the kept snapshots tell. */
export function createHistory({ snapshooter, topicPages, redactor, resolve }: Parts) {
  return {
    /** A memory's section in its file. @throws CometError `not_found`, `ambiguous_id` */
    async memoryHistory(id: string) {
      const node = resolve(id);
      const mark = `"node_id":${JSON.stringify(node.node_id)}`;
      const nodeVersions = await snapshooter.trace((text) => getLineAt(text, text.indexOf(mark)));
      const texts = nodeVersions.map(({ line, ...when }) => ({ ...when, text: getSection(line) }));
      return getHistory(renderSection(node), texts);
    },
    /** A topic page. @throws CometError `not_found` for a name that neither the library nor a snapshot has */
    async topicHistory(name: string) {
      const file = `topics/${name}.md`;
      const now = (await topicPages.shelf()).texts.get(file) ?? '';
      const pageVersions = await snapshooter.trace((text) => getLineAt(text, text.indexOf('\n{"pages":') + 1));
      const texts = pageVersions.map(({ line, ...when }) => ({ ...when, text: redactor.text(findPage(line, file)) }));
      const history = getHistory(redactor.text(now), texts);
      if (now === '' && history.versions.length === 0) throw new CometError('not_found', `no topic ${name} here`);
      return history;
    },
  };
}

/** `now` is '' where it is gone; newest first, each version differs from the one after it. */
function getHistory(now: string, recent: readonly Version[]) {
  let newer = now;
  const versions = recent.filter(({ text }) => {
    const isOther = text !== '' && text !== newer;
    if (isOther) newer = text;
    return isOther;
  });
  return { now, versions };
}

function getLineAt(text: string, at: number): string {
  if (at < 0) return '';
  const end = text.indexOf('\n', at);
  return text.slice(text.lastIndexOf('\n', at) + 1, end < 0 ? undefined : end);
}

function getSection(line: string): string {
  const { success, data } = NodeSchema.safeParse(((parseJson(line) ?? {}) as { node?: unknown }).node);
  return success ? renderSection(data) : '';
}

function findPage(line: string, file: string): string {
  const { pages = [] } = (parseJson(line) ?? {}) as { pages?: readonly { name: string; text: string }[] };
  return pages.find(({ name }) => name === file)?.text ?? '';
}
