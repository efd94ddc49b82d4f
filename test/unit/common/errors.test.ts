import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { CometError, getMessage } from '../../../common/errors.ts';

const thrown = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);
const refusal = (code: string, message: string): Error => Object.assign(new Error(message), { code });

it.each([
  ['a full disk', refusal('ENOSPC', 'ENOSPC: no space left on device, write')],
  ['a read-only disk', refusal('EROFS', "EROFS: read-only file system, open '/x'")],
  ["somebody else's folder", refusal('EACCES', "EACCES: permission denied, mkdir '/x'")],
  ['a folder that cannot be made', Object.assign(refusal('ENOENT', 'ENOENT: mkdir'), { syscall: 'mkdir' })],
  ['no folder for temporary files', Object.assign(refusal('ENOENT', 'ENOENT: mkdtemp'), { syscall: 'mkdtemp' })],
])('%s is no unexpected error', (_, error) => {
  expect(getMessage(error)).toBe(`${error.message}; check space and permissions`);
});

it('names a file that is where a folder belongs', async () => {
  const message = getMessage(await thrown(writeFile('/dev/null/x', '')));
  expect(message).toBe("ENOTDIR: not a directory, open '/dev/null/x'; a file is where a folder belongs");
});

it('prints a stack only for unexpected errors', async () => {
  expect(getMessage(new CometError('usage', 'try this'))).toBe('try this');
  expect(getMessage(await thrown(writeFile('/nowhere/x', '')))).toMatch(/^unexpected Error: ENOENT.*\n {4}at /s);
  expect(getMessage(new TypeError('no function'))).toMatch(/^unexpected TypeError: no function\n {4}at /);
});
