import { CometError } from '../common/errors.ts';
import type { EditKind } from './json-text.ts';

const BEGIN = '<!-- comet-cc library: begin (`comet-cc library unlink` removes this part) -->';
const END = '<!-- comet-cc library: end -->';

/** A part of a text file, between two marks; everything else in the file is the user's. */
export const markedBlock: EditKind = {
  isText: true,
  add(text, { block = '' }, file) {
    if (text.includes(BEGIN)) return replaceMarkedBlock(text, block, file);
    const eol = getEol(text);
    const gap = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol;
    return `${text}${gap}${BEGIN}${getInner(block, eol)}${END}${eol}`;
  },
  remove: (text, _own, _before, file) => withoutMarkedBlock(text, file),
};

/** With another text in the part; without a change where there is none. @throws as `withoutMarkedBlock` */
export function replaceMarkedBlock(text: string, block: string, file: string): string {
  const [head = '', ...parts] = text.split(BEGIN);
  const inner = getInner(block, getEol(text));
  return [head, ...parts.map((part) => inner + part.slice(findEnd(part, file)))].join(BEGIN);
}

/** What the parts of a text say; '' for none. @throws as `withoutMarkedBlock` */
export function readMarkedBlock(text: string, file: string): string {
  const [, ...parts] = text.split(BEGIN);
  return parts.map((part) => part.slice(0, findEnd(part, file))).join('');
}

const getEol = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');

function getInner(block: string, eol: string): string {
  return eol + block.replaceAll('<!--', '‹!--').replaceAll('-->', '--›').trim().replace(/\r?\n/g, eol) + eol;
}

/** @throws CometError `config_invalid` where a part begins and does not end */
function findEnd(text: string, file: string, from = 0): number {
  const end = text.indexOf(END, from);
  if (end >= 0) return end;
  const next = `remove the part that begins with "${BEGIN.slice(5, 28)}" by hand`;
  throw new CometError('config_invalid', `${file} has no end of the library's part and was left unchanged; ${next}`);
}

/** @throws CometError `config_invalid` where a part begins and does not end */
export function withoutMarkedBlock(text: string, file: string): string {
  let rest = text;
  for (let from = rest.indexOf(BEGIN); from >= 0; from = rest.indexOf(BEGIN)) {
    const end = findEnd(rest, file, from);
    const head = rest.slice(0, from).replace(/\r?\n$/, '');
    rest = head + rest.slice(end + END.length).replace(/^\r?\n/, head === '' || /\n$/.test(head) ? '' : '\n');
  }
  return rest;
}
