import { describe, expect, test } from 'vitest';
import { sessionProjects, withSessionDirectory } from '../../../../memory/ingest/imported-turn.ts';

/** `/repo` and what is below it is a repository with a remote. */
const getProject = (directory: string | null): string =>
  directory?.startsWith('/repo') ? 'host/acme/repo' : (directory ?? '');
const getProjects = (...directories: (string | null)[]): string[] =>
  sessionProjects(
    directories.map((projectDir) => ({ projectDir })),
    getProject,
  );

describe('the projects of a session whose folder changes', () => {
  test('are those of the folders; a folder below an earlier one is no project of its own', () => {
    expect(getProjects('/a', '/a/src', '/a/src/deep', '/b', '/a')).toEqual(['/a', '/a', '/a', '/b', '/a']);
    expect(getProjects('C:\\a', 'C:\\a\\src', 'C:\\ab')).toEqual(['C:\\a', 'C:\\a', 'C:\\ab']);
    expect(getProjects('/a', '/abc')).toEqual(['/a', '/abc']);
  });

  test('follow a repository, and a turn without a folder follows the one before it', () => {
    expect(getProjects('/repo', '/repo/src', '/work', '/repo/x')).toEqual([
      'host/acme/repo',
      'host/acme/repo',
      '/work',
      'host/acme/repo',
    ]);
    expect(getProjects(null, '/a', null)).toEqual(['', '/a', '/a']);
  });
});

test('a turn in a folder below is of the directory in which its session entered the project', () => {
  const directories = ['/a/src', '/repo', '/repo/src/deep', '/repository', null, '/a', '/a/src/x', 'C:\\b', 'C:\\b\\c'];
  const turns = directories.map((projectDir) => ({ projectDir }));
  const projects = sessionProjects(turns, getProject);
  expect(withSessionDirectory(turns, projects).map(({ projectDir }) => projectDir)).toEqual([
    '/a/src',
    '/repo',
    '/repo',
    '/repository',
    null,
    '/a',
    '/a/src',
    'C:\\b',
    'C:\\b',
  ]);
});
