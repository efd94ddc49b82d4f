import { z } from 'zod';
import type { Problem } from '../../common/errors.ts';

/** A file of the library before and after a change; null where there is none. `name` as in `topics/x.md`. */
export const PageRewrite = z.object({ name: z.string(), before: z.string().nullable(), after: z.string().nullable() });
export type PageRewrite = z.infer<typeof PageRewrite>;

export const PAGE_NAMES = { index: 'INDEX.md', schema: 'SCHEMA.md', state: '.pages.json' } as const;

export interface PageFolder {
  /** Texts by name, as `topics/x.md`. */
  readonly texts: ReadonlyMap<string, string>;
  readonly problems: readonly Problem[];
  /** False where nothing can be written. */
  readonly isWritable: boolean;
}
