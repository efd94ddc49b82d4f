import { findModelTraits } from '../../proxy/wire/models.ts';
import type { AnswerBlock } from '../mock-anthropic/index.ts';
import { type Entry, environment, type Form, getBody, getHeaders, isNew, type Note, type Shape } from './body.ts';
import type { Exchange, Json, Route, WireRequest, WireRig } from './rewriter-rig.ts';

export interface Round {
  readonly calls: readonly { readonly name: string; readonly input: Json; readonly result: unknown }[];
  readonly thinking?: readonly string[];
  readonly text?: string;
  readonly note?: string;
  /** Blocks of the answer before its calls, such as those of tools that the server runs. */
  readonly before?: readonly AnswerBlock[];
  /** Called with the others; its result comes with the next answer. */
  readonly open?: ServerCall;
  /** Each result is a message of its own. */
  readonly isSplit?: boolean;
  /** What the user typed meanwhile: after interrupting the calls, after an error of the API, or for Claude to take up. */
  readonly typed?: { readonly how: 'interrupted' | 'error' | 'queued' | 'noted'; readonly text: string };
}

/** A call that the server runs, and its result. */
export interface ServerCall {
  readonly call: AnswerBlock;
  readonly result: AnswerBlock;
}

export interface Turn {
  readonly prompt: string;
  /** Blocks of the prompt before its text: images, documents. */
  readonly before?: readonly Json[];
  readonly note?: string;
  readonly rounds?: readonly Round[];
  readonly thinking?: readonly string[];
  readonly answer?: string;
  /** The answer cites the newest document of the conversation, if there is one. */
  readonly cites?: boolean;
  /** The last answer's blocks in place of thinking and text. */
  readonly closing?: readonly AnswerBlock[];
  /** The last answer comes in two: the turn is paused for a server's tool. */
  readonly pause?: ServerCall;
  /** The last answer ends early, or is refused: what the client holds of it, and what it says then. */
  readonly ends?: {
    readonly by: 'aborted_by_client' | 'cut_by_upstream' | 'max_tokens' | 'refusal';
    readonly after: number;
    readonly says?: string;
  };
}

/** A request of the conversation itself, and where it stood in it. */
export interface Said {
  readonly exchange: Exchange;
  readonly route: Route;
  readonly model: string;
  readonly entries: readonly Entry[];
  /** Plans of its session by then, those given up counted too. */
  readonly epochs: number;
  /** Refused as it came from the client, which then left its thinking out and asked again. */
  readonly ownFault: boolean;
}

/** One Claude Code at its terminal, as far as the wire shows it. */
export interface Terminal {
  readonly shape: Shape;
  /** Refused as it stands, with or without a proxy, for thinking that is bound to what it changed. */
  readonly isStale: boolean;
  /** A request since the newest of {@link said} was refused, so that its plan is no longer the same. */
  readonly wasRefused: boolean;
  /** What it asked so far, answers and refusals alike. */
  readonly said: readonly Said[];
  /** The whole turn, tool rounds included. Ends early where the request was refused. */
  ask(turn: Turn, route?: Route): Promise<readonly Exchange[]>;
  /** The newest request once more, under another number of its attribution or byte for byte. */
  again(route?: Route): Promise<Exchange>;
  /** What it holds, as it stands, once more to the model. */
  resume(answer: readonly AnswerBlock[], stopReason: string): Promise<Exchange>;
  /** A request on this conversation that is no turn of it. */
  aside(prompt: string, more?: Readonly<Record<string, string>>): Promise<Exchange>;
  /** Drops the newest turns. */
  rewind(turns: number): void;
  /** `/compact`: asks for a summary, which then stands for the history. */
  compact(): Promise<Exchange>;
  /** Old tool results give way to a remark, as Claude Code clears them after a pause. */
  clearResults(): void;
  /** All thinking so far, as after a refusal. */
  stripThinking(): void;
  become(change: Partial<Pick<Shape, 'model' | 'effort' | 'sessionId' | 'entries' | 'fields' | 'marks'>>): void;
  /** Another terminal that goes on from here. */
  fork(sessionId: string): Terminal;
}

