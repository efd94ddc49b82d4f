import type { AnswerBlock } from '../mock-anthropic/index.ts';
import type { Round, ServerCall, Turn } from './fake-client.ts';
import type { Json } from './rewriter-rig.ts';

/** Few different texts, so that equal messages, prompts and results are common. */
const PROMPTS = [
  'yes, do it',
  'continue',
  'Add a retry to the client',
  'Why does 日本語 fail? 🤔',
  'run the tests again',
];
const ANSWERS = ['Done.', 'Done.', 'The port is 8471 and the test passes.', 'Ich habe `src/a.ts` geändert.', 'OK '];
const RESULTS = ['', 'ok', 'line 1\nline 2\n', '{"n": 12345678901234567890, "s": "\\ud83d"}', 'lone \ud83d surrogate'];
const NOTES = [
  "The task tools haven't been used recently.",
  'The date has changed.',
  'The following deferred tools are now available via ToolSearch:\nmcp__docs__search',
];
const THOUGHTS = [['I should look first.'], ['Hm.', ''], [], ['']];
const INPUTS: readonly Json[] = [{ command: 'ls' }, { file_path: '/a b.ts', limit: 1e21 }, {}];
const TOOLS = ['Bash', 'Read', 'mcp__docs__search'];
const MEANWHILE = ['interrupted', 'interrupted', 'error', 'queued', 'noted'] as const;
const PIXEL = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
const PAGE = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'A page.' }, title: 'p' };
const FILLER = 'The quick brown fox reads src/index.ts. ';

export type Random = (below: number) => number;

