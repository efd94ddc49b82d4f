import { z } from 'zod';

// In a file of its own, loaded where something is read: zod costs 70 ms, which `env` and `run` need not pay.

/** Which system store was told to trust which root. */
export const Trusted = z.looseObject({ roots: z.array(z.object({ store: z.string(), fingerprint: z.string() })) });
