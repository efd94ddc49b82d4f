import type { Command } from 'commander';
import { CometError, getMessage } from '../../../common/errors.ts';
import { resolveDirectory } from '../../../common/paths.ts';
import { type EngineClient, getEngine } from '../../../engine/api/index.ts';
import { addCommand, type Context, noteFolder } from '../../context.ts';
import { type Draft, editorCommand, openDraft } from '../../terminal/editor.ts';
import { confirmed } from '../../terminal/term.ts';
import { ID, memoryIds } from './ids.ts';

export function registerMemoryEdit(memory: Command, context: Context): void {
  const description = 'edit memories in your editor ($VISUAL, $EDITOR) or field by field';
  const fields = 'comet-cc memory edit mem_20261121 --set importance=HIGH --set topic_tags=deploy,ports';
  addCommand(memory, 'edit', description, `comet-cc memory edit mem_20261121\n${fields}`)
    .argument('<id...>', ID)
    .option(
      '--set <field=value>',
      'set one field; may be repeated',
      (value, before) => [...before, value],
      [] as string[],
    )
    .action(async (ids: string[], flags: { set: readonly string[] }) => {
      const client = getEngine(context.paths);
      const set = parseFields(flags.set);
      for (const id of await memoryIds(context, client, ids)) {
        const { session_title: _, ...before } = await client.call('nodes/show', { id, depth: 0 });
        const after =
          flags.set.length > 0
            ? await client.call('nodes/edit', { id: before.node_id, change: { set } }).catch(rejectFields)
            : await inEditor(client, context, before.node_id);
        const same = after === null || JSON.stringify(after) === JSON.stringify(before);
        if (same) context.term.say(`${before.node_id} is unchanged`);
        else context.term.out(`changed ${before.node_id}`);
      }
    });
}

function rejectFields(error: unknown): never {
  if (!(error instanceof CometError) || error.code !== 'node_invalid') throw error;
  throw new CometError('usage', error.message, { cause: error });
}

/** @throws CometError `usage` */
export function parseFields(inputs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    inputs.map((text) => {
      const at = text.indexOf('=');
      if (at < 1) throw new CometError('usage', `--set expects field=value (got "${text}")`);
      return [text.slice(0, at).trim(), text.slice(at + 1)];
    }),
  );
}

async function inEditor(client: EngineClient, context: Context, id: string) {
  const command = editorCommand(context.env, process.stdin.isTTY === true && process.stderr.isTTY === true);
  const { text: base } = await client.call('nodes/section', { id });
  const draft = await openDraft(base, `${id}.md`, command);
  for (;;) {
    const text = await draft.edit().catch(async (error: unknown) => {
      await draft.drop();
      throw error;
    });
    if (text.trimEnd() === base.trimEnd()) {
      await draft.drop();
      return null;
    }
    try {
      const node = await client.call('nodes/edit', { id, change: { text, base } });
      await draft.drop();
      return node;
    } catch (error) {
      if (!(await again(error, draft, context))) throw toEditError(error, draft);
    }
  }
}

async function again(error: unknown, draft: Draft, context: Context): Promise<boolean> {
  if (!(error instanceof CometError) || error.code !== 'node_invalid') return false;
  context.term.say(error.message);
  return await confirmed('Edit it again?').catch((refusal: unknown) => {
    if (refusal instanceof CometError && refusal.code === 'usage') return false;
    throw toEditError(refusal, draft);
  });
}

/** Nothing that someone typed is thrown away. */
function toEditError(error: unknown, { file }: Draft): CometError {
  const code = error instanceof CometError ? error.code : 'node_invalid';
  return new CometError(code, `${getMessage(error)}; your text is in ${file}`, { cause: error });
}

export function registerMemoryPin(memory: Command, context: Context): void {
  register('pin', true, 'always show these memories in their project');
  register('unpin', false, 'recall these memories as before they were pinned');

  function register(name: string, pinned: boolean, description: string): void {
    addCommand(memory, name, description, `comet-cc memory ${name} mem_20261121_223000_a1b2c3`)
      .argument('<id...>', ID)
      .option('--project <dir>', pinned ? 'in this project instead of their own' : 'only in this project')
      .action(async (ids: string[], flags: { project?: string }) => {
        const at = flags.project === undefined ? {} : { projectDir: resolveDirectory(flags.project) };
        const client = getEngine(context.paths);
        const nodes = await client.call('nodes/pin', { ids: await memoryIds(context, client, ids), pinned, ...at });
        for (const node of nodes) context.term.out(`${name}ned ${node.node_id}`);
        if (flags.project !== undefined) noteFolder(context, flags.project);
      });
  }
}
