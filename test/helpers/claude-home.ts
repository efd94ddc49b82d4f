import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface Said {
  readonly prompt: string;
  readonly answer: string;
  readonly atMs: number;
  /** A call and its result, between prompt and answer. */
  readonly tool?: { readonly name: string; readonly input: object; readonly result: string };
}

export interface SessionLines {
  readonly sessionId: string;
  readonly cwd: string;
  readonly turns: readonly Said[];
}

/** Lines of a transcript in the form of Claude Code 2.1.197, as one was seen to be written. */
export function transcriptLines({ sessionId, cwd, turns }: SessionLines): string[] {
  const lines: object[] = [{ type: 'queue-operation', operation: 'enqueue', sessionId }];
  let parentUuid: string | null = null;
  const put = (line: object, atMs: number): void => {
    const uuid = `${sessionId}-${lines.length}`;
    const timestamp = new Date(atMs).toISOString();
    lines.push({ parentUuid, isSidechain: false, userType: 'external', cwd, sessionId, ...line, uuid, timestamp });
    parentUuid = uuid;
  };
  for (const [nth, { prompt, answer, atMs, tool }] of turns.entries()) {
    const user = (content: unknown, ms: number): void => put({ type: 'user', message: { role: 'user', content } }, ms);
    const assistant = (id: string, block: object, ms: number): void =>
      put(
        {
          type: 'assistant',
          message: { id, type: 'message', role: 'assistant', model: 'claude-opus-4-8', content: [block] },
        },
        ms,
      );
    user(nth % 2 === 0 ? prompt : [{ type: 'text', text: prompt }], atMs);
    put({ type: 'attachment', attachment: { type: 'task_reminder', content: [] } }, atMs);
    const id = `msg_${sessionId}_${nth}`;
    assistant(id, { type: 'thinking', thinking: 'what to say', signature: 'c2ln' }, atMs + 1_000);
    if (tool !== undefined) {
      assistant(id, { type: 'tool_use', id: `toolu_${nth}`, name: tool.name, input: tool.input }, atMs + 1_500);
      user([{ type: 'tool_result', tool_use_id: `toolu_${nth}`, content: tool.result }], atMs + 2_000);
    }
    assistant(tool === undefined ? id : `${id}b`, { type: 'text', text: answer }, atMs + 3_000);
  }
  return lines.map((line) => JSON.stringify(line));
}

/** A folder as Claude Code keeps it; returns the transcript's file. */
export function writeTranscript(claudeDir: string, session: SessionLines, more: readonly string[] = []): string {
  const dir = path.join(claudeDir, 'projects', session.cwd.replace(/[^A-Za-z0-9]/g, '-'));
  mkdirSync(dir, { recursive: true });
  const file = path.join(dir, `${session.sessionId}.jsonl`);
  writeFileSync(file, `${[...transcriptLines(session), ...more].join('\n')}\n`);
  return file;
}
