import { expect, test } from 'vitest';
import { isLeft, plantedSecrets } from '../../../../bench/redact/secrets.ts';
import { homePaths } from '../../../../common/paths.ts';
import { digestText } from '../../../../memory/ingest/content-blocks.ts';
import { redactTurn } from '../../../../memory/ingest/redact-turn.ts';
import { createRedactor } from '../../../../redact/index.ts';
import { canariesBelow, canariesIn, lanceRows } from '../../../helpers/canaries.ts';
import { openOnDisk } from '../../../helpers/disk-rig.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { getTurn, message, toolRound } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const { text: redact } = createRedactor({ markKey: Buffer.alloc(32, 7) });
const canaries = plantedSecrets(1, 91)
  .filter(({ half, secret, text }) => half === 'audited' && secret.length >= 12 && !isLeft(secret, redact(text)))
  .map(({ rule, secret, text }) => ({ name: rule, secret, text }));

test('what is redacted reaches no file, no row of the index, no answer of recall and no explanation', async () => {
  expect(canaries.length).toBeGreaterThan(60);
  const home = await tempDir();
  const { memory } = await openOnDisk(home, { watch: null });
  const turns = canaries.map(({ text }, at) =>
    getTurn(`We decided that service ${at} uses port ${5_000 + at}. Remember:\n${text}`, [
      ...toolRound('Bash', { command: `cat <<'E'\n${text}\nE`, description: text }, text, `toolu_${at}`),
      message('assistant', [{ type: 'text', text: `Service ${at} uses port ${5_000 + at} now:\n\n${text}` }]),
    ]),
  );
  memory.capture.captureTurns(turns);
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  const nodes = memory.library.list({});
  expect(nodes.length).toBeGreaterThan(0);
  const said: unknown[] = [nodes, await memory.library.restoreSession('s1'), await memory.library.readBrief('s1')];
  for (const { node_id } of nodes) said.push(await memory.library.explain(node_id));
  for (const { text } of canaries.slice(0, 10)) said.push(await memory.recall.search(text.slice(0, 200), { top: 5 }));
  said.push(await memory.library.exportAll('jsonl'));
  await memory.maintenance.close();
  expect(canariesBelow(home, canaries)).toEqual([]);
  expect(canariesIn((await lanceRows(homePaths(home).indexDir)).join('\n'), canaries)).toEqual([]);
  expect(canariesIn(JSON.stringify(said), canaries)).toEqual([]);
});

test('nothing that is stored lets a PIN be guessed by the digest of a prompt that a hook reported', async () => {
  const prompt = 'The PIN of the safe: 483172';
  const turn = { ...getTurn(prompt, []), origins: { [digestText(prompt)]: 'user' as const } };
  const { messages, origins } = await redactTurn(turn, createRedactor({ markKey: Buffer.alloc(32, 7) }));
  const [{ content = '' } = {}] = messages;
  expect(content).not.toContain('483172');
  expect(origins).toEqual({ [digestText(String(JSON.parse(content)))]: 'user' });
});
