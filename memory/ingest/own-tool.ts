/** Our MCP server as `claude mcp add` and our plugin name it. */
const NAME =
  /^mcp__(?:comet-cc|plugin_comet-cc_\w+)__(?:get_memory_index|read_memory_node|search_memory|retrieve_memory|remember|forget)$/;

/** Stands in each answer of ours that holds what others than user, assistant and this project's tools said. */
export const FOREIGN = 'some of it comes from outside this project';

/** Whether this is an answer of our own memory tools that holds nothing foreign: it taints no turn. */
export function isOwnAnswer(tool: string, text: string): boolean {
  return NAME.test(tool) && !text.includes(FOREIGN);
}
