import { pathToFileURL } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { CLI, type TestHome } from './cli.ts';

export interface McpClient {
  readonly client: Client;
  /** What a tool answers; begins with ERROR where it says that it failed. */
  call(name: string, args?: Record<string, unknown>): Promise<string>;
  read(uri: string): Promise<string>;
  close(): Promise<void>;
}

/** A client of `comet-cc mcp`, which is started in `cwd`; it names `root` where that is given. */
export async function openMcp(home: TestHome, { cwd, root }: { cwd: string; root?: string }): Promise<McpClient> {
  const capabilities = root === undefined ? {} : { roots: { listChanged: true } };
  const client = new Client({ name: 'test', version: '1' }, { capabilities });
  if (root !== undefined) {
    const roots = [{ uri: pathToFileURL(root).href }];
    client.setRequestHandler(ListRootsRequestSchema, () => ({ roots }));
  }
  const env = home.env as Record<string, string>;
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [CLI, 'mcp'], env, cwd, stderr: 'ignore' }),
  );
  return {
    client,
    async call(name, args = {}) {
      const { content, isError } = await client.callTool({ name, arguments: args });
      const [block] = content as { text: string }[];
      // Without the line that tells capture its origin.
      return `${isError ? 'ERROR ' : ''}${block?.text.replace(/\n\[comet-cc: origin \w+, seal \w+\]$/, '')}`;
    },
    async read(uri) {
      const [found] = (await client.readResource({ uri })).contents as { text: string }[];
      return found?.text ?? '';
    },
    close: () => client.close(),
  };
}
