import { LruMap } from '../../common/map.ts';
import { toRecord, toText } from '../../common/text.ts';
import type { CapturedTurn, Origin } from '../../common/turn.ts';
import { type Block, contentText, digestText, getBlocks } from './content-blocks.ts';
import { toolOrigin } from './turn-trust.ts';

const SESSIONS = 200;

/** In each turn that starts such a command. */
const IN_BACKGROUND = ' Output is being written to: ';
/** Claude Code's words where a command begins in the background, or is moved there later (2.1.332). */
const STARTED =
  /^Command (?:running|was|did not) [^:\n]{1,100}(?:with ID|\(ID): (\w{1,40})[^:\n]{0,200} Output is being written to: (\S{1,1000}\.output)\. /;
/** And where it has ended: what was printed is in the file. */
const ENDED =
  /^\s{0,9}(?:<system-reminder>\s{0,9}\[SYSTEM NOTIFICATION[^<]{0,1500})?<task-notification>\s{0,9}<task-id>(\w{1,40})<\/task-id>(?:\s{0,9}<(?:tool-use-id|output-file|status)>[^<>\n]{0,1000}<\/[a-z-]{6,12}>){0,3}\s{0,9}<summary>Background command "[^"<>\n]{0,200}" [^"<>\n]{0,80}<\/summary>\s{0,9}<\/task-notification>\s{0,9}(?:<\/system-reminder>)?\s{0,9}$/;
/** Commands that show a file. */
const SHOWS = /^(?:cat|head|tail)(?: -\w{1,4}| \d{1,6}){0,3} "?([^\s"]{1,1000})"?$/;

/** What commands in the background print, where they only read the project, by session. */
export function createCommandReports() {
  const known = new LruMap<string, Set<string>>(SESSIONS);
  return {
    /** Notes the commands that a turn starts. Returns the origins of what it reads of the output of such commands. */
    read({ sessionId, projectDir, messages }: CapturedTurn): Readonly<Record<string, Origin>> {
      if (!known.peek(sessionId) && !messages.some(({ content }) => content.includes(IN_BACKGROUND))) return {};
      const uses = new Map<string, Block>();
      const origins: Record<string, Origin> = {};
      for (const block of messages.flatMap(getBlocks)) {
        if (block['type'] === 'tool_use') uses.set(toText(block['id']), block);
        if (block['type'] !== 'tool_result') continue;
        const [use, text] = [uses.get(toText(block['tool_use_id'])), contentText(block['content'])];
        const [, ...names] = STARTED.exec(text) ?? [];
        if (names.length > 0 && toolOrigin(use, projectDir) === 'tool')
          for (const name of names) known.getOrCreate(sessionId, () => new Set()).add(name);
        const own = known.peek(sessionId);
        if (own !== undefined && getSources(use).some((name) => own.has(name))) origins[digestText(text)] = 'tool';
      }
      return origins;
    },
    /** `tool` for the notice that such a command has ended. */
    getOrigin(sessionId: string, text: string): Origin | null {
      return known.peek(sessionId)?.has(ENDED.exec(text)?.[1] ?? '') ? 'tool' : null;
    },
  };
}

/** The file or the command that a call shows the output of. */
function getSources(use: Block | undefined): readonly string[] {
  const { file_path, bash_id, task_id, command } = toRecord(use?.['input']);
  switch (use?.['name']) {
    case 'Read':
      return [toText(file_path)];
    case 'BashOutput':
    case 'TaskOutput':
      return [toText(bash_id), toText(task_id)];
    case 'Bash':
      return [SHOWS.exec(toText(command))?.[1] ?? ''];
    default:
      return [];
  }
}
