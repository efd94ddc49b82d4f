import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';
import type { Config } from '../../../common/config.ts';
import { CometError } from '../../../common/errors.ts';
import { readFileIfPresent, readOrCreateSecret, writeFileAtomic } from '../../../common/files.ts';
import type { HomePaths } from '../../../common/paths.ts';
import type { UiServer, UiServerOptions } from './server.ts';
import { createWatch } from './watch.ts';

/** Ports tried after the one that is wanted. */
const MORE_PORTS = 20;

interface UiOptions extends Pick<UiServerOptions, 'services' | 'log' | 'page'> {
  readonly config: Config['ui'];
  readonly paths: Pick<HomePaths, 'uiKeyFile' | 'uiPortFile'>;
  readonly now: () => number;
  /** Of files that people edit by hand while a page is open. */
  readonly folders?: readonly string[];
}

/** The dashboard of one engine. It listens once `comet-cc ui` was used, which the key file records, or by `ui.enabled`. */
export function createUi({ config, paths, services, log, now, folders, page }: UiOptions) {
  let opening: Promise<OpenUi> | null = null;
  let opened: OpenUi | null = null;

  /** Loads the server on first use: most engines never need it. */
  async function listen(): Promise<OpenUi> {
    const { createUiSessions } = await import('./session.ts');
    const key = await readOrCreateSecret(paths.uiKeyFile, () => randomBytes(32).toString('hex'));
    const more = config.port === 0 ? [] : Array.from({ length: MORE_PORTS }, (_, step) => config.port + step + 1);
    const ports = [...(await rememberedPort(paths.uiPortFile, config.port)), config.port, ...more];
    return await listenOn(ports, { sessions: createUiSessions(key, now), watch: createWatch(services, folders) });
  }

  async function listenOn(ports: readonly number[], kept: Pick<OpenUi, 'sessions' | 'watch'>): Promise<OpenUi> {
    const { openUiServer } = await import('./server.ts');
    const server = await openUiServer(ports, { ...kept, services, log, ...(page === undefined ? {} : { page }) });
    await writeFileAtomic(paths.uiPortFile, `${config.port} ${server.port}\n`);
    log.info('the dashboard listens', { port: server.port, wanted: config.port });
    opened = { ...kept, server };
    return opened;
  }

  /** To the port that is wanted, where it is free again and no open page would lose its own. */
  async function moved(open: OpenUi): Promise<OpenUi> {
    if ([0, open.server.port].includes(config.port) || open.watch.isFollowed()) return open;
    const next = await listenOn([config.port], open).catch(() => open);
    if (next !== open) await open.server.close();
    return next;
  }

  function start(next = opening ?? listen()): Promise<OpenUi> {
    opening = next.catch((error: unknown) => {
      opening = null;
      throw error;
    });
    return opening;
  }

  return {
    /** Listens where an earlier use or the configuration asks for it. Never rejects. */
    async begin() {
      const isWanted = config.enabled === 'on' || (config.enabled === 'auto' && existsSync(paths.uiKeyFile));
      if (isWanted) await start().catch((error: unknown) => log.error('the dashboard does not listen', { error }));
    },
    async open() {
      if (config.enabled === 'off')
        throw new CometError('not_allowed', 'ui.enabled is off; comet-cc config set ui.enabled auto, then restart');
      const { sessions, server } = await start(start().then(moved));
      const url = `http://127.0.0.1:${server.port}/?token=${sessions.issueToken()}`;
      return { url, port: server.port, wanted_port: config.port };
    },
    touch: () => opened?.watch.touch(['tasks', 'library']),
    address: () => (opened === null ? null : `http://127.0.0.1:${opened.server.port}/`),
    /** Open pages then say how to start it again. */
    async sayStopped() {
      // The event leaves within 50 ms.
      if (opened?.watch.sayStopped()) await after(50);
    },
    async close() {
      await (await opening?.catch(() => null))?.server.close();
    },
  };
}

interface OpenUi extends Pick<UiServerOptions, 'sessions' | 'watch'> {
  readonly server: UiServer;
}

/** The port of the last engine comes first, so that an open page finds the next one. */
async function rememberedPort(file: string, wanted: number): Promise<number[]> {
  const [asked, port] = ((await readFileIfPresent(file)) ?? '').split(' ').map(Number);
  return asked === wanted && Number.isInteger(port) ? [port as number] : [];
}
