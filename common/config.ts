import { z } from 'zod';
import { CometError, type ErrorCode } from './errors.ts';
import { readSmallFile, writePrivateFile } from './files.ts';
import { getHome, homePaths, resolveDirectory } from './paths.ts';
import { SCOPES } from './policy.ts';
import { isRecord, jsonOf, parseJson, unquoted } from './text.ts';
import { PRESETS as COMPACTION_PRESETS, ORIGINS } from './turn.ts';

const count = (fallback: number) => z.int().nonnegative().default(fallback);
const share = (fallback: number) => z.number().min(0).default(fallback);
const positive = (fallback: number) => z.int().positive().default(fallback);

const within = (least: number, most: number, fallback: number) => z.int().min(least).max(most).default(fallback);
const text = (fallback: string) => z.string().default(fallback);
const name = (fallback: string) => z.string().min(1).default(fallback);
const choice = <const T extends string>(values: readonly T[], fallback: NoInfer<T>) =>
  z.enum(values).default(fallback as never);
/** Absent means that every key below has its default. */
const section = <T extends z.ZodRawShape>(shape: T) => z.strictObject(shape).prefault({} as never);

/** Of facts: which a type of subagent gets. */
export const subscriptionSchema = z.strictObject({
  prefixes: z.array(z.string().min(1)).default([]),
  classes: z.array(z.enum(['permanent', 'long_term', 'session', 'ephemeral'])).default([]),
});
export type Subscription = z.infer<typeof subscriptionSchema>;
/** By type of subagent. */
export const Subscriptions = z.record(z.string(), subscriptionSchema);

/** An object of the file is kept as its text, as the variable has it. */
const subscriptions = z
  .preprocess(
    (value) => (isRecord(value) ? JSON.stringify(value) : value),
    z.string().refine((text) => text === '' || Subscriptions.safeParse(parseJson(text)).success, {
      message: 'expected {"<type>": {"prefixes": ["Project.Convention."], "classes": []}}',
    }),
  )
  .default('');

const upstreamOrigin = z
  .string()
  .refine(isUpstreamOrigin, 'expected an https:// origin (http:// only for 127.0.0.1, ::1 or localhost)');

const endpointUrl = z
  .string()
  .refine(isEndpointUrl, 'expected an https:// address without user, query or fragment (http:// only for loopback)');

const upstreamProxy = z
  .string()
  .refine(
    (text) => text === '' || text === 'off' || (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)),
    'expected the http:// or https:// address of a proxy, or off',
  );

const apiKey = {
  keyEnv: text('').describe(
    'environment variable that holds the API key; empty: OPENAI_API_KEY for api.openai.com, else none',
  ),
  keyCommand: text('').describe(
    'shell command that prints the API key, run in your home directory; takes precedence over keyEnv',
  ),
};

