import { memoize } from '../../common/map.ts';
import { decodePercent, getQuotations, withoutQuotations } from '../../common/text.ts';
import { type CapturedTurn, lowestOrigin, ORIGINS, type Origin, withoutFrame } from '../../common/turn.ts';

export interface FileMark {
  /** Relative to the project's root, with forward slashes. */
  readonly path: string;
  /** Beginning of the digest of its content, hex; '' where it was not read. */
  readonly sha256: string;
  /** Beginning of the commit that was checked out, hex; '' where there was none. */
  readonly commit: string;
}

/** What a model is shown of one turn: redacted, whole, never a preview. */
export interface TurnText {
  readonly turnId: string;
  readonly atMs: number;
  readonly origin: Origin;
  readonly user: string;
  /** What was sent apart of `user`, where that is several prompts. */
  readonly prompts?: readonly string[];
  /** What `user` says rests on: `tool` where it comes out of a file, which may quote anybody. `user` where absent. */
  readonly userOrigin?: 'tool';
  readonly parts: readonly TurnPart[];
  /** Files of the project that its tool calls named, as they were when it ended. */
  readonly files?: readonly FileMark[];
  /** The answer repeats recalled memory, or the turn repeats what was said before a summary. */
  readonly recalled?: true;
  /** Captured without the end of its answer. */
  readonly unfinished?: true;
  /** Tool calls that are left out edited a file. */
  readonly edited?: true;
  /** What was typed while the turn ran; `user` ends with it. */
  readonly queued?: readonly string[];
  /** Hashes of word sequences that the assistant repeats from files, tools of the project, and the client's own text. */
  readonly repeats?: ReadonlySet<number>;
  /** Hashes of places and word sequences of paragraphs in which the assistant repeats what came from outside earlier. */
  readonly echoes?: ReadonlySet<number>;
}

export interface TurnPart {
  readonly kind: 'assistant' | 'tool_use' | 'tool_result';
  readonly origin: Origin;
  /** Tool name for the two tool kinds, else ''. */
  readonly tool: string;
  readonly text: string;
  /** Of an answer that repeats in part what was read in the project or came from outside: its runs of lines, each with its origin. */
  readonly passages?: readonly { readonly origin: Origin; readonly text: string }[];
}

/** One durable record of the journal: a redacted turn. `project` is the project key, see `createProjectOf`. */
export interface JournalTurn extends CapturedTurn {
  readonly seq: number;
  readonly project: string;
  readonly redacted: boolean;
  readonly files?: readonly FileMark[];
  /** As in `TurnText`; true: all that the assistant says in it counts as external. */
  readonly echoes?: readonly number[] | true;
  /** The answer repeats recalled memory, or the turn repeats what was said before a summary. */
  readonly recalled?: true;
  /** As in `TurnText`. */
  readonly repeats?: readonly number[];
  /** Of a turn with `parts`: their messages come before these and are not among them. */
  readonly tail?: true;
}

/** A part of what was said in a turn, as search reads and shows it. */
export interface SpokenPart {
  readonly by: 'user' | 'assistant' | 'call';
  readonly origin: Origin;
  readonly text: string;
}

const ROW_CHARS = 40_000;
const CALL_CHARS = 200;
const CALLS = 20;
/** Written before each part in one text: who spoke, then the origin. Tokenizers read control characters as spaces. */
const SPEAKERS = ['user', 'assistant', 'call'] as const;
const FIRST_SPEAKER = 0x01;
const FIRST_ORIGIN = 0x11;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the marks are control characters.
const MARKS = /[\x01-\x03\x11-\x14]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
const MARKED_PART = /([\x01-\x03])([\x11-\x14])([^\x01-\x03]*)/g;

/** User text, assistant text and tool calls; tool output is not indexed. Marked, see `getParts`. */
export function spokenText(turn: TurnText): string {
  const answers = turn.parts.filter((part) => part.kind === 'assistant');
  const calls = turn.parts.filter((part) => part.kind === 'tool_use').slice(0, CALLS);
  const parts: SpokenPart[] = [
    { by: 'user', origin: turn.userOrigin ?? 'user', text: withoutQuotations(turn.user).trim() },
    { by: 'user', origin: 'tool', text: getQuotations(turn.user) },
    ...answers.flatMap(({ origin, text, passages = [{ origin, text: withoutFrame(text) }] }) =>
      passages.map((own) => ({ by: 'assistant', ...own }) as const),
    ),
    ...calls.map(
      ({ origin, tool, text }) => ({ by: 'call', origin, text: `${tool} ${text.slice(0, CALL_CHARS)}` }) as const,
    ),
  ];
  return parts
    .filter(({ text }) => text !== '')
    .map(({ by, origin, text }) => {
      const marks = [FIRST_SPEAKER + SPEAKERS.indexOf(by), FIRST_ORIGIN + ORIGINS.indexOf(origin)];
      return `${String.fromCharCode(...marks)}${text.replace(MARKS, ' ')}`;
    })
    .join('\n')
    .slice(0, ROW_CHARS);
}

