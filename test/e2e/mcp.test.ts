import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MemoryNode } from '../../memory/model/node.ts';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { daemonUpstream } from '../helpers/live-conversation.ts';
import { type McpClient, openMcp } from '../helpers/mcp-client.ts';
import { type ConversationPlan, growConversation, seededPlan } from '../helpers/transcripts.ts';
import { createStandin, type Standin } from '../mock-anthropic/index.ts';

const NOTE = 'The parcel gateway listens on port 7411, and Ilse restarts it on Thursdays.';

let home: TestHome;
let standin: Standin;
let plan: ConversationPlan;
let mcp: McpClient;

const call = (name: string, args: Record<string, unknown> = {}, by = mcp): Promise<string> => by.call(name, args);
const read = (uri: string): Promise<string> => mcp.read(uri);

beforeAll(async () => {
  standin = await createStandin();
  home = await createHomeWithCerts({ COMET_CC_UPSTREAM: standin.origin });
  plan = seededPlan(7, { turns: 3, models: ['claude-opus-4-8'], rounds: 0 });
  mcp = await openMcp(home, { cwd: home.user, root: plan.cwd });
});

afterAll(async () => {
  await mcp.close();
  await home.close();
  await standin.close();
});

describe('comet-cc mcp', () => {
  it('starts before the daemon, says what to do, and works once it is up', async () => {
    expect((await mcp.client.listTools()).tools.map(({ name }) => name)).toEqual([
      'get_memory_index',
      'read_memory_node',
      'search_memory',
      'retrieve_memory',
      'remember',
      'forget',
      'list_topics',
      'read_topic',
      'list_tasks',
      'add_task',
      'update_task',
      'what_do_you_know',
      'forget_fact',
    ]);
    expect(await call('retrieve_memory', { summary_query: 'gateway' })).toBe(
      'ERROR comet-cc: the daemon is not running; start it with: comet-cc start',
    );
    await expect(mcp.client.readResource({ uri: 'memory://nodes' })).rejects.toThrow('comet-cc start');
    await home.json(['start', '--json']);
    expect(await call('get_memory_index')).toBe('Nothing is remembered of this project yet.');
    await growConversation(plan, await daemonUpstream(home));
    await home.run(['flush']);
    expect(await call('get_memory_index')).toMatch(/^\d+ memor(?:y|ies) of 3 turns in 1 session; /);
  });

  it('finds what a session said, with its source, and reads it to the last word', async () => {
    const nodes = (await home.json(['memory', 'ls', '--json'])) as MemoryNode[];
    const node = nodes[0] as MemoryNode;
    const found = await call('retrieve_memory', { summary_query: node.summary, trigger_query: node.trigger });
    expect(found).toContain(`[${node.node_id}]`);
    expect(found).toContain(`source: session ${plan.sessionId}, turn `);
    expect(found.length).toBeLessThan(4_500);
    const raw = await home.json(['memory', 'show', node.node_id, '--depth', '2', '--json']);
    const [first] = (raw as { raw: { content: { text: string }[] }[] }).raw;
    const shown = await call('read_memory_node', { node_id: node.node_id, depth: 2 });
    expect(shown).toContain(first?.content[0]?.text.slice(0, 200));
    expect(await call('read_memory_node', { node_id: node.node_id, depth: 0 })).toContain(node.trigger.slice(0, 40));
    expect(await call('read_memory_node', { node_id: node.node_id })).toContain('importance');
    const [tag = ''] = node.topic_tags.filter((each) => !each.includes(':'));
    expect(await call('search_memory', { tag: tag.toUpperCase() })).toContain(node.node_id);
    expect(await call('search_memory', { tag: 'no such tag' })).toContain(tag);
    expect(await call('search_memory', { query: node.summary, tag })).toContain(node.node_id);
    expect(await call('search_memory', { query: node.summary, tag: 'no such tag' })).toContain('Nothing in memory');
    expect(await call('search_memory')).toContain('ERROR');
    expect(found).toContain(`  when: ${node.trigger.slice(0, 20)}`);
    expect(found).toContain('  tags: ');
    expect(await call('read_memory_node', { node_id: 'mem_1999' })).toMatch(/^ERROR comet-cc: /);
  });

  it('finds what carries a tag however far down', async () => {
    const folder = path.join(home.user, 'lighthouse');
    mkdirSync(folder);
    const keeper = await openMcp(home, { cwd: folder });
    for (let at = 0; at < 25; at += 1) {
      const text = `Lighthouse lamp ${at}: the lighthouse lamp ${at} of the lighthouse turns every ${at + 3} seconds.`;
      expect(await call('remember', { text }, keeper)).toContain('Noted');
    }
    const rare = 'The varnish of the gallery rail dries overnight; the lamp stays lit.';
    const id = /mem_\w+/.exec(await call('remember', { text: rare }, keeper))?.[0] ?? '';
    await home.run(['flush']);
    const { topic_tags: tags } = (await home.json(['memory', 'show', id, '--json'])) as MemoryNode;
    const [tag = ''] = tags.filter((each) => !each.includes(':') && !/lamp|light/.test(each));
    const query = 'lighthouse lamp turns';
    expect(await call('search_memory', { query, tag }, keeper)).toContain(id);
    const found = await call('retrieve_memory', { summary_query: query, limit: 20 }, keeper);
    expect(found).toMatch(/^ {2}when: When I /m);
    expect(found).toMatch(/^ {2}tags: .*lighthouse/m);
    await keeper.close();
  });

  it('notes down what it is told to, of no better origin than a tool, once, and forgets it with every trace', async () => {
    const noted = await call('remember', { text: NOTE });
    const id = /mem_\w+/.exec(noted)?.[0] ?? '';
    expect(noted).toBe(`Noted as ${id}.`);
    expect(await call('remember', { text: NOTE })).toBe(`It is here already, as ${id}.`);
    expect(await home.json(['memory', 'show', id, '--json'])).toMatchObject({ origin: 'tool', recall_mode: 'active' });
    const found = await call('retrieve_memory', { summary_query: 'Which port does the parcel gateway listen on?' });
    expect(found).toContain(NOTE);
    expect(found).toContain('Exact wording matters here');
    expect(await call('retrieve_memory', { summary_query: NOTE.slice(0, 18) })).not.toContain('Exact wording');
    expect(await call('forget', { node_id: id.slice(0, 12) })).toMatch(/^ERROR .*the whole id/s);
    expect(await call('forget', { node_id: id })).toBe(`Removed ${id}.`);
    expect(await call('retrieve_memory', { summary_query: 'parcel gateway port' })).not.toMatch(/\b7411\b/);
    expect(await call('remember', { text: NOTE })).toMatch(/^ERROR comet-cc: the user removed this very note/);
  });

  it('refuses an argument that a tool does not have, names those it has, and does nothing', async () => {
    const { tools } = await mcp.client.listTools();
    for (const { name, inputSchema } of tools) {
      const known = Object.keys(inputSchema.properties ?? {});
      expect([name, inputSchema['additionalProperties']]).toEqual([name, false]);
      const refused = await call(name, { nope: 1 });
      expect(refused).toMatch(/^ERROR /);
      expect(refused).toContain(`unknown argument nope; the arguments are ${known.join(', ') || 'none'}`);
    }
    expect(await call('add_task', { title: 'Order ink', when: 'tomorrow' })).toMatch(/^ERROR .*argument when;.* at, /s);
    expect(await call('list_tasks')).toBe('No task is open here.');
    const meta = { name: 'list_tasks', _meta: { progressToken: 1, 'x/y': 'z' } };
    expect((await mcp.client.callTool(meta)).isError).toBeUndefined();
  });

  it('lists and reads topic pages as they are on disk, by name alone', async () => {
    expect(await call('list_topics')).toBe('No topic page is written here yet.');
    const topics = path.join(home.home, 'library', 'topics');
    mkdirSync(topics, { recursive: true });
    writeFileSync(path.join(topics, 'printers.md'), '# Printers\n\nAda has the key.\n');
    expect(await call('list_topics')).toContain("- printers: Printers (the user's own page)");
    expect(await call('read_topic', { name: 'printers' })).toContain('- Ada has the key.');
    expect(await call('read_memory_node', { node_id: 'topic:printers' })).toContain('- Ada has the key.');
    expect(await call('read_memory_node', { node_id: 'topic:printers#ink' })).toMatch(/^ERROR comet-cc: no topic/);
    for (const name of ['../../x', '../topics/printers'])
      expect(await call('read_topic', { name })).toBe(`ERROR comet-cc: no topic "${name}" here`);
  });

  it('keeps to the project of the root, or of the folder it runs in', async () => {
    const elsewhere = path.join(home.user, 'elsewhere');
    mkdirSync(elsewhere);
    const stranger = await openMcp(home, { cwd: elsewhere });
    expect(await call('get_memory_index', {}, stranger)).toBe('Nothing is remembered of this project yet.');
    expect(await call('remember', { text: 'Only here: the colour is teal.' }, stranger)).toContain('Noted');
    expect(await call('retrieve_memory', { summary_query: 'the colour is teal' })).not.toContain('teal');
    expect(await call('retrieve_memory', { summary_query: 'the colour is teal' }, stranger)).toContain('teal');
    const [other] = (await home.json(['memory', 'ls', '--project', plan.cwd, '--json'])) as MemoryNode[];
    const { node_id = '' } = other ?? {};
    for (const tool of ['read_memory_node', 'forget']) {
      expect(await call(tool, { node_id }, stranger)).toMatch(/^ERROR comet-cc: .* another project/);
    }
    await expect(stranger.read(`memory://node/${node_id}`)).rejects.toThrow('another project');
    expect(await home.json(['memory', 'show', node_id, '--json'])).toMatchObject({ node_id });
    expect((await home.run(['memory', 'pin', node_id, '--project', elsewhere])).code).toBe(0);
    expect(await call('read_memory_node', { node_id }, stranger)).toContain(node_id);
    expect(await call('forget', { node_id }, stranger)).toMatch(/^ERROR comet-cc: .* another project/);
    await home.run(['pause', '--project', elsewhere]);
    expect(await call('forget', { node_id }, stranger)).toMatch(/^ERROR comet-cc: memory is off/);
    expect(await call('get_memory_index', {}, stranger)).toMatch(/^ERROR comet-cc: memory is off/);
    expect(await call('remember', { text: 'x' }, stranger)).toMatch(/^ERROR comet-cc: capture is off/);
    await stranger.close();
  });

  it('has resources for nodes, sessions and one node', async () => {
    const [node] = (await home.json(['memory', 'ls', '--project', plan.cwd, '--json'])) as MemoryNode[];
    const { resources } = await mcp.client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(['memory://nodes', 'memory://sessions']);
    expect((await mcp.client.listResourceTemplates()).resourceTemplates[0]?.uriTemplate).toBe('memory://node/{id}');
    expect(await read('memory://nodes')).toContain(node?.node_id);
    expect(await read('memory://sessions')).toMatch(new RegExp(`^${plan.sessionId}  .*  3 turns, 1 memory$`, 'm'));
    expect(await read(`memory://node/${node?.node_id}`)).toContain(node?.summary.slice(0, 60));
  });
});
