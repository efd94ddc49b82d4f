import { CometError } from '../common/errors.ts';
import type { EditKind } from './json-text.ts';

const BEGIN = '<!-- comet-cc library: begin (`comet-cc library unlink` removes this part) -->';
const END = '<!-- comet-cc library: end -->';

/** A part of a text file, between two marks; everything else in the file is the user's. */
export const markedBlock: EditKind = {
  holdsToken: false,
  isBackedUp: true,
  isText: true,
  add(text, { block = '' }, file) {
    const rest = withoutMarkedBlock(text, file);
    const eol = text.includes('\r\n') ? '\r\n' : '\n';
    const inner = block.replaceAll('<!--', '‹!--').replaceAll('-->', '--›').trim().replace(/\r?\n/g, eol);
    const gap = rest === '' ? '' : rest.endsWith('\n') ? eol : eol + eol;
    return `${rest}${gap}${BEGIN}${eol}${inner}${eol}${END}${eol}`;
  },
  remove: (text, _own, _before, file) => withoutMarkedBlock(text, file),
};

/** @throws CometError `config_invalid` where a part begins and does not end */
export function withoutMarkedBlock(text: string, file: string): string {
  let rest = text;
  for (let from = rest.indexOf(BEGIN); from >= 0; from = rest.indexOf(BEGIN)) {
    const end = rest.indexOf(END, from);
    if (end < 0) {
      const next = `remove the part that begins with "${BEGIN.slice(5, 28)}" by hand`;
      throw new CometError(
        'config_invalid',
        `${file} has no end of the library's part and was left unchanged; ${next}`,
      );
    }
    const head = rest.slice(0, from).replace(/\r?\n$/, '');
    rest = head + rest.slice(end + END.length).replace(/^\r?\n/, head === '' || /\n$/.test(head) ? '' : '\n');
  }
  return rest;
}
