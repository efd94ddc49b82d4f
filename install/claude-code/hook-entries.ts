import { findNodeAtLocation, type JSONPath, type Node, type ParseError, parseTree } from 'jsonc-parser';
import { CometError } from '../../common/errors.ts';
import { inserted, removed } from '../json-splice.ts';

/** Claude Code's events that we listen to, and the script that does. */
export const HOOKS = {
  SessionStart: 'session-start',
  UserPromptSubmit: 'user-prompt-submit',
  PreCompact: 'compact',
  PostCompact: 'compact',
  SessionEnd: 'session-end',
} as const;

export type HookEvent = keyof typeof HOOKS;
export type HookCommands = Readonly<Record<HookEvent, string>>;

/** Seconds; each ends by itself long before. */
const TIMEOUT = 5;
/** Ends each command of ours, whatever folder it was installed in. */
const MARK = 'comet-cc';
const IN_JSON = ` ${MARK}"`;
const OURS = /[\\/]hooks[\\/](?:session-start|user-prompt-submit|compact|session-end)\.js['"]? comet-cc$/;

export function hookCommands(node: string, scriptsDir: string, quote: (text: string) => string): HookCommands {
  const entries = Object.entries(HOOKS).map(([event, script]) => {
    const file = `${scriptsDir}/${script}.js`;
    return [event, `${quote(node)} ${quote(file)} ${MARK}`];
  });
  return Object.fromEntries(entries) as Record<HookEvent, string>;
}

/**
 * Settings with our hooks after all others; comments, order and form stay. The same text where they are in it already.
 *
 * @throws CometError `config_invalid` where it is no JSON of the expected shape
 */
export function withHooks(text: string, commands: HookCommands, file: string): string {
  if (holdsExactly(text, commands, file)) return text;
  const groupOf = (command: string): unknown => ({ hooks: [{ type: 'command', command, timeout: TIMEOUT }] });
  // What is there keeps its place.
  let edited = withoutHooks(text, file, text);
  if (findNodeAtLocation(parsed(edited, file), ['hooks']) === undefined) {
    const events = Object.entries(commands).map(([event, command]) => [event, [groupOf(command)]]);
    return inserted(edited, parsed(edited, file), { key: 'hooks', value: Object.fromEntries(events) });
  }
  for (const [event, command] of Object.entries(commands)) {
    const root = parsed(edited, file);
    const groups = findNodeAtLocation(root, ['hooks', event]);
    const hooks = findNodeAtLocation(root, ['hooks']) as Node;
    edited =
      groups === undefined
        ? inserted(edited, hooks, { key: event, value: [groupOf(command)] })
        : inserted(edited, groups, { value: groupOf(command) });
  }
  return edited;
}

/**
 * Settings without what is ours, and without what that leaves empty, unless it was there before.
 *
 * @param original  the settings before ours were in them; null where that is not known
 * @throws as `withHooks`
 */
export function withoutHooks(text: string, file: string, original: string | null = null): string {
  const before = parseTree(original ?? '{}');
  let edited = text;
  // What cannot hold any may be of whatever form.
  while (edited.includes(IN_JSON)) {
    const root = parsed(edited, file);
    const path = ownPath(root, before);
    if (path === null) break;
    edited = removed(edited, findNodeAtLocation(root, path) as Node);
  }
  return edited;
}

/** The commands of ours that the settings hold, by event. @throws as `withHooks` */
export function ownHooks(text: string, file: string): Readonly<Partial<Record<HookEvent, readonly string[]>>> {
  if (!text.includes(IN_JSON)) return {};
  const found = entriesOf(parsed(text, file)).filter(({ command }) => OURS.test(command));
  return Object.fromEntries(
    [...new Set(found.map(({ event }) => event))].map((event) => [
      event,
      found.filter((entry) => entry.event === event).map(({ command }) => command),
    ]),
  );
}

function holdsExactly(text: string, commands: HookCommands, file: string): boolean {
  const own = ownHooks(text, file);
  const events = new Set([...Object.keys(own), ...Object.keys(commands)]) as Set<HookEvent>;
  return [...events].every((event) => own[event]?.length === 1 && own[event][0] === commands[event]);
}

/** Where the first entry of ours stands, or what would be left empty without it. */
function ownPath(root: Node, before: Node | undefined): JSONPath | null {
  const entry = entriesOf(root).find(({ command }) => OURS.test(command));
  if (entry === undefined) return null;
  const { event, group, at } = entry;
  const count = (path: JSONPath): number => findNodeAtLocation(root, path)?.children?.length ?? 0;
  const stays = (path: JSONPath): boolean =>
    count(path) > 1 || (before !== undefined && findNodeAtLocation(before, path) !== undefined);
  if (count(['hooks', event, group, 'hooks']) > 1) return ['hooks', event, group, 'hooks', at];
  if (stays(['hooks', event])) return ['hooks', event, group];
  return stays(['hooks']) ? ['hooks', event] : ['hooks'];
}

interface Entry {
  readonly event: HookEvent;
  readonly group: number;
  readonly at: number;
  readonly command: string;
}

function entriesOf(root: Node): Entry[] {
  const events = findNodeAtLocation(root, ['hooks'])?.children ?? [];
  return events.flatMap((property) => {
    const event = String(property.children?.[0]?.value) as HookEvent;
    return (property.children?.[1]?.children ?? []).flatMap((group, nth) => {
      const hooks = findNodeAtLocation(group, ['hooks'])?.children ?? [];
      return hooks.map((hook, at) => {
        const command = findNodeAtLocation(hook, ['command'])?.value as unknown;
        return { event, group: nth, at, command: typeof command === 'string' ? command : '' };
      });
    });
  });
}

function parsed(text: string, file: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const hooks = root === undefined ? undefined : findNodeAtLocation(root, ['hooks']);
  const lists = hooks?.children?.map((property) => property.children?.[1]?.type) ?? [];
  const isSound = errors.length === 0 && root?.type === 'object' && (hooks === undefined || hooks.type === 'object');
  if (root !== undefined && isSound && lists.every((type) => type === 'array')) return root;
  throw new CometError('config_invalid', `${file} is not what Claude Code expects of settings; it was left alone`);
}
