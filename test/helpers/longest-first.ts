import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Small files that take 20 s and more: begun last, they would run while the other cores have nothing left to do. */
const LONG = new RegExp(
  `/(?:${[
    'integration/(?:linear-time|proxy/http/slow-clients|memory/storage/random-edits|mock-anthropic/transcripts)',
    'integration/memory/ingest/red-team|fuzz/conversations|faults/(?:disk|engine)',
    'claude-code/(?:conversation|compact|switch)',
    'e2e/(?:package|uninstall|bad-model|bad-input|terminal|setup|demo|earlier-homes|cli-(?:words|import|bench))',
  ].join('|')})\\.test\\.ts$`,
);

/** Without durations of an earlier run, vitest begins with the largest files. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ project, moduleId }: TestSpecification): number =>
      2 * (project.config.sequence.groupOrder ?? 0) + Number(!LONG.test(moduleId));
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}
