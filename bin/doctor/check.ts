/** One line of `doctor`. */
export interface Check {
  readonly id: string;
  readonly ok: boolean;
  readonly detail: string;
  /** What to do; '' when nothing needs doing. */
  readonly fix: string;
}

export function good(id: string, detail: string): Check {
  return { id, ok: true, detail, fix: '' };
}

export function bad(id: string, detail: string, fix: string): Check {
  return { id, ok: false, detail, fix };
}
