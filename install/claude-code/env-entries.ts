import type { EditKind } from '../edit-kind.ts';
import { parseWith, pruneAt, restoreAt, setAt, valueAt } from '../json-text.ts';

const ENV = 'env';

/** Variables under `env` of Claude Code's settings. */
export const envEntries: EditKind = {
  holdsToken: true,
  isBackedUp: true,
  add(text, values, file) {
    parseWith(text, file, [ENV], 'object');
    let edited = text;
    for (const [name, value] of Object.entries(values)) {
      if (valueAt(edited, [ENV, name]) !== value) edited = setAt(edited, [ENV, name], value);
    }
    return edited;
  },
  remove(text, own, before, file) {
    parseWith(text, file, [ENV], 'object');
    let edited = text;
    for (const [name, values] of Object.entries(own)) {
      if (values.some((value) => value === valueAt(edited, [ENV, name])))
        edited = restoreAt(edited, [ENV, name], before);
    }
    return edited === text ? text : pruneAt(edited, [ENV], before);
  },
};
