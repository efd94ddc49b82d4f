import fc from 'fast-check';
import { expect, test } from 'vitest';
import YAML from 'yaml';
import {
  newDocument,
  parseBriefFile,
  parseDocument,
  parseSection,
  parseYaml,
  renderBriefFile,
  renderDocument,
  renderSection,
} from '../../../../memory/model/markdown.ts';
import type { MemoryNode } from '../../../../memory/model/node.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { anyNode, hostileText } from '../../../helpers/random-nodes.ts';

function getFile(nodes: readonly MemoryNode[]): string {
  const [{ session_id, project }] = nodes as [MemoryNode];
  const sections = nodes.map((node) => ({ id: node.node_id, raw: renderSection(node), line: 0 }));
  return renderDocument({ ...newDocument({ session_id, project }), sections });
}

function getNodes(text: string): unknown[] {
  const document = parseDocument(text);
  if (typeof document === 'string') throw new Error(document);
  return document.sections.map(({ raw }) => {
    const parsed = parseSection(raw, document.head);
    return parsed.kind === 'node' ? parsed.node : parsed.message;
  });
}

test('every node is read back as it was written, with any text', () => {
  fc.assert(
    fc.property(fc.array(anyNode, { minLength: 1, maxLength: 3 }), (made) => {
      const [first] = made as [MemoryNode];
      const nodes = made.map((node) => ({ ...node, session_id: first.session_id, project: first.project }));
      const bytes = Buffer.from(getFile(nodes));
      expect(getNodes(bytes.toString('utf8'))).toEqual(nodes);
    }),
    { numRuns: 500 },
  );
});

test('a file reads like a note', () => {
  const said = { origin: 'user', turn: 'end-1' } as const;
  const node = makeNode({
    title: 'Staging database',
    outcome: 'It listens on port 5433.',
    decisions: [{ ...said, text: 'We keep 5433.', by: 'user' }],
    open: [{ ...said, text: 'Tell Tobias.' }],
    values: ['5433', 'config/db.ts'],
    detailed_summary: 'Moved because 5432 was taken.\n\n# not a heading of the file',
  });
  expect(getFile([node])).toBe(
    `---
schema: 2
session_id: s-1
project: /home/dev/shop
---

## mem_20260301_101500_00000a Staging database

### Outcome

It listens on port 5433.

### Decisions

- We keep 5433. <!-- {"origin":"user","turn":"end-1","by":"user"} -->

### Open items

- Tell Tobias. <!-- {"origin":"user","turn":"end-1"} -->

### Values

- 5433
- config/db.ts

### Summary

staging database listens on port 5433

### Trigger

When I connect to the staging database

### Detail

Moved because 5432 was taken.

\\# not a heading of the file

### Source

\`comet-cc memory show 00000a --conversation\`

\`\`\`yaml
author: {"by":"rules"}
status: draft
origin: user
topic_tags: ["database","FLAG:decision"]
compaction_reason: topic_shift
created_at: 2026-03-01T10:15:00.000Z
valid_from: 2026-03-01T10:15:00.000Z
turns: ["end-1"]
\`\`\`

`,
  );
  expect(getNodes(getFile([node]))).toEqual([node]);
});

test('a statement typed into a list is no more trusted than its memory, and a line may be changed or taken out', () => {
  const [open, decisions] = [
    [{ text: 'Tell Tobias.', origin: 'user', turn: 'end-1' }],
    [{ text: 'We keep 5433.', origin: 'user', turn: 'end-1', by: 'user' }],
  ] as const;
  const node = makeNode({ origin: 'tool', open: [...open], decisions: [...decisions], values: ['5433'] });
  const text = getFile([node])
    .replace('- Tell Tobias.', '- Renew the key.\n- Tell Ilse.')
    .replace(/- We keep.*\n/, '- We deploy on Fridays.\n')
    .replace('- 5433', '- 5434 or 5435');
  expect(getNodes(text)).toEqual([
    {
      ...node,
      open: [
        { text: 'Renew the key.', origin: 'tool', turn: '' },
        { text: 'Tell Ilse.', origin: 'user', turn: 'end-1' },
      ],
      decisions: [{ text: 'We deploy on Fridays.', origin: 'tool', turn: '', by: 'assistant' }],
      values: ['5434 or 5435'],
    },
  ]);
});

