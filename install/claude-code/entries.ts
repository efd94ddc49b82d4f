import { isDeepStrictEqual } from 'node:util';
import { findNodeAtLocation, type JSONPath, type Node } from 'jsonc-parser';
import { CometError } from '../../common/errors.ts';
import { type EditKind, getValueAt, parseWith, pruneAt, removeAt, restoreAt, setAt } from '../json-text.ts';

const CA = 'NODE_EXTRA_CA_CERTS';

export const envEntries: EditKind = {
  holdsToken: true,
  add(text, values, file) {
    parseWith(text, file, ['env'], 'object');
    let edited = text;
    for (const [name, value] of Object.entries(values)) {
      if (getValueAt(edited, ['env', name]) !== value) edited = setAt(edited, ['env', name], value);
    }
    return edited;
  },
  remove(text, own, before, file) {
    if (Object.keys(own).length === 0 || text.trim() === '') return text;
    parseWith(text, file, ['env'], 'object');
    let edited = text;
    // What this home had set before its records were lost is not the user's.
    const isOwn = own[CA]?.includes(String(getValueAt(before, ['env', CA]))) === true;
    const former = isOwn ? '' : before;
    for (const [name, values] of Object.entries(own)) {
      if (values.some((value) => value === getValueAt(edited, ['env', name])))
        edited = restoreAt(edited, ['env', name], former);
    }
    return edited === text ? text : pruneAt(edited, ['env'], former);
  },
};

/** Claude Code's events that comet-cc listens to, and the script that handles each. */
export const HOOKS = {
  SessionStart: 'session-start',
  UserPromptSubmit: 'user-prompt-submit',
  PreCompact: 'compact',
  PostCompact: 'compact',
  SessionEnd: 'session-end',
  SubagentStart: 'subagents',
} as const;

export type HookEvent = keyof typeof HOOKS;
export type HookCommands = Readonly<Record<HookEvent, string>>;