/** The parts of a marked text; a text without marks is one part of the assistant. */
export function getParts(marked: string, origin: Origin): SpokenPart[] {
  const parts = [...marked.matchAll(MARKED_PART)].map(([, speaker = '', source = '', text = '']): SpokenPart => {
    const by = SPEAKERS[speaker.charCodeAt(0) - FIRST_SPEAKER] ?? 'assistant';
    return { by, origin: ORIGINS[source.charCodeAt(0) - FIRST_ORIGIN] ?? 'external', text: text.trim() };
  });
  return parts.length > 0 ? parts : [{ by: 'assistant', origin, text: marked }];
}

export function getAnswers({ parts }: Pick<TurnText, 'parts'>): string[] {
  return parts.flatMap(({ kind, text }) => (kind === 'assistant' ? [text] : []));
}

/** Where the user picks an answer or approves a plan. */
export const DIALOGS: ReadonlySet<string> = new Set(['AskUserQuestion', 'ExitPlanMode']);

/** User and assistant text and the client's dialogs only, with the origin of that text; the same object each time. */
export const withoutToolOutput = memoize((turn: TurnText): TurnText => {
  const parts = turn.parts.filter(({ kind, tool }) => kind === 'assistant' || DIALOGS.has(tool));
  const origins: Origin[] = parts.flatMap(({ kind, origin }) => (kind === 'tool_result' ? [] : [origin]));
  if (getQuotations(turn.user) !== '') origins.push('tool');
  return { ...turn, parts, origin: lowestOrigin([...origins, turn.userOrigin ?? 'user']) };
});

const SCHEME = 'file:';

/** `file:src/db.ts#sha256=0123456789abcdef&commit=0123456789ab`: how a node's `source_links` name a file. */
export function formatFileLink({ path, sha256, commit }: FileMark): string {
  const details = Object.entries({ sha256, commit }).filter(([, value]) => value !== '');
  const marks = details.map(([key, value]) => `${key}=${value}`).join('&');
  return `${SCHEME}${path.replace(/[%#\s\p{Cc}\p{Cf}]/gu, encodeURIComponent)}${marks === '' ? '' : `#${marks}`}`;
}

/** Null for a link to something else, and for one that names no file inside a project. */
export function parseFileLink(link: string): FileMark | null {
  if (!link.startsWith(SCHEME)) return null;
  const [escaped = '', marks = ''] = link.slice(SCHEME.length).split('#', 2);
  // A stray % of a hand edit: no path that could be meant.
  const path = decodePercent(escaped);
  if (path === undefined || !isProjectPath(path)) return null;
  const values = new URLSearchParams(marks);
  const getMark = (key: string): string => /^[0-9a-f]+$/.exec(values.get(key) ?? '')?.[0] ?? '';
  return { path, sha256: getMark('sha256'), commit: getMark('commit') };
}

/** What the links say of files; the last word on each path counts. */
export function fileMarks(links: readonly string[]): FileMark[] {
  return latestMarks(links.flatMap((link) => parseFileLink(link) ?? []));
}

/** One mark for each path, in order of first mention; one that knows the content is not replaced by one that does not. */
export function latestMarks(marks: readonly FileMark[]): FileMark[] {
  const latest = new Map<string, FileMark>();
  for (const mark of marks) {
    if (mark.sha256 !== '' || !latest.has(mark.path)) latest.set(mark.path, mark);
  }
  return [...latest.values()];
}

/** Relative, with forward slashes, and never out of the project. */
export function isProjectPath(path: string): boolean {
  if (path === '' || path.includes('\0') || path.includes('\\') || /^[a-z]:/i.test(path)) return false;
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

/** A file that a node is about and that is no longer what it was. */
export interface FileChange {
  readonly path: string;
  readonly state: 'changed' | 'deleted';
}