/** The one schema: defaults, types, help, `comet-cc config` and `docs/CONFIG.md` come from it. */
export const Config = z.strictObject({
  port: within(0, 65_535, 8443).describe('port of the proxy on loopback; 0 picks a free one'),
  upstream: upstreamOrigin.default('https://api.anthropic.com').describe('origin that requests are forwarded to'),
  upstreamCa: text('').describe('PEM file with an extra CA to trust for the upstream'),
  upstreamProxy: upstreamProxy
    .default('')
    .describe('HTTP proxy between comet-cc and the upstream; off: none, empty: HTTPS_PROXY or HTTP_PROXY'),
  holdMs: count(2_000).describe(
    'how long a new connection waits for an engine that is silent, and at least for one that starts (up to 15 s); then it bypasses memory',
  ),
  startMs: positive(15_000).describe('how long start waits for a healthy engine before it fails'),
  claudeBin: name('claude').describe('Claude Code: a name on PATH or a path'),
  llm: choice(['claude', 'openai', 'local', 'off'], 'claude').describe(
    'what summarizes turns: claude -p, an endpoint (openai), rules (local), or rules when a session closes or flush asks (off)',
  ),
  ui: section({
    enabled: choice(['auto', 'on', 'off'], 'auto').describe(
      'whether the dashboard listens; auto: once comet-cc ui was used',
    ),
    port: within(0, 65_535, 8444).describe('its port on loopback; the next free one when taken'),
  }),
  logLevel: choice(['debug', 'info', 'warn', 'error'], 'info').describe('lowest level that is logged'),
  preset: choice(['', ...COMPACTION_PRESETS], '').describe(
    'when turns are summarized: aggressive: sooner (load 3, 5 turns), gentle: later (load 5, 15 turns)',
  ),
  models: section({
    sensor: text('haiku').describe('model that detects topic shifts'),
    summarizer: text('sonnet').describe('model that summarizes turns'),
    detail: text('haiku').describe('model that writes detailed summaries'),
    bundle: text('haiku').describe('model that writes detailed summaries of finished tool calls'),
    sensorTimeoutMs: count(30_000).describe('timeout of a call that detects topic shifts'),
    summarizerTimeoutMs: count(180_000).describe('timeout of a call that summarizes turns'),
    detailTimeoutMs: count(60_000).describe('timeout of a call that writes a detailed summary'),
    bundleTimeoutMs: count(120_000).describe('timeout of a call that writes a detailed summary of tool calls'),
    maxChildren: positive(2).describe('concurrent claude -p processes'),
    dailyTokens: count(500_000).describe('tokens that memory may use per day'),
    sessionTokens: count(200_000).describe('tokens that memory may use for one session; 0: no limit'),
    costShare: share(0.01).describe(
      "share by which recent sessions may cost more with memory's calls than without comet-cc; calls wait beyond it",
    ),
    maxUtilization: z
      .number()
      .min(0)
      .max(1)
      .default(0.8)
      .describe('share of your usage limits above which memory makes no calls'),
  }),
  openai: section({
    provider: choice(['', 'anthropic', 'openai', 'google', 'ollama', 'vllm'], '').describe(
      'sets the keys below that are not set, for llm: openai; a model named provider/model chooses it too',
    ),
    baseUrl: endpointUrl
      .default('https://api.openai.com/v1')
      .describe('OpenAI-compatible endpoint for llm: openai, for example http://127.0.0.1:11434/v1'),
    model: name('gpt').describe(
      'model there that summarizes turns: its name, provider/model, or sonnet, opus, haiku, gpt, mini, codex, flash, pro',
    ),
    sensorModel: text('').describe('model there that detects topic shifts; empty: the same'),
    ...apiKey,
    contextTokens: z.int().min(4_096).default(128_000).describe('context window of the model; prompts stay below it'),
  }),
  embedder: z
    .preprocess(
      (value) => (['hash', 'e5', 'minilm'].includes(String(value)) ? 'static' : value),
      z.enum(['static', 'endpoint']),
    )
    .default('static')
    .describe(
      'what turns text into vectors: the built-in table, or a model behind `embedding.baseUrl` (docs/EMBEDDERS.md)',
    ),
  embedding: section({
    baseUrl: endpointUrl
      .default('http://127.0.0.1:11434/api')
      .describe('endpoint for embedder: endpoint; OpenAI-compatible (…/v1) or Ollama (…/api)'),
    model: name('bge-m3').describe('embedding model there'),
    ...apiKey,
    timeoutMs: positive(20_000).describe('timeout of a request that embeds documents'),
    queryMs: positive(100).describe('timeout of a request that embeds a query; then only words are searched'),
  }),
  rerank: section({
    mode: choice(['off', 'search', 'always'], 'off').describe(
      'what an endpoint reranks; search: results of searches, always: those for prompts too',
    ),
    baseUrl: endpointUrl
      .default('http://127.0.0.1:8012/v1')
      .describe("endpoint with Cohere's …/rerank: llama.cpp, vLLM, Jina, Cohere"),
    model: name('bge-reranker-v2-m3').describe('reranking model there'),
    ...apiKey,
    timeoutMs: positive(800).describe('timeout of a request; then results keep their order'),
    candidates: z.int().min(2).default(40).describe('memories that are reranked'),
  }),
  compaction: section({
    minL1Buffer: count(3).describe('turns before a topic shift or a high load triggers a summary'),
    maxL1Buffer: count(10).describe('turns that always trigger a summary'),
    loadThreshold: count(4).describe('cognitive load (1 to 5) that triggers a summary'),
    idleMs: count(600_000).describe('idle time after which the remaining turns of a session are summarized'),
  }),
  dream: section({
    idleMinutes: count(30).describe('idle time after which memory is consolidated; 0: only by comet-cc dream'),
    at: z
      .string()
      .regex(/^(?:@[a-z]+|[\w*/,#?-]+(?: [\w*/,#?-]+){4})?$/, 'expected a cron form, as 0 3 * * *')
      .default('0 3 * * *')
      .describe('when the nightly pass runs and writes the brief (cron form, local time); empty: never'),
    modelCalls: count(20).describe('model calls per consolidation'),
    tokens: count(50_000).describe('tokens of model calls per consolidation; the rest is left to the next'),
  }),
  library: section({
    dir: text('').describe('folder of pages, tasks and inbox, relative to the home; empty: library; moves no files'),
  }),
  facts: section({
    tokens: within(0, 2_000, 300).describe(
      'tokens of facts in the system block, in a prompt, and for a subagent; 0: none of them',
    ),
    subscriptions: subscriptions.describe(
      'facts that subagents get at their start, by type: {"<type>": {"prefixes": ["Project."], "classes": []}}',
    ),
    similarity: share(1).describe('below 1, values that are this similar count as the same (0.8 joins paraphrases)'),
    compare: choice(['words', 'meaning'], 'words').describe(
      'what similarity compares: the words of two values, or their vectors by the embedder',
    ),
  }),
  tasks: section({
    act: choice(['off', 'on'], 'off').describe('on: a due task of mode review asks the model once, without tools'),
    quietHours: z
      .string()
      .regex(/^(?:(?:[01]?\d|2[0-3])-(?:[01]?\d|2[0-3]))?$/, 'expected hours, as 22-7')
      .default('22-7')
      .describe('hours without desktop notifications; empty: none'),
  }),
  trim: section({
    mode: choice(['auto', 'aggressive', 'gentle', 'off'], 'auto').describe(
      'auto: trim when it saves cost, aggressive: whenever possible, gentle: later and less, off: never',
    ),
    deadlineMs: positive(400).describe('time to rewrite a request; then it is sent with the previous plan'),
    triggerTokens: count(10_000).describe('tokens of history above which a trim is considered'),
    keepTurns: within(0, 20, 1).describe('newest complete turns that are never trimmed'),
    keepTokens: count(3_000).describe('newest tokens that are never trimmed'),
    targetTokens: count(0).describe('tokens above which a request is trimmed regardless of cost; 0: never'),
    keepRounds: z.int().min(1).default(8).describe('newest tool rounds of the current turn that are never trimmed'),
    keepRoundTokens: count(4_000).describe('newest tokens of those rounds that are never trimmed'),
    minDropShare: share(0.2).describe('smallest share of the history that a trim must drop'),
    lossShare: share(0.02).describe(
      'share of its cost without comet-cc that a session may be behind after a trim, in a tool loop one request later; 1: no limit',
    ),
    pressureShare: share(0.8).describe("share of the model's context window above which a trim is immediate"),
  }),
  ledger: section({
    tolerance: share(0.05).describe('share of the cost of a conversation that memory may add'),
    credit: count(10_000).describe('cost that memory may always add to a conversation, in uncached input tokens'),
    longestHorizon: positive(60).describe('requests within which a trim must pay for itself'),
    receipts: count(200).describe('newest requests that comet-cc explain can show'),
  }),
  inject: section({
    // Homes of an earlier version have `hook`.
    retrieval: z
      .preprocess(
        (value) => (value === 'hook' ? 'auto' : value),
        z.enum(['auto', 'system-message', 'user-block', 'system-field', 'off']),
      )
      .default('auto')
      .describe('where recalled memories go; auto: system messages where the model takes them, else prompts'),
    retrievalTokens: count(600).describe('tokens that one recall may insert'),
    systemTokens: count(900).describe('tokens of the system block without the library'),
    libraryTokens: within(0, 4_000, 1_500).describe(
      'tokens of the library in the system block: profile, active tasks, index of pages; 0: none of it',
    ),
    costShare: share(0.0125).describe(
      'share of the cost of a session that memory may add before a trim pays for it; the rest of its text waits',
    ),
    leastTokens: count(300).describe(
      'tokens of memory that a session may always carry, and the most that one prompt adds before a trim pays for it',
    ),
    handoffNodes: count(20).describe('important memories of other sessions that a session starts with'),
    preambleTokens: count(2_000).describe(
      'tokens of the memory preamble; decisions, open items, values and quotes may add to it',
    ),
  }),
  share: section({
    url: text('').describe(
      'where memory is shared, s3://bucket/folder, gs://, az://, db:// or a folder; empty: nowhere; comet-cc share init sets it',
    ),
    scope: choice(['me', 'team'], 'me').describe('me: machines of yours get everything; team: named projects only'),
    projects: text('').describe('projects that are shared, as host/owner/repo, with commas; empty with scope me: all'),
    trust: text('').describe(
      'ids of teammates’ machines whose memories count as what Claude said; comet-cc share trust',
    ),
    name: text('').describe('what this machine, or you, are called by the others'),
    raw: choice(['off', 'on'], 'off').describe('on: with scope me, verbatim turns leave too'),
    intervalMinutes: count(5).describe('how often memory is exchanged in the background; 0: only by comet-cc share'),
  }),
  recall: section({
    scope: choice(SCOPES, 'project').describe('whose memories are recalled'),
    preset: choice(['own', 'comis'], 'own').describe(
      'comis: the values of Comis for keys below that are not set (docs/decisions/0037-comis-preset.md)',
    ),
    maxResults: positive(8).describe('memories recalled per prompt'),
    deadlineMs: count(150).describe('timeout of a recall; then the prompt is sent without it'),
    minCoverage: share(0.55).describe(
      'share of the terms of a prompt, by rarity, that a turn must contain; less where its vector is near that of the prompt, more where not',
    ),
    minSimilarity: share(0.3).describe('similarity below which a search drops memories without a common word'),
    minScore: share(0.02).describe('score (0 to 1) below which memories are dropped'),
    maxContextChars: count(5_250).describe('characters that one recall may return; lines are dropped whole'),
    passiveLines: count(20).describe('memories that are always shown'),
    passiveTokens: count(570).describe('tokens of the memories that are always shown'),
    leastOrigin: choice(ORIGINS, 'external').describe('least trusted origin that is recalled'),
    fusion: choice(['score', 'rrf', 'comet'], 'score').describe(
      'how lanes are fused: by score, by reciprocal rank (RRF), or as CoMeT does',
    ),
    rrfK: positive(60).describe('k of reciprocal rank fusion'),
    comet: section({
      rrfK: positive(5).describe('k of its reciprocal ranks'),
      alpha: share(0.5).describe('weight of summaries; triggers get the rest'),
      rawWeight: share(0.2).describe('weight of the full text of turns'),
    }),
    weights: section({
      raw: share(1).describe('full text of turns'),
      meaning: share(3).describe('vector similarity of turns'),
      entity: share(0).describe('identifiers, paths and names'),
      before: share(0.4).describe('share of the score of the turn before'),
      after: share(0.4).describe('share of the score of the turn after'),
      window: share(1.5).describe('full text of the surrounding turns'),
      date: share(2.5).describe('turns of a date that the query names'),
      when: share(1).describe('turns that name a time when the query asks for one'),
      fact: share(0.6).describe('full text of facts'),
      factMeaning: share(0.7).describe('vector similarity of facts'),
      trigger: share(0).describe('full text of triggers'),
    }),
    boosts: section({
      recency: share(0).describe('bonus for recent memories'),
      temporal: share(0).describe('bonus for memories of a date that the query names'),
      proof: share(0).describe('bonus for memories that were recalled before'),
      trust: share(0).describe('bonus for a trusted origin'),
      project: share(0).describe('bonus for the same project, with scope all'),
    }),
  }),
});

export type Config = z.infer<typeof Config>;

function isUpstreamOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  return url.origin === text.replace(/\/$/, '') && isSafeTransport(url);
}

function isEndpointUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  return isSafeTransport(url) && url.username + url.password === '' && !/[?#]/.test(text);
}

function isSafeTransport({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(hostname));
}

/** Keys of the previous version: they keep working for this one. */
const RENAMED: Readonly<Record<string, string>> = {
  'models.compacter': 'models.summarizer',
  'models.compacterTimeoutMs': 'models.summarizerTimeoutMs',
  'recall.topK': 'recall.maxResults',
  'recall.maxTokens': 'recall.maxContextChars',
};
/** Of keys of the previous version that had another unit. */
const SCALED: Readonly<Record<string, number>> = { 'recall.maxTokens': 3.5 };

const PROVIDERS: Readonly<Record<string, Tree>> = {
  anthropic: { baseUrl: 'https://api.anthropic.com/v1', keyEnv: 'ANTHROPIC_API_KEY', model: 'sonnet' },
  openai: { baseUrl: 'https://api.openai.com/v1', keyEnv: 'OPENAI_API_KEY', model: 'gpt' },
  google: {
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    keyEnv: 'GEMINI_API_KEY',
    model: 'flash',
  },
  // Ollama cuts off what does not fit into its own small default window.
  ollama: { baseUrl: 'http://127.0.0.1:11434/v1', model: 'llama3.1', contextTokens: 8_192 },
  vllm: { baseUrl: 'http://127.0.0.1:8000/v1' },
};
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['sonnet', 'opus', 'haiku'],
  openai: ['gpt', 'mini', 'codex'],
  google: ['flash', 'pro'],
};

/** By key and its value: values for keys that are not set. */
const PRESETS: Readonly<Record<string, Readonly<Record<string, Tree>>>> = {
  preset: {
    aggressive: { compaction: { loadThreshold: 3, maxL1Buffer: 5 } },
    gentle: { compaction: { loadThreshold: 5, maxL1Buffer: 15 } },
  },
  'recall.preset': {
    comis: {
      recall: {
        maxResults: 5,
        maxContextChars: 4_000,
        minScore: 0.1,
        leastOrigin: 'tool',
        fusion: 'rrf',
        rrfK: 60,
        boosts: { recency: 0.2, temporal: 0.2, proof: 0.1, trust: 0.1 },
      },
    },
  },
  'openai.provider': Object.fromEntries(Object.entries(PROVIDERS).map(([name, openai]) => [name, { openai }])),
};
/** Keys of the previous version that have no effect any more. */
const IGNORED: readonly string[] = ['recall.weights.expanded', 'recall.boosts.references', 'trim.roundMargin'];

type Tree = Record<string, unknown>;

/**
 * Defaults, then `config.json`, then `COMET_CC_*`, then `overrides` (flags). Creates nothing.
 * @throws CometError `config_invalid`, naming file or variable, key, and what was expected
 */
export function loadConfig(env: NodeJS.ProcessEnv, overrides: Partial<Config> = {}): { config: Config; home: string } {
  const home = getHome(env);
  const { configFile } = homePaths(home);
  const tree = readTree(configFile);
  validate(tree, configFile);
  const fromEnv = merge(tree, environmentTree(env));
  validate(fromEnv, 'the environment', getVariable);
  return { config: validate(withPresets(merge(fromEnv, overrides)), 'the command line'), home };
}

function withPresets(tree: Tree): Tree {
  return Object.entries(PRESETS).reduce((left, [key, presets]) => {
    const values = presets[String(getValueAt(left, key))];
    return values === undefined ? left : merge(values, left);
  }, withProvider(tree));
}

/** `provider/model`, or an alias of one provider alone, chooses the provider where no endpoint is set. */
function withProvider(tree: Tree): Tree {
  const keys = ['openai.model', 'openai.sensorModel'];
  const [model = ''] = keys.map((key) => String(getValueAt(tree, key) ?? ''));
  if (getValueAt(tree, 'openai.baseUrl') !== undefined) return tree;
  const named = Object.keys(PROVIDERS).find(
    (name) => model.startsWith(`${name}/`) || ALIASES[name]?.includes(model) === true,
  );
  const provider = String(getValueAt(tree, 'openai.provider') || named || '');
  if (provider === '') return tree;
  if (provider === 'vllm' && model === '' && getValueAt(tree, 'llm') === 'openai')
    throw new CometError('config_invalid', 'openai.model: name the model that vLLM serves, as there is no usual one');
  const chosen = structuredClone(tree);
  setAt(chosen, 'openai.provider', provider);
  for (const key of keys) {
    const name = String(getValueAt(tree, key) ?? '');
    if (name.startsWith(`${provider}/`)) setAt(chosen, key, name.slice(provider.length + 1));
  }
  return chosen;
}

export interface ConfigKey {
  readonly key: string;
  /** The environment variable that overrides it. */
  readonly variable: string;
  readonly fallback: unknown;
  readonly description: string;
}

let allKeys: readonly ConfigKey[] | null = null;

/** Every key, in the order of the schema. */
export function configKeys(): readonly ConfigKey[] {
  allKeys ??= listKeys(Config.shape, [], Config.parse({}));
  return allKeys;
}

export interface Setting extends ConfigKey {
  readonly value: unknown;
  readonly source: 'default' | 'file' | 'environment';
}

/** @throws CometError `config_invalid` */
export function readSettings(env: NodeJS.ProcessEnv): Setting[] {
  const { config, home } = loadConfig(env);
  const file = readTree(homePaths(home).configFile);
  const environment = environmentTree(env);
  return configKeys().map((key) => {
    const isSet = (tree: Tree): boolean => getValueAt(tree, key.key) !== undefined;
    const source = isSet(environment) ? 'environment' : isSet(file) ? 'file' : 'default';
    return { ...key, value: getValueAt(config, key.key), source };
  });
}

/**
 * Sets a key in `config.json`.
 * @param dropsDefault  takes the key out of the file where that is its default
 * @throws CometError `usage` for an unknown key or a bad value, `config_invalid`
 */
export async function writeSetting(
  env: NodeJS.ProcessEnv,
  name: string,
  text: string,
  dropsDefault = false,
): Promise<void> {
  const { configFile } = homePaths(getHome(env));
  const key = findKey(name);
  const tree = readTree(configFile);
  const value = toValue(key, text);
  const source = `config.json with ${key.key}=${text}`;
  const alone: Tree = {};
  setAt(alone, key.key, value);
  validate(alone, source, undefined, 'usage');
  setAt(tree, key.key, dropsDefault && value === key.fallback ? undefined : value);
  validate(tree, source);
  await writePrivateFile(configFile, `${JSON.stringify(tree, null, 2)}\n`);
}

/** What is no number stays as it is, so that it is named. */
function toValue({ key, fallback }: Pick<ConfigKey, 'key' | 'fallback'>, text: string): number | string {
  // The daemon runs in another folder than the shell.
  if ((key === 'upstreamCa' && text !== '') || (key === 'claudeBin' && /[\\/]/.test(text)))
    return resolveDirectory(text);
  return typeof fallback !== 'number' || text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text);
}

