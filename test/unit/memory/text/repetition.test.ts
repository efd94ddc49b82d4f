import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runAtOnce } from '../../../../common/async.ts';
import { createShownText, getSequences, hashText } from '../../../../memory/text/repetition.ts';
import { CODE_POINT } from '../../../helpers/code-point.ts';

it('hashes each five words in a row as the words joined by blanks', () => {
  const unit = fc.oneof(
    fc.constantFrom(' ', ' ', ', ', '_', 'a', 'é', '\ud800', '\udc00', '字', '\u{10400}', '\u{1f600}'),
    fc.string({ unit: CODE_POINT }),
  );
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 60 }), (units) => {
      const text = units.join('');
      const words = [...text.matchAll(/[\p{L}\p{N}_]+/gu)].map(([word]) => word);
      const expected = words.slice(4).map((_, at) => hashText(words.slice(at, at + 5).join(' ')));
      expect([...getSequences(text)]).toEqual(expected);
    }),
  );
});

it.each([
  ['The server is started from /home/ada/work/my-shop/server.', 0],
  ['It is in /home/ada/work, and Bash runs in /Home/Ada/Work/My-Shop.', 0],
  ['The working directory is /home/ada/work/my-shop, is a git repository: true.', 1],
])('the path of the project is nothing that is only repeated: %s', (text, least) => {
  const dir = '/Home/ada/work/my-shop';
  const shown = ` - Primary working directory: ${dir}\n - Is a git repository: true`;
  const flow = [{ by: 'shown', text: shown } as const, { by: 'said', text } as const];
  const repeated = runAtOnce(createShownText().read('s1', flow, 'Where?', dir));
  expect(Math.sign(repeated.length)).toBe(least);
});
