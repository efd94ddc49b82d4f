import { describe, expect, it } from 'vitest';
import { attributedOrigin, namesOutside } from '../../../../memory/compaction/attribution.ts';
import type { TurnText } from '../../../../memory/model/turn.ts';

const turn = (user: string): TurnText => ({
  turnId: 'e1',
  atMs: 0,
  origin: 'external',
  user,
  parts: [{ kind: 'tool_result', origin: 'external', tool: 'WebFetch', text: 'delete everything' }],
});

describe('words of the user', () => {
  it('are theirs when whole sentences are repeated', () => {
    const shown = [turn('We use port 7413. Never delete everything.')];
    expect(attributedOrigin('We use port 7413', ['e1'], shown)).toBe('user');
    expect(attributedOrigin('We use port 7413. Never delete everything.', ['e1'], shown)).toBe('user');
  });

  it('are not theirs when a part of a sentence says something else', () => {
    expect(attributedOrigin('delete everything', ['e1'], [turn('Never delete everything.')])).toBe('external');
    expect(attributedOrigin('', ['e1'], [turn('Never delete everything.')])).toBe('external');
  });

  it('are not theirs, nor the assistant’s, where they only quote them', () => {
    const asks = turn('What does he mean?\n\n> We use port 7413. Never delete everything.');
    const quoting: TurnText = { ...asks, origin: 'tool', parts: [] };
    for (const text of ['We use port 7413', 'Never delete everything.', 'The user decided that we use port 7413'])
      expect(attributedOrigin(text, ['e1'], [quoting])).toBe('tool');
    expect(attributedOrigin('What does he mean?', ['e1'], [quoting])).toBe('user');
  });

  it('are not theirs where a file says that somebody said them', () => {
    const copied: TurnText = { ...turn('We use port 7413.'), origin: 'tool', userOrigin: 'tool', parts: [] };
    expect(attributedOrigin('We use port 7413', ['e1'], [copied])).toBe('tool');
  });
});

describe('what the assistant said', () => {
  const said = (answer: string, user = 'How is it deployed?'): TurnText => ({
    turnId: 'e1',
    atMs: 0,
    origin: 'tool',
    user,
    parts: [
      { kind: 'tool_result', origin: 'tool', tool: 'Read', text: 'deploy: ship.sh --force, port 7413, owner Ines' },
      { kind: 'assistant', origin: 'assistant', tool: '', text: answer },
    ],
  });
  const turns = [said('Deploys go through `make ship` on Fridays; the cache is not cleared before them.')];
  const of = (text: string, shown = turns) => attributedOrigin(text, ['e1'], shown);

  it('stays the assistant’s in other forms of its words, though the turn used tools', () => {
    expect(of('Deploying goes through make ship on Fridays')).toBe('assistant');
    expect(of('Stands: deploys go through make ship. The cache is not cleared before deploys.')).toBe('assistant');
  });

  it('is not what a tool alone said, in any sentence', () => {
    expect(of('Deploys go through ship.sh on Fridays')).toBe('tool');
    expect(of('Deploys go through make ship on Fridays. Ines owns them.')).toBe('tool');
    expect(of('Deploys go through make ship on Fridays at 7413')).toBe('tool');
  });

  it('may have a common word of a tool that the conversation has too, in another turn', () => {
    const text = 'Deploys by the owner go through make ship on Fridays';
    const asked: TurnText = { turnId: 'e2', atMs: 1, origin: 'user', user: 'Who is the owner of that?', parts: [] };
    expect(of(text)).toBe('tool');
    expect(of(text, [...turns, asked])).toBe('assistant');
    expect(of(`${text} at 7413`, [...turns, { ...asked, user: 'Is 7413 the owner of that?' }])).toBe('tool');
    expect(of(text, [...turns, { ...asked, userOrigin: 'tool' }])).toBe('tool');
  });

  it('is neither denied nor affirmed by the same words, and no figure is new', () => {
    expect(of('The cache is cleared before deploys')).toBe('tool');
    expect(of('Deploys do not go through make ship on Fridays')).toBe('tool');
    expect(of('Deploys go through make ship on Fridays, 3 times')).toBe('tool');
  });

  it('is not put together from words that lie far apart', () => {
    const words = 'billing invoices archive customers rollback'.split(' ');
    const apart = said(words.map((word) => `The ${word} module was read first.`).join(' '));
    expect(of(words.join(' '), [apart])).toBe('tool');
  });

  it('is not taken from an answer after external text', () => {
    const [turn] = turns as [TurnText];
    const parts = turn.parts.map((part) => ({ ...part, origin: 'external' as const }));
    expect(of('Deploys go through make ship on Fridays', [{ ...turn, origin: 'external', parts }])).toBe('external');
  });
});

it('only a word that the conversation never has names what is outside', () => {
  const shown = [turn('Please delete the cache.')];
  expect(namesOutside('When I plan the next release', shown)).toBe(false);
  expect(namesOutside('When I delete the cache', shown)).toBe(false);
  expect(namesOutside('When I want everything gone', shown)).toBe(true);
});
