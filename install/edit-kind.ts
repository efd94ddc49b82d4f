export type Values = Readonly<Record<string, string>>;
/** By name: the value that is set now, then those of earlier edits, which an interrupted edit leaves in the file. */
export type OwnValues = Readonly<Record<string, readonly string[]>>;

/** How one kind of entry gets into the text of a file and out of it. Both throw `config_invalid`. */
export interface EditKind {
  /** Whether the proxy's token is among the values; then only the user may read the file. */
  readonly holdsToken: boolean;
  /** Whether a copy of the file is kept beside it. */
  readonly isBackedUp: boolean;
  add(text: string, values: Values, file: string): string;
  /** Removes what is still as it was set; what `before`, the text without any edit, had in its place returns. */
  remove(text: string, own: OwnValues, before: string, file: string): string;
}
