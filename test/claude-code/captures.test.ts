import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAUDE_MISSING, findClaude } from '../helpers/claude.ts';
import type { Aside } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig, openClientTerminal } from '../helpers/claude-code-rig.ts';
import { CODES, getProse, INSIDE } from '../helpers/inside-words.ts';
import { hasTmux, type TmuxTerminal } from '../helpers/tmux.ts';

/** `npm run docs:captures` writes it; otherwise it is compared with what is printed now. */
const DOCUMENT = 'docs/FIRST-DAY.md';
const WRITES = process.env['DOCS_CAPTURES'] === 'write';

const claude = findClaude();
const missing = claude === null ? CLAUDE_MISSING : hasTmux() ? '' : 'tmux was not found; .ci/run installs it';
const START = 'comet-cc run claude --model claude-opus-4-8';
// Cut off in 80 columns and whole in 120, however wide its age is.
const SANDBOX = 'The sandbox of the carrier API of the second shop listens on port 7411 here. Point the config to it.';
const RETRIES = 'We decided on three retries for the carrier client. Tobias still has to renew the key by Friday.';
const QUESTION = 'Where were we?';

const reply = (when: string, getText: (body: string) => string): Aside => ({
  when,
  answer: ({ bytes }) => ({ kind: 'message', blocks: [{ type: 'text', text: getText(bytes.toString()) }] }),
});
/** The last answer holds only what was in the request. */
const ASIDES: Aside[] = [
  reply(QUESTION, (body) =>
    body.includes('three retries') && body.includes('renew the key by Friday')
      ? 'The carrier client makes three retries. Open: Tobias has to renew the key by Friday.'
      : 'I do not know.',
  ),
  reply('listens on port 7411', () => 'Done: config/development.ts points to the carrier sandbox on port 7411.'),
  reply('three retries', () => 'Noted: the carrier client makes three retries, and the key has to be renewed.'),
];

describe.skipIf(missing !== '')(`the first day${missing === '' ? '' : `: ${missing}`}`, () => {
  let rig: ClientRig;
  let terminal: TmuxTerminal;
  /** Prompts so far. */
  let told = 0;

  beforeAll(async () => {
    rig = await createClientRig({ claude: claude as string, asides: ASIDES, env: { COMET_CC_LLM: 'local' } });
    await rig.home.run(['stop', '--now']);
    terminal = openClientTerminal(rig, claude as string);
  });

  afterAll(async () => {
    terminal.close();
    await rig.close();
  });

  /** The screen of a client that was told these prompts and left. */
  async function converse(prompts: readonly (readonly [prompt: string, answer: RegExp])[]): Promise<string> {
    await terminal.run('clear');
    await terminal.type(START);
    await terminal.shows(/for shortcuts|auto mode on/);
    for (const [prompt, answer] of prompts) {
      await terminal.type(prompt);
      await terminal.shows(answer);
      await terminal.shows(/^❯$/m);
    }
    // Claude Code shows an answer before its last event arrives, and memory gets no turn if it is closed in between.
    told += prompts.length;
    await expect.poll(countTurns).toBe(told);
    const shown = terminal.screen();
    await terminal.leave();
    await rig.home.run(['flush']);
    return conversation(shown, terminal.screen());
  }

  async function countTurns(): Promise<number> {
    const sessions = (await rig.home.json(['session', 'ls', '--json'])) as { readonly turns: number }[];
    return sessions.reduce((sum, { turns }) => sum + turns, 0);
  }

  /** Resolves when programs see the new width, which the terminal sets some time later. */
  async function resize(columns: number): Promise<void> {
    terminal.resize(columns);
    while (!(await terminal.run('stty size')).includes(` ${columns}`)) await terminal.run('true');
  }

  it('looks as documented, in 80 and 120 columns', async () => {
    const captures: [title: string, text: string][] = [];
    const first = await converse([
      [SANDBOX, /Done: config/],
      [RETRIES, /Noted: the carrier/],
    ]);
    captures.push(['The first session', first]);
    captures.push(['The next morning', await converse([[QUESTION, /The carrier client makes|I do not know/]])]);
    const id = (await rig.nodes()).at(-1)?.node_id.slice(-6);
    for (const [title, command] of [
      ['What it remembers', 'comet-cc memory ls'],
      ['A search', 'comet-cc memory search "which port has the carrier sandbox"'],
      ['One memory', `comet-cc memory show ${id}`],
      ['Its state', 'comet-cc status'],
      ['What it did to the last request', 'comet-cc explain'],
    ] as const) {
      captures.push([title, await terminal.run(command)]);
      if (/^comet-cc memory (?:ls|search)/.test(command)) {
        await resize(120);
        captures.push([`${title}, in 120 columns`, await terminal.run(command)]);
        await resize(80);
      }
    }
    captures.push(['Set-up for every day', await terminal.run('comet-cc setup', 'y')]);
    captures.push(['And back', await terminal.run('comet-cc setup --undo', 'y')]);
    const ids = (await rig.nodes()).map(({ node_id }) => node_id);
    const text = tidied(getDocument(captures), rig, ids);
    expect(text).not.toContain('I do not know');
    expect(text).not.toMatch(INSIDE);
    expect(getProse(text)).not.toMatch(CODES);
    if (WRITES) writeFileSync(DOCUMENT, text);
    expect(masked(text)).toBe(masked(readFileSync(DOCUMENT, 'utf8')));
  });
});

