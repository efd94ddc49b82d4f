import { memoize } from '../../common/map.ts';
import { findBlocks, isRecord, parseJson, toText } from '../../common/text.ts';

/** One message as the API takes it, without thinking. The same object in every request that sends it. */
export interface PastMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly Json[];
}

export interface PastRequest {
  /** `compaction` asks for the summary of everything before it. */
  readonly kind: 'main' | 'compaction';
  /** Time of the newest message that it sends. */
  readonly atMs: number;
  /** Time of the last block of its answer; `atMs` for a compaction. */
  readonly answeredAtMs: number;
  readonly model: string;
  /** Id of the answer, which a copied line repeats in another file; '' for a compaction. */
  readonly answerId: string;
  readonly messages: readonly PastMessage[];
  /** Null for a compaction. */
  readonly answer: PastMessage | null;
  /** What the API counted in it; 0 where the transcript does not say. */
  readonly promptTokens: number;
  /** Lifetime of the prompt cache that it wrote; null where the transcript does not say. */
  readonly ttl: '5m' | '1h' | null;
}

export type PastConversation = ReturnType<typeof describeChain>;

export type Json = Readonly<Record<string, unknown>>;

/** One step of the conversation: a prompt, all results for one answer, or one answer. */
interface Step {
  readonly role: PastMessage['role'];
  readonly parent: Step | null;
  readonly blocks: Json[];
  /** Results that answer this answer's calls. */
  results: Step | null;
  atMs: number;
}

interface Answer {
  readonly step: Step;
  readonly id: string;
  readonly model: string;
  readonly usage: Json;
  /** Time of its last block. */
  endMs: number;
}

interface Chain {
  /** '' for the session itself, else the subagent's. */
  readonly agentId: string;
  readonly steps: Map<string, Step | null>;
  readonly answers: Map<string, Answer>;
  /** Requests in order: an answer, or the summary of a compaction and the step before it. */
  readonly order: (Answer | { readonly summary: Step; readonly before: Step })[];
  readonly seen: Set<string>;
  last: Step | null;
  projectDir: string;
}

/**
 * The requests that Claude Code sent in one session, from the lines of its transcript. Lines are joined by `parentUuid`:
 * a rewind branches, and a compaction starts a new chain with the summary.
 */
export function createRequestReader(sessionId: string) {
  const chains = new Map<string, Chain>();

  function getChain(agentId: string): Chain {
    const agentChain = chains.get(agentId);
    if (agentChain !== undefined) return agentChain;
    const [steps, answers, seen] = [new Map<string, Step | null>(), new Map<string, Answer>(), new Set<string>()];
    const chain: Chain = { agentId, steps, answers, order: [], seen, last: null, projectDir: '' };
    chains.set(agentId, chain);
    return chain;
  }

  return {
    /** @param agentId  subagent whose file the line is from */
    line(text: string, agentId = ''): void {
      const line = parseJson(text);
      if (!isRecord(line)) return;
      const { data } = line;
      if (line['type'] === 'progress' && isRecord(data) && data['type'] === 'agent_progress') {
        if (isRecord(data['message'])) enterLine(getChain(toText(data['agentId'])), data['message']);
      }
      const isSide = line['isSidechain'] === true;
      enterLine(getChain(agentId || (isSide ? toText(line['agentId']) || 'side' : '')), line);
    },
    /** The session first, then its subagents. */
    conversations(): PastConversation[] {
      const all = [...chains.values()].sort((a, b) => Number(a.agentId !== '') - Number(b.agentId !== ''));
      return all.map((chain) => describeChain(sessionId, chain)).filter(({ requests }) => requests.length > 0);
    },
  };
}

function enterLine(chain: Chain, line: Json): void {
  const uuid = toText(line['uuid']);
  if (uuid !== '' && chain.seen.has(uuid)) return;
  chain.seen.add(uuid);
  chain.projectDir ||= toText(line['cwd']);
  const parent = getParent(chain, line);
  const step = isSent(line) ? enterMessage(chain, line, parent) : enterAttachment(line, parent);
  if (step !== null) chain.last = step;
  if (uuid !== '') chain.steps.set(uuid, step ?? parent);
}

/** Null for the start of a chain. A parent that the file lacks is the line before. */
function getParent({ steps, last }: Chain, line: Json): Step | null {
  const parent = line['parentUuid'];
  if (parent === null) return null;
  const step = steps.get(toText(parent));
  return step === undefined ? last : step;
}

