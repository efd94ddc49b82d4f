import type { Scope } from './policy.ts';

/** Where a text comes from, most trusted first. A text derived from several sources has the lowest origin. */
export const ORIGINS = ['user', 'assistant', 'tool', 'external'] as const;
export type Origin = (typeof ORIGINS)[number];

/** The least trusted of `origins`; `external` when there are none. */
export function lowestOrigin(origins: readonly Origin[]): Origin {
  return ORIGINS.findLast((origin) => origins.includes(origin)) ?? 'external';
}

/** Only text of these origins may go to a system channel. */
export const isCleanOrigin = (origin: Origin): boolean => origin === 'user' || origin === 'assistant';

/** Presets of when turns are summarized. */
export const PRESETS = ['aggressive', 'gentle'] as const;

export type Role = 'user' | 'assistant' | 'system';

/** One message as Claude Code sent it. */
export interface CapturedMessage {
  readonly role: Role;
  /** JSON text of the message's `content` value, exactly as received. */
  readonly content: string;
  /** Hex digest of `content`; for the first message of a merged turn, of the whole message. */
  readonly sha256: string;
}

/**
 * A user message and everything up to the next one, including tool calls.
 *
 * `key` is the lineage hash up to and including the turn's prompt, `turnId` the one up to its last message.
 * A turn captured from the response stream, before Claude Code has sent it back, gets a
 * `turnId` computed from the reassembled assistant message. All hashes are lower-case hex.
 */
export interface CapturedTurn {
  readonly key: string;
  readonly turnId: string;
  /** Lineage before its prompt: the id of the previous turn; '' for the first one. */
  readonly before?: string;
  readonly sessionId: string;
  /** Claude Code's working directory; null when the request did not name one. */
  readonly projectDir: string | null;
  readonly model: string;
  readonly atMs: number;
  readonly messages: readonly CapturedMessage[];
  /** A schedule, a task, another agent or the client prompted in place of the user. */
  readonly untyped?: true;
  /** All that a subagent was shown and said, its report last: no turn of the conversation. */
  readonly subagent?: true;
  /** Its prompt was sent with the last tool results of the turn before: its first message is the rest of that turn's last. */
  readonly merged?: true;
  /** Never written: the id under which former versions stored this turn together with the merged ones after it. */
  readonly formerId?: string;
  /** Captured without the end of its answer. */
  readonly unfinished?: true;
  /** Ids of unfinished forms of this turn: those it may have been captured under; once stored, those that memory has. */
  readonly unfinishedIds?: readonly string[];
  /** Set when this is a part of a turn: some tool rounds, the first part with the turn's prompt. */
  readonly part?: TurnPart;
  /** The parts that a whole turn begins with: their ids and numbers of messages. */
  readonly parts?: readonly { readonly turnId: string; readonly messages: number }[];
  /** What the user marked as private earlier in the conversation; never written. */
  readonly earlierPrivate?: readonly string[];
  /** By digest of a text block: `user` where a hook reported it as a prompt. Of what we or a clean subagent wrote: its origin. */
  readonly origins?: Readonly<Record<string, Origin>>;
  /** Set when it was imported instead of captured: from Claude Code's transcripts, or from a file. */
  readonly imported?: 'claude' | 'file';
}

export interface TurnPart {
  /** Counts the parts of a turn from 0. */
  readonly index: number;
  /** Id of the part before; null for the first. */
  readonly after: string | null;
  /** For a subagent's transcript: id of the turn that started it, whose own messages are others. */
  readonly of?: string;
}

/** Whose words a text of a user message is. `client`: of Claude Code, or put there by it from a file; never kept. */
export type TextSource = 'typed' | 'client' | 'tool' | 'external';

export interface SourcedText {
  readonly source: TextSource;
  readonly text: string;
  /** Of a typed `!command`: the command. */
  readonly command?: string;
  /** Typed while Claude was busy, so that it is no message of its own. */
  readonly isQueued?: true;
}

interface Form {
  readonly source: Exclude<TextSource, 'typed'>;
  readonly tags?: string;
  readonly starts?: RegExp;
}

/** First words of the request for a summary that replaces the conversation. */
export const SUMMARY_PROMPT = 'CRITICAL: Respond with TEXT ONLY';

