import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { SHARED_NAME, shareAddress } from '../../memory/index.ts';
import { operation } from './service.ts';

/** Credentials of the shell that asks: passed on to the storage, and kept only while the engine runs. */
const env = z.record(z.string().max(200), z.string().max(10_000)).default({});

const project = z.string().min(1).max(400);

/** Memory on the user's other machines, or those of a team. */
export const shareOperations = {
  'share/status': operation({}, ({ sharing }) => sharing.status()),
  'share/look': operation({ url: shareAddress, env }, ({ sharing }, input) => sharing.look(input)),
  'share/join': operation(
    {
      url: shareAddress,
      first: z.boolean(),
      scope: z.enum(['me', 'team']).optional(),
      projects: z.array(project).max(100).optional(),
      name: z.string(),
      env,
    },
    ({ sharing }, { url, first, scope = null, projects = null, name, env }) => {
      if (!SHARED_NAME.test(name))
        throw new CometError('usage', '--name is up to 40 letters, digits, dots, dashes and spaces');
      return sharing.join({ url, scope, projects, name }, first, env);
    },
  ),
  'share/preview': operation({ env }, ({ sharing }, { env }) => sharing.preview(env)),
  'share/push': operation({ env }, async ({ sharing }, { env }) => ({ sent: await sharing.push(env) })),
  'share/pull': operation({ env }, async ({ sharing }, { env }) => ({ added: await sharing.pull(env) })),
  'share/trust': operation({ who: project, trusted: z.boolean() }, ({ sharing }, { who, trusted }) =>
    sharing.trust(who, trusted),
  ),
  'share/leave': operation({ env }, ({ sharing }, { env }) => sharing.leave(env)),
};