export interface TerminalOptions extends Partial<Shape> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly form?: Partial<Form>;
  /** Its history was compacted under another id: who goes on with it is refused with or without a proxy. */
  readonly isStale?: boolean;
  /** Answers to requests that went out unchanged: their thinking is stale once the client alters what precedes it. */
  readonly unproxied?: Set<Entry>;
}

const FIRST: Shape = {
  version: '2.1.197',
  sessionId: 'aaaaaaaa-0000-4000-8000-000000000000',
  model: 'claude-opus-5-5',
  effort: 'high',
  ttl: '5m',
  cwd: '/home/ada/app',
  entries: [],
};
export const SUMMARISE = 'CRITICAL: Respond with TEXT ONLY. Do NOT call any tools. Summarise the conversation.';
const CONTINUED = 'This session is being continued from a previous conversation that ran out of context.';
const REMINDER = "<system-reminder>\n# currentDate\nToday's date is 2026-11-01.\n</system-reminder>\n";
const INTERRUPTED = '[Request interrupted by user for tool use]';
const TOOLS_NOTE = 'The following deferred tools are available via ToolSearch:\nWebFetch';
/** Of CLAUDE.md; 2.1.197 says it in the first message, also of a compacted conversation. */
export const INSTRUCTIONS =
  '<system-reminder>\nCodebase and user instructions are shown below. Be sure to adhere to these instructions.\n\nContents of /home/ada/app/CLAUDE.md:\n\nUse tabs.\n</system-reminder>';

