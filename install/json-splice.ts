import { type Node, stripComments } from 'jsonc-parser';

/** What goes into an array, or with `key` into an object. */
interface Item {
  readonly key?: string;
  readonly value: unknown;
}

/**
 * `text` with `item` as the last one of `container`, in the form of the lines around it. Nothing else is touched, so
 * that `removed` gives the text back as it was.
 */
export function inserted(text: string, container: Node, { key, value }: Item): string {
  const close = container.offset + container.length - 1;
  const last = container.children?.at(-1);
  const isOneLine = last !== undefined && !text.slice(container.offset, close).includes('\n');
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const outer = indentAt(text, container.offset);
  const step = /^([ \t]+)"/m.exec(text)?.[1] ?? '  ';
  const inner = outer + step;
  const body = isOneLine ? JSON.stringify(value) : JSON.stringify(value, null, step).replaceAll('\n', eol + inner);
  const named = key === undefined ? body : `${JSON.stringify(key)}: ${body}`;
  const before = isOneLine ? ' ' : eol + inner;
  if (last === undefined) {
    // Comments of an empty one stay in front.
    const head = text.slice(0, close).trimEnd();
    return `${head}${before}${named}${eol}${outer}${text.slice(close)}`;
  }
  const end = last.offset + last.length;
  const tail = text.slice(end, close);
  const comma = stripComments(tail).includes(',') ? '' : ',';
  const kept = tail.trimEnd();
  return `${text.slice(0, end)}${comma}${kept}${before}${named}${tail.slice(kept.length)}${text.slice(close)}`;
}

/** `text` without a property's value and its name, or without an item of an array. */
export function removed(text: string, value: Node): string {
  const item = value.parent?.type === 'property' ? value.parent : value;
  const container = item.parent as Node;
  const siblings = container.children ?? [];
  const at = siblings.indexOf(item);
  const [before, after] = [siblings[at - 1], siblings[at + 1]];
  const end = item.offset + item.length;
  const close = after?.offset ?? container.offset + container.length - 1;
  const own = text.slice(0, item.offset).trimEnd().length;
  const comma = commaIn(text, end, close);
  if (comma >= 0) return text.slice(0, own) + text.slice(comma + 1);
  if (before === undefined) {
    const isBare = own === container.offset + 1 && text.slice(end, close).trim() === '';
    return text.slice(0, own) + text.slice(isBare ? close : end);
  }
  const former = commaIn(text, before.offset + before.length, item.offset);
  return text.slice(0, former) + text.slice(former + 1, own) + text.slice(end);
}

/** `text` with another value in the place of this one. */
export function replaced(text: string, value: Node, json: string): string {
  return text.slice(0, value.offset) + json + text.slice(value.offset + value.length);
}

/**
 * What is left of a file once ours is out of it: the very text from before where nothing else differs, since what was
 * empty takes whatever form. Null where no file was there and none is needed.
 *
 * @param original  the text from before; null where there was no file
 */
export function leftOf(without: string, original: string | null): string | null {
  if (original === null) return withoutGaps(without).trim() === '{}' ? null : without;
  return withoutGaps(without) === withoutGaps(original) ? original : without;
}

/** Empty objects and lists without what stands in them; strings as they are. */
function withoutGaps(text: string): string {
  return text.replace(/("(?:\\.|[^"\\])*")|([{[])\s+(?=[}\]])/g, (_, string: string, open: string) => string ?? open);
}

/** Where the comma stands between two items, past comments; -1 where there is none. */
function commaIn(text: string, from: number, to: number): number {
  const at = stripComments(text.slice(from, to), ' ').indexOf(',');
  return at < 0 ? -1 : from + at;
}

function indentAt(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
  return /^[ \t]*/.exec(line)?.[0] ?? '';
}
