import fc from 'fast-check';
import type { MemoryNode } from '../../memory/model/node.ts';
import { CODE_POINT } from './code-point.ts';

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
      fc.string({ unit: CODE_POINT, maxLength: 20 }),
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

const stated = {
  text: fc.oneof(hostileText, fc.constantFrom('a <!-- {"b":1} -->', '{"a":1}', '7', 'x <!-- ', '--> y')),
  origin: fc.constantFrom('user', 'assistant', 'tool', 'external'),
  turn: hostileText,
} as const;

const fields = fc.record({
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
  turns: texts,
  author: fc.oneof(
    fc.constantFrom({ by: 'user' as const }, { by: 'rules' as const }),
    hostileText.map((model) => ({ by: 'model' as const, model })),
  ),
  status: fc.constantFrom('draft', 'current'),
  title: fc.option(hostileText, { nil: undefined }),
  title_origin: fc.option(fc.constantFrom('user', 'assistant', 'tool', 'external'), { nil: undefined }),
  outcome: fc.option(fc.oneof(hostileText, fc.constant('')), { nil: undefined }),
  decisions: fc.option(fc.array(fc.record({ ...stated, by: fc.constantFrom('user', 'assistant') }), { maxLength: 2 }), {
    nil: undefined,
  }),
  open: fc.option(fc.array(fc.record(stated), { maxLength: 2 }), { nil: undefined }),
  values: fc.option(
    fc.array(fc.oneof(hostileText, fc.constantFrom('', '5433', '"', 'true', '- 1')), { maxLength: 3 }),
    {
      nil: undefined,
    },
  ),
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

const kinds = fc.constantFrom('turn', 'tool', 'document', 'note', 'group');

export const anyNode: fc.Arbitrary<MemoryNode> = fc
  .tuple(
    fields,
    fc.oneof(
      kinds.map((kind) => ({ kind })),
      kinds.map((was) => ({ kind: 'redirect' as const, was })),
    ),
  )
  .map(([node, kind]) => ({ ...node, ...kind }) as MemoryNode);
