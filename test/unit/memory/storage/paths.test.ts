import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { libraryPaths } from '../../../../memory/storage/paths.ts';

const home = { libraryDir: '/home/me/.comet-cc/library' };

describe('libraryPaths', () => {
  it('is in the home by default', () => {
    const { root, tasksDir, inboxDir } = libraryPaths('', home);
    expect([root, tasksDir, inboxDir]).toEqual([
      '/home/me/.comet-cc/library',
      path.join('/home/me/.comet-cc/library', 'tasks'),
      path.join('/home/me/.comet-cc/library', 'inbox'),
    ]);
  });

  it('follows library.dir, with ~ for the home of the user', () => {
    expect(libraryPaths('~/notes/claude', home).root).toBe(path.join(os.homedir(), 'notes/claude'));
  });

  it('places a relative library.dir in the home, in whatever folder a command runs', () => {
    expect(libraryPaths('notes', home).root).toBe('/home/me/.comet-cc/notes');
    expect(libraryPaths('/srv/notes', home).root).toBe('/srv/notes');
  });
});
