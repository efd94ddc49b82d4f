import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { isDirectoryName } from '../../common/paths.ts';

// Fields that operations share.
export const text = z.string().max(4_096);
export const id = z.string().min(1, 'expected an id (got "")').max(200, 'no id is that long');
export const ids = z.array(id).min(1).max(1_000);
export const absolutePath = text.refine(isAbsolute, 'an absolute path');
/** Need not exist on this machine. */
export const projectPath = text.refine(isDirectoryName, 'an absolute path');