/** @throws CometError `usage` */
export function findKey(name: string): ConfigKey {
  const key = RENAMED[name] ?? name;
  const configKey = configKeys().find((each) => each.key === key);
  if (configKey !== undefined) return configKey;
  throw new CometError('usage', `${name} is no configuration key; comet-cc config --all lists them`);
}

function listKeys(shape: Record<string, z.ZodType>, at: readonly string[], defaults: Tree): ConfigKey[] {
  return Object.entries(shape).flatMap(([name, schema]) => {
    const keys = [...at, name];
    const inner = schema instanceof z.ZodPrefault ? schema.unwrap() : schema;
    if (inner instanceof z.ZodObject) return listKeys(inner.shape, keys, defaults[name] as Tree);
    const description = schema.description ?? '';
    return [{ key: keys.join('.'), variable: getVariable(keys), fallback: defaults[name], description }];
  });
}

function getVariable(keys: readonly string[]): string {
  return `COMET_CC_${keys.map((key) => key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()).join('_')}`;
}

function environmentTree(env: NodeJS.ProcessEnv): Tree {
  const tree: Tree = {};
  const renamed = Object.entries(RENAMED).map(([old, key]) => ({
    ...findKey(key),
    old,
    variable: getVariable(old.split('.')),
  }));
  const own = configKeys().map((key) => ({ ...key, old: '' }));
  for (const { key, old, variable, fallback } of [...renamed, ...own]) {
    const text = env[variable];
    if (text === undefined || text === '') continue;
    setAt(tree, key, scaled(old, toValue({ key, fallback }, text)));
  }
  return tree;
}

