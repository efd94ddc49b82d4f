import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { CometError } from './errors.ts';
import { isRecord, unquoted } from './json.ts';
import { homeOf } from './paths.ts';
import { SCOPES } from './policy.ts';

const count = (fallback: number) => z.int().nonnegative().default(fallback);
const share = (fallback: number) => z.number().min(0).default(fallback);

/** Loopback `http://`, or `https://` anywhere, without a path. */
const upstreamOrigin = z
  .string()
  .refine(isUpstreamOrigin, 'expected an https:// origin (http:// only for 127.0.0.1, ::1 or localhost)');

/** Loopback `http://`, or `https://` anywhere, with a path; a key must not stand in it. */
const endpointUrl = z
  .string()
  .refine(isEndpointUrl, 'expected an https:// address without user, query or fragment (http:// only for loopback)');

/** The user's own proxy: '' takes what the environment names, `off` none. */
const upstreamProxy = z
  .string()
  .refine(
    (text) => text === '' || text === 'off' || (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)),
    'expected the http:// or https:// address of a proxy, or off',
  );

/** The one schema: defaults, types, help text and the README's table come from it. */
export const Config = z.strictObject({
  port: z.int().min(0).max(65_535).default(8443).describe('port the guard listens on, loopback only; 0 picks one'),
  upstream: upstreamOrigin.default('https://api.anthropic.com').describe('origin that requests are forwarded to'),
  upstreamCa: z.string().default('').describe('extra PEM file to trust for the upstream'),
  upstreamProxy: upstreamProxy.default('').describe('proxy towards the upstream; off for none, empty for HTTPS_PROXY'),
  holdMs: count(2_000).describe(
    'a new connection waits so long for an engine that restarts or is late, then passes it by',
  ),
  startMs: z.int().positive().default(15_000).describe('a start that has no healthy engine by then has failed'),
  claudeBin: z.string().min(1).default('claude').describe('Claude Code, as a name on PATH or a path'),
  llm: z.enum(['claude', 'openai', 'local', 'off']).default('claude').describe('who reads and compacts turns'),
  logLevel: z.enum(['debug', 'info', 'warn', 'error']).default('info').describe('least level that is logged'),
  models: z
    .strictObject({
      sensor: z.string().default('haiku').describe('model of the sensor'),
      compacter: z.string().default('sonnet').describe('model of the compacter'),
      detail: z.string().default('haiku').describe('model of detailed summaries'),
      sensorTimeoutMs: count(30_000).describe('a sensor call is killed after this'),
      compacterTimeoutMs: count(180_000).describe('a compacter call is killed after this'),
      detailTimeoutMs: count(60_000).describe('a call for a detailed summary is killed after this'),
      maxChildren: z.int().positive().default(2).describe('claude -p children at one time'),
      dailyTokens: count(500_000).describe('tokens that the calls of memory may take in a day (UTC)'),
      maxUtilization: z
        .number()
        .min(0)
        .max(1)
        .default(0.8)
        .describe('share of your usage limits from which the calls of memory wait'),
    })
    .prefault({}),
  openai: z
    .strictObject({
      baseUrl: endpointUrl
        .default('https://api.openai.com/v1')
        .describe('OpenAI-compatible endpoint for llm: openai, such as http://127.0.0.1:11434/v1'),
      model: z.string().min(1).default('gpt').describe('model of the compacter there, or an alias of it'),
      sensorModel: z.string().default('').describe('model of the sensor there; empty for the same'),
      keyEnv: z.string().default('').describe('variable with the key; empty is OPENAI_API_KEY at api.openai.com only'),
      keyCommand: z.string().default('').describe('shell command that prints the key, asked instead of keyEnv'),
      contextTokens: z
        .int()
        .min(4_096)
        .default(128_000)
        .describe('window of the model; what is shown of turns keeps to it'),
    })
    .prefault({}),
  embedder: z
    .preprocess(
      (value) => (value === 'hash' || value === 'minilm' ? 'static' : value),
      z.enum(['static', 'e5', 'endpoint']),
    )
    .default('static')
    .describe('what turns text into vectors; e5 and endpoint need a setup step (docs/EMBEDDERS.md)'),
  embedding: z
    .strictObject({
      baseUrl: endpointUrl
        .default('http://127.0.0.1:11434/api')
        .describe('for embedder: endpoint, an OpenAI-compatible …/v1 or an Ollama …/api'),
      model: z.string().min(1).default('bge-m3').describe('model of the vectors there'),
      keyEnv: z.string().default('').describe('variable with the key; empty is OPENAI_API_KEY at api.openai.com only'),
      keyCommand: z.string().default('').describe('shell command that prints the key, asked instead of keyEnv'),
      timeoutMs: z.int().positive().default(20_000).describe('a request for vectors of documents ends after this'),
      queryMs: z.int().positive().default(100).describe('a question goes without a vector after this'),
    })
    .prefault({}),
  rerank: z
    .strictObject({
      mode: z
        .enum(['off', 'search', 'always'])
        .default('off')
        .describe('whether an endpoint puts what was found in order: for searches, or also for prompts'),
      baseUrl: endpointUrl
        .default('http://127.0.0.1:8012/v1')
        .describe("endpoint with Cohere's …/rerank: llama.cpp, vLLM, Jina, Cohere"),
      model: z.string().min(1).default('bge-reranker-v2-m3').describe('model of the scores there'),
      keyEnv: z.string().default('').describe('variable with the key; empty is OPENAI_API_KEY at api.openai.com only'),
      keyCommand: z.string().default('').describe('shell command that prints the key, asked instead of keyEnv'),
      timeoutMs: z.int().positive().default(800).describe('what was found keeps its order after this'),
      candidates: z.int().min(2).default(40).describe('memories that are put in order'),
    })
    .prefault({}),
  compaction: z
    .strictObject({
      minL1Buffer: count(3).describe('turns needed before a topic shift or high load compacts'),
      maxL1Buffer: count(10).describe('turns that compact in any case'),
      loadThreshold: count(4).describe('load level (1 to 5) that compacts'),
      idleMs: count(600_000).describe('a session silent for so long has its tail compacted'),
    })
    .prefault({}),
  dream: z
    .strictObject({
      idleMinutes: count(30).describe('memory is tidied after so long without a request; 0: only when you ask for it'),
      modelCalls: count(20).describe('questions to the model in one such run, at most'),
    })
    .prefault({}),
  trim: z
    .strictObject({
      mode: z
        .enum(['auto', 'aggressive', 'gentle', 'off'])
        .default('auto')
        .describe('auto cuts when it pays, aggressive whenever it may, gentle later and less'),
      deadlineMs: z
        .int()
        .positive()
        .default(400)
        .describe('a request that takes longer to work out is sent as its conversation stood'),
      triggerTokens: count(10_000).describe('history above this, in tokens, is worth a cut'),
      keepTurns: z.int().min(3).default(3).describe('newest complete turns that stay verbatim'),
      keepTokens: count(6_000).describe('newest tokens that stay verbatim'),
      targetTokens: count(0).describe('a request above this many tokens is cut as soon as it may be; 0: none is'),
      keepRounds: z.int().min(1).default(8).describe('newest tool rounds of a running turn that stay verbatim'),
      keepRoundTokens: count(4_000).describe('newest tokens of those rounds that stay verbatim'),
      roundMargin: share(0.5).describe(
        'how much longer than a cut at a prompt one inside a tool loop waits to have paid',
      ),
      minDropShare: share(0.2).describe('least share of the history that a cut must drop'),
      pressureShare: share(0.8).describe("share of the model's context window above which a cut waits for nothing"),
    })
    .prefault({}),
  ledger: z
    .strictObject({
      tolerance: share(0.05).describe(
        "share of a conversation's price that memory may cost before it counts as a loss",
      ),
      credit: count(10_000).describe('what memory may cost a conversation in any case, in tokens of uncached input'),
      longestHorizon: z.int().positive().default(60).describe('most requests that a cut is given to pay for itself'),
      receipts: count(200).describe('newest requests that explain knows of'),
    })
    .prefault({}),
  inject: z
    .strictObject({
      retrieval: z
        .enum(['auto', 'system-message', 'user-block', 'system-field', 'hook', 'off'])
        .default('auto')
        .describe('where the memory recalled for a prompt is put; hook: by the hook of comet-cc hooks install'),
      retrievalTokens: count(600).describe('ceiling for one recall, tokens'),
      systemTokens: count(900).describe('ceiling for our system block, tokens'),
      handoffNodes: count(20).describe('HIGH memories of other sessions that a session starts with, at most'),
      preambleTokens: count(2_000).describe('ceiling for the memory preamble, tokens'),
    })
    .prefault({}),
  recall: z
    .strictObject({
      scope: z.enum(SCOPES).default('project').describe('whose memories are recalled'),
      topK: z.int().positive().default(8).describe('most memories recalled for one prompt'),
      deadlineMs: count(150).describe('a recall that takes longer is skipped'),
      minCoverage: share(0.65).describe('least share of what a prompt asks that must stand in one place of a memory'),
      minSimilarity: share(0.3).describe('least similarity of what a search shows without a word in common'),
      minScore: share(0.02).describe('least score of what is found, 0 to 1; of what fits most is above 0.4'),
      maxTokens: count(1_500).describe('ceiling for what one recall gives, tokens; whole lines are left out'),
      passiveLines: count(20).describe('most memories that are always shown'),
      passiveTokens: count(570).describe('ceiling for all of them, tokens'),
      leastOrigin: z
        .enum(['user', 'assistant', 'tool', 'external'])
        .default('external')
        .describe('memories of lower origin are not recalled'),
      fusion: z
        .enum(['score', 'rrf', 'comet'])
        .default('score')
        .describe('how the lanes are joined: by score, by reciprocal rank, or as CoMeT does'),
      weights: z
        .strictObject({
          raw: share(1).describe('full text over what was said'),
          meaning: share(1.5).describe('likeness of vectors'),
          expanded: share(0.5).describe('full text with words near in meaning'),
          entity: share(0).describe('identifiers, paths and names alone'),
          before: share(0.4).describe('what a turn is lent by the one before it'),
          after: share(0.2).describe('what a turn is lent by the one after it'),
          window: share(2).describe('full text over the turns around it'),
          date: share(2.5).describe('the question names its date'),
          when: share(1).describe('the question asks when, and it tells a time'),
          fact: share(0.6).describe('full text over facts that rest on it'),
          factMeaning: share(0.7).describe('likeness of facts that rest on it'),
        })
        .prefault({}),
      boosts: z
        .strictObject({
          recency: share(0).describe('share that newness adds to a score'),
          proof: share(0).describe('share that earlier recalls add'),
          trust: share(0).describe('share that a high origin adds'),
          project: share(0).describe('share that being of the same project adds, with scope all'),
          references: share(0).describe('share that links from other finds add'),
        })
        .prefault({}),
    })
    .prefault({}),
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
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** `hostname` as `URL` gives it. */
export function isLoopback(hostname: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(hostname);
}

export interface LoadedConfig {
  readonly config: Config;
  readonly home: string;
}

/**
 * Default, then `config.json`, then `COMET_CC_*`, then `overrides` (flags). Creates nothing.
 *
 * @throws CometError `config_invalid`, naming file or variable, key, and what was expected
 */
export function loadConfig(env: NodeJS.ProcessEnv, overrides: Partial<Config> = {}): LoadedConfig {
  const home = homeOf(env);
  const file = path.join(home, 'config.json');
  const fromFile = checked(readJson(file), file);
  const fromEnv = checked(merge(fromFile, envTwins(env)), 'the environment', variableOf);
  return { config: checked(merge(fromEnv, overrides), 'the command line'), home };
}

export interface ConfigKey {
  readonly key: string;
  readonly variable: string;
  readonly fallback: unknown;
  readonly description: string;
}

/** Every key with its environment twin, in declaration order; for help and docs. */
export function configKeys(): ConfigKey[] {
  const defaults = Config.parse({}) as Record<string, unknown>;
  return walk(Config.shape, [], defaults);
}

function walk(shape: Record<string, z.ZodType>, at: readonly string[], defaults: Record<string, unknown>): ConfigKey[] {
  return Object.entries(shape).flatMap(([name, schema]) => {
    const keys = [...at, name];
    const inner = unwrap(schema);
    if (inner instanceof z.ZodObject) {
      return walk(inner.shape as Record<string, z.ZodType>, keys, defaults[name] as Record<string, unknown>);
    }
    const key = keys.join('.');
    return [{ key, variable: variableOf(keys), fallback: defaults[name], description: schema.description ?? '' }];
  });
}

function unwrap(schema: z.ZodType): z.ZodType {
  return schema instanceof z.ZodPrefault ? (schema.unwrap() as z.ZodType) : schema;
}

function variableOf(keys: readonly string[]): string {
  return `COMET_CC_${keys.map((key) => key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()).join('_')}`;
}

function envTwins(env: NodeJS.ProcessEnv): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const { key, variable, fallback } of configKeys()) {
    const text = env[variable];
    if (text === undefined || text === '') continue;
    const value = typeof fallback === 'number' ? Number(text) : text;
    const keys = key.split('.');
    const last = keys.pop() as string;
    let node = found;
    for (const part of keys) {
      node[part] ??= {};
      node = node[part] as Record<string, unknown>;
    }
    node[last] = value;
  }
  return found;
}

