import { type EditKind, getValueAt, parseWith, pruneAt, removeAt, restoreAt, setAt } from '../json-text.ts';

/** Where Claude Code's extension takes variables from: a list of `{ name, value }`. */
export const VARIABLES_KEY = 'claudeCode.environmentVariables';
/** Settings that the editor does not send to other machines: the token and the paths are of this one. */
const UNSYNCED_KEY = 'settingsSync.ignoredSettings';

interface Entry {
  readonly name?: unknown;
  readonly value?: unknown;
}

export const variableEntries: EditKind = {
  holdsToken: true,
  skipsBackup: true,
  add(before, values, file) {
    let text = before.trim() === '' ? '{}\n' : before;
    checkLists(text, file);
    for (const [name, value] of Object.entries(values)) {
      const index = indexOf(text, name);
      if (findEntries(text)[index]?.value !== value) text = setAt(text, [VARIABLES_KEY, index], { name, value });
    }
    return findUnsynced(text).includes(VARIABLES_KEY) ? text : setAt(text, [UNSYNCED_KEY, -1], VARIABLES_KEY);
  },
  remove(text, own, before, file) {
    if (text.trim() === '') return text;
    checkLists(text, file);
    let edited = text;
    for (const [name, values] of Object.entries(own)) {
      const index = indexOf(edited, name);
      if (!values.some((value) => value === findEntries(edited)[index]?.value)) continue;
      edited = restoreAt(edited, [VARIABLES_KEY, index], before, [VARIABLES_KEY, indexOf(before, name)]);
    }
    edited = pruneAt(edited, [VARIABLES_KEY], before);
    if (findUnsynced(before).includes(VARIABLES_KEY)) return edited;
    edited = removeAt(edited, [UNSYNCED_KEY, findUnsynced(edited).indexOf(VARIABLES_KEY)]);
    return pruneAt(edited, [UNSYNCED_KEY], before);
  },
};

/** What the settings hold for Claude Code's extension. */
export function setVariables(text: string): Readonly<Record<string, unknown>> {
  return Object.fromEntries(findEntries(text).map((entry) => [entry?.name, entry?.value]));
}

function checkLists(text: string, file: string): void {
  for (const key of [VARIABLES_KEY, UNSYNCED_KEY]) parseWith(text, file, [key], 'array');
}

function findEntries(text: string): readonly (Entry | null)[] {
  return (getValueAt(text, [VARIABLES_KEY]) ?? []) as readonly (Entry | null)[];
}

function findUnsynced(text: string): readonly unknown[] {
  return (getValueAt(text, [UNSYNCED_KEY]) ?? []) as readonly unknown[];
}

const indexOf = (text: string, name: string): number => findEntries(text).findIndex((entry) => entry?.name === name);