/** False for what the client wrote for itself. */
function isSent({ type, message, isApiErrorMessage }: Json): boolean {
  if (isApiErrorMessage === true || !isRecord(message) || message['model'] === '<synthetic>') return false;
  return (type === 'user' || type === 'assistant') && message['role'] === type;
}

function enterMessage(chain: Chain, line: Json, parent: Step | null): Step {
  const message = line['message'] as Json;
  const atMs = Date.parse(toText(line['timestamp'])) || (parent?.atMs ?? chain.last?.atMs ?? 0);
  const blocks = findBlocks(message['content']).filter(({ type }) => !toText(type).endsWith('thinking'));
  if (message['role'] === 'assistant') return enterAnswer(chain, message, { blocks, parent, atMs });
  const answerStep = blocks.some(({ type }) => type === 'tool_result') ? getAnswer(parent) : null;
  // Results of parallel calls are on lines of their own.
  if (answerStep?.results != null) {
    answerStep.results.blocks.push(...blocks);
    answerStep.results.atMs = Math.max(answerStep.results.atMs, atMs);
    return answerStep.results;
  }
  const isSummary = line['isCompactSummary'] === true;
  const step: Step = { role: 'user', parent: answerStep ?? parent, blocks, results: null, atMs };
  if (answerStep !== null) answerStep.results = step;
  if (isSummary && chain.last !== null) chain.order.push({ summary: step, before: chain.last });
  return step;
}

/** Blocks of one answer are on lines of their own, and results of its first calls may come between them. */
function enterAnswer(chain: Chain, message: Json, { blocks, parent, atMs }: Pick<Step, 'blocks' | 'parent' | 'atMs'>) {
  const id = toText(message['id']);
  const earlierAnswer = chain.answers.get(id);
  if (id !== '' && earlierAnswer !== undefined) {
    earlierAnswer.step.blocks.push(...blocks);
    earlierAnswer.endMs = Math.max(earlierAnswer.endMs, atMs);
    return earlierAnswer.step.results ?? earlierAnswer.step;
  }
  const step: Step = { role: 'assistant', parent, blocks, results: null, atMs };
  const usage = isRecord(message['usage']) ? message['usage'] : {};
  const answer = { step, id, model: toText(message['model']), usage, endMs: atMs };
  chain.answers.set(id, answer);
  chain.order.push(answer);
  return step;
}

/**
 * A prompt typed while Claude was busy is sent with the next results. So are the client's notes, where the version writes
 * them as sent; those for the system role are taken for blocks of the user's message.
 */
function enterAttachment({ type, attachment, rendered, timestamp }: Json, parent: Step | null): Step | null {
  if (type !== 'attachment' || !isRecord(attachment)) return null;
  const isQueued = attachment['type'] === 'queued_command';
  const contents = isQueued ? [attachment['prompt']] : findBlocks(rendered).map(({ content }) => content);
  const blocks = contents.flatMap(findBlocks);
  if (blocks.length === 0) return null;
  const atMs = Date.parse(toText(timestamp)) || (parent?.atMs ?? 0);
  return { role: 'user', parent, blocks, results: null, atMs };
}

function getAnswer(step: Step | null): Step | null {
  let at = step;
  while (at !== null && at.role === 'user') at = at.parent;
  return at;
}

const SUMMARY_PROMPT = {
  type: 'text',
  text: 'CRITICAL: Respond with TEXT ONLY. Do NOT call any tools. Your task is to create a detailed summary of the conversation so far.',
};