it('the README shows lines of the recording', () => {
  const [, shown = ''] = /```text\n(.*?)```/s.exec(readFileSync('README.md', 'utf8')) ?? [];
  const recorded = masked(readFileSync(DOCUMENT, 'utf8')).split('\n');
  expect(shown.split('\n').length).toBeGreaterThan(10);
  expect(
    masked(shown)
      .split('\n')
      .filter((line) => !recorded.includes(line)),
  ).toEqual([]);
});

/** What the client shows while it works, with a tip below; with reduced motion behind the mark of an answer. */
const SPINNER = /^(?:[·✢✳✶✻✽] .*|● [\p{L}-]+….*)\n(?:\s*⎿ +Tip:.*\n(?: .*\n)*)?/gmu;

/** The input box, its hints, and what the client tells at its first starts. */
const AROUND =
  /^(?:─+|❯|✻ .*|▎.*| +⏵⏵ .*| *[●○] (?:low|medium|high) · \/effort| +\? for shortcuts.*| +Press Ctrl-D.*| +tmux .*)$/;

/** What is shown before the client's screen, on it, and after it, without how long the client says it took. */
function conversation(shown: string, left: string): string {
  const start = left.slice(0, left.indexOf('\n', left.indexOf('\nmemory on') + 1));
  const end = left.slice(left.indexOf('\nResume this session'));
  const client = shown.startsWith(start) ? shown.slice(start.length) : shown;
  const lines = `${start}\n${client.replace(/^\n+/, '').trimEnd()}\n${end}`
    .split('\n')
    .filter((line) => !AROUND.test(line));
  return lines
    .join('\n')
    .replace(SPINNER, '')
    .replace(/\$$/, '')
    .replace(/\n{3,}/g, '\n\n')
    .trimEnd();
}

function getDocument(captures: readonly (readonly [title: string, text: string])[]): string {
  const parts = captures.map(([title, text]) => `## ${title}\n\n\`\`\`text\n${text}\n\`\`\`\n`);
  const about =
    'The terminal of a first day, recorded by `npm run docs:captures` with the real Claude Code against a mock API. ' +
    'Claude Code draws on a screen of its own, which is shown here between what comet-cc prints before and after it. ' +
    'A test compares it with what the program prints; ids, numbers and times differ.';
  return [`# The first day\n\n${about}\n`, ...parts].join('\n');
}

/** Paths and ids as a reader would have them. */
function tidied(text: string, rig: ClientRig, ids: readonly string[]): string {
  let tidy = text
    .replaceAll(rig.project, '~/shop')
    .replaceAll(rig.home.home, '~/.comet-cc')
    .replaceAll(rig.home.user, '~');
  for (const [at, id] of ids.entries()) tidy = tidy.replaceAll(id.slice(-6), `a1b2c${at}`);
  return tidy;
}

/** Without the mascot, ids, numbers, times, and what depends on their width: padding, and where a line is cut. */
function masked(text: string): string {
  return text
    .replace(/^(.{0,24}).*….*$/gm, '$1')
    .replace(/[▀-▟]+/g, '#')
    .replace(/^claude (?:--model \S+ )?--resume/gm, 'claude --resume')
    .replace(/\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{6,})\b/g, '#')
    .replace(/\d[\d,.:]*(?:k\b)?/g, '#')
    .replace(/\b(?:now|# (?:ms|s|m|min|h)(?: ago)?)\b/g, '#')
    .replace(/[ ─]+/g, ' ');
}