function getValueAt(tree: unknown, key: string): unknown {
  return key.split('.').reduce<unknown>((value, part) => (isRecord(value) ? value[part] : undefined), tree);
}

/** An undefined value removes the key. */
function setAt(tree: Tree, key: string, value: unknown): void {
  const [name, ...below] = key.split('.') as [string, ...string[]];
  if (below.length > 0) {
    const branch = tree[name] ?? {};
    // A value where an object belongs is left for the validation to name.
    if (!isRecord(branch)) return;
    tree[name] = branch;
    setAt(branch, below.join('.'), value);
  } else if (value === undefined) delete tree[name];
  else tree[name] = value;
}

function readTree(file: string): Tree {
  const tree = readJson(file);
  if (!isRecord(tree)) return tree;
  for (const [old, key] of [...Object.entries(RENAMED), ...IGNORED.map((key) => [key, ''] as const)]) {
    const value = getValueAt(tree, old);
    if (value === undefined) continue;
    setAt(tree, old, undefined);
    if (key !== '' && getValueAt(tree, key) === undefined) setAt(tree, key, scaled(old, value));
  }
  return tree;
}

function scaled(old: string, value: unknown): unknown {
  const factor = SCALED[old];
  return factor !== undefined && typeof value === 'number' ? Math.round(value * factor) : value;
}