function readJson(file: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    // A home that is no folder is said by whoever needs one.
    if (code === 'ENOENT' || code === 'ENOTDIR') return {};
    const expected = code === 'EISDIR' ? 'is a folder; a file was expected' : `cannot be read (${code})`;
    throw new CometError('config_invalid', `${file} ${expected}; mend or remove it`, { cause: error });
  }
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new CometError('config_invalid', `${file} is not JSON: ${unquoted(error as Error)}`, { cause: error });
  }
}

function checked(value: unknown, source: string, nameOf = (keys: readonly string[]): string => keys.join('.')): Config {
  const result = Config.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.flatMap((issue) => {
    const at = issue.path.map(String);
    if (issue.code !== 'unrecognized_keys') return `${at.length > 0 ? nameOf(at) : '(top level)'}: ${expected(issue)}`;
    return issue.keys.map((key) => `${nameOf([...at, key])}: no such key; expected one of ${keysAt(at).join(', ')}`);
  });
  throw new CometError('config_invalid', `${source} does not validate: ${problems.join('; ')}`, {
    cause: result.error,
  });
}

function expected({ message }: { readonly message: string }): string {
  return message.replace(/^(Invalid (input|option)|Too (small|big)): /, '');
}

function keysAt(at: readonly string[]): string[] {
  const below = at.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), Config.parse({}));
  return isRecord(below) ? Object.keys(below) : [];
}

function merge(base: Record<string, unknown>, over: object): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined) continue;
    const below = merged[key];
    merged[key] = isRecord(value) && isRecord(below) ? merge(below, value) : value;
  }
  return merged;
}
