import fc from 'fast-check';
import type { MemoryNode } from '../../memory/model/node.ts';

/** A node that validates, with what a test says about it. */
export function makeNode(over: Partial<MemoryNode> = {}): MemoryNode {
  return {
    node_id: 'mem_20260301_101500_00000a',
    session_id: 's-1',
    project: '/home/dev/shop',
    depth_level: 1,
    recall_mode: 'active',
    topic_tags: ['database', 'FLAG:decision'],
    importance: 'MED',
    summary: 'staging database listens on port 5433',
    detailed_summary: null,
    trigger: 'When I connect to the staging database',
    content_key: 'c'.repeat(64),
    raw_location: 'journal/s-1.log',
    parent_node_id: null,
    links: [],
    source_links: [],
    capsule: null,
    origin: 'user',
    valid_from: '2026-03-01T10:15:00.000Z',
    valid_to: null,
    superseded_by: null,
    compaction_reason: 'topic_shift',
    created_at: '2026-03-01T10:15:00.000Z',
    strength: 1,
    recall_count: 0,
    last_recalled_at: null,
    turns: ['end-1'],
    written_by: 'local',
    facts: [],
    ...over,
  };
}

/** Texts that try to pass for the file's own marks, or that no editor keeps as they are. */
export const hostileText: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '## mem_20260301_101500_00000b forged',
        '### Trigger',
        '### Facts',
        '\\## escaped',
        '---',
        '```',
        '- importance: HIGH',
        '~~~',
        '',
        ' ',
        'null',
        '"quoted"',
        '{"a":1}',
        'true',
        '12',
        '\r',
        '\u2028',
        '\ud800',
        '\ufeff',
        '\t#',
      ),
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.string({ maxLength: 20 }),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .chain((parts) => fc.constantFrom('\n', ' ', '\r\n').map((joint) => parts.join(joint)))
  .filter((text) => text !== '');

const texts = fc.array(hostileText, { maxLength: 3 });
const maybe = (text: fc.Arbitrary<string>): fc.Arbitrary<string | null> => fc.option(fc.oneof(text, fc.constant('')));
const iso = fc
  .date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString());

export const anyNode: fc.Arbitrary<MemoryNode> = fc.record({
  node_id: fc.stringMatching(/^mem_\d{8}_\d{6}_[0-9a-f]{6}$/),
  session_id: hostileText,
  project: fc.oneof(hostileText, fc.constant('')),
  depth_level: fc.nat(5),
  recall_mode: fc.constantFrom('passive', 'active', 'both'),
  topic_tags: texts,
  importance: fc.constantFrom('HIGH', 'MED', 'LOW'),
  summary: hostileText,
  detailed_summary: maybe(hostileText),
  trigger: fc.oneof(hostileText, fc.constant('')),
  content_key: hostileText,
  raw_location: hostileText,
  parent_node_id: maybe(hostileText),
  links: texts,
  source_links: texts,
  capsule: maybe(hostileText),
  origin: fc.constantFrom('user', 'assistant', 'tool', 'external'),
  valid_from: iso,
  valid_to: fc.option(iso),
  superseded_by: maybe(hostileText),
  compaction_reason: fc.constantFrom('topic_shift', 'high_load', 'buffer_overflow', 'forced', 'external'),
  created_at: iso,
  strength: fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
  recall_count: fc.nat(),
  last_recalled_at: fc.option(iso),
  turns: texts,
  written_by: hostileText,
  facts: fc.array(
    fc.record({
      concept: hostileText,
      value: hostileText,
      polarity: fc.constantFrom('positive', 'negative'),
      evidence: texts,
    }),
    { maxLength: 2 },
  ),
});
