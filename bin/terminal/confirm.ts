import { createInterface } from 'node:readline/promises';
import { CometError } from '../../common/errors.ts';

/**
 * Asks on the terminal; anything but y or yes means no.
 *
 * @throws CometError `usage` where nobody can be asked
 */
export async function confirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new CometError('usage', 'nobody can be asked here: add --yes to go on');
  }
  const dialog = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await dialog.question(`${question} [y/N] `)).trim());
  } finally {
    dialog.close();
  }
}
