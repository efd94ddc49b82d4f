import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { allowAgents, createSubagents, parseAgent, projectAgents } from '../../../../engine/policy/subagents.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const PROMPT = 'You review changes of the shop and name every risk.';
const definition = (memory: string, name = 'reviewer', prompt = PROMPT): string =>
  `---\nname: ${name}\ndescription: reviews\n${memory}\n---\n\n${prompt}\n`;

describe('an agent definition', () => {
  it.each([
    ['memory: { prefixes: [Project.Convention.], classes: [long_term] }', ['Project.Convention.'], ['long_term']],
    ['memory: [Project.Convention., permanent]', ['Project.Convention.'], ['permanent']],
    ['memory:\n  prefixes:\n    - Project.', ['Project.'], []],
  ])('subscribes to facts: %s', (memory, prefixes, classes) => {
    expect(parseAgent('a.md', definition(memory))).toMatchObject({
      name: 'reviewer',
      prompt: PROMPT,
      filter: { prefixes, classes },
    });
  });

  it.each(['memory: project', 'memory: user', 'model: opus', 'memory: { prefix: x }', 'memory: [1, 2]', 'memory: [x'])(
    'subscribes to nothing: %s',
    (memory) => expect(parseAgent('a.md', definition(memory))?.filter ?? null).toBeNull(),
  );

  it('is ignored if its front matter would take long to parse', () => {
    expect(parseAgent('a.md', definition(`x: ${'y'.repeat(12_000)}`))?.name).toBe('reviewer');
    expect(parseAgent('a.md', definition('&a '.repeat(40_000)))).toBeNull();
  });
});

describe('subscriptions of subagents', () => {
  async function open(configured = '') {
    const home = await tempDir();
    const [claudeDir, project] = [path.join(home, '.claude'), path.join(home, 'shop')];
    const paths = { subagentConsentsFile: path.join(home, 'subagents.json') };
    const write = async (dir: string, text: string): Promise<void> => {
      await mkdir(path.join(dir, 'agents'), { recursive: true });
      await writeFile(path.join(dir, 'agents', 'reviewer.md'), text);
    };
    return {
      subagents: createSubagents({ paths, claudeDir, configured }),
      project,
      own: (text: string) => write(claudeDir, text),
      theirs: (text: string) => write(path.join(project, '.claude'), text),
      allow: async () => allowAgents(paths, await projectAgents(project)),
    };
  }

  it("of a project's definition hold after consent, until the file changes", async () => {
    const { subagents, project, theirs, allow } = await open();
    const prefixes = async () => (await subagents.ofType('reviewer', project))?.filter.prefixes ?? null;
    await theirs(definition('memory: [Project.]'));
    expect(await prefixes()).toBeNull();
    expect(await subagents.ofPrompt(`Preamble.\n${PROMPT}\nNotes.`, project)).toBeNull();
    await allow();
    expect(await prefixes()).toEqual(['Project.']);
    expect(await subagents.ofPrompt(`Preamble.\n${PROMPT}\nNotes.`, project)).toMatchObject({ agent: 'reviewer' });
    expect(await subagents.ofPrompt('You are someone else.', project)).toBeNull();
    await theirs(definition('memory: [Person.]'));
    expect(await prefixes()).toBeNull();
  });

  it("of the user's own definition hold at once, not for a project's of the same name", async () => {
    const { subagents, project, own, theirs } = await open();
    await own(definition('memory: [Person.]'));
    expect(await subagents.ofType('reviewer', project)).toMatchObject({ filter: { prefixes: ['Person.'] } });
    await theirs(definition('memory: [Project.]'));
    expect(await subagents.ofType('reviewer', project)).toBeNull();
    await theirs(definition('model: opus'));
    expect(await subagents.ofType('reviewer', project)).toBeNull();
  });

  it('of the configuration come first, and say so', async () => {
    const { subagents, project, own } = await open('{"reviewer": {"classes": ["permanent"]}}');
    await own(definition('memory: [Person.]'));
    expect(await subagents.ofType('reviewer', project)).toEqual({
      agent: 'reviewer',
      because: 'facts.subscriptions',
      filter: { prefixes: [], classes: ['permanent'] },
    });
    expect(await subagents.ofType('toString', project)).toBeNull();
  });
});
