import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { homePaths } from '../../common/paths.ts';
import { engineClient } from '../../engine/api/index.ts';
import { BROWSER_MISSING, openBrowser, PLAIN_PAGES } from '../helpers/browser.ts';
import { createLiveRig, type LiveRig, longTalk, openTerminal, type Terminal } from '../helpers/live-rig.ts';
import type { Delivery } from '../mock-anthropic/index.ts';

/** What the page says of a session, as numbers. */
interface Shown {
  readonly answering: boolean;
  /** Tokens of the parts of the bar. */
  readonly bar: string;
  readonly received: string;
  readonly requests: number;
  readonly phases: readonly string[];
  readonly answer: string;
}

describe.skipIf(BROWSER_MISSING !== '')('the dashboard of a running daemon', () => {
  let rig: LiveRig;
  let terminal: Terminal;
  let browser: Browser;
  let delivery: Delivery = {};

  beforeAll(async () => {
    rig = await createLiveRig({ COMET_CC_UI_PORT: '0' }, () => {
      return { kind: 'message', blocks: [{ type: 'text', text: 'Understood, noted. '.repeat(20) }], delivery };
    });
    browser = await openBrowser(...PLAIN_PAGES);
    terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'the broker' });
  });
  afterAll(async () => {
    await browser?.close();
    await rig?.close();
  });

  it('shows the context and the phases of the running request, and its answer as it grows and ends', async () => {
    const { url } = await engineClient(homePaths(rig.home.home).engineSocket).call('ui/open', {});
    const page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(url);
    await page.goto(`${new URL('/', url).href}#/now`);
    await page.getByText('Last request').waitFor();
    const before = await shown(page);
    expect(before).toMatchObject({ answering: false, phases: expect.arrayContaining(['first byte', 'answer']) });

    const [first, last] = [gate(), gate()];
    onTestFinished(() => {
      first.open();
      last.open();
    });
    delivery = { before: first.opened, pause: { afterDeltas: 3, until: last.opened } };
    const prompt = `And the new broker listens on port 4790. ${'It has a long list of consumers. '.repeat(60)}`;
    const said = terminal.say(prompt);

    await page.getByText('answering').waitFor();
    await expect.poll(() => shown(page)).toMatchObject({ answering: true, requests: before.requests });
    const waiting = await shown(page);
    expect(waiting.bar).not.toBe(before.bar);
    expect(waiting.received).not.toBe(before.received);
    expect(waiting.phases).toEqual(expect.arrayContaining(['parse', 'plan']));
    expect(waiting.phases).not.toContain('first byte');

    first.open();
    await expect.poll(async () => (await shown(page)).phases).toEqual(expect.arrayContaining(['first byte', 'answer']));
    const streaming = await shown(page);
    expect(streaming).toMatchObject({ answering: true, bar: waiting.bar });

    last.open();
    await said;
    await page.getByText('answering').waitFor({ state: 'detached' });
    await expect.poll(async () => (await shown(page)).requests).toBe(before.requests + 1);
    const ended = await shown(page);
    expect(ended.phases).toEqual(expect.arrayContaining(['first byte', 'answer']));
    expect(ended.answer).not.toBe(streaming.answer);
  });

  it('tells an engine that was stopped from one that restarts or stays away', async () => {
    const { url } = await engineClient(homePaths(rig.home.home).engineSocket).call('ui/open', {});
    const page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(60_000);
    await page.clock.install();
    await page.goto(url);
    await page.getByText('Last request').waitFor();
    const banner = page.locator('.banner');
    const seen = async (during: () => Promise<unknown>): Promise<string> => {
      const [text] = await Promise.all([banner.textContent(), during()]);
      await banner.waitFor({ state: 'detached' });
      return text ?? '';
    };

    await page.route('**/events', (route) => route.abort());
    const restarts = async (): Promise<void> => {
      await rig.home.run(['restart']);
      for (const _ of [1, 2]) await page.waitForResponse((got) => got.url().endsWith('/session') && got.ok());
      expect(await banner.isVisible()).toBe(true);
      await page.unroute('**/events');
    };
    expect(await seen(restarts)).toMatch(/^The engine restarts\./);
    const stop = rig.home.run(['stop']);
    await page.getByText('comet-cc was stopped. Run comet-cc start;').waitFor();
    await stop;
    expect(await seen(() => rig.home.run(['start']))).toMatch(/^comet-cc was stopped\./);

    await page.route('**/session', (route) => route.abort());
    const { engine } = await rig.status();
    process.kill(engine.pid, 'SIGKILL');
    await page.getByText('The engine restarts.').waitFor();
    await page.clock.fastForward(31_000);
    await page.getByText('The engine does not come back. Run comet-cc start;').waitFor();
    await page.unroute('**/session');
    await banner.waitFor({ state: 'detached' });
  });
});

function gate() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

async function shown(page: Page): Promise<Shown> {
  const card = page.locator('article.card');
  const [answering, bar, facts, phases] = await Promise.all([
    card.getByText('answering').isVisible(),
    card.getByRole('img').getAttribute('aria-label'),
    card.locator('> .facts').textContent(),
    card.locator('.phases .facts span').allInnerTexts(),
  ]);
  const named = phases.slice(1).map((text) => text.replace(/ [\d.,]+ ?(ms|s|µs|min)$/, ''));
  return {
    ...{ answering, bar: bar ?? '', phases: named },
    received: /(\S+) received/.exec(facts ?? '')?.[1] ?? '',
    requests: Number(/(\d+) requests?/.exec(facts ?? '')?.[1]),
    answer: phases.find((text) => text.startsWith('answer')) ?? '',
  };
}