function readJson(file: string): Tree {
  let text: string | null;
  try {
    text = readSmallFile(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // Commands that need a home report one that is no folder.
    if (code === 'ENOTDIR') return {};
    const problem = error instanceof CometError ? message : `${file} cannot be read (${code ?? 'unknown'})`;
    throw new CometError('config_invalid', `${problem}; fix or remove it`, { cause: error });
  }
  try {
    return text === null ? {} : (jsonOf(text) as Tree);
  } catch (error) {
    throw new CometError('config_invalid', `${file} is not JSON: ${unquoted(error as Error)}`, { cause: error });
  }
}

function validate(
  value: unknown,
  source: string,
  getName = (keys: readonly string[]): string => keys.join('.'),
  code: ErrorCode = 'config_invalid',
): Config {
  const result = Config.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.flatMap((issue) => {
    const at = issue.path.map(String);
    if (issue.code !== 'unrecognized_keys') {
      const expected = issue.message.replace(/^(Invalid (input|option)|Too (small|big)): /, '');
      return `${at.length > 0 ? getName(at) : '(top level)'}: ${expected}`;
    }
    return issue.keys.map(
      (key) => `${getName([...at, key])}: no such key; expected one of ${getKeysAt(at).join(', ')}`,
    );
  });
  throw new CometError(code, `${source} does not validate: ${problems.join('; ')}`, { cause: result.error });
}

function getKeysAt(at: readonly string[]): string[] {
  const below = at.length === 0 ? Config.parse({}) : getValueAt(Config.parse({}), at.join('.'));
  return isRecord(below) ? Object.keys(below) : [];
}

function merge(base: Tree, over: object): Tree {
  const merged: Tree = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined) continue;
    const below = merged[key];
    merged[key] = isRecord(value) && isRecord(below) ? merge(below, value) : value;
  }
  return merged;
}