export function createTerminal(rig: WireRig, options: TerminalOptions = {}): Terminal {
  const { headers = {}, form = {}, isStale: startsStale = false, unproxied = new Set(), ...given } = options;
  let isStale = startsStale;
  /** The client changed what its own thinking is bound to, and upstream has not accepted it since. */
  let isAltered = false;
  let shape: Shape = { ...FIRST, ...given };
  let nonce = 0;
  let wasRefused = false;
  const said: Said[] = [];

  const hold = (...entries: readonly Entry[]): void => {
    for (const entry of entries) shape = { ...shape, entries: joined(shape.entries, entry) };
  };
  const strip = (): void => {
    shape = { ...shape, entries: shape.entries.map(withoutThinking) };
  };
  const getRequest = (answer: readonly AnswerBlock[], more: Partial<WireRequest> = {}): WireRequest => {
    nonce += 1;
    return { bytes: getBody(shape, { nonce, ...form }), headers: getHeaders(shape, headers), answer, ...more };
  };
  const ask = async (
    answer: readonly AnswerBlock[],
    route: Route,
    more: Partial<WireRequest> = {},
  ): Promise<Exchange> => {
    const { entries } = shape;
    const exchange = await rig.send(getRequest(answer, more), route);
    const thinking = entries.filter((entry) => withoutThinking(entry) !== entry);
    const clientOnly = isStale || !exchange.rewritten || (isAltered && thinking.every((entry) => unproxied.has(entry)));
    const ownFault = exchange.refusal !== null && thinking.length > 0 && clientOnly;
    said.push({ exchange, route, model: shape.model, entries, epochs: rig.epochs(shape.sessionId), ownFault });
    wasRefused = false;
    isAltered &&= exchange.refusal !== null;
    isStale &&= exchange.refusal !== null;
    if (!ownFault) return exchange;
    strip();
    return ask(answer, route, more);
  };

  return {
    get shape() {
      return shape;
    },
    get isStale() {
      return isStale || isAltered;
    },
    get wasRefused() {
      return wasRefused;
    },
    said,
    async ask(turn, route = 'messages') {
      const exchanges: Exchange[] = [];
      hold(promptEntry(shape, turn));
      let open: readonly AnswerBlock[] = [];
      const tell = async (blocks: readonly AnswerBlock[], more?: Partial<WireRequest>): Promise<boolean> => {
        const exchange = await ask([...open, ...blocks], route, more);
        exchanges.push(exchange);
        open = [];
        if (exchange.refusal !== null) return false;
        const held = more?.cut === undefined ? exchange.content : withoutOpen(exchange.content);
        if (held.length === 0) return true;
        const answer: Entry = { role: 'assistant', blocks: held };
        if (!exchange.rewritten) unproxied.add(answer);
        shape = { ...shape, entries: [...shape.entries, answer] };
        return true;
      };
      for (const [index, round] of (turn.rounds ?? []).entries()) {
        const id = `${shape.entries.length}x${index}`;
        if (!(await tell(opening(shape, round, id)))) return exchanges;
        open = round.open === undefined || !mayOpen(shape, round) ? [] : [round.open.result];
        shape = { ...shape, entries: [...shape.entries, ...resultEntries(shape, round, id)] };
      }
      const { pause, ends } = turn;
      if (pause !== undefined) {
        const first = [...thoughts(shape, turn.thinking), pause.call];
        if (!(await tell(first, { stopReason: 'pause_turn' }))) return exchanges;
        open = [pause.result];
      }
      const rest = closing(shape, turn);
      if (ends === undefined) {
        await tell(rest);
        return exchanges;
      }
      const { by, after, says } = ends;
      const isCut = by === 'aborted_by_client' || by === 'cut_by_upstream';
      const isTold = await tell(
        isCut ? rest : withoutOpen(rest.slice(0, after)),
        isCut ? { cut: { by, after } } : { stopReason: by },
      );
      if (isTold && says !== undefined) hold({ role: 'user', blocks: [{ type: 'text', text: says }], notes: [] });
      return exchanges;
    },
    again(route = 'messages') {
      const newest = said.at(-1) as Said;
      return rig.send(newest.exchange.request, route);
    },
    resume: (answer, stopReason) => rig.send(getRequest(answer, { stopReason })),
    async aside(prompt, more = {}) {
      nonce += 1;
      const asked: Entry = { role: 'user', blocks: [{ type: 'text', text: prompt }], notes: [] };
      const bytes = getBody({ ...shape, entries: joined(shape.entries, asked) }, { nonce, aside: true, ...form });
      const answer: AnswerBlock[] = [{ type: 'text', text: 'A few words.' }];
      const hint = { 'x-claude-code-request-class': prompt === SUMMARISE ? 'compaction' : 'auxiliary' };
      const all = { ...headers, ...(isNew(shape) && hint), ...more };
      const exchange = await rig.send({ bytes, headers: getHeaders(shape, all), answer });
      if (exchange.refusal === null || !isStale) return exchange;
      isStale = false;
      wasRefused = true;
      strip();
      return this.aside(prompt, more);
    },
    rewind(turns) {
      const prompts = shape.entries.flatMap((entry, index) => (isPrompt(entry) ? [index] : []));
      const at = prompts[Math.max(1, prompts.length - turns)];
      if (at !== undefined) shape = { ...shape, entries: shape.entries.slice(0, at) };
    },
    async compact() {
      const exchange = await this.aside(SUMMARISE);
      const last = shape.entries.findLast((entry) => entry.role === 'assistant');
      const summary = { type: 'text', text: `${CONTINUED}\nSteps were taken.` };
      // What cites a document of the summarized history would be refused with or without a proxy.
      const isKept = last?.blocks.every((block) => block['type'] !== 'tool_use' && block['citations'] === undefined);
      const kept = last !== undefined && isKept && isWhole(last.blocks) ? [last] : [];
      const notes = kept.length > 0 ? [{ text: TOOLS_NOTE }] : [];
      const blocks = isNew(shape) ? [summary] : [{ type: 'text', text: REMINDER }, summary];
      const first: Entry = { role: 'user', blocks, notes: isNew(shape) ? withEffort(shape, []) : notes };
      shape = { ...shape, entries: [first, ...kept] };
      isAltered = true;
      return exchange;
    },
    clearResults() {
      const old = shape.entries.slice(0, -4);
      shape = { ...shape, entries: [...old.map(withoutResults), ...shape.entries.slice(-4)] };
      isAltered = true;
    },
    stripThinking: strip,
    become(change) {
      isStale ||= 'fields' in change;
      shape = { ...shape, ...change };
    },
    fork: (sessionId) =>
      createTerminal(rig, { ...options, ...shape, sessionId, isStale: isStale || isAltered, unproxied }),
  };
}

