import { readdir } from 'node:fs/promises';
import path from 'node:path';
import YAML from 'yaml';
import { z } from 'zod';
import { type Subscription, Subscriptions, subscriptionSchema } from '../../common/config.ts';
import { readFileIfPresent, writePrivateFile } from '../../common/files.ts';
import { LruMap } from '../../common/map.ts';
import type { HomePaths } from '../../common/paths.ts';
import type { EffectivePolicy } from '../../common/policy.ts';
import { isRecord, parseJson, sha256, toRecord } from '../../common/text.ts';
import type { Library } from '../../memory/index.ts';
import type { GivenSlice, SubagentSource } from '../../proxy/index.ts';

/** An agent definition whose front matter subscribes it to facts. */
export interface SubscribedAgent extends Agent {
  readonly filter: Subscription;
}

type Agent = NonNullable<ReturnType<typeof parseAgent>>;

/** What a subagent may see of facts, and why. */
type Subscribed = Omit<GivenSlice, 'text'> & { readonly filter: Subscription };

const AGENTS = path.join('.claude', 'agents');
const FRONT = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---\r?\n/;
const CLASSES = ['permanent', 'long_term', 'session', 'ephemeral'];
/** On malformed front matter the parser needs quadratic time. */
const MOST = { files: 200, chars: 200_000, front: 16_000, given: 200 } as const;
/** A shorter prompt may stand in the system prompt of another agent. */
const PROMPT_CHARS = 20;

/** By file, the digest of the text that the user allowed. A damaged file allows nothing. */
const Consents = z.record(z.string(), z.string()).catch({});

interface Parts {
  readonly paths: Pick<HomePaths, 'subagentConsentsFile'>;
  readonly claudeDir: string;
  /** `facts.subscriptions`; '' for none. */
  readonly configured: string;
}

export type Subagents = ReturnType<typeof createSubagents>;

/** Which subagents see facts: by configuration, or by their definition; a project's own one only after consent. */
export function createSubagents({ paths, claudeDir, configured }: Parts) {
  const subscriptions = configured === '' ? {} : Subscriptions.parse(parseJson(configured));
  const given = new LruMap<string, GivenSlice>(MOST.given);

  async function chooseAgents(projectDir: string): Promise<SubscribedAgent[]> {
    const dirs = [path.join(claudeDir, 'agents'), path.join(projectDir, AGENTS)] as const;
    const [own, project] = await Promise.all([readAgents(dirs[0]), readAgents(dirs[1])]);
    const consents = await readConsents(paths);
    // Claude Code takes the project's definition of a name, allowed or not.
    const names = new Set(project.map(({ name }) => name));
    const allowed = project.filter(
      ({ file, text }) => Object.hasOwn(consents, file) && consents[file] === sha256(text),
    );
    return [...allowed, ...own.filter(({ name }) => !names.has(name))].filter(isSubscribed);
  }

  function subscribed(name: string, agents: readonly SubscribedAgent[]): Subscribed | null {
    const filter = Object.hasOwn(subscriptions, name) ? subscriptions[name] : undefined;
    if (filter !== undefined) return { agent: name, filter, because: 'facts.subscriptions' };
    const agent = agents.find((each) => each.name === name);
    return agent === undefined ? null : { agent: name, filter: agent.filter, because: agent.file };
  }

  return {
    /** Null where the type is subscribed to nothing. */
    ofType: async (type: string, projectDir: string): Promise<Subscribed | null> =>
      subscribed(type, Object.hasOwn(subscriptions, type) ? [] : await chooseAgents(projectDir)),
    /** By its system prompt, which has that of its definition. */
    async ofPrompt(system: string, projectDir: string): Promise<Subscribed | null> {
      const agents = await chooseAgents(projectDir);
      const fits = agents.filter(({ prompt }) => prompt.length >= PROMPT_CHARS && system.includes(prompt));
      const [agent] = fits.toSorted((one, other) => other.prompt.length - one.prompt.length);
      return agent === undefined ? null : subscribed(agent.name, agents);
    },
    /** Remembers what a hook gave, for explanations. */
    note: (agentId: string, slice: GivenSlice) => void given.set(agentId, slice),
    givenTo: (agentId: string): GivenSlice | null => given.get(agentId) ?? null,
  };
}

/** The facts of subagents without a hook, by their system prompt. */
export function createSubagentSource(
  subagents: Subagents,
  library: Pick<Library, 'subscribedFacts'>,
  policy: { of(projectDir: string): Pick<EffectivePolicy, 'scope'> },
): Pick<SubagentSource, 'slice'> {
  return {
    async slice({ sessionId, projectDir, system }) {
      if (projectDir === null || policy.of(projectDir).scope === 'session') return null;
      const subagent = await subagents.ofPrompt(system, projectDir);
      if (subagent === null) return null;
      const { agent, because, filter } = subagent;
      const text = await library.subscribedFacts({ ...filter, sessionId }, projectDir);
      return text === '' ? null : { agent, because, text };
    },
  };
}

export async function projectAgents(projectDir: string): Promise<SubscribedAgent[]> {
  return (await readAgents(path.join(projectDir, AGENTS))).filter(isSubscribed);
}

/** Lets these definitions take effect, as their texts are now. */
export async function allowAgents(paths: Parts['paths'], agents: readonly SubscribedAgent[]): Promise<void> {
  const fresh = Object.fromEntries(agents.map(({ file, text }) => [file, sha256(text)]));
  const consents = { ...(await readConsents(paths)), ...fresh };
  await writePrivateFile(paths.subagentConsentsFile, `${JSON.stringify(consents, null, 2)}\n`);
}

async function readAgents(dir: string): Promise<Agent[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.md')).slice(0, MOST.files);
  const agents = await Promise.all(
    files.map(async ({ name }) => {
      const file = path.join(dir, name);
      const text = await readFileIfPresent(file).catch(() => null);
      return text === null || text.length > MOST.chars ? null : parseAgent(file, text);
    }),
  );
  return agents.filter((agent) => agent !== null);
}

const isSubscribed = (agent: Agent): agent is SubscribedAgent => agent.filter !== null;

/** A definition; its `prompt` is the system prompt. Null for what is none. */
export function parseAgent(file: string, text: string) {
  const [whole = '', yaml = ''] = FRONT.exec(text) ?? [];
  if (yaml.length > MOST.front) return null;
  try {
    const { name, memory } = toRecord(YAML.parse(yaml, { maxAliasCount: 0, prettyErrors: false }));
    if (typeof name !== 'string' || name === '') return null;
    return { name, file, text, prompt: text.slice(whole.length).trim(), filter: readFilter(memory) };
  } catch {
    return null;
  }
}

/** `{ prefixes, classes }`, or a list of both; a single word is Claude Code's own setting. */
function readFilter(memory: unknown): Subscription | null {
  const isClass = (item: unknown): boolean => CLASSES.includes(String(item));
  const listed = Array.isArray(memory)
    ? { prefixes: memory.filter((item) => !isClass(item)), classes: memory.filter(isClass) }
    : memory;
  const read = isRecord(listed) ? subscriptionSchema.safeParse(listed) : null;
  return read?.success ? read.data : null;
}

async function readConsents({ subagentConsentsFile }: Parts['paths']): Promise<z.infer<typeof Consents>> {
  return Consents.parse(parseJson((await readFileIfPresent(subagentConsentsFile)) ?? ''));
}
