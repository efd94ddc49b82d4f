import { oneLine } from '../../../common/text.ts';
import { factText } from '../../../engine/api/index.ts';
import type { Item, ProjectView } from '../../../memory/index.ts';
import { projectName } from './list.ts';

export type Purpose = 'pr' | 'handover';

interface Section {
  readonly title: string;
  readonly lines: readonly string[];
}

/** Newest outcomes of a pull request; a handover has more. */
const OUTCOMES = { pr: 10, handover: 20 } as const;

/** What of a project others should know, without what came from outside, to be pasted. */
export function handoverSections(items: readonly Item[], view: ProjectView, purpose: Purpose): Section[] {
  const own = items.filter(({ origin }) => origin !== 'external');
  const texts = (kind: Item['kind']): string[] =>
    own.filter((item) => item.kind === kind).map(({ text }) => oneLine(text));
  const facts = view.facts.filter(({ origin }) => origin !== 'external').map((fact) => factText(fact));
  const ownTexts = new Set(own.map(({ text }) => oneLine(text)));
  const sections = [
    { title: 'Done', lines: texts('outcome').slice(0, OUTCOMES[purpose]) },
    { title: 'Decisions', lines: texts('decision') },
    { title: 'Open', lines: texts('todo') },
    ...(purpose === 'pr'
      ? []
      : [
          { title: 'Statements and values', lines: facts.filter((text) => !ownTexts.has(text)) },
          { title: 'Files', lines: view.files.map(({ path }) => oneLine(path)) },
        ]),
  ];
  return sections.filter(({ lines }) => lines.length > 0);
}

export function handoverText(project: string, sections: readonly Section[], format: 'md' | 'html'): string {
  const name = projectName(project);
  if (format === 'md') {
    const parts = sections.map(
      ({ title, lines }) => `### ${title}\n\n${lines.map((line) => `- ${plain(line)}\n`).join('')}`,
    );
    return [`## ${plain(name)}\n`, ...parts].join('\n');
  }
  const parts = sections.map(
    ({ title, lines }) =>
      `<h3>${title}</h3>\n<ul>\n${lines.map((line) => `<li>${markup(line)}</li>\n`).join('')}</ul>\n`,
  );
  return `<h2>${markup(name)}</h2>\n${parts.join('')}`;
}

/** Without markup and images that a page would show, and mentions of which a forge would notify. */
function plain(text: string): string {
  return text
    .replaceAll('<', '&lt;')
    .replaceAll('![', '!\\[')
    .replace(/(^|\s)(@[\w-]+)/g, '$1`$2`');
}

function markup(text: string): string {
  const names: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replace(/[&<>"]/g, (found) => names[found] as string);
}
