import { z } from 'zod';
import type { Problem } from '../../common/errors.ts';

/** A file of the library before and after a change; null where there is none. `name` as in `topics/x.md`. */
export const PageRewrite = z.object({ name: z.string(), before: z.string().nullable(), after: z.string().nullable() });
export type PageRewrite = z.infer<typeof PageRewrite>;

export const PAGE_NAMES = { index: 'INDEX.md', schema: 'SCHEMA.md', state: '.pages.json' } as const;

/** The pages of the library: `topics/`, `plans/`, `inbox/` and three files beside them. */
export interface PageFiles {
  readonly dir: string;
  /** What is there. With `problems` where a file, or the folder, cannot be used. */
  load(): Promise<PageFolder>;
  /** Makes the change where the file is as it was before; false, without a change, where somebody edited it. */
  replace(rewrite: PageRewrite): Promise<boolean>;
  /** Address of a session's file, relative to the folder. */
  getAddress(node: { readonly project: string; readonly session_id: string }): string;
}

export interface PageFolder {
  /** Texts by name, as `topics/x.md`. */
  readonly texts: ReadonlyMap<string, string>;
  readonly problems: readonly Problem[];
  /** False where nothing can be written. */
  readonly isWritable: boolean;
}
