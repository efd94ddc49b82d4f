import {
  applyEdits,
  createScanner,
  type Edit,
  findNodeAtLocation,
  format,
  getNodeValue,
  type JSONPath,
  modify,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
  stripComments,
} from 'jsonc-parser';
import { CometError } from '../common/errors.ts';

/** Root of a JSON object, comments and trailing commas allowed. @throws CometError `config_invalid` naming the file */
function parseObject(text: string, file: string): Node {
  const errors: ParseError[] = [];
  // Claude Code reads past a byte order mark.
  const root = parseTree(text.replace(/^\uFEFF/, ' '), errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error !== undefined) {
    const line = text.slice(0, error.offset).split('\n').length;
    const problem = `line ${line}: ${printParseErrorCode(error.error)}`;
    throw new CometError('config_invalid', `${file} is not valid JSON (${problem}); it was left unchanged`);
  }
  if (root?.type === 'object') return root;
  throw new CometError('config_invalid', `${file} is not a JSON object; it was left unchanged`);
}

/** As `parseObject`, with a value of that type at `path` or none. @throws as `parseObject` */
export function parseWith(text: string, file: string, path: JSONPath, type: 'object' | 'array'): Node {
  const root = parseObject(text, file);
  const node = findNodeAtLocation(root, path);
  if (node === undefined || node.type === type) return root;
  throw new CometError('config_invalid', `${file}: ${path.join('.')} is not an ${type}; it was left unchanged`);
}

/** Undefined where the text has no such value. */
export function getValueAt(text: string, path: JSONPath): unknown {
  const node = getNodeAt(text, path);
  return node === undefined ? undefined : getNodeValue(node);
}

/** Sets the value at `path`; a last segment of -1 appends to an array. Only lines that are added are formatted. */
export function setAt(text: string, path: JSONPath, value: unknown): string {
  const [edit] = modify(text, path, value, {});
  if (edit === undefined) return text;
  if (edit.length > 0) return applyEdits(text, [edit]);
  const container = getContainer(text, path);
  const isEmpty = (container.children ?? []).length === 0;
  const isOneLine = !isEmpty && !text.slice(container.offset, container.offset + container.length).includes('\n');
  if (isOneLine) return applyEdits(text, [{ ...edit, content: edit.content.replace(/^,/, ', ') }]);
  const step = /^([ \t]+)"/m.exec(text)?.[1] ?? '  ';
  const added = applyEdits(text, [edit]);
  // An empty container is opened and closed on lines of their own.
  const margin = isEmpty ? 1 : 0;
  const range = { offset: edit.offset - margin, length: edit.content.length + 2 * margin };
  const style = {
    tabSize: step.length,
    insertSpaces: !step.startsWith('\t'),
    eol: text.includes('\r\n') ? '\r\n' : '\n',
  };
  return applyEdits(added, format(added, range, style));
}

/**
 * Removes a property or an array item together with one comma; comments stay.
 *
 * Not `modify`: it deletes the comments around an item and turns `[1,2]` without its last item into `[12]`.
 */
export function removeAt(text: string, path: JSONPath): string {
  const value = getNodeAt(text, path);
  if (value?.parent === undefined) return text;
  const item = value.parent.type === 'property' ? value.parent : value;
  const container = item.parent as Node;
  const siblings = container.children ?? [];
  const index = siblings.indexOf(item);
  const [previous, next] = [siblings[index - 1], siblings[index + 1]];
  const end = item.offset + item.length;
  const close = next?.offset ?? container.offset + container.length - 1;
  const start = text.slice(0, item.offset).trimEnd().length;
  const comma = findComma(text, end, close);
  if (comma >= 0) return text.slice(0, start) + text.slice(comma + 1);
  if (previous === undefined) {
    const isBare = start === container.offset + 1 && text.slice(end, close).trim() === '';
    return text.slice(0, start) + text.slice(isBare ? close : end);
  }
  const former = findComma(text, previous.offset + previous.length, item.offset);
  return text.slice(0, former) + text.slice(former + 1, start) + text.slice(end);
}

/** Puts back what `before` has at `from`, in its own spelling; removes the value where `before` has none. */
export function restoreAt(text: string, path: JSONPath, before: string, from: JSONPath = path): string {
  const [node, former] = [getNodeAt(text, path), getNodeAt(before, from)];
  if (node === undefined) return text;
  if (former === undefined) return removeAt(text, path);
  const content = before.slice(former.offset, former.offset + former.length);
  return applyEdits(text, [{ offset: node.offset, length: node.length, content }]);
}

/** Removes an object or array that is empty now and that `before` did not have. */
export function pruneAt(text: string, path: JSONPath, before: string): string {
  const isAdded = getNodeAt(text, path)?.children?.length === 0 && getNodeAt(before, path) === undefined;
  return isAdded ? removeAt(text, path) : text;
}

/** Whether two texts differ in white space and trailing commas at most; no text at all equals an empty object. */
export function isSameJson(a: string, b: string): boolean {
  const [one, other] = [a, b].map((text) => {
    const json = withoutTrailingCommas(text.trim()) || '{}';
    return applyEdits(json, format(json, undefined, { tabSize: 2, insertSpaces: true, eol: '\n' }));
  });
  return one === other;
}

function withoutTrailingCommas(text: string): string {
  const edits: Edit[] = [];
  const scanner = createScanner(text, true);
  let comma = -1;
  for (scanner.scan(); scanner.getTokenLength() > 0; scanner.scan()) {
    const offset = scanner.getTokenOffset();
    if (comma >= 0 && '}]'.includes(text.charAt(offset))) edits.push({ offset: comma, length: 1, content: '' });
    comma = text.charAt(offset) === ',' ? offset : -1;
  }
  return applyEdits(text, edits);
}

function getNodeAt(text: string, path: JSONPath): Node | undefined {
  const root = parseTree(text);
  return root === undefined ? undefined : findNodeAtLocation(root, path);
}

/** The innermost value on the way to `path` that exists. */
function getContainer(text: string, path: JSONPath): Node {
  return getNodeAt(text, path.slice(0, -1)) ?? getContainer(text, path.slice(0, -1));
}

/** Position of the comma between two items, comments skipped; -1 where there is none. */
function findComma(text: string, from: number, to: number): number {
  const at = stripComments(text.slice(from, to), ' ').indexOf(',');
  return at < 0 ? -1 : from + at;
}

export type Values = Readonly<Record<string, string>>;
/** By name: the value that is set now, then those of earlier edits, which an interrupted edit leaves in the file. */
export type OwnValues = Readonly<Record<string, readonly string[]>>;

/** How one kind of entry gets into the text of a file and out of it. Both throw `config_invalid`. */
export interface EditKind {
  /** The proxy's token is among the values; then only the user may read the file. */
  readonly holdsToken?: true;
  /** No copy of the file is kept beside it. */
  readonly skipsBackup?: true;
  /** Not JSON; then the record keeps no value. */
  readonly isText?: true;
  add(text: string, values: Values, file: string): string;
  /** Removes what is still as it was set; what `before`, the text without any edit, had in its place returns. */
  remove(text: string, own: OwnValues, before: string, file: string): string;
}
