import fc from 'fast-check';
import { parse } from 'jsonc-parser';
import { describe, expect, it } from 'vitest';
import { HOOKS, hookCommands, hookEntries, ownHooks } from '../../../../install/claude-code/entries.ts';

const commands = hookCommands('/usr/bin/node', '/opt/comet-cc/dist/hooks', (text) => `'${text}'`);
const moved = hookCommands('/opt/node', '/srv/comet-cc/dist/hooks', (text) => `"${text}"`);
const add = (text: string): string => hookEntries.add(text, commands, 'settings.json');
const remove = (text: string): string => hookEntries.remove(text, {}, '', 'settings.json');

const COMMENTED = `// mine
{
\t"model": "opus", // the big one
\t/* all of it */
\t"hooks": {
\t\t"SessionStart": [
\t\t\t// greets
\t\t\t{ "hooks": [{ "type": "command", "command": "echo hello" }] }
\t\t],
\t\t"Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }]
\t},
\t"permissions": { "allow": ["Bash(ls)"] } // careful
}
`;

describe('our hooks in settings', () => {
  it('are added next to other entries, and keep every comment and line', () => {
    const text = add(COMMENTED);
    const bare = (line: string): string => line.replace(/,$/, '');
    const lines = text.split('\n').map(bare);
    expect(COMMENTED.split('\n').filter((line) => !lines.includes(bare(line)))).toEqual([]);
    const { hooks } = parse(text) as { hooks: Record<string, { hooks: { command: string }[] }[]> };
    expect(hooks['SessionStart']?.map((group) => group.hooks[0]?.command)).toEqual([
      'echo hello',
      "'/usr/bin/node' '/opt/comet-cc/dist/hooks/session-start.js' comet-cc",
    ]);
    expect(Object.keys(hooks)).toEqual([
      'SessionStart',
      'Stop',
      'UserPromptSubmit',
      'PreCompact',
      'PostCompact',
      'SessionEnd',
      'SubagentStart',
    ]);
    expect(add(text)).toBe(text);
    expect(remove(text)).toBe(COMMENTED);
  });

  it('of another folder are replaced, and known for ours in either form', () => {
    const old = hookEntries.add('{}', moved, 'settings.json');
    const text = add(old);
    expect(Object.values(ownHooks(text, 'x')).flat()).toEqual(Object.values(commands));
    expect(JSON.parse(remove(old))).toEqual({});
  });

  it('leave no settings behind that did not exist before', () => {
    const event = fc.constantFrom(...Object.keys(HOOKS), 'Stop');
    const group = fc.record({
      matcher: fc.string(),
      hooks: fc.array(fc.record({ command: fc.string() }), { minLength: 1 }),
    });
    const hooks = fc.dictionary(event, fc.array(group, { minLength: 1, maxLength: 3 }), { minKeys: 1 });
    const settings = fc.record(
      { model: fc.string(), hooks, env: fc.dictionary(fc.string(), fc.string()) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(settings, fc.constantFrom(0, 2, '\t'), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const added = add(text);
        expect(ownHooks(added, 'x')).toEqual(
          Object.fromEntries(Object.entries(commands).map(([name, one]) => [name, [one]])),
        );
        expect(remove(added)).toBe(text);
      }),
      { numRuns: 100, seed: 7 },
    );
  });

  it.each(['[]', '{', '', '{"hooks": []}', '{"hooks": {"SessionStart": {}}}', '{"a": 1} x'])(
    'are not put into %j',
    (text) => {
      expect(() => add(text)).toThrow('it was left unchanged');
      expect(remove(text)).toBe(text);
    },
  );
});
