/** The same plain value in texts of its own: a part of a text keeps all of the text in memory, a copy does not. */
export function copied<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
