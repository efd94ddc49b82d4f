import fc from 'fast-check';
import { hostileText } from './random-nodes.ts';

const RULES = '\nauthor: { by: rules }\nstatus: draft';
const MODEL = '\nauthor: { by: model, model: claude }';

/** What someone may do to node files with an editor or a shell; numbers choose file, section and place. */
export interface RandomEdit {
  readonly kind: (typeof KINDS)[number];
  readonly file: number;
  readonly section: number;
  readonly at: number;
  readonly text: string;
}

const KINDS = [
  'summary',
  'importance',
  'break',
  'append',
  'turns',
  'standIn',
  'deleteSection',
  'repeatSection',
  'copySection',
  'renameSection',
  'moveSection',
  'renameFile',
  'copyFile',
  'deleteFile',
  'cutFile',
  'insert',
  'frontMatter',
  'project',
  'mend',
] as const;

export const randomEdit: fc.Arbitrary<RandomEdit> = fc.record({
  kind: fc.constantFrom(...KINDS),
  file: fc.nat(20),
  section: fc.nat(20),
  at: fc.nat(10_000),
  text: fc.oneof(hostileText, fc.string({ minLength: 1, maxLength: 12 })),
});

const cut = (text: string): string[] => text.split(/^(?=## )/m);
const freshId = (at: number): string => `mem_20260401_101500_${at.toString(16).padStart(6, '0')}`;

/** The files after the edit; `sound` is what a mended file is set to. */
export function applyEdit(before: ReadonlyMap<string, string>, edit: RandomEdit, sound: string): Map<string, string> {
  const files = new Map(before);
  const names = [...files.keys()].sort();
  const name = names[edit.file % Math.max(1, names.length)];
  if (edit.kind === 'mend' || name === undefined) return files.set(`p/f${edit.at % 6}.md`, sound);
  const other = names[(edit.file + 1 + edit.at) % names.length] as string;
  const text = files.get(name) as string;
  const parts = cut(text);
  const which = 1 + (edit.section % Math.max(1, parts.length - 1));
  const section = parts[which] ?? '';
  const withSection = (fresh: string): void => void files.set(name, parts.toSpliced(which, 1, fresh).join(''));
  const line = edit.text.replace(/[\r\n]/g, ' ').slice(0, 40);
  const place = edit.at % (text.length + 1);
  switch (edit.kind) {
    case 'summary':
      withSection(section.replace(/^(## \S+)[^\n]*/, (_, head: string) => `${head} ${line}`));
      break;
    case 'importance':
      withSection(section.replace(/\norigin: \w+/, `$&\nimportance: ${['HIGH', 'MED', 'LOW'][edit.at % 3]}`));
      break;
    case 'break':
      withSection(section.replace(/\norigin: \w+/, '\norigin: HUGE'));
      break;
    case 'append':
      withSection(`${section}${edit.text}\n`);
      break;
    case 'turns':
      withSection(section.replace(/\nturns: \[.*\]/, `\nturns: ["end-${edit.at % 9}","end-${edit.section % 9}"]`));
      break;
    case 'standIn':
      withSection(section.replace(/\nauthor: .*(\nstatus: draft)?/, edit.at % 2 === 0 ? RULES : MODEL));
      break;
    case 'deleteSection':
      withSection('');
      break;
    case 'repeatSection':
      files.set(name, `${text}${section}`);
      break;
    case 'copySection':
      files.set(name, `${text}${section.replace(/^## \S+/, `## ${freshId(edit.at)}`)}`);
      break;
    case 'renameSection':
      withSection(section.replace(/^## \S+/, `## ${freshId(edit.at)}`));
      break;
    case 'moveSection':
      withSection('');
      files.set(other, `${files.get(other) ?? ''}${section}`);
      break;
    case 'renameFile':
      files.delete(name);
      files.set(`q/r${edit.at % 6}.md`, text);
      break;
    case 'copyFile':
      files.set(`a/c${edit.at % 6}.md`, text);
      break;
    case 'deleteFile':
      files.delete(name);
      break;
    case 'cutFile':
      files.set(name, text.slice(0, place));
      break;
    case 'insert':
      files.set(name, `${text.slice(0, place)}${edit.text}${text.slice(place)}`);
      break;
    case 'frontMatter':
      files.set(name, text.replace('session_id', 'session'));
      break;
    case 'project':
      files.set(name, text.replace(/^project: .*$/m, `project: /home/dev/p${edit.at % 3}`));
      break;
  }
  return files;
}
