import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { Config } from './config.ts';
import { CometError, unquoted } from './errors.ts';
import { homeOf } from './paths.ts';

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

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
