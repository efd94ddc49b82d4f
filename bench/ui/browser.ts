import { readFile } from 'node:fs/promises';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { BROWSER_MISSING, openBrowser } from '../../test/helpers/browser.ts';
import { type Spread, spread } from '../latency/stats.ts';

/** Why there are no figures of a browser, '' where there are. */
export const MISSING = BROWSER_MISSING;

const VIEWS: readonly (readonly [hash: string, shows: string])[] = [
  ['#/now', '.figures'],
  ['#/savings', '.uplot'],
  ['#/memory', '[aria-label="Memories"] .list-row'],
  ['#/graph', '.canvas canvas'],
  ['#/library', '[aria-label="Index"]'],
];
const OPENINGS = 5;
const PANS = 3;
const PAN_STEPS = 60;

export type BrowserFigures = Awaited<ReturnType<typeof measureBrowser>>;

/**
 * What a person waits for, in Chromium: a software renderer draws WebGL here, so frames are a lower bound.
 *
 * @param link  signs the browser in
 * @param queries  typed letter by letter, each letter once the result of the last one is there
 */
export async function measureBrowser(link: string, queries: readonly string[]) {
  const browser = await openBrowser();
  try {
    const context = await browser.newContext({ viewport: { width: 1_280, height: 800 }, bypassCSP: true });
    context.setDefaultTimeout(120_000);
    await (await context.newPage()).goto(link);
    const url = new URL('/', link).href;
    const root = await browser.newBrowserCDPSession();
    const views: Record<string, { ms: Spread; cpuMs: number }> = {};
    for (const [hash, shows] of VIEWS) {
      const times: number[] = [];
      const cpu: number[] = [];
      for (let at = 0; at < OPENINGS; at += 1) {
        const page = await context.newPage();
        const before = await cpuTimes(root);
        times.push(await firstViewMs(page, url + hash, shows));
        cpu.push((await cpuTimes(root)).page - before.page);
        await page.close();
      }
      views[hash.slice(2)] = { ms: spread(times), cpuMs: spread(cpu).p50 };
    }
    const page = await context.newPage();
    await page.goto(`${url}#/memory`);
    const search = await typeQueries(page, queries);
    await page.goto(`${url}#/graph`);
    const graph = await panGraph(browser, page);
    const memory = await tabMemory(browser, page);
    return { version: browser.version(), first_view_ms: views, search, graph, tab: memory };
  } finally {
    await browser.close();
  }
}

/** From the start of the navigation to the frame after the first content. */
async function firstViewMs(page: Page, url: string, shows: string): Promise<number> {
  await page.addInitScript(`(() => {
    const look = () => document.querySelector(${JSON.stringify(shows)}) === null
      ? requestAnimationFrame(look)
      : requestAnimationFrame(() => (window.shownMs = performance.now()));
    requestAnimationFrame(look);
  })()`);
  await page.goto(url);
  await page.waitForFunction('window.shownMs !== undefined');
  return await page.evaluate<number>('window.shownMs');
}

/** One letter after the other; `server`: between the request and the last byte of its answer. */
async function typeQueries(page: Page, queries: readonly string[]) {
  const field = page.getByRole('searchbox');
  await field.waitFor();
  await page.locator('[aria-busy=false]').waitFor();
  await page.evaluate(WATCH_KEYS);
  const all: number[] = [];
  const server: number[] = [];
  for (const query of queries) {
    await field.fill('');
    await page.locator('[aria-busy=false]').waitFor();
    for (const letter of query) {
      await page.evaluate('window.resultMs = null');
      await page.keyboard.type(letter);
      await page.waitForFunction('window.resultMs !== null');
      const [shown, asked] = await page.evaluate<[number, number]>('[window.resultMs, window.askedMs()]');
      all.push(shown);
      server.push(asked);
    }
  }
  await field.fill('');
  await page.locator('[aria-busy=false]').waitFor();
  await page.evaluate('window.resultMs = null');
  const query = queries[0] ?? '';
  await page.keyboard.type(query, { delay: 100 });
  await page.waitForFunction('window.resultMs !== null');
  const last = await page.evaluate<number>('window.resultMs');
  return {
    keystroke_ms: spread(all),
    server_ms: spread(server),
    page_ms: spread(all.map((ms, at) => ms - (server[at] ?? 0))),
    /** From the last letter of a query that was typed at ten letters a second. */
    fluent_ms: last,
  };
}

