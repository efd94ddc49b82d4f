import { z } from 'zod';

// In a file of its own, loaded where something is read: zod costs 70 ms, which `env` and `run` need not pay.

/** What was done to a settings file, kept in our home until it is undone. */
export const Edit = z.looseObject({
  file: z.string(),
  backup: z.string().nullable(),
  hadEnv: z.boolean(),
  mode: z.int(),
  /**
   * Each variable we set, with our value and the user's former one; `past` are values of ours of before, which the
   * file still holds where an edit was cut short.
   */
  values: z.array(
    z.object({
      name: z.string(),
      ours: z.string(),
      former: z.unknown().optional(),
      past: z.array(z.string()).optional(),
    }),
  ),
});
export type Edit = z.infer<typeof Edit>;

/** Which system store was told to trust which root. */
export const Trusted = z.looseObject({ roots: z.array(z.object({ store: z.string(), fingerprint: z.string() })) });
