import { describe, expect, it } from 'vitest';
import { createRequestReader, type PastConversation } from '../../../../proxy/transcript/index.ts';

type Content = string | readonly object[];

let clock = 0;
function line(uuid: string, parentUuid: string | null, message: object, more: object = {}): object {
  clock += 1_000;
  const timestamp = new Date(Date.UTC(2026, 0, 5) + clock).toISOString();
  return { uuid, parentUuid, type: (message as { role: string }).role, message, timestamp, cwd: '/home/ada', ...more };
}

function user(uuid: string, parent: string | null, content: Content, more: object = {}): object {
  return line(uuid, parent, { role: 'user', content }, more);
}

function assistant(uuid: string, parent: string | null, id: string, block: object, usage: object = {}): object {
  return line(uuid, parent, { role: 'assistant', model: 'claude-opus-4-8', id, content: [block], usage });
}

const text = (said: string): object => ({ type: 'text', text: said });
const call = (id: string): object => ({ type: 'tool_use', id, name: 'Read', input: {} });
const result = (id: string, content = `result of ${id}`): object => ({ type: 'tool_result', tool_use_id: id, content });

function read(lines: readonly object[]): PastConversation[] {
  const reader = createRequestReader('s1');
  for (const each of lines) reader.line(JSON.stringify(each));
  return reader.conversations();
}

/** Roles and blocks of the messages of each request, the blocks by text, call or result. */
function sent(conversation: PastConversation | undefined): string[] {
  const named = (block: Readonly<Record<string, unknown>>): string =>
    String(block['text'] ?? block['id'] ?? `=${String(block['tool_use_id'])}`);
  return (conversation?.requests ?? []).map(({ messages }) =>
    messages.map(({ role, content }) => `${role[0]}:${content.map(named).join('+')}`).join(' '),
  );
}