/** `rewinds` are requests that continue from an earlier place than the one before. */
function describeChain(sessionId: string, { agentId, order, projectDir }: Chain) {
  const build = createMessageBuilder();
  const requests: PastRequest[] = [];
  let [rewinds, compactions, atMs, model] = [0, 0, 0, ''];
  let previous: readonly PastMessage[] = [];
  for (const entry of order) {
    if ('summary' in entry) {
      compactions += 1;
      const messages = build(entry.before);
      const lastPrompt = messages.at(-1)?.role === 'user' ? messages.at(-1) : undefined;
      const prompt: PastMessage = { role: 'user', content: [...(lastPrompt?.content ?? []), SUMMARY_PROMPT] };
      const sent = [...(lastPrompt === undefined ? messages : messages.slice(0, -1)), prompt];
      atMs = Math.max(atMs, entry.before.atMs);
      const unknown = { answerId: '', answer: null, promptTokens: 0, ttl: requests.at(-1)?.ttl ?? null };
      requests.push({ kind: 'compaction', atMs, answeredAtMs: atMs, model, messages: sent, ...unknown });
      previous = [];
      continue;
    }
    const { step, id, usage, endMs } = entry;
    const messages = step.parent === null ? [] : build(step.parent);
    const answer = build.own(step);
    if (messages.at(-1)?.role !== 'user' || answer === null) continue;
    // Results and prompts may join the newest message later.
    if (!previous.every(({ content }, at) => content.every((block) => messages[at]?.content.includes(block))))
      rewinds += 1;
    previous = messages;
    atMs = Math.max(atMs, step.parent?.atMs ?? 0);
    model = entry.model;
    const times = { atMs, answeredAtMs: Math.max(atMs, endMs) };
    requests.push({ kind: 'main', ...times, model, answerId: id, messages, answer, ...readUsage(usage) });
  }
  return { sessionId, agentId, projectDir, requests, rewinds, compactions };
}

function readUsage(usage: Json): Pick<PastRequest, 'promptTokens' | 'ttl'> {
  const created = isRecord(usage['cache_creation']) ? usage['cache_creation'] : {};
  const kinds = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'];
  const promptTokens = kinds.reduce((sum, kind) => sum + getNumber(usage[kind]), 0);
  const hour = getNumber(created['ephemeral_1h_input_tokens']) > 0;
  const minutes = getNumber(created['ephemeral_5m_input_tokens']) > 0;
  return { promptTokens, ttl: hour ? '1h' : minutes ? '5m' : null };
}

/** Builds the history that ends with a step; consecutive steps of one role are one message. */
function createMessageBuilder() {
  const merged = new Map<string, PastMessage>();
  const ids = new Map<Step, number>();

  const ownMessage = memoize((step: Step): PastMessage | null => {
    const content = sendableBlocks(step);
    return content.length === 0 ? null : { role: step.role, content };
  });

  function getId(step: Step): number {
    const id = ids.get(step) ?? ids.size;
    ids.set(step, id);
    return id;
  }

  /** Adjacent steps of one role, oldest first. */
  function mergeSteps(group: readonly Step[]): PastMessage {
    const [first] = group as [Step];
    if (group.length === 1) return ownMessage(first) as PastMessage;
    const key = group.map(getId).join(' ');
    const content = group.flatMap((step) => ownMessage(step)?.content ?? []);
    const results = content.filter(({ type }) => type === 'tool_result');
    const message = merged.get(key) ?? {
      role: first.role,
      content: [...results, ...content.filter(({ type }) => type !== 'tool_result')],
    };
    merged.set(key, message);
    return message;
  }

  const build = memoize((step: Step): readonly PastMessage[] => {
    const path: Step[] = [];
    for (let at: Step | null = step; at !== null; at = at.parent) {
      path.push(at);
      // A prompt may follow a call whose results came later.
      const { parent }: Step = at;
      if (parent?.results != null && parent.results !== at) path.push(parent.results);
    }
    const groups: Step[][] = [];
    for (const each of path.filter((one) => ownMessage(one) !== null).reverse()) {
      const group = groups.at(-1);
      if (group?.[0]?.role === each.role) group.push(each);
      else groups.push([each]);
    }
    return groups.map(mergeSteps);
  });

  return Object.assign(build, { own: ownMessage });
}

/** Without blank texts, and without calls and results that lack the other. */
function sendableBlocks({ role, parent, blocks, results }: Step): Json[] {
  const ids = (all: readonly Json[], type: string, key: string): Set<unknown> =>
    new Set(all.flatMap((block) => (block['type'] === type ? [block[key]] : [])));
  const answered = ids(results?.blocks ?? [], 'tool_result', 'tool_use_id');
  const called = ids(role === 'user' ? (parent?.blocks ?? []) : [], 'tool_use', 'id');
  const seen = new Set<unknown>();
  return blocks.filter((block) => {
    if (block['type'] === 'text') return toText(block['text']).trim() !== '';
    if (block['type'] === 'tool_use') return answered.has(block['id']);
    if (block['type'] !== 'tool_result') return true;
    const id = block['tool_use_id'];
    const isFirst = called.has(id) && !seen.has(id);
    seen.add(id);
    return isFirst;
  });
}

const getNumber = (value: unknown): number => (typeof value === 'number' ? value : 0);
