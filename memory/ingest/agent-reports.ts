import { sha256 } from '../../common/text.ts';
import type { CapturedTurn, Origin } from '../../common/turn.ts';
import { contentText, getBlocks } from './content-blocks.ts';
import { readTurn } from './turn-trust.ts';

/** Before and behind the report in the result of a call (2.1.332), which indents its lines; older versions add the ids. */
const FRAME =
  /^(?: {2}<tools-used-before-summary>[\w ,:.-]{0,400}<\/tools-used-before-summary>\n\s{0,9}\n)?\[Subagent hand-back\] [^\n]{0,1000}\n/;
const IDS =
  /\nagentId: \w{1,40}(?: \((?:for resuming to continue this agent's work if needed|use SendMessage with to: '\w{1,40}', summary: '<5-10 word recap>' to continue this agent)\))?(?:\n<usage>[\w:\s]{0,200}<\/usage>)?\s{0,9}$/;
const NOTICE = /^\s{0,9}(?:<system-reminder>\s{0,9}\[SYSTEM NOTIFICATION|<task-notification>)/;
const [OPEN, CLOSE] = ['<result>', '</result>'];
const ENTITIES: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&amp;': '&' };

/** Reports of subagents that were shown nothing from outside the project. @param known  digests that `keep` was given */
export function createAgentReports(known: readonly string[] = [], keep: (digest: string) => void = () => {}) {
  const clean = new Set(known);
  return {
    /** Returns whether the report counts. @param seen  all that a subagent was shown and said, its report last */
    observe({ untyped: _, ...seen }: CapturedTurn): boolean {
      const last = seen.messages.at(-1);
      const report = last?.role === 'assistant' ? contentText(getBlocks(last)) : '';
      if (report.trim() === '' || readTurn(seen).origin === 'external') return false;
      const digest = digestReport(seen.sessionId, report);
      if (!clean.has(digest)) keep(digest);
      clean.add(digest);
      return true;
    },
    /** `tool` for what brings such a report and nothing else: the result of the call, or the notice of a task. */
    getOrigin(sessionId: string, text: string): Origin | null {
      return clean.has(digestReport(sessionId, getReport(text))) ? 'tool' : null;
    },
  };
}

function getReport(text: string): string {
  if (!NOTICE.test(text)) return text.replace(FRAME, '').replace(IDS, '');
  const from = text.indexOf(OPEN);
  const report = from < 0 ? '' : text.slice(from + OPEN.length, text.lastIndexOf(CLOSE));
  return report.replace(/&(?:lt|gt|amp);/g, (entity) => ENTITIES[entity] as string);
}

const digestReport = (sessionId: string, report: string): string =>
  sha256(`${sessionId}\n${report.replace(/\s+/g, ' ').trim()}`);