/** Seconds. Each hook ends by itself long before. */
const TIMEOUT = 5;
/** Ends each command, so that it is recognized whatever folder comet-cc was installed in. */
const MARK = 'comet-cc';
const MARK_IN_JSON = ` ${MARK}"`;
const OWN_COMMAND =
  /[\\/]hooks[\\/](?:session-start|user-prompt-submit|compact|session-end|subagents)\.js['"]? comet-cc$/;

export function hookCommands(node: string, scriptsDir: string, quote: (text: string) => string): HookCommands {
  const entries = Object.entries(HOOKS).map(([event, script]) => {
    return [event, `${quote(node)} ${quote(`${scriptsDir}/${script}.js`)} ${MARK}`];
  });
  return Object.fromEntries(entries) as Record<HookEvent, string>;
}

/** Hooks in Claude Code's settings, after all others. They are recognized by their command, also without a record. */
export const hookEntries: EditKind = {
  add(text, values, file) {
    parseHooks(text, file);
    const own = ownHooks(text, file);
    const events = new Set([...Object.keys(own), ...Object.keys(values)]) as Set<HookEvent>;
    if ([...events].every((event) => own[event]?.length === 1 && own[event][0] === values[event])) return text;
    // Containers that are there keep their place.
    let edited = hookEntries.remove(text, {}, text, file);
    for (const [event, command] of Object.entries(values))
      edited = setAt(edited, ['hooks', event, -1], { hooks: [{ type: 'command', command, timeout: TIMEOUT }] });
    return edited;
  },
  /** Every hook of comet-cc, and what that leaves empty and `before` did not have. */
  remove(text, _own, before, file) {
    let edited = text;
    while (edited.includes(MARK_IN_JSON)) {
      const root = parseHooks(edited, file);
      const path = ownPath(root, before.trim() === '' ? undefined : parseHooks(before, file));
      if (path === null) break;
      edited = removeAt(edited, path);
    }
    return edited;
  },
};

const OWN_STATUS_LINE = /comet-cc(?:\.js)?['"]? statusline$/;

/** Claude Code's status line, also one that was written by hand. The user's own is never replaced. */
export const statuslineEntry: EditKind = {
  add(text, { command }, file) {
    parseWith(text, file, ['statusLine'], 'object');
    const current = getValueAt(text, ['statusLine', 'command']);
    if (current === command) return text;
    if (getValueAt(text, ['statusLine']) === undefined || OWN_STATUS_LINE.test(String(current)))
      return setAt(text, ['statusLine'], { type: 'command', command });
    throw new CometError('config_invalid', `${file} has a status line of yours; it was left unchanged`);
  },
  remove: (text, _own, before) =>
    OWN_STATUS_LINE.test(String(getValueAt(text, ['statusLine', 'command'])))
      ? restoreAt(text, ['statusLine'], before)
      : text,
};

const MARKETPLACE: JSONPath = ['extraKnownMarketplaces', 'comet-cc'];
const PLUGIN: JSONPath = ['enabledPlugins', 'comet-cc@comet-cc'];

/** What makes Claude Code load the plugin, as `claude plugin install` writes it; `dir` is that of the marketplace. */
export const pluginEntries: EditKind = {
  add(text, { dir }, file) {
    for (const [name] of [MARKETPLACE, PLUGIN]) parseWith(text, file, [name as string], 'object');
    const marketplace = { source: { source: 'directory', path: dir } };
    const isKnown = isDeepStrictEqual(getValueAt(text, MARKETPLACE), marketplace);
    const edited = isKnown ? text : setAt(text, MARKETPLACE, marketplace);
    return getValueAt(edited, PLUGIN) === true ? edited : setAt(edited, PLUGIN, true);
  },
  remove: (text, _own, before) =>
    [MARKETPLACE, PLUGIN].reduce(
      (left, path) => pruneAt(restoreAt(left, path, before), path.slice(0, 1), before),
      text,
    ),
};

/** The commands of comet-cc in the settings, by event. @throws CometError `config_invalid` */
export function ownHooks(text: string, file: string): Readonly<Partial<Record<HookEvent, readonly string[]>>> {
  if (!text.includes(MARK_IN_JSON)) return {};
  const commands: Partial<Record<HookEvent, string[]>> = {};
  for (const { event, command } of findEntries(parseHooks(text, file))) {
    if (OWN_COMMAND.test(command)) commands[event] = [...(commands[event] ?? []), command];
  }
  return commands;
}

/** Location of the first own entry, or of the outermost container that would be left empty without it. */
function ownPath(root: Node, before: Node | undefined): JSONPath | null {
  const entry = findEntries(root).find(({ command }) => OWN_COMMAND.test(command));
  if (entry === undefined) return null;
  const { event, group, index } = entry;
  const count = (path: JSONPath): number => findNodeAtLocation(root, path)?.children?.length ?? 0;
  const stays = (path: JSONPath): boolean =>
    count(path) > 1 || (before !== undefined && findNodeAtLocation(before, path) !== undefined);
  if (count(['hooks', event, group, 'hooks']) > 1) return ['hooks', event, group, 'hooks', index];
  if (stays(['hooks', event])) return ['hooks', event, group];
  return stays(['hooks']) ? ['hooks', event] : ['hooks'];
}

interface Entry {
  readonly event: HookEvent;
  readonly group: number;
  readonly index: number;
  readonly command: string;
}

function findEntries(root: Node): Entry[] {
  return (findNodeAtLocation(root, ['hooks'])?.children ?? []).flatMap((property) => {
    const event = String(property.children?.[0]?.value) as HookEvent;
    return (property.children?.[1]?.children ?? []).flatMap((node, group) => {
      return (findNodeAtLocation(node, ['hooks'])?.children ?? []).map((hook, index) => {
        const command = findNodeAtLocation(hook, ['command'])?.value as unknown;
        return { event, group, index, command: typeof command === 'string' ? command : '' };
      });
    });
  });
}

function parseHooks(text: string, file: string): Node {
  const root = parseWith(text, file, ['hooks'], 'object');
  const groups = findNodeAtLocation(root, ['hooks'])?.children ?? [];
  if (groups.every((property) => property.children?.[1]?.type === 'array')) return root;
  throw new CometError('config_invalid', `${file}: not every event under "hooks" is an array; it was left unchanged`);
}
