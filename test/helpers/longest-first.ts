import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Small files that take 20 s and more: begun last, they would run while the other cores have nothing left to do. */
const LONG = new RegExp(
  `/(?:${[
    'integration/(?:linear-time|proxy/http/slow-clients|memory/storage/random-edits|mock-anthropic/transcripts)',
    'integration/memory/(?:ingest/(?:red-team|poisoning)|storage/round-trip|search/lancedb/lance-index)',
    'integration/proxy/(?:guard/engine-process|http/exchange)|fuzz/conversations|faults/(?:disk|engine)|ui/views',
    'claude-code/(?:conversation|compact|switch)',
    'e2e/(?:package|uninstall|bad-model|bad-input|terminal|setup|demo|earlier-homes|cli-(?:words|import|bench))',
  ].join('|')})\\.test\\.ts$`,
);

/** Without durations of an earlier run, vitest begins with the largest files. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    // A worker ends where the project changes, so those of the smaller project come before all others of their group.
    const order = ({ project, moduleId }: TestSpecification): number =>
      project.name === 'source' ? 0 : LONG.test(moduleId) ? 1 : 2;
    const rank = (file: TestSpecification): number => 3 * (file.project.config.sequence.groupOrder ?? 0) + order(file);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}
