import type { Browser, BrowserContext, Page } from 'playwright-core';
import { storyBrain } from '../../bin/demo/response.ts';
import { createStoryClock, openStage, playStory, type Stage } from '../../bin/demo/run.ts';
import { PROJECT_DIR, STORY } from '../../bin/demo/story.ts';
import { createTerm } from '../../bin/terminal/term.ts';
import { openBrowser } from './browser.ts';

/** The built program with the data of the demo's story and three tasks, and a browser that is signed in to its page. */
export interface DashboardRig {
  readonly engine: Stage['engine'];
  readonly browser: Browser;
  readonly context: BrowserContext;
  readonly url: string;
  /** Messages of the page that say something is wrong. */
  readonly complaints: readonly string[];
  /** A tab at an address of the page, such as `#/memory`. */
  open(hash: string): Promise<Page>;
  close(): Promise<void>;
}

const TASKS = [
  { title: 'Renew the Northbound key', priority: 'high', at: 'in 3 days' },
  { title: 'Switch queue_v2 on again', priority: 'medium' },
  { title: 'Ask Marta about the scanners', priority: 'low' },
] as const;

export async function openDashboardRig(): Promise<DashboardRig> {
  const clock = createStoryClock();
  const silent = { write: () => {} };
  const term = createTerm(silent, silent, {});
  const brain = storyBrain(STORY, () => {});
  const [stage, browser] = await Promise.all([
    openStage({ env: process.env, term, brain, clock, keep: false }),
    openBrowser(),
  ]);
  const { engine } = stage;
  const close = async (): Promise<void> => {
    await browser.close();
    await stage.close();
  };
  try {
    const ignore = (): void => {};
    await playStory(stage, STORY, { clock, onRequest: ignore, onTurn: ignore, onMorning: ignore });
    for (const task of TASKS) await engine.call('tasks/add', { ...task, projectDir: PROJECT_DIR, by: 'user' });
    const { url: link } = await engine.call('ui/open', {});
    const url = new URL('/', link).href;
    const context = await browser.newContext({ viewport: { width: 1200, height: 760 }, colorScheme: 'light' });
    context.setDefaultTimeout(100_000);
    const complaints: string[] = [];
    const first = await context.newPage();
    await first.goto(link);
    await first.close();
    return {
      engine,
      browser,
      context,
      url,
      complaints,
      async open(hash) {
        const page = await context.newPage();
        page.on('pageerror', (error) => complaints.push(String(error)));
        page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
        await page.goto(url + hash);
        return page;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
