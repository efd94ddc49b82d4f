import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readFlow } from '../../../../memory/compaction/topic-detector.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { talk } from '../../../helpers/turns.ts';

const say = (prompt: string, answer = 'Done.') => readTurn(talk(prompt, answer));
const buffer = [
  say('Carrier bookings need retries with backoff, at most four attempts.', 'The booking client retries four times.'),
  say('Add jitter to the backoff of the carrier client.', 'The backoff has jitter now, in src/carrier/backoff.ts.'),
];
const read = (prompt: string, answer?: string) => readFlow({ buffer, turn: say(prompt, answer) });

describe('the sensor’s gate', () => {
  test('reads a turn in the words of those before it as going on', () => {
    const flow = read(
      'Does the carrier client log the attempts and the backoff of bookings?',
      'The booking client does.',
    );
    expect(flow).toBe('MAINTAIN');
  });

  test.each(['yes, do it', 'Why?', 'Run everything once more.', ''])('reads "%s" as going on', (prompt) => {
    expect(read(prompt)).toBe('MAINTAIN');
  });

  test('reads a turn without a common word as another topic', () => {
    const flow = read(
      'Rendering shipping labels on thermal printers produces blurry fonts',
      'Glyph hinting was disabled.',
    );
    expect(flow).toBe('BROKEN');
  });

  test.each([
    'New topic: the carrier client',
    "Ok, thanks! Let's move on to the carrier bookings.",
    'Great. Moving on: backoff in the label service.',
    'Unrelated: which carrier do we use?',
    'On another note, the backoff …',
  ])('believes "%s"', (prompt) => {
    expect(read(prompt)).toBe('BROKEN');
  });

  test.each([
    "Let's switch to pnpm for the carrier client and the backoff of bookings.",
    'Unrelated changes of the carrier client should not be in the backoff commit for bookings.',
    'A new task type for carrier bookings with backoff, please.',
  ])('takes work for work: "%s"', (prompt) => {
    expect(read(prompt)).not.toBe('BROKEN');
  });

  test('leaves to the model what has some words in common, and what begins with a greeting', () => {
    expect(
      read('The warehouse screen shows stale bookings after midnight', 'A cache keeps yesterday’s list.'),
    ).toBeNull();
    expect(read('Good morning! The carrier client, once more.')).toBeNull();
  });

  test('is clear about the first turn, and never throws', () => {
    expect(readFlow({ buffer: [], turn: say('Anything at all') })).toBe('MAINTAIN');
    fc.assert(fc.property(fc.string(), fc.string(), (prompt, answer) => void read(prompt, answer)));
  });
});
