import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { createClient } from '../../bin/demo/client.ts';
import { storyBrain } from '../../bin/demo/response.ts';
import { createStoryClock, openStage, playStory, type Stage } from '../../bin/demo/run.ts';
import { PROJECT_DIR, STORY, type StorySession } from '../../bin/demo/story.ts';
import { createTerm } from '../../bin/terminal/term.ts';
import type { Brain } from '../mock-anthropic/index.ts';
import { openBrowser, PLAIN_PAGES } from './browser.ts';

/** The built program with the data of the demo's story and three tasks, and a browser that is signed in to its page. */
export interface DashboardRig extends Pick<Stage, 'engine' | 'paths'> {
  readonly browser: Browser;
  readonly context: BrowserContext;
  readonly url: string;
  /** Messages of the page that say something is wrong. */
  readonly complaints: readonly string[];
  /**
   * Puts this text into every field of a memory, a task and a topic page named `hostile`, and says it in a session: as
   * prompt, thinking, answer, call and output of a tool.
   *
   * @returns id of the session
   */
  fill(text: string): Promise<string>;
  /** A tab at an address of the page, such as `#/memory`. */
  open(hash: string): Promise<Page>;
  /** Closes all tabs but one, which is cleared for the next `open`: a new one takes more time than most tests. */
  closeTabs(): Promise<void>;
  close(): Promise<void>;
}

const TASKS = [
  { title: 'Renew the Northbound key', priority: 'high', at: 'in 3 days' },
  { title: 'Switch queue_v2 on again', priority: 'medium' },
  { title: 'Ask Marta about the scanners', priority: 'low' },
] as const;

/** The built program with nothing in memory. @param fault  for `COMET_FAULT`; '' for none */
export function openBareStage(
  fault: string,
  clock = createStoryClock(),
  brain = storyBrain(STORY, () => {}),
): Promise<Stage> {
  const silent = { write: () => {} };
  const term = createTerm(silent, silent, {});
  const env = { ...process.env, COMET_FAULT: fault };
  return openStage({ env, term, brain, clock, keep: false });
}

export async function openDashboardRig(): Promise<DashboardRig> {
  const clock = createStoryClock();
  const sessions = [...STORY];
  const brain: Brain = (request) => storyBrain(sessions, () => {})(request);
  const [stage, browser] = await Promise.all([openBareStage('', clock, brain), openBrowser(...PLAIN_PAGES)]);
  const { engine, paths } = stage;
  const close = async (): Promise<void> => {
    await browser.close();
    await stage.close();
  };
  try {
    const ignore = (): void => {};
    await playStory(stage, STORY, { clock, onRequest: ignore, onTurn: ignore });
    for (const task of TASKS) await engine.call('tasks/add', { ...task, projectDir: PROJECT_DIR, by: 'user' });
    const { url: link } = await engine.call('ui/open', {});
    const url = new URL('/', link).href;
    const viewport = { width: 1200, height: 760 };
    const context = await browser.newContext({ viewport, colorScheme: 'light' });
    context.setDefaultTimeout(60_000);
    const complaints: string[] = [];
    const first = await context.newPage();
    await first.goto(link);
    await first.close();
    let tab: Page | null = null;
    let isTaken = false;
    const newTab = async (): Promise<Page> => {
      const page = await context.newPage();
      page.on('pageerror', (error) => complaints.push(String(error)));
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      return page;
    };
    return {
      engine,
      paths,
      browser,
      context,
      url,
      complaints,
      async fill(text) {
        const session = sessionSaying(text);
        sessions.push(session);
        await fill(stage, text);
        for (const turn of session.turns) await createClient(stage.way, session, ignore).play(turn);
        return session.id;
      },
      async open(hash) {
        const isFree = !isTaken && tab?.isClosed() === false;
        isTaken = true;
        const page = isFree ? (tab as Page) : await newTab();
        if (tab?.isClosed() !== false) tab = page;
        // Another one may be above it, which then has the focus.
        await page.bringToFront();
        await page.goto(url + hash);
        return page;
      },
      async closeTabs() {
        await Promise.all(context.pages().map((page) => page !== tab && page.close()));
        if (tab?.isClosed() === false) {
          await tab.goto('about:blank');
          await Promise.all([tab.unrouteAll(), tab.setViewportSize(viewport)]);
          await tab.emulateMedia({ colorScheme: 'light' });
        }
        isTaken = false;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function sessionSaying(text: string): StorySession {
  const tool = { name: 'Read', input: { file_path: `/home/dev/${text}` }, result: `hostile output ${text}` };
  const turn = {
    ...{ topic: text, prompt: `hostile prompt ${text}`, rounds: [{ thinking: text, text, tools: [tool] }] },
    ...{ thinking: text, answer: `hostile answer ${text}` },
  };
  return { id: crypto.randomUUID(), pauseMs: 0, turns: [turn] };
}

async function fill({ engine, paths }: Stage, text: string): Promise<void> {
  const at = '2026-11-25T01:00:00.000Z';
  const node = {
    ...{ node_id: 'mem_20261125_010000_bad001', kind: 'turn', session_id: 'hostile', project: `/home/dev/${text}` },
    ...{ author: { by: 'model', model: text }, origin: 'user', compaction_reason: 'forced' },
    ...{ valid_from: at, created_at: at, title: `hostile title ${text}`, summary: `hostile summary ${text}` },
    ...{ outcome: `hostile outcome ${text}`, trigger: text, topic_tags: [text, 'ports'], values: [text], links: [] },
    ...{
      decisions: [{ text, turn: 'a', by: 'user', origin: 'user' }],
      source_links: [`file:${text}.ts`, `document:${text}`],
    },
  };
  const file = path.join(paths.home, 'hostile.jsonl');
  await writeFile(file, `{"comet-cc-export":2}\n${JSON.stringify({ node })}\n`);
  await engine.call('memory/import', { file, as: 'export', trusted: true });
  await engine.call('tasks/add', { title: `hostile task ${text}`, what: text, projectDir: PROJECT_DIR, by: 'user' });
  const topics = path.join(paths.libraryDir, 'topics');
  await mkdir(topics, { recursive: true });
  await writeFile(path.join(topics, 'hostile.md'), `# hostile topic ${text}\n\n- hostile statement ${text}\n`);
}