describe('requests of a transcript', () => {
  it('send the whole chain before each answer', () => {
    const [session] = read([
      user('1', null, 'one'),
      assistant('2', '1', 'm1', text('first')),
      user('3', '2', 'two'),
      assistant('4', '3', 'm2', text('second')),
    ]);
    expect(sent(session)).toEqual(['u:one', 'u:one a:first u:two']);
    expect(session).toMatchObject({ sessionId: 's1', agentId: '', projectDir: '/home/ada', rewinds: 0 });
  });

  it('join the blocks of an answer and the results of parallel calls', () => {
    const [session] = read([
      user('1', null, 'look'),
      assistant('2', '1', 'm1', { type: 'thinking', thinking: 'hm', signature: 's' }),
      assistant('3', '2', 'm1', call('a')),
      assistant('4', '3', 'm1', call('b')),
      user('5', '3', [result('a')]),
      user('6', '4', [result('b')]),
      assistant('7', '6', 'm2', text('done')),
    ]);
    expect(sent(session)).toEqual(['u:look', 'u:look a:a+b u:=a+=b']);
    const times = session?.requests.map(({ atMs, answeredAtMs }) => answeredAtMs - atMs);
    expect(times).toEqual([3_000, 1_000]);
  });

  it('have the notes that the client sends beside messages, where they are written as sent', () => {
    const note = (uuid: string, parent: string, content: Content, more: object = {}): object => {
      const rendered = [{ content }];
      return {
        ...line(uuid, parent, {}, { rendered, ...more }),
        type: 'attachment',
        message: undefined,
        attachment: {},
      };
    };
    const [session] = read([
      user('1', null, 'look'),
      note('2', '1', 'env'),
      assistant('3', '2', 'm1', call('a')),
      note('4', '3', 'before the call'),
      user('5', '3', [result('a')]),
      note('6', '5', [text('after the call')]),
      note('7', '6', '', { rendered: undefined }),
      assistant('8', '7', 'm2', text('done')),
      user('9', '8', 'thanks'),
      assistant('10', '9', 'm3', text('welcome')),
    ]);
    const looked = 'u:look+env a:a u:=a+after the call';
    expect(sent(session)).toEqual(['u:look+env', looked, `${looked} a:done u:thanks`]);
    expect(session?.rewinds).toBe(0);
  });

  it('leave out calls without a result, results without a call, and blank texts', () => {
    const [session] = read([
      user('1', null, 'look'),
      assistant('2', '1', 'm1', text('\n\n')),
      assistant('3', '2', 'm1', call('a')),
      assistant('4', '3', 'm1', call('b')),
      user('5', '3', [result('a'), result('elsewhere')]),
      user('6', '5', 'stop'),
      assistant('7', '6', 'm2', text('stopped')),
    ]);
    expect(sent(session)).toEqual(['u:look', 'u:look a:a u:=a+stop']);
  });

  it('branch at a rewind', () => {
    const [session] = read([
      user('1', null, 'one'),
      assistant('2', '1', 'm1', text('first')),
      user('3', '2', 'wrong'),
      assistant('4', '3', 'm2', text('no')),
      user('5', '2', 'right'),
      assistant('6', '5', 'm3', text('yes')),
    ]);
    expect(sent(session)).toEqual(['u:one', 'u:one a:first u:wrong', 'u:one a:first u:right']);
    expect(session?.rewinds).toBe(1);
  });

  it('start a new chain with the summary of a compaction, after the request that asks for it', () => {
    const [session] = read([
      user('1', null, 'one'),
      assistant('2', '1', 'm1', text('first')),
      { uuid: 'b', parentUuid: null, logicalParentUuid: '2', type: 'system', subtype: 'compact_boundary' },
      user('3', 'b', 'This session is being continued', { isCompactSummary: true }),
      user('4', '3', 'two'),
      assistant('5', '4', 'm2', text('second')),
    ]);
    const [, compaction] = session?.requests ?? [];
    expect(session?.requests.map(({ kind }) => kind)).toEqual(['main', 'compaction', 'main']);
    expect(JSON.stringify(compaction?.messages.at(-1))).toContain('CRITICAL: Respond with TEXT ONLY');
    expect(sent(session)[2]).toBe('u:This session is being continued+two');
    expect(session).toMatchObject({ compactions: 1, rewinds: 0 });
  });

  it('of subagents are conversations of their own, from side chains and from progress', () => {
    const side = { isSidechain: true, agentId: 'a1' };
    const of = (uuid: string, message: object): object => ({ uuid, type: 'user', message });
    const progress = (message: object): object => ({ type: 'agent_progress', agentId: 'a2', message });
    const all = read([
      user('1', null, 'one'),
      user('s1', null, 'find it', side),
      { ...assistant('s2', 's1', 'm1', text('found')), ...side },
      { type: 'progress', uuid: 'p1', parentUuid: '1', data: progress(of('x', { role: 'user', content: 'count' })) },
      {
        type: 'progress',
        uuid: 'p2',
        parentUuid: 'p1',
        data: progress({ ...of('y', { role: 'assistant', id: 'm2', content: [text('3')] }), type: 'assistant' }),
      },
      assistant('2', 'p2', 'm3', text('first')),
    ]);
    expect(all.map(({ agentId }) => agentId)).toEqual(['', 'a1', 'a2']);
    expect(all.map(sent)).toEqual([['u:one'], ['u:find it'], ['u:count']]);
  });

  it('send what was typed meanwhile behind the results', () => {
    const [session] = read([
      user('1', null, 'look'),
      assistant('2', '1', 'm1', call('a')),
      user('3', '2', [result('a')]),
      { uuid: '4', parentUuid: '3', type: 'attachment', attachment: { type: 'queued_command', prompt: 'and b' } },
      assistant('5', '4', 'm2', text('done')),
    ]);
    expect(sent(session)[1]).toBe('u:look a:a u:=a+and b');
  });

  it('follow the line before where the parent is not in the file, and skip repeated and broken lines', () => {
    const first = user('1', 'elsewhere', 'one');
    const [session] = read([first, first, assistant('2', '1', 'm1', text('first')), user('3', 'lost', 'two')]);
    expect(sent(session)).toEqual(['u:one']);
    const reader = createRequestReader('s1');
    for (const each of ['', '{', '[]', 'null', '{"type":"user"}']) reader.line(each);
    expect(reader.conversations()).toEqual([]);
  });

  it('have the tokens and the cache lifetime that the API counted', () => {
    const usage = {
      input_tokens: 1,
      cache_read_input_tokens: 20,
      cache_creation_input_tokens: 300,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 300 },
    };
    const [session] = read([user('1', null, 'one'), assistant('2', '1', 'm1', text('first'), usage)]);
    expect(session?.requests[0]).toMatchObject({ promptTokens: 321, ttl: '1h', model: 'claude-opus-4-8' });
  });

  it('never lead to one another: messages that are repeated are the same objects', () => {
    const [session] = read([
      user('1', null, 'one'),
      assistant('2', '1', 'm1', call('a')),
      user('3', '2', [result('a')]),
      assistant('4', '3', 'm2', call('b')),
      user('5', '4', [result('b')]),
      assistant('6', '5', 'm3', text('done')),
    ]);
    const [, second, third] = session?.requests ?? [];
    expect(third?.messages.slice(0, 3).every((message, at) => message === second?.messages[at])).toBe(true);
  });
});
