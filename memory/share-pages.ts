import path from 'node:path';
import { CometError } from '../common/errors.ts';
import { grouped, LruMap } from '../common/map.ts';
import { renderPage } from './model/page.ts';
import {
  changeBlocks,
  countLabels,
  createBlockKeys,
  emptyPage,
  factsRef,
  findBlocks,
  getRef,
  pageKey,
  type ReceivedBlock,
} from './pages/page-blocks.ts';
import type { MemoryParts } from './parts.ts';
import type { BlockChange, FadedFacts, SharedBlocks } from './share/parts.ts';
import { factLine, findFacts, withFactsOf, withoutFacts } from './storage/fact-markdown.ts';

const TRIES = 3;
const MOST_KNOWN = 20_000;

interface Parts extends Pick<MemoryParts, 'topicPages' | 'redactor' | 'factFiles' | 'clock'> {
  readonly facts: Pick<MemoryParts['facts'], 'texts' | 'rewrite'>;
  readonly share?: { readonly faded?: FadedFacts } | undefined;
}
type KeyOf = (project: string) => string;
type Redact = (text: string) => string;

function createPages({ topicPages, clock }: Parts, redact: Redact) {
  const { replace } = topicPages.files;

  async function readPageTexts(getKey: KeyOf) {
    const shelf = await topicPages.shelf();
    const files = [...shelf.texts].filter(([name]) => /^(?:topics|plans)\//.test(name));
    const found = files.flatMap(([name, text]) => {
      const page = getRef(name, text, getKey);
      return page === null ? [] : [{ page, text }];
    });
    // A folder that is gone, or a page that cannot be read, removes nothing elsewhere.
    const isWhole = shelf.texts.size > 0 && shelf.problems.length === 0;
    return { found, names: new Set(files.map(([name]) => name.toLowerCase())), isWhole };
  }

  return {
    async blocks(getKey: KeyOf) {
      const { found, isWhole } = await readPageTexts(getKey);
      const nameKey = createBlockKeys();
      return { isWhole, blocks: found.flatMap(({ page, text }) => findBlocks(text, page, nameKey, redact)) };
    },
    /** False where somebody edited a page meanwhile. */
    async change({ added, removed, isKnown, getKey }: BlockChange): Promise<boolean> {
      const { found, names } = await readPageTexts(getKey);
      const written = added.filter(({ block }) => block.page.kind !== 'facts');
      const own = grouped(written, ({ block }) => pageKey(block.page));
      let isMade = true;
      for (const { page, text } of found) {
        const changes = { added: own.get(pageKey(page)) ?? [], removed, isKnown, redact };
        own.delete(pageKey(page));
        const after = changeBlocks(text, page, changes);
        if (after !== text) isMade = (await replace({ name: page.file, before: text, after })) && isMade;
      }
      const day = new Date(clock.now()).toISOString().slice(0, 10);
      for (const blocks of own.values()) {
        const [{ block }] = blocks as [ReceivedBlock];
        const page = { ...block.page, file: freeName(block.page.file, names) };
        names.add(page.file.toLowerCase());
        const after = changeBlocks(emptyPage(page, day), page, { added: blocks, removed, isKnown, redact });
        if (after !== null) isMade = (await replace({ name: page.file, before: null, after })) && isMade;
      }
      return isMade;
    },
  };
}

function createFacts({ facts }: Parts, redact: Redact) {
  async function readFactTexts(getKey: KeyOf) {
    const { files, isWhole } = await facts.texts();
    const lines = files.flatMap(({ project, text }) => {
      const page = factsRef(project && getKey(project));
      return findFacts(text).map((fact) => {
        const value = redact(fact.text);
        const key = createBlockKeys()(page, '', value);
        const block = { key, page, section: '', text: value, after: '', isPrivate: value !== fact.text };
        return { isOwn: fact.isOwn, project, raw: fact.text, block };
      });
    });
    return { isWhole, lines };
  }

  return {
    read: readFactTexts,
    async change({ added, removed, getKey }: BlockChange): Promise<void> {
      const { lines } = await readFactTexts(getKey);
      const gone = lines.filter(({ isOwn, block }) => isOwn && removed.has(block.key));
      for (const { project, raw } of gone)
        await facts.rewrite(project, (text) => text && withoutFacts(text, (fact) => fact.isOwn && fact.text === raw));
      for (const { page, text } of added.map(({ block }) => block))
        if (page.kind === 'facts')
          await facts.rewrite(page.project, (there) => withFactsOf(page.project, there, factLine(text)));
    },
  };
}

/** What people write into pages, plans and fact files, as far as sharing reads and changes it. */
export function createSharedPages(parts: Parts) {
  const { topicPages, factFiles, share } = parts;
  /** Texts that were read before, without looking at them again. */
  const redacted = new LruMap<string, string>(MOST_KNOWN);
  const redact = (text: string): string => redacted.getOrCreate(text, () => parts.redactor.text(text));
  const pages = createPages(parts, redact);
  const facts = createFacts(parts, redact);
  return {
    async blocks(getKey: KeyOf): Promise<SharedBlocks> {
      const written = await pages.blocks(getKey);
      const stated = await facts.read(getKey);
      const own = stated.lines.filter((line) => line.isOwn).map(({ block }) => block);
      return {
        blocks: [...written.blocks, ...new Map(own.map((block) => [block.key, block])).values()],
        faded: (await share?.faded?.load()) ?? [],
        present: new Set([...written.blocks, ...stated.lines.map(({ block }) => block)].map(({ key }) => key)),
        places: {
          pages: { name: topicPages.files.dir, isWhole: written.isWhole },
          facts: { name: factFiles.getPath(''), isWhole: stated.isWhole },
        },
      };
    },
    /** @param getKey  the remote of a folder that joined it, else the project itself */
    async adopt(getKey: KeyOf): Promise<void> {
      const shelf = await topicPages.shelf();
      for (const [stem, page] of shelf.pages) {
        const [name, project] = [`topics/${stem}.md`, getKey(page.head.project)];
        if (project === page.head.project) continue;
        const after = renderPage({ ...page, head: { ...page.head, project } });
        await topicPages.files.replace({ name, before: shelf.texts.get(name) ?? null, after });
      }
      for (const { project, text } of (await parts.facts.texts()).files) {
        const key = project && getKey(project);
        if (key === project || findFacts(text).length === 0) continue;
        await parts.facts.rewrite(key, (there) => withFactsOf(key, there, text));
        await parts.facts.rewrite(project, (here) => here && withoutFacts(here, () => true));
      }
    },
    async saveBlocks(change: BlockChange): Promise<void> {
      await facts.change(change);
      for (let tries = 0; tries < TRIES; tries += 1) if (await pages.change(change)) return;
      const { dir } = topicPages.files;
      throw new CometError('share_failed', `${dir} changes while it is written, or cannot be written; pull again`);
    },
    dropFaded: async (keys: readonly string[]) => share?.faded?.drop(keys),
    async changedApart() {
      return [...(await topicPages.shelf()).texts].flatMap(([file, text]) => {
        const blocks = countLabels(text);
        return blocks === 0 ? [] : [{ file, blocks }];
      });
    },
  };
}

function freeName(file: string, names: ReadonlySet<string>): string {
  const { dir, name } = path.posix.parse(file);
  for (let nth = 1; ; nth += 1) {
    const free = `${dir}/${name}${nth === 1 ? '' : `-${nth}`}.md`;
    if (!names.has(free.toLowerCase())) return free;
  }
}
