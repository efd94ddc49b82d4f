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

const PASSWORD = 'Tr0ub4dor+3';
const TOKEN = 'f3Q9-zt71-Lw0k';

test('what one place shows to be a secret is one in the whole session, also before that place', async () => {
  const home = await tempDir();
  const { memory } = await openOnDisk(home, { llm: 'local', watch: null });
  open.push(memory);
  const told = [
    ...toolRound('Bash', { command: `curl -u admin:${PASSWORD} https://ci.example` }, `no user ${PASSWORD}`),
    message('assistant', [{ type: 'text', text: `It refuses "${PASSWORD}". API_TOKEN=${TOKEN} is set too.` }]),
  ];
  memory.capture.captureTurns([
    getTurn(`Log in as admin / ${PASSWORD}, test1234 is the build.`, told),
    talk(`Is ${TOKEN} the right one?`, `Yes, ${TOKEN}. We decided on the harbour crane.`),
  ]);
  memory.capture.captureTurns([talk('Password: test1234', 'The build test1234 is red.', { sessionId: 's2' })]);
  await memory.maintenance.flush(60_000);
  const raw = JSON.stringify(await memory.library.restoreSession('s1'));
  expect(raw).toContain('harbour crane');
  expect(raw).toMatch(/Log in as admin \/ (\[REDACTED:password:\w{8}\]), test1234 .*admin:\1.*no user \1/);
  expect(JSON.stringify(await memory.library.restoreSession('s2'))).toContain('The build test1234 is red.');
  await memory.maintenance.close();
  for (const secret of [PASSWORD, TOKEN]) expect(filesHolding(home, secret)).toEqual([]);
});

test('a secret of the session is one also after a restart', async () => {
  const home = await tempDir();
  const ended = await openOnDisk(home, { llm: 'local', watch: null });
  open.push(ended.memory);
  ended.memory.capture.captureTurns([talk(`API_TOKEN=${TOKEN} is for the crane.`, 'Noted.')]);
  await ended.memory.maintenance.flush(60_000);
  await ended.memory.maintenance.close();
  const { memory } = await openOnDisk(home, { llm: 'local', watch: null });
  open.push(memory);
  memory.capture.captureTurns([
    talk('Which build is red?', `Build v2-final8 has CI=${TOKEN}.`),
    talk(`Is it ${TOKEN}, or f3Q9-zt71?`, `“${TOKEN}”: yes. We keep the crane.`),
  ]);
  await memory.maintenance.flush(60_000);
  const raw = JSON.stringify(await memory.library.restoreSession('s1'));
  for (const text of ['v2-final8 has CI=[REDACTED:', 'or f3Q9-zt71?', 'keep the crane']) expect(raw).toContain(text);
  await memory.maintenance.close();
  expect(filesHolding(home, TOKEN)).toEqual([]);
});

test('the one word that a command prints which shows a secret is one', async () => {
  const home = await tempDir();
  const { memory } = await openOnDisk(home, { llm: 'local', watch: null });
  open.push(memory);
  const shown: Readonly<Record<string, string>> = {
    "kubectl get secret db -o jsonpath='{.data.password}' | base64 -d": 'S3cr3tPassXy',
    'openssl rand -hex 16': 'b1946ac92492d2347c6235b4d2611184',
    'echo "$GITHUB_TOKEN"': 'kq72-Lw0k-zt71',
    'aws ssm get-parameter --name db --with-decryption --output text': 'Mond.9-schein',
    'op read op://vault/db/password': 'x9a8-b7Cd12',
    'cat config/master.key': '8f3b1c9d2e7a6f50',
  };
  const plain = { 'git rev-parse HEAD': '2fd4e1c67a2d28fced849ee1bb76e7391b93eb12', 'cat key.txt': 'v2-final8' };
  const rounds = Object.entries({ ...shown, ...plain }).flatMap(([command, output], at) =>
    toolRound('Bash', { command }, `${output}\n`, `toolu_${at}`),
  );
  memory.capture.captureTurns([getTurn('Show them.', [...rounds, message('assistant', 'Those are all.')])]);
  await memory.maintenance.flush(60_000);
  const raw = JSON.stringify(await memory.library.restoreSession('s1'));
  expect(Object.values(shown).filter((secret) => raw.includes(secret))).toEqual([]);
  expect(Object.values(plain).filter((text) => !raw.includes(text))).toEqual([]);
  await memory.maintenance.close();
  for (const secret of Object.values(shown)) expect(filesHolding(home, secret), secret).toEqual([]);
});
