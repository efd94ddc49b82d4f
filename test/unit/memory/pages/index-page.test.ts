import { expect, it } from 'vitest';
import { type Page, parsePage } from '../../../../memory/model/page.ts';
import { parseTask, type Task } from '../../../../memory/model/task.ts';
import { renderIndex } from '../../../../memory/pages/index-page.ts';

const task = (name: string, fields = ''): Task => {
  const read = parseTask(`---\ntitle: ${name}\ncreated: 2026-03-01\n${fields}\n---\n`, name);
  if (typeof read === 'string') throw new Error(read);
  return read;
};
const page = parsePage('---\ntitle: T\nscope: user\nupdated: 2026-03-01\n---\n') as Page;
const NOTHING = { pages: new Map(), others: new Map(), plans: new Map(), tasks: [], episodes: [] };

it('links active tasks, the most urgent first, and says which a tool noted', () => {
  const tasks = [
    task('low', 'priority: low'),
    task('done', 'status: done'),
    task('blocked', 'status: blocked'),
    task('from a tool', 'origin: tool'),
    task('first', 'priority: high\ntrigger: 2026-03-04 09:00\nproject: /home/dev/shop'),
  ];
  expect(renderIndex({ ...NOTHING, tasks })).toMatch(
    /\n## Active tasks\n\n- \[first\]\(tasks\/active\/first\.md\) · 2026-03-04 09:00 · shop\n- \[from a tool\]\(tasks\/active\/from%20a%20tool\.md\) · noted by a tool\n- \[low\]\(tasks\/active\/low\.md\)\n$/,
  );
});

it('links a page whatever its name', () => {
  const others = new Map([['team/C# (old)', 'C#']]);
  expect(renderIndex({ ...NOTHING, others })).toContain('- [C#](topics/team/C%23%20%28old%29.md)\n');
});

it('raises what surfaced and is still open, but nothing that comes again', () => {
  const fired = 'fired: 2026-03-04T09:00:00.000Z';
  const tasks = [
    task('wanted'),
    task('daily', `priority: low\ntrigger: 0 9 * * 1-5\n${fired}`),
    task('missed', `priority: medium\ntrigger: 2026-03-04 09:00\n${fired}`),
    task('urgent', 'priority: high'),
  ];
  const names = renderIndex({ ...NOTHING, tasks }).match(/(?<=- \[)\w+/g);
  expect(names).toEqual(['missed', 'urgent', 'wanted', 'daily']);
  expect(renderIndex({ ...NOTHING, tasks })).toContain('2026-03-04 09:00 · overdue\n');
});

it('lists pages of a single old memory last', () => {
  const of = (updated: string, sources: string): Page =>
    parsePage(`---\ntitle: T\nscope: user\nupdated: ${updated}\nsources: [${sources}]\n---\n`) as Page;
  const pages = new Map([
    ['weak', of('2026-03-01', 'a')],
    ['fresh', of('2026-06-01', 'a')],
    ['strong', of('2026-02-01', 'a, b')],
    ['own', of('2026-01-01', '')],
    ['odd', of('2026-99-99', 'a')],
  ]);
  const names = renderIndex({ ...NOTHING, pages }).match(/(?<=topics\/)\w+(?=\.md)/g);
  expect(names).toEqual(['odd', 'fresh', 'strong', 'own', 'weak']);
});

it('has 200 lines at most', () => {
  const many = <T>(one: (nth: number) => T): T[] => Array.from({ length: 300 }, (_, nth) => one(nth));
  const index = renderIndex({
    pages: new Map(many((nth) => [`t${nth}`, page])),
    others: new Map(many((nth) => [`o${nth}`, 'x'])),
    plans: new Map(many((nth) => [`p${nth}`, 'x'])),
    tasks: many((nth) => task(`task ${nth}`)),
    episodes: many(() => ({ day: '2026-03-01', title: 'x', project: 'p', link: 'x' })),
  });
  expect(index.split('\n').length).toBeLessThanOrEqual(200);
  expect(index).toContain('… and 270 more in `tasks/active/`');
});