/** First words of requests that Claude Code makes for itself on the main prefix. */
export const SIDE_PROMPTS = [
  SUMMARY_PROMPT,
  '[SUGGESTION MODE:',
  '<system-reminder>This is a side question from the user.',
  'The user stepped away and is coming back. Recap',
];

/**
 * How Claude Code 2.1 puts into user messages what the user did not type, as blocks of their own. Such a block belongs to
 * its form up to its end, because what it quotes may contain the closing tag.
 */
const FORMS: readonly Form[] = [
  { source: 'client', tags: 'system-reminder local-command-caveat ide_selection ide_opened_file ide_diagnostics' },
  { source: 'client', tags: 'new-diagnostics user-prompt-submit-hook session-start-hook post-tool-use-hook tick' },
  {
    source: 'client',
    starts:
      /Caveat: The messages below were generated by the user while running local commands|CRITICAL: Respond with TEXT ONLY|\[SUGGESTION MODE:|Base directory for this skill:|Output token limit hit\.|\[Image: (?:source|original)\b|I'm sending this plan to Ultraplan to be refined remotely\.|\[(?:handback-send|structured-output)-enforce\]|This session is being continued from another machine\.|The date has changed\. Today's date is now |## Context Usage\n\n\*\*Model:\*\* |A session-scoped Stop hook is now active with condition: |Tool loaded\.(?:\n\[id:[^\]\n]{1,200}\])?\s{0,9}$/y,
  },
  {
    source: 'client',
    starts:
      /[A-Z][A-Za-z]{2,30}(?::[\w-]{1,60})? (?:hook (?:feedback:|additional context:|success:|(?:blocking )?error)|operation (?:blocked|stopped) by hook)|Operation stopped by hook:/y,
  },
  { source: 'external', tags: 'task-notification bash-notification agent-notification teammate-message' },
  { source: 'external', tags: 'cross-session-message agent-message channel channel-message fork-boilerplate' },
  { source: 'external', tags: 'remote-review slack-ping slack-tag-message slack-messages coordinator-relay' },
  { source: 'external', tags: 'fetched-web-content untrusted-widget-state webhook-payload voice-call-talk' },
  { source: 'external', tags: 'mcp-resource mcp-resource-update mcp-polling-update github-webhook-activity' },
  {
    source: 'external',
    starts:
      /This session is being continued from a previous conversation|\[SYSTEM NOTIFICATION|A background agent completed a task:|\[[A-Z -]{3,60} - NOT USER INPUT\]|Activity (?:was observed )?in the bound |(?:A message|Messages) arrived (?:from|in) [^\n]{1,200}(?:working:|:\n)|(?:The (?:coordinator|[^\n]{1,99} plugin)|Your background observer[^\n]{0,99}|[^\n]{1,20} session) sent a (?:message|report)[^\n]{0,30}:\n/y,
  },
  { source: 'tool', tags: 'bash-stdout bash-stderr local-command-stdout local-command-stderr' },
];

const TAGS = new Map(
  FORMS.flatMap(({ source, tags }) => (tags?.split(' ') ?? []).map((tag) => [tag, source] as const)),
);
const TAG = /<([a-z]+(?:[-_][a-z]+)*)(?=[\s>])/y;
const LINE_TAG = /^[ \t]{0,20}<([a-z]+(?:[-_][a-z]+)*)(?=[\s>])/gm;
const OUTPUT_TAG = /<\/?(?:bash-stdout|bash-stderr|local-command-stdout|local-command-stderr)>/g;
const INTERRUPTED = /^\s*\[(?:Request interrupted by user(?: for tool use)?|This turn ended before it finished\.)\]\s*/;
const COMMAND = /^\s*<command-(?:name|message)>/;
const SHELL_INPUT = '<bash-input>';
/** Around a long text that the user pasted (2.1.332). */
const PASTED = /<pasted_content id="([0-9a-f]{4})">\n/g;
const QUEUED = /^\s*(?:<system-reminder>\s*)?The user sent a new message while you were working:\n/;
/** What Claude Code says after such a message. */
const QUEUED_ENDS = ['\n\nIMPORTANT: After completing your current task,', '\n\nThis is how Claude Code surfaces'];
/** In place of the result of a call that was refused with a comment; a subagent gets the second form. */
const REFUSAL =
  /^(?:The user doesn't want to proceed with this tool use|Permission for this tool use was denied)\. The tool use was rejected \(eg\. if it was a file edit, the new_string was NOT written to the file\)\. (?:To tell you how to proceed, the user said|The user said):\n/;
/** Claude Code may add its own words to the comment. */
const REFUSAL_END = /<system-reminder>|\nNote: The user's next message may contain a correction or preference\./;
const REMINDER = /^\s{0,9}<system-reminder>\s{0,9}/;
const REMINDER_END = '</system-reminder>';

/** How a user message answers what came before it. */
export interface MessageContext {
  /** `tool`: it has tool results. `skill`: one of them started a skill, whose text follows. */
  readonly answers?: 'tool' | 'skill' | null;
  /** Whether a hook reported the text as a prompt. */
  readonly isReported?: (text: string) => boolean;
}

/**
 * Whose words each text block of a user message holds, in order. A text counts as typed where a hook reported it, or where
 * it is in none of Claude Code's forms and no text of a command or skill.
 */
export function readUserTexts(
  texts: readonly string[],
  { answers = null, isReported = () => false }: MessageContext = {},
): SourcedText[][] {
  const hasReported = texts.some((text) => isReported(text));
  let isBody = answers === 'skill';
  let mayType = answers === null;
  /** How many of the next texts come from a repository or a server, which may imitate any of the client's forms. */
  let foreignTexts = isBody ? 1 : 0;
  return texts.map((whole): SourcedText[] => {
    if (isReported(whole)) {
      isBody = false;
      return [typed(whole)];
    }
    const text = whole.replace(INTERRUPTED, '');
    if (foreignTexts > 0 && (text.trim() !== '' || foreignTexts === Number.POSITIVE_INFINITY)) {
      const source = getSource(whole) ?? 'client';
      if (source !== 'client' || !REMINDER.test(whole)) foreignTexts -= 1;
      return [{ source, text: whole }];
    }
    if (text.length < whole.length) [isBody, mayType, foreignTexts] = [false, true, 0];
    if (text.trim() === '') return [];
    const queued = queuedText(text);
    if (queued !== null) {
      const read = readUserTexts([queued], { isReported }).flat();
      return read.map((each) => ({ ...each, isQueued: true }));
    }
    if (COMMAND.test(text)) {
      // Of a command that has a text, Claude Code names the message first.
      isBody = text.trimStart().startsWith('<command-message>');
      // A server may send any number of texts.
      foreignTexts = isBody ? (/mcp__|\(MCP\)/.test(text) ? Number.POSITIVE_INFINITY : 1) : 0;
      const read = readCommand(text);
      if (isReported(read[0]?.text ?? '')) mayType = true;
      return mayType ? read : [{ source: 'client', text }];
    }
    if (text.trimStart().startsWith(SHELL_INPUT)) return readShell(text.trimStart());
    const source = getSource(text);
    if (source === 'tool') {
      isBody = false;
      return [{ source, text: text.replace(OUTPUT_TAG, '').trim() }];
    }
    if (source !== null) return [{ source, text }];
    return isBody || hasReported ? [{ source: 'client', text }] : splitTyped(text);
  });
}

function findTyped(texts: readonly string[], context?: MessageContext): SourcedText[] {
  return readUserTexts(texts, context).flatMap((read) => read.filter(({ source }) => source === 'typed'));
}

/** What the user typed of these texts. */
export function readTypedText(texts: readonly string[], context?: MessageContext): string {
  const typed = findTyped(texts, context).map(({ text }) => text);
  return typed.join('\n').trim();
}

/** What of these texts was typed while Claude was busy. */
export function readQueuedText(texts: readonly string[]): string {
  const queued = findTyped(texts).filter(({ isQueued }) => isQueued === true);
  return queued.map(({ text }) => text).join('\n');
}

/** What the user typed where they refused a call, and what the client says around it; null for any other result. */
export function readRefusal(result: string) {
  const [lead] = REFUSAL.exec(result) ?? [];
  if (lead === undefined) return null;
  const [comment = ''] = result.slice(lead.length).split(REFUSAL_END, 1);
  const typed = readUserTexts([comment]).flat();
  const client = lead + result.slice(lead.length + comment.length);
  return { client, typed: typed.map((each) => ({ ...each, isQueued: true as const })) };
}

/** Claude Code's mark that the user stopped the answer. */
export const isInterruption = (text: string): boolean => INTERRUPTED.test(text) && text.replace(INTERRUPTED, '') === '';

/** Whether something was typed behind Claude Code's mark of an interruption, which also ends what was queued before. */
export function hasInterruption(texts: readonly string[]): boolean {
  const mark = texts.findIndex(isInterruption);
  return mark >= 0 && texts.slice(mark + 1).some((text) => text.trim() !== '' && getSource(text) === null);
}

/** What the user typed beside tool results: `prompt` ends the turn that ran, `queued` is for it to take up. */
export type TypedBesideResults = NonNullable<ReturnType<typeof findTypedBesideResults>>;

/** Null where the client alone put these texts beside tool results. */
export function findTypedBesideResults(texts: readonly string[]) {
  const typed = findTyped(texts, { answers: 'tool' });
  if (typed.length === 0) return null;
  const kind = typed.every(({ isQueued }) => isQueued === true) ? 'queued' : 'prompt';
  return { kind, isInterruption: hasInterruption(texts) };
}

/** Begins what stands in place of all that was said before it. */
export const CONTINUATION = 'This session is being continued from a previous conversation';

export const isContinuation = (text: string): boolean => text.startsWith(CONTINUATION);

/** What Claude Code says around the summary: that it is one, which tools were used, and how to continue. */
const AROUND_SUMMARY =
  /^This session is being continued from a previous conversation[^\n.]{0,80}\.\s{1,9}(?:The summary below covers the earlier portion of the conversation\.\s{1,9})?(?:<system-reminder>\s{0,9}<tools-used-before-summary>[^<]{0,9000}<\/tools-used-before-summary>\s{0,9}<\/system-reminder>\s{0,9})?(?:Summary:\s)?|\n(?:If you need specific details from before compaction|Recent messages are preserved verbatim|The messages after this summary are|Continue the conversation from where it left off)[\s\S]*$/g;

/** A text that begins with {@link CONTINUATION} without the client's words; any other as it is. */
export const withoutFrame = (text: string): string =>
  isContinuation(text) ? text.replace(AROUND_SUMMARY, '').trim() : text;

/**
 * First words of what Claude Code tells the model once and then takes as known: instructions of CLAUDE.md files, the
 * environment, and which tools, agents, skills and servers there are; plan mode, and what changes in the session; other
 * modes, the directory, and changed CLAUDE.md files; what takes such words back, and after a compaction the plan and skills.
 */
const STANDING = [
  /^(?:Codebase and user instructions are shown below\.|As you answer the user's questions, you can use the following context:|Contents of [^\n]{1,400}\.md(?: \([^\n]{1,200}\))?:\n|Attribution for git commits and pull requests|# Environment\nYou have been invoked|# MCP Server Instructions\n|Available agent types for the |New agent types are now available|The following (?:deferred tools are|skills are available for|agent types are no longer|MCP servers (?:have|are connected)|tools (?:are (?:now|no longer) available|are available again|just became)) ?)/gm,
  /^(?:Plan mode is active\. The user indicated|The date has changed\. Today's date is now |# Output Style: |The output style was reset to the default\.|# Language\nMaintain full|The language preference was cleared\.|You are powered by the model )/gm,
  /^(?:## (?:Exited (?:Plan|Auto) Mode|Auto Mode Active)\n\n|While (?:auto|bypass permissions) mode is active:|Ultracode is (?:on:|off )|# Environment update\n|(?:These instruction files changed|Instructions no longer present|Instruction files were re-read) ?)/gm,
  /^(?:SessionStart hook (?:additional context|success): |Today's date is \d|\d{1,5} (?:deferred )?tools? (?:is|are) available again |New skills discovered in |# Unavailable MCP Tools\n|# Advisor Tool\n|# Language\nAlways respond in |## [\w ]{1,40} command sandbox\n|## Proactivity: |A plan (?:file )?exists from plan mode|From here on, do not add attribution lines|Definitions of the following tools were loaded earlier|The (?:following (?:skills (?:are also available|were invoked)|tools have updated definitions|MCP servers (?:require authentication|are configured))|earlier error that said the following tools|session context (?:has changed|was re-read)|UTC date is now|proactivity setting announced|command sandbox has been disabled|advisor tool is |workflow size guideline for this session changed))/gm,
];
/** What Claude Code says again and again, behind standing parts too: a budget, and what hooks print. */
const PASSING =
  /\n\n(?:<total_tokens>[^\n]*|(?!SessionStart)[A-Z][A-Za-z]{2,30}(?::[\w-]{1,60})? hook (?:additional context|success): [^\n]*(?:\n[^\n]+)*)/g;
/** From this version of plans on each part is a text of its own. */
const SPLIT_SINCE = 4;
const REMINDER_START = '<system-reminder>\n';

/** @param kinds  how many of the lists above count: plans of former versions kept less */
function findStanding(text: string, kinds = STANDING.length): number {
  const found = STANDING.slice(0, kinds).map((form) => text.search(form));
  return Math.min(...found.filter((at) => at >= 0));
}

/** A system message consists of parts: the text from its first standing part on, in parts where a plan has them so. */
export function findStandingParts(text: string, kinds = 0): string[] {
  const at = findStanding(text, kinds || undefined);
  if (at > text.length) return [];
  if (kinds < SPLIT_SINCE) return [text.slice(at)];
  const said = text.slice(at).replace(PASSING, '');
  const starts = STANDING.slice(0, kinds).flatMap((form) => Array.from(said.matchAll(form), ({ index }) => index));
  starts.sort((one, other) => one - other);
  return starts.map((start, place) => said.slice(start, starts[place + 1]).trimEnd());
}

/** Whether this text block of a user message is a standing part. */
export function isStandingReminder(text: string, kinds?: number): boolean {
  if (!text.startsWith(REMINDER_START)) return false;
  return findStanding(text.slice(REMINDER_START.length, REMINDER_START.length + 700), kinds) === 0;
}

/** The source of a text in one of the client's forms, those that may be new included; null for any other. */
export function getSource(text: string, mayBeNew = true): Form['source'] | null {
  const at = text.search(/\S/);
  if (at < 0) return null;
  // A reminder may hold what comes from elsewhere, such as the report of a task.
  const inner = REMINDER.exec(text)?.[0].length;
  return inner !== undefined && findForm(text, inner) === 'external' ? 'external' : findForm(text, at, mayBeNew);
}

/** @param at  where the text begins */
function findForm(text: string, at: number, mayBeNew = true): Form['source'] | null {
  for (const { starts, source } of FORMS) {
    if (starts === undefined) continue;
    starts.lastIndex = at;
    if (starts.test(text)) return source;
  }
  TAG.lastIndex = at;
  const name = TAG.exec(text)?.[1] ?? '';
  // A name with a hyphen around all of it: a form that is not known yet.
  const isNew = mayBeNew && name.includes('-') && text.trimEnd().endsWith(`</${name}>`);
  return TAGS.get(name) ?? (isNew ? 'external' : null);
}

function queuedText(text: string): string | null {
  const start = QUEUED.exec(text)?.[0].length;
  if (start === undefined) return null;
  const close = text.lastIndexOf(REMINDER_END);
  const body = text.slice(start, close < start ? undefined : close);
  const ends = QUEUED_ENDS.map((end) => body.lastIndexOf(end)).filter((end) => end >= 0);
  return body.slice(0, Math.min(body.length, ...ends)).trim();
}

/** A command as it was typed, and what the client printed after it in the same text. */
function readCommand(text: string): SourcedText[] {
  const inner = (tag: string): { readonly text: string; readonly end: number } => {
    const from = text.indexOf(`<${tag}>`);
    const to = text.lastIndexOf(`</${tag}>`);
    const start = from + tag.length + 2;
    return from < 0 || to < start ? { text: '', end: 0 } : { text: text.slice(start, to), end: to + tag.length + 3 };
  };
  const [name, args, message] = [inner('command-name'), inner('command-args'), inner('command-message')];
  // The client closes its tags; the user may speak of them.
  if (name.end === 0) return [typed(text)];
  const command = typed(`${name.text.startsWith('/') ? '' : '/'}${name.text} ${args.text}`);
  const rest = text.slice(Math.max(name.end, args.end, message.end)).trim();
  if (rest === '') return [command];
  return [command, { source: getSource(rest) ?? 'client', text: rest.replace(OUTPUT_TAG, '').trim() }];
}

/** A `!command`: the user typed the input, a program wrote what follows. */
function readShell(text: string): SourcedText[] {
  const [command = '', ...rest] = text.slice(SHELL_INPUT.length).split('</bash-input>');
  const output = rest.join('</bash-input>').replace(OUTPUT_TAG, '').trim();
  const input: SourcedText = { source: 'typed', text: `! ${command}`, command };
  return output === '' ? [input] : [input, { source: 'tool', text: output }];
}

/** Takes out the client's elements that begin a line. */
function splitTyped(text: string): SourcedText[] {
  const pieces: string[] = [];
  const others: SourcedText[] = [];
  const ends = new Map<string, number>();
  let at = 0;
  for (const { index, 1: name = '' } of text.matchAll(LINE_TAG)) {
    const source = TAGS.get(name);
    if (source === undefined || index < at) continue;
    const close = `</${name}>`;
    const end = ends.get(name) ?? text.lastIndexOf(close);
    ends.set(name, end);
    if (end < index) continue;
    pieces.push(text.slice(at, index));
    at = end + close.length;
    others.push({ source, text: text.slice(index, at) });
  }
  const own = typed([...pieces, text.slice(at)].join(''));
  return [...(own.text === '' ? [] : [own]), ...others];
}

const typed = (text: string): SourcedText => ({ source: 'typed', text: quotePasted(text).trim() });

/** Next to typed words a pasted text is what they are about, and becomes a quotation; alone it is the prompt. */
function quotePasted(text: string): string {
  const pieces: string[] = [];
  let at = 0;
  for (const { index, 0: open, 1: id } of text.matchAll(PASTED)) {
    if (index < at) continue;
    const end = text.indexOf(`\n</pasted_content id="${id}">`, index + open.length - 1);
    if (end < 0) break;
    pieces.push(text.slice(at, index), text.slice(index + open.length, end));
    at = text.indexOf('>', end) + 1;
  }
  pieces.push(text.slice(at));
  const isAlone = pieces.every((piece, i) => i % 2 === 1 || piece.trim() === '');
  return pieces.map((piece, i) => (isAlone || i % 2 === 0 ? piece : piece.replace(/^/gm, '> '))).join('');
}

/** One tier-1 line, ready to inject: redacted, without line breaks, fences or tags. */
export interface MemoryLine {
  readonly nodeId: string;
  readonly text: string;
  readonly origin: Origin;
  /** Set on the lines that stand for turns which are cut. */
  readonly kept?: KeptState;
}

/** What a conversation may not lose with the turns of a node. */
export interface KeptState {
  /** Whole lines. */
  readonly decisions: readonly string[];
  /** Whole lines. */
  readonly open: readonly string[];
  /** Figures, names, paths and identifiers that the lines above do not name. */
  readonly values: readonly string[];
}

/** Memory for the system prompt of one plan; every line is of clean origin. */
export interface SessionContext {
  readonly brief: readonly string[];
  readonly lines: readonly MemoryLine[];
  /** The library's part, its heading first; absent where it has nothing to say. */
  readonly library?: readonly string[];
}

/** What a conversation was given of memory, by line. */
export interface ShownText {
  /** Of its system block. */
  readonly block: readonly string[];
  /** Of what prompts got since, oldest first. */
  readonly since: readonly string[];
  /** When the system block was written. */
  readonly blockMs: number;
}

export interface RecallRequest {
  readonly sessionId: string;
  readonly projectDir: string | null;
  /** Without reminders. */
  readonly prompt: string;
  /** The conversation before it, oldest first; used if the prompt has no content words. */
  readonly recent: readonly string[];
  /** Ids of the turns sent verbatim, whose nodes are not recalled. */
  readonly visibleTurns: ReadonlySet<string>;
  /** Texts already injected by the current plan; identical lines are skipped. */
  readonly shown: ReadonlySet<string>;
  /** Whether the request has this text already, which need not be said again. */
  readonly sends?: (text: string) => boolean;
  /** A narrower scope than configured, if the project requests one. */
  readonly scope?: Scope;
}
