import { runChild } from '../../common/run-process.ts';

export interface EndpointKeyOptions {
  readonly baseUrl: string;
  /** Variable that holds the key; '' is `OPENAI_API_KEY` at api.openai.com and no key anywhere else. */
  readonly keyEnv: string;
  /** Shell command that prints the key; goes before `keyEnv`. '' for none. */
  readonly keyCommand: string;
  /** The environment that the daemon was started with. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where the command runs. */
  readonly cwd: string;
}

export type FoundKey =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'missing'; readonly detail: string };

/** The key of an endpoint. It is held in memory and nowhere else: no file, no log, no argument of a program. */
export interface EndpointKey {
  read(signal: AbortSignal): Promise<FoundKey>;
  /** It was refused: the command is asked again next time. */
  refused(): void;
}

const COMMAND_MS = 15_000;
const COMMAND_CHARS = 64_000;
/** Visible ASCII: what a header takes. */
const KEY = /^[\x21-\x7e]{1,8192}$/;

export function createEndpointKey(options: EndpointKeyOptions): EndpointKey {
  const variable = keyVariable(options);
  let known: FoundKey | null = null;
  return {
    async read(signal) {
      if (known !== null) return known;
      const found = options.keyCommand === '' ? fromVariable(variable, options.env) : await asked(options, signal);
      if (found.kind === 'key') known = found;
      return found;
    },
    refused() {
      known = null;
    },
  };
}

/** A key is only ever sent where it belongs: OpenAI's goes to nobody else unless the user says so. */
export function keyVariable({ baseUrl, keyEnv }: Pick<EndpointKeyOptions, 'baseUrl' | 'keyEnv'>): string {
  if (keyEnv !== '') return keyEnv;
  return new URL(baseUrl).hostname === 'api.openai.com' ? 'OPENAI_API_KEY' : '';
}

function fromVariable(name: string, env: EndpointKeyOptions['env']): FoundKey {
  if (name === '') return { kind: 'none' };
  const key = env[name]?.trim() ?? '';
  if (key === '') return missing(`the variable ${name} is not set where the daemon was started`);
  return KEY.test(key) ? { kind: 'key', key } : missing(`the variable ${name} holds no key`);
}

async function asked({ keyCommand, env, cwd }: EndpointKeyOptions, signal: AbortSignal): Promise<FoundKey> {
  const isWindows = process.platform === 'win32';
  const run = {
    file: isWindows ? (env['ComSpec'] ?? 'cmd.exe') : '/bin/sh',
    args: isWindows ? ['/d', '/s', '/c', keyCommand] : ['-c', keyCommand],
    input: '',
    env: Object.fromEntries(Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined)),
    cwd,
    timeoutMs: COMMAND_MS,
    graceMs: 1_000,
    maxChars: COMMAND_CHARS,
  };
  const end = await runChild(run, signal);
  // Whatever it printed may be the key: nothing of it is repeated.
  if (end.how !== 'exited') return missing(`the key command was ended (${end.how})`);
  if (end.exitCode !== 0) return missing(`the key command ended with code ${end.exitCode}`);
  const key = end.stdout.trim();
  return KEY.test(key) ? { kind: 'key', key } : missing('the key command printed no key, or more than a key');
}

function missing(detail: string): FoundKey {
  return { kind: 'missing', detail };
}