/** The same numbers for the same seed. Source: mulberry32, public domain. */
export function randomFrom(seed: number): Random {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

export function randomTurn(random: Random, rounds: number): Turn {
  const before = [...(random(12) === 0 ? [PIXEL] : []), ...(random(15) === 0 ? [PAGE] : [])];
  return {
    prompt: padded(random, PROMPTS),
    rounds: Array.from({ length: rounds }, () => randomRound(random)),
    thinking: pick(random, THOUGHTS),
    answer: padded(random, ANSWERS),
    ...(before.length > 0 && { before }),
    ...(random(12) === 0 && { cites: true }),
    ...(random(4) === 0 && { note: pick(random, NOTES) }),
  };
}

function randomRound(random: Random): Round {
  const calls = Array.from({ length: 1 + (random(4) === 0 ? random(3) : 0) }, () => ({
    name: pick(random, TOOLS),
    input: pick(random, INPUTS),
    result: random(12) === 0 ? [PIXEL] : padded(random, RESULTS),
  }));
  return {
    calls,
    thinking: pick(random, THOUGHTS),
    ...(random(3) === 0 && { text: 'Let me look.' }),
    ...(random(6) === 0 && { note: pick(random, NOTES) }),
    ...(random(8) === 0 && { typed: { how: pick(random, MEANWHILE), text: padded(random, PROMPTS) } }),
  };
}

function padded(random: Random, texts: readonly string[]): string {
  const text = pick(random, texts);
  return random(3) === 0 ? `${text} ${FILLER.repeat(1 + random(12))}`.trim() : text;
}

function pick<T>(random: Random, items: readonly T[]): T {
  return items[random(items.length)] as T;
}

/** Betas for the blocks that {@link widen} adds. */
export const WIDE_BETAS = 'mcp-client-2025-11-20,files-api-2025-04-14,compact-2026-01-12';

const UPLOAD = { type: 'container_upload', file_id: 'file_1' };
const FOUND = {
  type: 'search_result',
  source: 'https://a.example',
  title: 'A',
  content: [{ type: 'text', text: 'A port.' }],
  citations: { enabled: true },
};
const REFERENCE = { type: 'tool_reference', tool_name: 'Read' };
const COMPACTION = { type: 'compaction', content: 'What was said so far.' };
const WEB_CITATION = {
  type: 'web_search_result_location',
  cited_text: 'A',
  url: 'https://a.example',
  title: 'A',
  encrypted_index: 'RW4=',
};
const ENDS = ['aborted_by_client', 'cut_by_upstream', 'max_tokens', 'refusal'] as const;
const SAYS = [
  '[Request interrupted by user]',
  'Output token limit hit. Resume directly: no apology, no recap.',
  'stop',
] as const;

let servers = 0;

function serverCall(random: Random): ServerCall {
  servers += 1;
  const id = `srvtoolu_${servers}`;
  const named = (name: string, type: string, content: unknown): ServerCall => ({
    call: { type: 'server_tool_use', id, name, input: {} },
    result: { type, tool_use_id: id, content },
  });
  switch (random(4)) {
    case 0:
      return named('web_search', 'web_search_tool_result', [
        { type: 'web_search_result', url: 'https://a.example', title: 'A', encrypted_content: 'RW4=' },
      ]);
    case 1:
      return named('web_fetch', 'web_fetch_tool_result', {
        type: 'web_fetch_result',
        url: 'https://a.example',
        content: { ...PAGE },
      });
    case 2:
      return named('bash_code_execution', 'bash_code_execution_tool_result', {
        type: 'bash_code_execution_result',
        stdout: 'thinking',
        stderr: '',
        return_code: 0,
        content: [],
      });
    default:
      return {
        call: { type: 'mcp_tool_use', id: `mcptoolu_${servers}`, name: 'find', server_name: 'docs', input: {} },
        result: {
          type: 'mcp_tool_result',
          tool_use_id: `mcptoolu_${servers}`,
          is_error: false,
          content: [{ type: 'text', text: 'found' }],
        },
      };
  }
}

/** With blocks and ends that Claude Code's own requests seldom have. */
export function widen(random: Random, turn: Turn): Turn {
  const before = [...(turn.before ?? []), ...(random(10) === 0 ? [UPLOAD] : []), ...(random(8) === 0 ? [FOUND] : [])];
  const ends = random(6) === 0 ? { by: pick(random, ENDS), after: random(3) } : undefined;
  const says = ends === undefined || random(3) === 0 ? undefined : pick(random, SAYS);
  return {
    ...turn,
    ...(before.length > 0 && { before }),
    rounds: (turn.rounds ?? []).map((round) => widenRound(random, round, ends === undefined)),
    closing: widenClosing(random, turn),
    ...(random(7) === 0 && ends === undefined && { pause: serverCall(random) }),
    ...(ends !== undefined && { ends: { ...ends, ...(says !== undefined && { says }) } }),
  };
}

function widenRound(random: Random, round: Round, mayStayOpen: boolean): Round {
  const { call, result } = serverCall(random);
  return {
    ...round,
    calls: round.calls.map((each) =>
      random(8) === 0 ? { ...each, result: pick(random, [[FOUND], [REFERENCE], [PAGE, PIXEL], [], [PAGE]]) } : each,
    ),
    ...(random(6) === 0 && { before: [call, result] }),
    // Beside an open call of the server's there may be results only.
    ...(random(8) === 0 && mayStayOpen && round.typed === undefined && { open: serverCall(random) }),
    ...(random(4) === 0 && { isSplit: true }),
  };
}

function widenClosing(random: Random, turn: Turn): readonly AnswerBlock[] {
  const thoughts = (turn.thinking ?? []).map(
    (thinking): AnswerBlock => (random(3) === 0 ? { type: 'redacted_thinking' } : { type: 'thinking', thinking }),
  );
  const { call, result } = serverCall(random);
  const cited = random(3) === 0 ? { citations: [WEB_CITATION] } : {};
  return [
    ...(random(20) === 0 ? [COMPACTION as AnswerBlock] : []),
    ...thoughts,
    ...(random(4) === 0 ? [call, result, ...thoughts] : []),
    ...(random(8) === 0 && thoughts.length > 0 ? [] : [{ type: 'text', text: turn.answer ?? 'Done.', ...cited }]),
  ];
}
