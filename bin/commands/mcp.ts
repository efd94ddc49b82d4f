import { once } from 'node:events';
import type { Command } from 'commander';
import { VERSION } from '../../common/paths.ts';
import { getEngine } from '../../engine/api/index.ts';
import { addCommand, type Context } from '../context.ts';

/** If the client does not read stderr, a full pipe would block. */
const COMPLAINTS = 20;

export function registerMcp(program: Command, context: Context): void {
  const example = 'claude mcp add comet-cc -- comet-cc mcp';
  addCommand(program, 'mcp', 'run an MCP server with memory tools on stdin and stdout', example).action(async () => {
    const { createMcpServer } = await import('../../engine/mcp/index.ts');
    const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
    const mcp = createMcpServer({ engine: getEngine(context.paths), version: VERSION, cwd: process.cwd() });
    let complaints = 0;
    mcp.server.onerror = (error) => {
      complaints += 1;
      if (complaints <= COMPLAINTS) context.term.say(`comet-cc mcp: ${error.message.slice(0, 200)}`);
    };
    const closed = new Promise<void>((resolve) => {
      mcp.server.onclose = resolve;
    });
    // What is still asked for when the input ends is answered: the process lives until then.
    const ended = once(process.stdin, 'end');
    await mcp.connect(new StdioServerTransport());
    await Promise.race([ended, closed]);
  });
}
