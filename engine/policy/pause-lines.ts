import { oneLine } from '../../common/text.ts';
import type { Pause, Pauses } from './pauses.ts';

/** What holds, a line each. */
export function pauseLines({ everywhere, projects }: Pauses): string[] {
  return [
    ...(everywhere === null ? [] : [pauseLine('everywhere', everywhere)]),
    ...Object.entries(projects).map(([project, pause]) => pauseLine(`in ${oneLine(project)}`, pause)),
  ];
}

function pauseLine(where: string, { mode, until }: Pause): string {
  const what = mode === 'off' ? 'memory is paused' : 'memory takes nothing in';
  const end = until === null ? 'until comet-cc resume' : `until ${until.slice(0, 16).replace('T', ' ')} UTC`;
  return `${what} ${where}, ${end}`;
}
