import { CometError } from '../../common/errors.ts';
import type { Library } from '../../memory/index.ts';
import type { Policy } from './index.ts';

/** Which memories a program may read or remove that works for a session in a project. */
export interface Access {
  /**
   * A filter for the project of `within`; none where all of memory may be read.
   *
   * @throws CometError `not_allowed` where memory is paused, or kept to the running session
   */
  projectFilter(within: string | undefined): { readonly projectDir?: string };
  /** @throws CometError `not_allowed` for a memory of another project; as `projectFilter`, as `Library.show` */
  assertReachable(ids: readonly string[], within: string | undefined, use: 'read' | 'remove'): Promise<void>;
}

export function createAccess(
  policy: Pick<Policy, 'of'>,
  library: Pick<Library, 'show'>,
  projectOf: (directory: string) => string,
): Access {
  function projectFilter(within: string | undefined): { readonly projectDir?: string } {
    if (within === undefined) return {};
    const { adds, scope } = policy.of(within);
    if (!adds) {
      throw new CometError('not_allowed', 'memory is off in this project; the user can end that: comet-cc resume');
    }
    if (scope === 'session') {
      throw new CometError('not_allowed', 'this project recalls nothing of other sessions; the user set that');
    }
    return scope === 'all' ? {} : { projectDir: within };
  }

  return {
    projectFilter,
    async assertReachable(ids, within, use) {
      const { projectDir } = projectFilter(within);
      if (projectDir === undefined) return;
      const asking = projectOf(projectDir);
      for (const id of ids) {
        const { node_id, project, pinned_in = [] } = await library.show(id, 0);
        if (project === asking || (use === 'read' && pinned_in.includes(asking))) continue;
        throw new CometError(
          'not_allowed',
          `${node_id} is of another project; the user can read it: comet-cc memory show`,
        );
      }
    },
  };
}
