import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import { WebSocket } from 'undici';

const PATIENCE_MS = 10_000;

/** Makes V8 give back all that nobody holds any more: what is resident then is no matter of when it last collected. */
export interface Collector {
  collect(): Promise<void>;
  close(): void;
}

/** A port for the inspector of a process that is started later; loopback only, as the inspector is. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** Through the inspector of `pid`, which was started with `--inspect-port`. */
export async function openCollector(pid: number, port: number): Promise<Collector> {
  process.kill(pid, 'SIGUSR1');
  const socket = new WebSocket(await inspectorUrl(port));
  await once(socket, 'open');
  let asked = 0;
  return {
    async collect() {
      asked += 1;
      const id = asked;
      socket.send(JSON.stringify({ id, method: 'HeapProfiler.collectGarbage' }));
      const signal = AbortSignal.timeout(PATIENCE_MS);
      for (;;) {
        const [{ data }] = (await once(socket, 'message', { signal })) as [{ data: string }];
        if ((JSON.parse(data) as { id?: number }).id === id) return;
      }
    },
    close: () => socket.close(),
  };
}

/** @throws where nothing answers there in time */
async function inspectorUrl(port: number): Promise<string> {
  for (let waitedMs = 0; ; waitedMs += 100) {
    try {
      const [target] = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
        webSocketDebuggerUrl: string;
      }[];
      if (target !== undefined) return target.webSocketDebuggerUrl;
    } catch (error) {
      if (waitedMs >= PATIENCE_MS) throw error;
    }
    await after(100);
  }
}
