import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import {
  newDocument,
  parseBriefFile,
  renderBriefFile,
  renderDocument,
  renderSection,
} from '../../../../memory/model/markdown.ts';
import { isWaitingDraft } from '../../../../memory/model/node.ts';
import { readNodeFile } from '../../../../memory/storage/fs/node-files.ts';
import { makeNode } from '../../../helpers/nodes.ts';

const FILES = 40;
const FILLING_CHARS = 500_000;

/** MB that `made` keeps of texts of 20 MB. */
function heldMb(make: (filling: string) => unknown): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const filling = (at: number): string => `${at}`.padEnd(FILLING_CHARS, 'x');
  collect();
  const before = process.memoryUsage().heapUsed;
  const made = Array.from({ length: FILES }, (_, at) => make(filling(at)));
  collect();
  const held = process.memoryUsage().heapUsed - before;
  expect(made.length).toBe(FILES);
  return held / 2 ** 20;
}

test('what is read of a node file keeps nothing else of its text', () => {
  const node = makeNode();
  const { session_id, project } = node;
  const sections = [{ id: node.node_id, raw: renderSection(node), line: 0 }];
  const text = renderDocument({ ...newDocument({ session_id, project }), sections });
  expect(heldMb((filling) => readNodeFile('a.md', text.replace('\n\n', `\n\n${filling}\n\n`)))).toBeLessThan(5);
  expect(heldMb((filling) => readNodeFile('a.md', `${filling}\n${text}`))).toBeLessThan(5);
});

test('a brief keeps nothing else of its text', () => {
  const claim = { text: 'the staging database listens on port 5433', origin: 'user', sources: ['end-1'] } as const;
  const updated_at = '2026-03-01T10:15:00.000Z';
  const text = renderBriefFile({ session_id: 's-1', project: '/shop', updated_at, active: [claim], hints: [] });
  const read = (filling: string) => parseBriefFile(text.replace('\n---\n', `\n---\n${filling}\n`));
  expect(read('words')).toMatchObject({ active: [claim] });
  expect(heldMb(read)).toBeLessThan(5);
});

test('a draft waits for a model for a day', () => {
  const draft = makeNode({ status: 'draft', created_at: '2026-03-04T10:00:00.000Z' });
  expect(isWaitingDraft(draft, Date.parse('2026-03-05T09:59:00Z'))).toBe(true);
  expect(isWaitingDraft(draft, Date.parse('2026-03-05T10:01:00Z'))).toBe(false);
  expect(isWaitingDraft({ ...draft, status: 'current' }, Date.parse(draft.created_at))).toBe(false);
});
