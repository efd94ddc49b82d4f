import { afterEach, expect, test } from 'vitest';
import type { Memory } from '../../../../memory/index.ts';
import { filesHolding, openOnDisk } from '../../../helpers/disk-rig.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { getTurn, message, talk, toolRound } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const open: Memory[] = [];
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

const PROMPT = 'We merge in May. <private>The buyer is Oldenburg Glassworks.\nThe vault code is plumtree-77.</private>';

test('what is private is kept nowhere, by whomever it is said again in the session', async () => {
  const home = await tempDir();
  const { memory } = await openOnDisk(home, { llm: 'local', watch: null });
  open.push(memory);
  const told = [
    ...toolRound('Bash', { command: 'open --code plumtree-77 | tee "log"' }, 'opened with plumtree-77, twice'),
    message('assistant', [{ type: 'text', text: 'Noted that "The buyer is Oldenburg Glassworks", in May.' }]),
  ];
  memory.capture.captureTurns([
    getTurn(PROMPT, told),
    talk('And the code?', 'It is plumtree-77. We decided on the harbour crane.'),
  ]);
  memory.capture.captureTurns([talk('Which trees do we have?', 'A plumtree-77 stands there.', { sessionId: 's2' })]);
  await memory.maintenance.flush(60_000);
  expect(JSON.stringify(memory.library.list({ all: true, sessionId: 's1' }))).toContain('harbour crane');
  const [raw, other] = await Promise.all(['s1', 's2'].map((id) => memory.library.restoreSession(id)));
  expect(JSON.stringify(raw)).toContain('in May.');
  expect(JSON.stringify(raw)).not.toMatch(/plumtree-77|Oldenburg/);
  expect((raw ?? []).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user', 'assistant']);
  expect(JSON.stringify(raw?.[1])).toMatch(/open --code \[REDACTED:private:\w{8}\] \| tee/);
  expect(JSON.stringify(other)).toContain('A plumtree-77 stands there.');
  await memory.maintenance.close();
  expect(filesHolding(home, 'Oldenburg')).toEqual([]);
});

test('what was private before this engine, or before a fork, is known from what its turns bring along', async () => {
  const home = await tempDir();
  const { memory } = await openOnDisk(home, { llm: 'local', watch: null });
  open.push(memory);
  const forked = talk('And the code?', 'It is plumtree-77. We decided on the harbour crane.');
  memory.capture.captureTurns([{ ...forked, earlierPrivate: ['The vault code is plumtree-77.'] }]);
  memory.capture.captureTurns([talk('Which buyer?', 'The code plumtree-77 is for the buyer.')]);
  await memory.maintenance.flush(60_000);
  const raw = JSON.stringify(await memory.library.restoreSession('s1'));
  expect(raw).toContain('harbour crane');
  expect(raw).toContain('for the buyer');
  await memory.maintenance.close();
  expect(filesHolding(home, 'plumtree-77')).toEqual([]);
});

test('the tag hides nothing in what a page, a file or the client says, nor anything after it', async () => {
  const home = await tempDir();
  const { memory } = await openOnDisk(home, { llm: 'local', watch: null });
  const { library } = memory;
  open.push(memory);
  const reminder = '<system-reminder>\n# claudeMd\nUse the willow gate. <private>\n</system-reminder>';
  const prompt = [reminder, 'We ship on Mondays.'].map((text) => ({ type: 'text', text }));
  memory.capture.captureTurns([
    getTurn(prompt, [
      ...toolRound(
        'WebFetch',
        { url: 'https://a.example' },
        '<private>The page speaks of a linden.</private> <private>',
      ),
      message('assistant', [{ type: 'text', text: 'It says <private>the larch</private> is tall.' }]),
    ]),
  ]);
  await memory.maintenance.flush(60_000);
  const raw = JSON.stringify(await library.restoreSession('s1'));
  for (const word of ['willow gate', 'Mondays', 'linden', 'larch', '<private>']) expect(raw).toContain(word);
});
