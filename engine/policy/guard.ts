import { CometError } from '../../common/errors.ts';
import type { Memory } from '../../memory/index.ts';
import type { Policy } from './index.ts';

/** Memory that captures, imports and recalls only what the user's policy allows. */
export function guardMemory(memory: Memory, policy: Policy): Memory {
  return { ...memory, ...guardIntake(memory, policy), recall: guardRecall(memory.recall, policy) };
}

function guardIntake({ capture, imports }: Memory, policy: Policy): Pick<Memory, 'capture' | 'imports'> {
  function assertAllowed<R extends { readonly projectDir: string }>(request: R): R {
    if (policy.of(request.projectDir).captures) return request;
    throw new CometError('not_allowed', 'capture is off here: memory is paused, or the project turns it off');
  }

  return {
    capture: {
      captureTurns(turns) {
        for (const { key, projectDir } of turns) if (!policy.of(projectDir).captures) policy.withhold(key);
        capture.captureTurns(turns.filter(({ key }) => !policy.isWithheld(key)));
      },
      prepareNodes: (...args) => capture.prepareNodes(...args),
      summarizeSession: (id) => capture.summarizeSession(id),
      closeSession: (id) => capture.closeSession(id),
    },
    imports: {
      importArchive: (text) => imports.importArchive(text),
      importTurns: (request) =>
        imports.importTurns({
          ...request,
          isAllowed: ({ projectDir, startMs, atMs }) => policy.allowsImport(projectDir, startMs, atMs),
        }),
      remember: async (request) => imports.remember(assertAllowed(request)),
      importDocument: async (request) => imports.importDocument(assertAllowed(request)),
    },
  };
}

function guardRecall(recall: Memory['recall'], policy: Policy): Memory['recall'] {
  return {
    recall: (request, signal) => recall.recall({ scope: policy.of(request.projectDir).scope, ...request }, signal),
    sessionContext: (sessionId, projectDir, scope = policy.of(projectDir).scope) =>
      recall.sessionContext(sessionId, projectDir, scope),
    search: (...args) => recall.search(...args),
    lines: (ids) => recall.lines(ids),
    nodesCovering: (ids) => recall.nodesCovering(ids),
  };
}
