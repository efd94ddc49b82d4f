import { type EditKind, parseWith, pruneAt, removeAt, restoreAt, setAt, type Values, valueAt } from '../json-text.ts';

/** Where Claude Code's extension takes variables from: a list of `{ name, value }`. */
export const VARIABLES_KEY = 'claudeCode.environmentVariables';
/** Settings that the editor does not send to other machines: the token and the paths are of this one. */
const UNSYNCED_KEY = 'settingsSync.ignoredSettings';

interface Entry {
  readonly name?: unknown;
  readonly value?: unknown;
}

/** Variables of Claude Code's extension in an editor's settings. */
export const variableEntries: EditKind = {
  holdsToken: true,
  isBackedUp: false,
  add(before, values, file) {
    let text = before.trim() === '' ? '{}\n' : before;
    checkLists(text, file);
    for (const [name, value] of Object.entries(values)) {
      const index = indexOf(text, name);
      if (entriesIn(text)[index]?.value !== value) text = setAt(text, [VARIABLES_KEY, index], { name, value });
    }
    return unsyncedIn(text).includes(VARIABLES_KEY) ? text : setAt(text, [UNSYNCED_KEY, -1], VARIABLES_KEY);
  },
  remove(text, own, before, file) {
    if (text.trim() === '') return text;
    checkLists(text, file);
    let edited = text;
    for (const [name, values] of Object.entries(own)) {
      const index = indexOf(edited, name);
      if (!values.some((value) => value === entriesIn(edited)[index]?.value)) continue;
      edited = restoreAt(edited, [VARIABLES_KEY, index], before, [VARIABLES_KEY, indexOf(before, name)]);
    }
    edited = pruneAt(edited, [VARIABLES_KEY], before);
    if (unsyncedIn(before).includes(VARIABLES_KEY)) return edited;
    edited = removeAt(edited, [UNSYNCED_KEY, unsyncedIn(edited).indexOf(VARIABLES_KEY)]);
    return pruneAt(edited, [UNSYNCED_KEY], before);
  },
};

/** Names of the values that the settings do not hold. */
export function missingVariables(text: string, values: Values): string[] {
  const set = setVariables(text);
  return Object.keys(values).filter((name) => set[name] !== values[name]);
}

/** What the settings hold for Claude Code's extension. */
export function setVariables(text: string): Readonly<Record<string, unknown>> {
  return Object.fromEntries(entriesIn(text).map((entry) => [entry?.name, entry?.value]));
}

function checkLists(text: string, file: string): void {
  for (const key of [VARIABLES_KEY, UNSYNCED_KEY]) parseWith(text, file, [key], 'array');
}

function entriesIn(text: string): readonly (Entry | null)[] {
  return (valueAt(text, [VARIABLES_KEY]) ?? []) as readonly (Entry | null)[];
}

function unsyncedIn(text: string): readonly unknown[] {
  return (valueAt(text, [UNSYNCED_KEY]) ?? []) as readonly unknown[];
}

function indexOf(text: string, name: string): number {
  return entriesIn(text).findIndex((entry) => entry?.name === name);
}
