import { getBlocks, isObject, type Json } from './json.ts';

/** A message with its content as blocks. */
export interface Message {
  readonly role: string;
  readonly blocks: readonly Json[];
}

const MAX_BREAKPOINTS = 4;
const TAGS: Readonly<Record<string, readonly string[]>> = {
  user: ['text', 'image', 'document', 'search_result', 'tool_result', 'container_upload'],
  assistant: [
    ...['text', 'thinking', 'redacted_thinking', 'tool_use', 'server_tool_use', 'mcp_tool_use', 'compaction'],
    ...['web_search', 'web_fetch', 'code_execution', 'bash_code_execution', 'text_editor_code_execution'].map(
      (name) => `${name}_tool_result`,
    ),
    ...['tool_search_tool_result', 'mcp_tool_result'],
  ],
  system: ['text', 'tool_addition', 'tool_removal'],
  tool_result: ['text', 'image', 'document', 'search_result', 'tool_reference'],
};
/** Unknown without the beta in the header. */
const BETA_TAGS: Readonly<Record<string, string>> = {
  container_upload: 'files-api-',
  mcp_tool_use: 'mcp-client-',
  mcp_tool_result: 'mcp-client-',
  compaction: 'compact-',
};

export function isThinking(block: Json): boolean {
  return block.type === 'thinking' || block.type === 'redacted_thinking';
}

export function isUse(block: Json): boolean {
  return block.type === 'tool_use' || block.type === 'server_tool_use' || block.type === 'mcp_tool_use';
}

/** `web_search_tool_result`, `mcp_tool_result` and the like: in the assistant's own messages. */
export function isServerResult(block: Json): boolean {
  return String(block.type).endsWith('_tool_result');
}

export function isResult(block: Json): boolean {
  return block.type === 'tool_result' || isServerResult(block);
}

interface Place {
  readonly role: string;
  /** Whether a beta that begins so is in the header. */
  readonly has: (beta: string) => boolean;
  /** Documents before the block. */
  readonly documents: number;
}

/** Problem of one block, as a tail of its path. */
export function checkBlock({ role, has, documents }: Place, block: Json): string | null {
  const tags = TAGS[role] ?? [];
  const beta = BETA_TAGS[String(block.type)];
  const unknown = checkTag(beta === undefined || has(beta) ? tags : tags.filter((tag) => tag !== block.type), block);
  if (unknown !== null) return unknown;
  if (block.type === 'tool_result' && Array.isArray(block.content)) {
    for (const [at, inner] of block.content.entries()) {
      const unknown = checkTag(TAGS.tool_result ?? [], isObject(inner) ? inner : {});
      if (unknown !== null) return `.tool_result.content.${at}${unknown}`;
    }
  }
  const [field, id] = isUse(block) ? ['id', block.id] : ['tool_use_id', block.tool_use_id];
  if ((isUse(block) || isResult(block)) && !/^[a-zA-Z0-9_-]+$/.test(String(id))) {
    return `.${block.type}.${field}: String should match pattern '^[a-zA-Z0-9_-]+$'`;
  }
  if (isUse(block) && !isObject(block.input)) return `.${block.type}.input: Input should be a valid dictionary`;
  return checkCitations(block, documents);
}

function checkTag(tags: readonly string[], block: Json): string | null {
  if (tags.includes(String(block.type))) return null;
  const expected = tags.map((tag) => `'${tag}'`).join(', ');
  return `: Input tag '${block.type}' found using 'type' does not match any of the expected tags: ${expected}`;
}

function checkCitations(block: Json, documents: number): string | null {
  const citations = block.type === 'text' && Array.isArray(block.citations) ? block.citations.filter(isObject) : [];
  const dangling = citations.find(({ document_index: index }) => typeof index === 'number' && index >= documents);
  return dangling === undefined ? null : `.text.citations: no document with index ${dangling.document_index}`;
}

interface Breakpoint {
  readonly path: string;
  readonly mark: Json;
}

/** At most four breakpoints, 1h before 5m over tools, system and messages, and only where they are allowed. */
export function checkCacheControls(body: Json, messages: readonly Message[]): string | null {
  const tools = Array.isArray(body.tools) ? body.tools.filter(isObject) : [];
  const deferred = tools.find((tool) => tool.defer_loading === true && tool.cache_control);
  if (deferred) {
    return `Tool '${deferred.name}' cannot have both defer_loading=true and cache_control set. Tools with defer_loading cannot use prompt caching.`;
  }
  const found: Breakpoint[] = [];
  const add = (path: string, holder: Json): void => {
    if (holder.cache_control) found.push({ path, mark: isObject(holder.cache_control) ? holder.cache_control : {} });
  };
  const addAll = (blocks: readonly Json[], path: string): void => {
    for (const [at, block] of blocks.entries()) {
      add(`${path}.${at}`, block);
      const inner = isResult(block) && Array.isArray(block.content) ? block.content.filter(isObject) : [];
      for (const part of inner) add(`${path}.${at}`, part);
    }
  };
  addAll(tools, 'tools');
  addAll(getBlocks(body.system), 'system');
  for (const [index, { blocks }] of messages.entries()) {
    const thought = blocks.findIndex((block) => isThinking(block) && block.cache_control);
    const path = `messages.${index}.content`;
    if (thought >= 0) {
      return `${path}.${thought}.${blocks[thought]?.type}.cache_control: Extra inputs are not permitted`;
    }
    addAll(blocks, path);
  }
  const auto = isObject(body.cache_control) ? body.cache_control : null;
  const last = lastMark(messages);
  // The automatic breakpoint adds nothing to an equal one on the last block.
  if (auto !== null && (last === null || getTtl(last) !== getTtl(auto))) found.push({ path: '', mark: auto });
  if (found.length > MAX_BREAKPOINTS) {
    return `A maximum of 4 blocks with cache_control may be provided. Found ${found.length}.`;
  }
  return checkMarks(found);
}

function checkMarks(found: readonly Breakpoint[]): string | null {
  let short = false;
  for (const { path, mark } of found) {
    const field = path === '' ? 'cache_control' : `${path}.cache_control`;
    if (mark.type !== 'ephemeral') return `${field}.type: Input should be 'ephemeral'`;
    const ttl = getTtl(mark);
    if (ttl !== '5m' && ttl !== '1h') return `${field}.ephemeral.ttl: Input should be '5m' or '1h'`;
    const extra = Object.keys(mark).find((key) => !['type', 'ttl', 'scope'].includes(key));
    if (extra !== undefined) return `${field}.ephemeral.${extra}: Extra inputs are not permitted`;
    if (ttl === '1h' && short) {
      return `${field}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: \`tools\`, \`system\`, \`messages\`.`;
    }
    short ||= ttl === '5m';
  }
  return null;
}

function lastMark(messages: readonly Message[]): Json | null {
  const block = messages.at(-1)?.blocks.at(-1);
  const inner = block && Array.isArray(block.content) ? block.content.filter(isObject) : [];
  const marked = [block, ...inner].findLast((holder) => isObject(holder?.cache_control));
  return (marked?.cache_control as Json | undefined) ?? null;
}

function getTtl(mark: Json): unknown {
  return mark.ttl ?? '5m';
}
