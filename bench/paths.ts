import path from 'node:path';
import { builtFile } from '../common/paths.ts';

/** The built command, as users run it. */
export const CLI = builtFile('bin', 'comet-cc.js');
/** The sources of the checkout, for labels. */
export const BENCH = builtFile('..', 'bench');
/** Real data, where a checkout has it beside it. */
export const DATA = path.resolve(builtFile('..'), '../shared/data');
