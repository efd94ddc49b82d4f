import { getBlocks, isObject, type Json } from './json.ts';
import { type ServedRequest, toolNames } from './request-record.ts';
import type { Brain } from './responder.ts';

const TOOL = 'StructuredOutput';

/**
 * Answers `claude -p --json-schema`: first a call of the StructuredOutput tool with the object from `make`, then, once
 * its result is back, a closing line. All else goes to `otherwise`.
 */
export function structuredBrain(
  make: (request: ServedRequest, schema: Json) => Json | Promise<Json>,
  otherwise: Brain,
): Brain {
  return async (request) => {
    const { body } = request;
    if (!body || !toolNames(body).includes(TOOL)) return otherwise(request);
    if (wasCalled(body)) return { kind: 'message', blocks: [{ type: 'text', text: 'Done.' }] };
    const input = await make(request, getSchema(body));
    return { kind: 'message', blocks: [{ type: 'tool_use', name: TOOL, input }] };
  };
}

function getSchema(body: Json): Json {
  const tools = Array.isArray(body.tools) ? body.tools.filter(isObject) : [];
  const schema = tools.find((tool) => tool.name === TOOL)?.input_schema;
  return isObject(schema) ? schema : {};
}

function wasCalled(body: Json): boolean {
  const messages = Array.isArray(body.messages) ? body.messages.filter(isObject) : [];
  const last = messages.findLast((message) => message.role === 'assistant');
  return (
    last !== undefined && getBlocks(last.content).some((block) => block.type === 'tool_use' && block.name === TOOL)
  );
}