/** What the client says in a row is one message where system messages follow one of them. */
function joined(entries: readonly Entry[], entry: Entry): readonly Entry[] {
  const last = entries.at(-1);
  if (last?.role !== 'user' || entry.role !== 'user') return [...entries, entry];
  if (last.notes.length === 0 && entry.blocks.length % 2 === 0) return [...entries, entry];
  const one: Entry = {
    role: 'user',
    blocks: [...last.blocks, ...entry.blocks],
    notes: [...last.notes, ...entry.notes],
  };
  return [...entries.slice(0, -1), one];
}

export function isPrompt(entry: Entry): boolean {
  return entry.role === 'user' && entry.blocks.every((block) => block['type'] !== 'tool_result');
}

function withoutThinking(entry: Entry): Entry {
  const blocks = entry.blocks.filter((block) => !/thinking$/.test(String(block['type'])));
  if (entry.role !== 'assistant' || blocks.length === entry.blocks.length) return entry;
  return { role: 'assistant', blocks: blocks.length > 0 ? blocks : [{ type: 'text', text: '(no content)' }] };
}

function withoutResults(entry: Entry): Entry {
  if (entry.role !== 'user' || isPrompt(entry)) return entry;
  const content = '[Old tool result content cleared]';
  const blocks = entry.blocks.map((block) => (block['type'] === 'tool_result' ? { ...block, content } : block));
  return { ...entry, blocks };
}

function promptEntry(shape: Shape, turn: Turn): Entry {
  // After a compaction the newer client says once more, with the next prompt, what it said with the first.
  const isFirst = isNew(shape) ? !statesTools(shape) : shape.entries.length === 0;
  const context = isNew(shape) ? [INSTRUCTIONS, REMINDER] : [REMINDER];
  const blocks = [
    ...(isFirst ? context.map((text) => ({ type: 'text', text })) : []),
    ...(turn.before ?? []),
    { type: 'text', text: turn.prompt },
  ];
  const first = isNew(shape) ? `Skill: pack\n\n${TOOLS_NOTE}\n\n${environment(shape)}` : TOOLS_NOTE;
  const said = [...(isFirst ? [first] : []), ...(turn.note ? [turn.note] : [])].map((text) => ({ text }));
  return { role: 'user', blocks, notes: withEffort(shape, [...said, ...tokenNotes(shape)]) };
}

function statesTools({ entries }: Shape): boolean {
  return entries.some((entry) => entry.role === 'user' && entry.notes.some(({ text }) => text.includes(TOOLS_NOTE)));
}

/** Of two families the newer client says what is left of the budget, after each message of the user. */
function tokenNotes(shape: Shape): Note[] {
  if (!isNew(shape) || !/opus-4-8|sonnet/.test(shape.model)) return [];
  return [{ text: `<total_tokens>${15_000_000 - shape.entries.length} tokens left</total_tokens>` }];
}

/** With a directive where the effort is another one than the last said: of the last note, or alone. */
function withEffort(shape: Shape, notes: readonly Note[]): readonly Note[] {
  const { effort, entries } = shape;
  if (!isNew(shape) || !/opus-5-5|sonnet-5-5/.test(shape.model)) return notes;
  const said = entries.flatMap((entry) => (entry.role === 'user' ? entry.notes : []));
  const last = said.findLast(({ output_config: config }) => config !== undefined)?.output_config;
  if (last?.['effort'] === effort) return notes;
  return [...notes.slice(0, -1), { text: '', ...notes.at(-1), output_config: { effort } }];
}

