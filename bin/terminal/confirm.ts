import { createInterface } from 'node:readline/promises';
import { CometError } from '../../common/errors.ts';

/**
 * Asks on the terminal; anything but y or yes means no.
 *
 * @throws CometError `usage` without a terminal
 */
export async function confirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new CometError('usage', 'not a terminal: pass --yes to confirm');
  }
  const dialog = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await dialog.question(`${question} [y/N] `)).trim());
  } finally {
    dialog.close();
  }
}
