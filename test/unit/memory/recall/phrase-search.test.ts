import { expect, it } from 'vitest';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { spokenText } from '../../../../memory/model/turn.ts';
import { phraseInNodes, phraseInTurns, readPhrase } from '../../../../memory/recall/phrase-search.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { talk } from '../../../helpers/turns.ts';

const phrase = (query: string) => readPhrase(query) as NonNullable<ReturnType<typeof readPhrase>>;

it('takes several words, a quotation, or a text without spaces for a phrase', () => {
  expect(readPhrase('Still  to do')).toEqual({ text: 'still to do', isQuoted: false });
  expect(readPhrase('“Redis”')).toEqual({ text: 'redis', isQuoted: true });
  expect(readPhrase('本番環境のポート')).not.toBeNull();
  expect(['redis', ' ', '港'].map(readPhrase)).toEqual([null, null, null]);
});

it('finds common words in what a memory says, with the sentence and the turn they stand in', () => {
  const open = [{ text: 'The docs are still to do. Ask Ilse.', origin: 'user', turn: 'e9' }] as const;
  const nodes = [makeNode({ open: [...open] }), makeNode({ recall_mode: 'passive', summary: 'still to do' })];
  expect(phraseInNodes(phrase('still to do'), nodes)).toMatchObject([
    { node: nodes[0], raw: { text: 'The docs are still to do.', turn: 'e9' } },
  ]);
});

it('finds them in turns whose memory may be shown', () => {
  const spoken = talk('What is\nstill to do here?', 'Nothing.');
  const turn = readTurn(spoken);
  const turns = new Map([[turn.turnId, { text: spokenText(turn), origin: turn.origin }]]);
  const node = makeNode();
  expect(phraseInTurns(phrase('still to do'), turns, () => node)).toMatchObject([
    { node, raw: { turn: spoken.turnId } },
  ]);
  const past = makeNode({ valid_to: '2026-03-02T00:00:00.000Z', superseded_as: 'revised' });
  for (const none of [past, undefined]) expect(phraseInTurns(phrase('still to do'), turns, () => none)).toEqual([]);
});

it.each([
  ['istanbul port', 'The ISTANBUL  port'],
  ['x abi', 'X ABİ'],
  ['k port', 'the \u212a port'],
  ['straße port', 'STRAßE Port'],
  ['c++ (x86)', 'with C++ (X86) only'],
  ['a\\b {1,2} [$^|]', 'A\\B {1,2} [$^|]'],
])('finds %j in any case', (query, summary) => {
  const found = phraseInNodes(phrase(query), [makeNode({ summary })]);
  expect(found).toHaveLength(Number(summary.toLowerCase().replace(/\s+/g, ' ').includes(query)));
});
