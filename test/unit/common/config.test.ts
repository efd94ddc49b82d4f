import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Config, findKey, loadConfig, readSettings, writeSetting } from '../../../common/config.ts';

let home: string;
let file: string;

beforeEach(async () => {
  home = await mkdtemp(path.join(os.tmpdir(), 'comet-config-'));
  file = path.join(home, 'config.json');
});

afterEach(() => rm(home, { recursive: true, force: true }));

function getSetting(key: string, env: NodeJS.ProcessEnv = {}) {
  return readSettings({ COMET_CC_HOME: home, ...env }).find((each) => each.key === key);
}

describe('the source of a setting', () => {
  it('is the default without a home', async () => {
    await rm(home, { recursive: true });
    expect(getSetting('port')).toMatchObject({ value: 8443, fallback: 8443, source: 'default' });
  });

  it('is the file, then the environment', async () => {
    await writeFile(file, '{"trim":{"mode":"gentle"}}');
    expect(getSetting('trim.mode')).toMatchObject({ value: 'gentle', source: 'file' });
    const env = { COMET_CC_TRIM_MODE: 'off' };
    expect(getSetting('trim.mode', env)).toMatchObject({ value: 'off', fallback: 'auto', source: 'environment' });
  });
});

describe('writing a setting', () => {
  const env = (): NodeJS.ProcessEnv => ({ COMET_CC_HOME: home });

  it('keeps the other keys and the file private', async () => {
    await writeFile(file, '{"port":9000}');
    await writeSetting(env(), 'trim.keepTurns', '5');
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ port: 9000, trim: { keepTurns: 5 } });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('refuses an unknown key and a bad value, and leaves the file alone', async () => {
    await expect(writeSetting(env(), 'trim.nothing', '1')).rejects.toMatchObject({ code: 'usage' });
    await expect(writeSetting(env(), 'port', 'high')).rejects.toMatchObject({ code: 'usage' });
    await expect(stat(file)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('names a file by its whole path, since the daemon runs in another folder', async () => {
    await writeSetting(env(), 'upstreamCa', '~/corp.pem');
    await writeSetting(env(), 'claudeBin', 'claude');
    const saved = { upstreamCa: path.join(os.homedir(), 'corp.pem'), claudeBin: 'claude' };
    expect(loadConfig(env()).config).toMatchObject(saved);
    const given = { COMET_CC_UPSTREAM_CA: 'corp.pem', COMET_CC_CLAUDE_BIN: './bin/claude' };
    const whole = { upstreamCa: path.resolve('corp.pem'), claudeBin: path.resolve('bin/claude') };
    expect(loadConfig({ ...env(), ...given }).config).toMatchObject(whole);
  });

  it('creates a missing home', async () => {
    await rm(home, { recursive: true });
    await writeSetting(env(), 'port', '9001');
    expect(loadConfig(env()).config.port).toBe(9001);
  });
});

describe('a renamed key', () => {
  it('keeps working in the file, in the environment and on the command line', async () => {
    await writeFile(file, '{"models":{"compacter":"opus"}}');
    expect(loadConfig({ COMET_CC_HOME: home }).config.models.summarizer).toBe('opus');
    const env = { COMET_CC_HOME: home, COMET_CC_MODELS_COMPACTER: 'haiku' };
    expect(loadConfig(env).config.models.summarizer).toBe('haiku');
    expect(findKey('models.compacter').key).toBe('models.summarizer');
  });

  it('is converted where its unit changed', async () => {
    await writeFile(file, '{"recall":{"topK":3,"maxTokens":1000}}');
    const { recall } = loadConfig({ COMET_CC_HOME: home, COMET_CC_RECALL_TOP_K: '4' }).config;
    expect([recall.maxResults, recall.maxContextChars]).toEqual([4, 3_500]);
  });

  it('has the default where its value is gone', async () => {
    await writeFile(file, '{"inject":{"retrieval":"hook"},"embedder":"hash"}');
    const { inject, embedder } = loadConfig({ COMET_CC_HOME: home }).config;
    expect([inject.retrieval, embedder]).toEqual(['auto', 'static']);
    expect(loadConfig({ COMET_CC_HOME: home, COMET_CC_EMBEDDER: 'e5' }).config.embedder).toBe('static');
  });

  it('yields to the new name', async () => {
    await writeFile(file, '{"models":{"compacter":"opus","summarizer":"sonnet"}}');
    expect(loadConfig({ COMET_CC_HOME: home }).config.models.summarizer).toBe('sonnet');
  });
});

describe('a preset', () => {
  it('gives the values of keys that are not set, from the file or the environment', async () => {
    await writeFile(file, '{"recall":{"preset":"comis","maxResults":7,"boosts":{"trust":0}}}');
    const { recall } = loadConfig({ COMET_CC_HOME: home }).config;
    expect(recall).toMatchObject({ maxResults: 7, maxContextChars: 4_000, minScore: 0.1, leastOrigin: 'tool' });
    expect(recall.boosts).toMatchObject({ recency: 0.2, temporal: 0.2, proof: 0.1, trust: 0 });
    await writeFile(file, '{}');
    const env = { COMET_CC_HOME: home, COMET_CC_RECALL_PRESET: 'comis', COMET_CC_RECALL_MIN_SCORE: '0.3' };
    expect(loadConfig(env).config.recall).toMatchObject({ maxResults: 5, minScore: 0.3 });
    expect(readSettings(env).find(({ key }) => key === 'recall.maxResults')).toMatchObject({ value: 5 });
    expect(loadConfig({ COMET_CC_HOME: home }).config).toEqual(Config.parse({}));
  });

  it.each([
    [{ provider: 'google' }, { baseUrl: expect.stringContaining('googleapis.com'), model: 'flash' }],
    [{ model: 'ollama/qwen3' }, { baseUrl: 'http://127.0.0.1:11434/v1', model: 'qwen3', contextTokens: 8_192 }],
    [{ model: 'haiku' }, { provider: 'anthropic', keyEnv: 'ANTHROPIC_API_KEY', model: 'haiku' }],
    [
      { provider: 'openai', model: 'openai/o5' },
      { baseUrl: 'https://api.openai.com/v1', model: 'o5' },
    ],
    [
      { baseUrl: 'https://openrouter.ai/api/v1', model: 'openai/o5' },
      { provider: '', model: 'openai/o5', keyEnv: '' },
    ],
  ])('of a provider sets its endpoint, unless one is set: %j', async (openai, expected) => {
    await writeFile(file, JSON.stringify({ openai }));
    expect(loadConfig({ COMET_CC_HOME: home }).config.openai).toMatchObject(expected);
  });

  it('of vLLM needs the name of a model', async () => {
    await writeFile(file, JSON.stringify({ llm: 'openai', openai: { provider: 'vllm' } }));
    expect(() => loadConfig({ COMET_CC_HOME: home })).toThrow('openai.model: name the model that vLLM serves');
    const named = loadConfig({ COMET_CC_HOME: home, COMET_CC_OPENAI_MODEL: 'vllm/qwen3' }).config.openai;
    expect(named).toMatchObject({ baseUrl: 'http://127.0.0.1:8000/v1', model: 'qwen3' });
  });

  it('summarizes sooner or later, from a flag too', async () => {
    await writeFile(file, '{"preset":"gentle"}');
    const load = (flags: object) => loadConfig({ COMET_CC_HOME: home }, flags).config.compaction;
    expect(load({})).toMatchObject({ loadThreshold: 5, maxL1Buffer: 15, minL1Buffer: 3 });
    expect(load({ preset: 'aggressive' })).toMatchObject({ loadThreshold: 3, maxL1Buffer: 5 });
  });
});
