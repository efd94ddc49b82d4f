import {
  findNodeAtLocation,
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import { CometError } from '../../common/errors.ts';
import { inserted, removed, replaced } from '../json-splice.ts';

/** Where Claude Code's extension takes variables from: a list of `{ name, value }`. */
export const VARIABLES_KEY = 'claudeCode.environmentVariables';
/** What the editor does not send to other machines: the token and the paths are of this one. */
export const UNSYNCED_KEY = 'settingsSync.ignoredSettings';

type Variables = Readonly<Record<string, string>>;

interface Entry {
  readonly name?: unknown;
  readonly value?: unknown;
}

/**
 * An editor's settings with these variables, each in the place it had; comments, order and form stay.
 *
 * @throws CometError `config_invalid` where the text is not what an editor writes
 */
export function withVariables(before: string, variables: Variables): string {
  let text = before.trim() === '' ? '{}\n' : before;
  for (const [name, value] of Object.entries(variables)) {
    const own = findNodeAtLocation(treeOf(text), [VARIABLES_KEY, indexOf(text, name)]);
    text =
      own === undefined
        ? appended(text, VARIABLES_KEY, { name, value })
        : replaced(text, own, JSON.stringify({ name, value }));
  }
  return listAt(text, UNSYNCED_KEY).includes(VARIABLES_KEY) ? text : appended(text, UNSYNCED_KEY, VARIABLES_KEY);
}

/**
 * Settings that were changed since, without what we put there; what stood in its place is back.
 *
 * @param before  the settings as they were before us
 * @throws CometError `config_invalid` as `withVariables`
 */
export function withoutVariables(now: string, variables: Variables, before: string): string {
  const formerText = before.trim() === '' ? '{}' : before;
  const former = listAt(formerText, VARIABLES_KEY) as readonly Entry[];
  let text = now;
  for (const [name, value] of Object.entries(variables)) {
    const at = indexOf(text, name);
    const entry = findNodeAtLocation(treeOf(text), [VARIABLES_KEY, at]);
    if (at < 0 || entry === undefined || getNodeValue(entry).value !== value) continue;
    const own = former.find((one) => one?.name === name);
    text = own === undefined ? removed(text, entry) : replaced(text, entry, JSON.stringify(own));
  }
  text = withoutEmpty(text, VARIABLES_KEY, formerText);
  const at = listAt(text, UNSYNCED_KEY).indexOf(VARIABLES_KEY);
  const entry = findNodeAtLocation(treeOf(text), [UNSYNCED_KEY, at]);
  if (at < 0 || entry === undefined || listAt(formerText, UNSYNCED_KEY).includes(VARIABLES_KEY)) return text;
  return withoutEmpty(removed(text, entry), UNSYNCED_KEY, formerText);
}

/** Which of these the settings do not hold so. */
export function astrayVariables(text: string, variables: Variables): string[] {
  const list = listAt(text.trim() === '' ? '{}' : text, VARIABLES_KEY) as readonly Entry[];
  return Object.entries(variables).flatMap(([name, value]) =>
    list.some((entry) => entry?.name === name && entry.value === value) ? [] : [name],
  );
}

function withoutEmpty(text: string, key: string, before: string): string {
  const list = findNodeAtLocation(treeOf(text), [key]);
  if (list === undefined || listAt(text, key).length > 0) return text;
  return findNodeAtLocation(treeOf(before), [key]) === undefined ? removed(text, list) : text;
}

function indexOf(text: string, name: string): number {
  return (listAt(text, VARIABLES_KEY) as readonly Entry[]).findIndex((entry) => entry?.name === name);
}

function appended(text: string, key: string, value: unknown): string {
  const root = treeOf(text);
  const list = findNodeAtLocation(root, [key]);
  return list === undefined ? inserted(text, root, { key, value: [value] }) : inserted(text, list, { value });
}

function listAt(text: string, key: string): readonly unknown[] {
  const node = findNodeAtLocation(treeOf(text), [key]);
  if (node === undefined) return [];
  if (node.type === 'array') return getNodeValue(node) as readonly unknown[];
  throw new CometError('config_invalid', `${key} is no list; correct it in the editor's settings first`);
}

function treeOf(text: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error !== undefined) {
    const line = text.slice(0, error.offset).split('\n').length;
    throw new CometError(
      'config_invalid',
      `line ${line} of the editor's settings: ${printParseErrorCode(error.error)}; correct it there first`,
    );
  }
  if (root?.type === 'object') return root;
  throw new CometError('config_invalid', "the editor's settings are no JSON object; correct them there first");
}
