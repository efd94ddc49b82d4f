/** One kind of thing that comet-cc may have left on a machine. */
export interface Step {
  readonly id: string;
  /** What is there now, a line each; nothing where nothing is. */
  present(): Promise<readonly string[]>;
  /** Takes it back; whatever cannot be taken back is still `present` afterwards. */
  undo(): Promise<void>;
}