/** Sets `resultMs` in the frame after the results of the newest letter. */
const WATCH_KEYS = `
  addEventListener('input', () => {
    const fromMs = performance.now();
    performance.clearResourceTimings();
    window.newest = fromMs;
    const look = () => {
      if (window.newest !== fromMs) return;
      if (document.querySelector('[aria-busy=false]') === null) return requestAnimationFrame(look);
      window.resultMs = performance.now() - fromMs;
    };
    setTimeout(() => requestAnimationFrame(look));
  }, true);
  window.askedMs = () => {
    const asked = performance.getEntriesByName(location.origin + '/v1/ui/search').at(-1);
    return asked === undefined ? 0 : asked.responseEnd - asked.requestStart;
  };`;

/** Frames a second while the mouse pulls the arranged graph, and how long it took to arrange. */
async function panGraph(browser: Browser, page: Page) {
  const fromMs = performance.now();
  await page.locator('.canvas canvas').first().waitFor();
  await page.locator('.layout').waitFor({ state: 'detached' });
  const arrangedMs = performance.now() - fromMs;
  const box = await page.locator('.canvas').boundingBox();
  const [x, y] = [(box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + (box?.height ?? 0) / 2];
  await page.evaluate(WATCH_FRAMES);
  const root = await browser.newBrowserCDPSession();
  const rates: number[] = [];
  const cpuMs: { page: number; drawing: number }[] = [];
  for (let pan = 0; pan < PANS; pan += 1) {
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.evaluate('window.frames.length = 0');
    const before = await cpuTimes(root);
    for (let step = 1; step <= PAN_STEPS; step += 1) {
      const angle = (step / PAN_STEPS) * 2 * Math.PI;
      await page.mouse.move(x + 120 * Math.sin(angle), y + 120 * (1 - Math.cos(angle)));
    }
    rates.push(await page.evaluate<number>('1_000 * (frames.length - 1) / (frames.at(-1) - frames[0])'));
    const frames = await page.evaluate<number>('frames.length');
    const after = await cpuTimes(root);
    cpuMs.push({ page: (after.page - before.page) / frames, drawing: (after.drawing - before.drawing) / frames });
    await page.mouse.up();
  }
  return {
    arranged_ms: Math.round(arrangedMs),
    frames_per_second: rates.map((rate) => Math.round(rate)),
    /** Of each frame, which other work on the machine does not change. */
    cpu_ms: {
      page: spread(cpuMs.map((each) => each.page)).p50,
      drawing: spread(cpuMs.map((each) => each.drawing)).p50,
    },
  };
}

/** CPU time so far, ms: of all pages, and of the process that draws. */
async function cpuTimes(root: CDPSession): Promise<{ page: number; drawing: number }> {
  const { processInfo } = await root.send('SystemInfo.getProcessInfo');
  const of = (name: string): number =>
    processInfo.filter(({ type }) => type === name).reduce((sum, { cpuTime }) => sum + 1_000 * cpuTime, 0);
  return { page: of('renderer'), drawing: of('GPU') };
}

const WATCH_FRAMES = `
  window.frames = [];
  const next = (atMs) => {
    window.frames.push(atMs);
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);`;

/** MB of the tab that shows the graph: private memory of its process, and JavaScript's part of it. */
async function tabMemory(browser: Browser, page: Page) {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  const root = await browser.newBrowserCDPSession();
  return { heap: Math.round(usedSize / 2 ** 20), process: await privateMb(root) };
}

/** Of the largest renderer: the only one with a page that holds much. */
async function privateMb(root: CDPSession): Promise<number> {
  const { processInfo } = await root.send('SystemInfo.getProcessInfo');
  const sizes = await Promise.all(
    processInfo
      .filter(({ type }) => type === 'renderer')
      .map(async ({ id }) => {
        const status = await readFile(`/proc/${id}/status`, 'utf8').catch(() => '');
        return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1] ?? 0);
      }),
  );
  return Math.round(Math.max(0, ...sizes) / 1_024);
}