function resultEntry(shape: Shape, round: Round, id: string): Entry {
  const blocks = round.calls.map(({ result }, at) => ({
    tool_use_id: `toolu_${id}x${at}`,
    type: 'tool_result',
    content: result,
  }));
  const { how, text = '' } = round.typed ?? {};
  const queued = `The user sent a new message while you were working:\n${text}`;
  const typed = {
    interrupted: [INTERRUPTED, text],
    error: [text],
    queued: [`<system-reminder>\n${queued}\n</system-reminder>`],
    noted: [],
  }[how ?? 'noted'];
  const texts = typed.map((each) => ({ type: 'text', text: each }));
  const said = [...(round.note ? [round.note] : []), ...(how === 'noted' ? [queued] : [])].map((note) => ({
    text: note,
  }));
  const nudge: Note[] =
    isNew(shape) && round.calls.length > 1 ? [{ text: 'Ask at once.', clear_at: 'next_user_message' }] : [];
  return { role: 'user', blocks: [...blocks, ...texts], notes: [...said, ...tokenNotes(shape), ...nudge] };
}

/** One entry, or one for each result, what is said behind the last. */
function resultEntries(shape: Shape, round: Round, id: string): readonly Entry[] {
  const whole = resultEntry(shape, round, id);
  if (round.isSplit !== true || whole.role !== 'user') return [whole];
  const results = whole.blocks.filter((block) => block['type'] === 'tool_result');
  const others = whole.blocks.filter((block) => block['type'] !== 'tool_result');
  const entries = results.map((block): Entry => ({ role: 'user', blocks: [block], notes: [] }));
  if (others.length > 0) entries.push({ role: 'user', blocks: others, notes: [] });
  return [...entries.slice(0, -1), { ...(entries.at(-1) as Entry), notes: whole.notes } as Entry];
}

function opening(shape: Shape, round: Round, id: string): readonly AnswerBlock[] {
  return [
    ...thoughts(shape, round.thinking),
    ...(round.text === undefined ? [] : [{ type: 'text' as const, text: round.text }]),
    ...(round.before ?? []),
    ...(round.open === undefined || !mayOpen(shape, round) ? [] : [round.open.call]),
    ...round.calls.map(({ name, input }, at) => ({
      type: 'tool_use' as const,
      id: `toolu_${id}x${at}`,
      name,
      input,
    })),
  ];
}

function closing(shape: Shape, turn: Turn): readonly AnswerBlock[] {
  const documents = shape.entries.flatMap(({ blocks }) => blocks.filter(({ type }) => type === 'document')).length;
  const citation = { type: 'char_location', cited_text: 'A', document_index: documents - 1 };
  const citations = turn.cites && documents > 0 ? { citations: [citation] } : {};
  return (
    turn.closing?.filter(({ type }) => type !== 'thinking' || thoughts(shape, ['x']).length > 0) ?? [
      ...thoughts(shape, turn.thinking),
      { type: 'text', text: turn.answer ?? 'Done.', ...citations },
    ]
  );
}

/** Without calls of the server's whose result did not arrive. */
function withoutOpen<T extends Json>(blocks: readonly T[]): readonly T[] {
  const answered = new Set(blocks.map((block) => block['tool_use_id']));
  return blocks.filter(({ type, id }) => !/^(server|mcp)_tool_use$/.test(String(type)) || answered.has(id));
}

/** Each result of a server's tool has its call, and each call its result. */
function isWhole(blocks: readonly Json[]): boolean {
  const [calls, results] = [blocks.map(({ id }) => id), blocks.map((block) => block['tool_use_id'])];
  return [...calls, ...results].every((id) => id === undefined || (calls.includes(id) && results.includes(id)));
}

/** Beside an open call of the server's there may be results only. */
function mayOpen(shape: Shape, round: Round): boolean {
  const { notes = [], blocks } = { notes: [], ...resultEntry(shape, round, '') };
  return notes.length === 0 && blocks.every(({ type }) => type === 'tool_result');
}

/** With manual thinking the model always thinks. */
function thoughts(shape: Shape, texts: readonly string[] = []): readonly AnswerBlock[] {
  const isOff = Object(shape.fields?.['thinking']).type === 'disabled';
  if (isOff) return [];
  const manual = findModelTraits(shape.model).thinking === 'manual';
  const said = texts.length === 0 && manual ? ['I think.'] : texts;
  return said.map((thinking) => ({ type: 'thinking', thinking }));
}