test('sections of schema 2 are read: fields first, the summary in the heading', () => {
  const fields = { author: { by: 'rules' }, status: 'draft', origin: 'user', compaction_reason: 'topic_shift' };
  const at = '2026-03-01T10:15:00.000Z';
  const more = { title: 'Staging', decisions: [{ text: 'We keep 5433.', origin: 'user', turn: 'end-1', by: 'user' }] };
  const yaml = Object.entries({
    ...fields,
    ...more,
    created_at: at,
    valid_from: at,
    turns: ['end-1'],
    outcome: 'Done.',
  });
  const section = [
    '## mem_20260301_101500_00000a the port is 5433',
    ['```yaml', ...yaml.map(([key, value]) => `${key}: ${JSON.stringify(value)}`), '```'].join('\n'),
    '### Trigger\n\nWhen I connect',
    '### Facts\n\n- {"concept":"port","value":"5433","polarity":"positive","evidence":["end-1"]}\n',
  ].join('\n\n');
  const parsed = parseSection(section, { session_id: 's-1', project: 'p' });
  expect(parsed).toMatchObject({
    kind: 'node',
    node: {
      summary: 'the port is 5433',
      ...more,
      outcome: 'Done.',
      trigger: 'When I connect',
      facts: [{ value: '5433' }],
    },
  });
});

test('fields are YAML: what is written is read the same by a full parser', () => {
  fc.assert(
    fc.property(anyNode, (node) => {
      const text = renderSection(node).split('```yaml\n').at(-1)?.split('\n```')[0] ?? '';
      expect(YAML.parse(text, { schema: 'core' })).toEqual(parseYaml(text));
    }),
  );
});

test('fields may be written as any editor writes YAML', () => {
  const text = getFile([makeNode()])
    .replace(
      'topic_tags: ["database","FLAG:decision"]',
      "topic_tags: # what it is about\n  - database\n  - 'FLAG:decision'",
    )
    .replace('author: {"by":"rules"}', 'author: { by: rules }');
  expect(getNodes(text)).toEqual([makeNode()]);
});

test('edits by hand are understood: new summary, changed field, CRLF line ends, more blank lines', () => {
  const text = getFile([makeNode()])
    .replace('listens on port 5433', 'listens on port 6000')
    .replace('origin: user', 'origin:   "tool" ')
    .replace('### Trigger\n', '\n\n### Trigger\n\n\n')
    .replaceAll('\n', '\r\n');
  expect(getNodes(text)).toEqual([makeNode({ summary: 'staging database listens on port 6000', origin: 'tool' })]);
});

test('what does not validate is named by key and what was expected', () => {
  const broken = (from: string, to: string): unknown => getNodes(getFile([makeNode()]).replace(from, to))[0];
  expect(broken('origin: user', 'origin: user\nimportance: HUGE')).toMatch(/mem_.*: importance: .*"HIGH"/);
  expect(broken('origin: user', 'depth_level: deep')).toMatch(/depth_level: .*number/);
  expect(broken('origin: user', 'origin is user')).toMatch(/mem_.*: /);
  expect(broken('```yaml', 'links are none\n\n```yaml')).toMatch(/expected ```yaml/);
  expect(broken('### Trigger', '### Reminder')).toMatch(/### Reminder: expected ### Outcome/);
  expect(broken('## mem_20260301', '## note_20260301')).toMatch(/heading: expected `## mem_/);
  expect(parseDocument('no front matter')).toMatch(/front matter: expected/);
  expect(parseDocument('---\nproject: x\n---\n')).toMatch(/session_id: expected/);
});

test('any text is taken apart into pieces that make it whole again', () => {
  fc.assert(
    fc.property(fc.array(hostileText), (parts) => {
      const text = `---\nsession_id: s\nproject: p\n---\n${parts.join('\n')}`;
      const document = parseDocument(text);
      if (typeof document === 'string') throw new Error(document);
      expect(renderDocument(document)).toBe(text);
      for (const { raw } of document.sections) parseSection(raw, document.head);
    }),
  );
});

test('every brief is read back as it was written', () => {
  const claim = fc.record({
    text: hostileText,
    origin: fc.constantFrom('user', 'assistant', 'tool', 'external'),
    sources: fc.array(fc.string(), { maxLength: 2 }),
  });
  const brief = fc.record({
    session_id: hostileText,
    project: hostileText,
    updated_at: fc.constant('2026-03-01T10:15:00.000Z'),
    active: fc.array(claim, { maxLength: 3 }),
    hints: fc.array(claim, { maxLength: 3 }),
  });
  fc.assert(
    fc.property(brief, (made) => {
      expect(parseBriefFile(Buffer.from(renderBriefFile(made)).toString('utf8'))).toEqual(made);
    }),
    { numRuns: 300 },
  );
});

test('a line that the owner adds to a brief counts as said by the user', () => {
  const text = renderBriefFile({
    session_id: 's',
    project: 'p',
    updated_at: '2026-03-01T10:15:00.000Z',
    active: [{ text: 'port the parser', origin: 'assistant', sources: ['t'] }],
    hints: [],
  }).replace('## Hints\n', '## Hints\n- never push to main\n');
  expect(parseBriefFile(text)).toMatchObject({
    active: [{ text: 'port the parser', origin: 'assistant', sources: ['t'] }],
    hints: [{ text: 'never push to main', origin: 'user', sources: [] }],
  });
});
