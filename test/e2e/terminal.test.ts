import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { MemoryNode } from '../../memory/model/node.ts';
import { createLiveRig, type LiveRig, openTerminal } from '../helpers/live-rig.ts';
import { openMcp } from '../helpers/mcp-client.ts';

/** Sets a title, clears the screen, types for the user, hides and turns around what follows; and markup for a page. */
const EVIL =
  '\u001b]0;owned\u0007\u001b[2J\u001bP+q\u001b\\\u009b2J\u009d0;x\u009c\r\b\u007f\u202egnp\u202c\u200b\u{e0041}<img src=x onerror=alert(1)>';
// biome-ignore lint/suspicious/noControlCharactersInRegex: no terminal may get these
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069]|\udb40[\udc00-\udc7f]/;
const EVIL_ID = 'mem_20260101_000000_abcdef';
const said = (what: string): string => `The ${what} of the parcel gateway ${EVIL} listens on port 7411.`;

const ofNode = (id: string): readonly string[][] => [
  ...['0', '1', '2'].map((depth) => ['memory', 'show', id, '--links', '--depth', depth]),
  ['memory', 'show', id, '--depth', '2', '--json'],
  ['memory', 'why', id],
  ['memory', 'why', id, '--json'],
];

const COMMANDS = (session: string): readonly string[][] => [
  ...[[], ['--json'], ['--all'], ['--quarantine'], ['--tag', EVIL]].map((flags) => ['memory', 'ls', ...flags]),
  ...[[], ['--explain'], ['--json']].map((flags) => ['memory', 'search', 'parcel gateway port', ...flags]),
  ['memory', 'about', '--project', '/home/ada/shop'],
  ['memory', 'about', '--project', `/home/${EVIL.replaceAll('\u0000', '')}`],
  ['memory', 'stats'],
  ['memory', 'restore', session],
  ['memory', 'restore', session, '--json'],
  ['memory', 'forget', '--session', session, '--dry-run'],
  ['memory', 'rollback', '--list'],
  ['memory', 'show', EVIL],
  ['session', 'ls'],
  ['session', 'ls', '--json'],
  ['session', 'show', session],
  ['session', 'brief', session],
  ['session', 'show', EVIL],
  ['explain', 'last'],
  ['explain', 'last', '--json'],
  ['explain', '--list'],
  ['explain', EVIL],
  ['status'],
  ['status', '--json'],
  ['doctor'],
  ['statusline'],
  ['logs'],
  ['logs', '--json'],
  ['dream', '--dry-run'],
  ['pause', '--project', `/home/${EVIL}`],
  ['resume'],
  ['config'],
];

it('stored control sequences do nothing in a terminal, in any command or MCP tool', async () => {
  const rig = await createLiveRig({ COMET_CC_LOG_LEVEL: 'debug' }, () => ({
    kind: 'message',
    blocks: [{ type: 'text', text: said('answer') }],
  }));
  try {
    const terminal = openTerminal(rig, { cwd: '/home/ada/shop' });
    for (let turn = 0; turn < 4; turn += 1) await terminal.say(said(`prompt ${turn}`));
    await rig.flush();
    await importEvil(rig);
    await rig.home.run(['config', 'set', 'embedding.model', EVIL]);
    const nodes = (await rig.home.json(['memory', 'ls', '--all', '--json'])) as MemoryNode[];
    const ids = nodes.map(({ node_id }) => node_id);
    expect(nodes.filter((node) => OBEYED.test(JSON.stringify(node))).length).toBeGreaterThan(1);
    let heard = '';
    const given = { stdin: JSON.stringify({ session_id: EVIL, cwd: EVIL }), env: { NO_COLOR: '1' } };
    for (const command of [ids[0], EVIL_ID].flatMap((id) => ofNode(String(id))).concat(COMMANDS(terminal.sessionId))) {
      const { stdout, stderr } = await rig.home.run(command, given);
      expect({ command, obeyed: OBEYED.exec(stdout + stderr) }).toEqual({ command, obeyed: null });
      heard += stdout;
    }
    expect(heard.split('7411').length).toBeGreaterThan(10);
    for (const text of await told(rig, ids)) expect(text).not.toMatch(OBEYED);
    // What is exported is exact; on a terminal, as in bin/commands/memory/export.ts, it is not.
    expect((await rig.home.run(['memory', 'export'])).stdout).toMatch(OBEYED);
  } finally {
    await rig.close();
  }
});

/** A node that holds it in each of its fields, a document named after it, and a note. */
async function importEvil(rig: LiveRig): Promise<void> {
  const file = path.join(rig.home.user, 'export.jsonl');
  await rig.home.run(['memory', 'export', '--format', 'jsonl', '--out', file]);
  const [head, line] = (await readFile(file, 'utf8')).split('\n') as [string, string];
  const { node } = JSON.parse(line) as { node: MemoryNode };
  const text = said('node');
  const evil = {
    ...node,
    node_id: EVIL_ID,
    session_id: `s${EVIL}`,
    topic_tags: ['deploy', EVIL, `act:${EVIL}`, `kind:${EVIL}`],
    summary: text,
    detailed_summary: text,
    trigger: text,
    capsule: text,
    source_links: [EVIL, `document:${EVIL}`],
    written_by: EVIL,
    origin: 'tool',
    recall_mode: 'active',
    facts: [{ concept: EVIL, value: text, polarity: 'positive', evidence: [EVIL] }],
  };
  await writeFile(file, `${head}\n${JSON.stringify({ node: evil })}\n`);
  expect(await rig.home.run(['memory', 'import', file, '--as', 'export'])).toMatchObject({ code: 0 });
  const document = path.join(rig.home.user, `notes${EVIL.replace('/', '')}.md`);
  await writeFile(document, `# Notes\n\n${said('document')}\n`);
  const imported = await rig.home.run(['memory', 'import', document]);
  expect(imported.code).toBe(0);
  expect(imported.stdout + imported.stderr).not.toMatch(OBEYED);
  await rig.flush();
}

/** What the MCP server answers and the hooks add. */
async function told(rig: LiveRig, ids: readonly string[]): Promise<string[]> {
  const mcp = await openMcp(rig.home, { cwd: rig.home.user });
  const texts = [
    await mcp.call('remember', { text: said('note') }),
    await mcp.call('get_memory_index'),
    await mcp.call('retrieve_memory', { summary_query: 'parcel gateway port' }),
    await mcp.call('search_memory', { tag: EVIL }),
    await mcp.call('search_memory', { tag: 'no such tag' }),
  ];
  for (const node_id of ids) {
    for (const depth of [0, 1, 2]) texts.push(await mcp.call('read_memory_node', { node_id, depth }));
  }
  for (const uri of ['memory://nodes', 'memory://sessions', `memory://node/${ids[0]}`]) texts.push(await mcp.read(uri));
  await mcp.close();
  expect(texts.filter((text) => text.includes('7411')).length).toBeGreaterThan(ids.length);
  return texts;
}
