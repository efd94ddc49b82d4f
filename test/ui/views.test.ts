import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createClient } from '../../bin/demo/client.ts';
import { PROJECT_DIR, STORY } from '../../bin/demo/story.ts';
import { accessibilityProblems, BROWSER_MISSING } from '../helpers/browser.ts';
import { type DashboardRig, openBareStage, openDashboardRig } from '../helpers/dashboard-rig.ts';

if (BROWSER_MISSING !== '') console.info(`browser tests are skipped: ${BROWSER_MISSING}`);

const HOSTILE = '<img src=x onerror="window.ran = 1"><script>window.ran = 1</script> javascript:window.ran=1';
/** Keeps what has the focus as soon as a column gets a card: a focus later would take it from what was chosen since. */
const KEEP_FIRST_FOCUS = `new MutationObserver((_, self) => {
  if (document.querySelectorAll('[aria-label="blocked"] article').length < 2) return;
  window.firstFocus = document.activeElement.closest('article')?.textContent ?? '';
  self.disconnect();
}).observe(document.body, { childList: true, subtree: true })`;

const MARKED_ROWS = `[...document.querySelectorAll('.list-row')].filter(
  (row) => getComputedStyle(row).backgroundColor !== 'rgba(0, 0, 0, 0)').length`;

describe.skipIf(BROWSER_MISSING !== '')('the dashboard', () => {
  let rig: DashboardRig;
  let hostileId: string;
  beforeAll(async () => {
    rig = await openDashboardRig();
    const { node } = await rig.engine.call('nodes/remember', { text: HOSTILE, projectDir: PROJECT_DIR });
    hostileId = node.node_id;
  });
  afterAll(() => rig?.close());
  afterEach(() => rig.closeTabs());

  const session = STORY[0]?.id ?? '';
  const views: [hash: string, shows: RegExp, picture?: string][] = [
    ['#/now', /saved, costs/, 'now'],
    ['#/savings', /by project/, 'savings'],
    ['#/session', /Sessions/],
    [`#/session/${session}`, /Request \d+ of \d+/],
    ['#/memory', /\d+ memories/],
    ['#/memory?q=sandbox%20port', /7413/],
    ['#/graph', /\d+ of \d+ nodes?/, 'graph'],
    ['#/library', /Active tasks.*Renew the Northbound key/s],
    ['#/library/topics', /statements?/],
    ['#/library/tasks', /Renew the Northbound key/, 'tasks'],
    ['#/library/inbox', /Library/],
    ['#/library/facts', /Library/],
    ['#/health', /healthy/],
  ];

  it.each(views)('shows %s in every size and colour', async (hash, shows, picture) => {
    const page = await rig.open(hash);
    await page.locator('main', { hasText: shows }).waitFor();
    await settled(page);
    expect(await accessibilityProblems(page)).toEqual([]);
    if (picture !== undefined) await takePicture(page, picture);
    for (const width of [390, 2560]) {
      await page.setViewportSize({ width, height: 760 });
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    }
    await page.setViewportSize({ width: 390, height: 760 });
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(rig.complaints).toEqual([]);
  });

  it('begins the days of the time filter at midnight of the zone of the user', async () => {
    const storageState = await rig.context.storageState();
    const context = await rig.browser.newContext({ storageState, timezoneId: 'America/Los_Angeles' });
    const page = await context.newPage();
    await page.clock.setFixedTime('2026-11-03T02:00:00Z');
    await page.goto(`${rig.url}#/memory`);
    for (const [days, since] of [
      ['1', '2026-11-02T08:00:00Z'],
      ['7', '2026-10-27T07:00:00Z'],
    ] as const) {
      const asked = page.waitForRequest((request) => request.postData()?.includes('sinceMs') ?? false);
      await page.getByRole('combobox', { name: 'time' }).selectOption(days);
      expect((await asked).postDataJSON()).toMatchObject({ sinceMs: Date.parse(since) });
    }
    await context.close();
  });

  it('keeps search and filters over a reload, on the way back, and in the address', async () => {
    const page = await rig.open('#/memory?q=sandbox%20port&kind=turn');
    const query = page.getByRole('searchbox');
    const kind = page.getByRole('combobox', { name: 'kind' });
    const isShown = async (text: string, chosen: string): Promise<void> => {
      await expect.poll(() => query.inputValue()).toBe(text);
      expect(await kind.inputValue()).toBe(chosen);
    };
    await isShown('sandbox port', 'turn');
    await query.fill('100% "zone" #1 &');
    await kind.selectOption('document');
    await page.waitForURL(/kind=document/);
    await page.reload();
    await isShown('100% "zone" #1 &', 'document');
    // Once the reload has its answer, which must not be held.
    const clear = page.getByRole('button', { name: 'Clear search and filters' });
    await clear.waitFor();
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route('**/v1/ui/search', (route) => held.then(() => route.continue()));
    await clear.click();
    await query.and(page.locator(':focus')).waitFor();
    await isShown('', '');
    expect(await page.getByText('No memories yet').count()).toBe(0);
    release();
    await page.getByText(/^\d+ memories$/).waitFor();
    await query.fill('barcodes');
    await page.waitForURL(/#\/memory\?q=barcodes$/);
    await page.locator('.list-row').first().click();
    await page.waitForURL(/#\/node\/mem_.*q=barcodes/);
    await query.fill('');
    await page.waitForURL(/#\/node\/mem_[0-9a-f_]*$/);
    await page.goBack();
    await isShown('barcodes', '');
  });

  it('is used with the keyboard alone', async () => {
    const page = await rig.open('#/now');
    await page.locator('main', { hasText: /Saved today/ }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.getByRole('searchbox').and(page.locator(':focus')).waitFor();
    await page.keyboard.type('quiet zone of the barcodes');
    await page
      .getByRole('option')
      .filter({ hasText: /quiet zone/ })
      .first()
      .waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/node\/mem_/);
    await page
      .getByRole('option', { selected: true })
      .filter({ hasText: /quiet zone/ })
      .waitFor();
    await page.keyboard.press('ArrowDown');
    const edit = page.getByRole('button', { name: 'Edit' });
    await edit.press('Enter');
    // Where the keyboard was in the list is not marked as if it was open.
    expect(await page.evaluate(MARKED_ROWS)).toBe(1);
    await page.getByLabel('title').and(page.locator(':focus')).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).press('Enter');
    await edit.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('c');
    const sessions = page.getByRole('listbox', { name: 'Sessions' });
    await sessions.waitFor();
    await page.keyboard.press('Tab');
    await sessions.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('h');
    await page.waitForURL(/#\/health/);
    await page.keyboard.press('g');
    await page.keyboard.press('m');
    expect(await page.getByRole('searchbox').inputValue()).toBe('quiet zone of the barcodes');
    await page.keyboard.type('/8');
    expect(await page.getByRole('searchbox').inputValue()).toContain('8');
  });

  it('leaves characters alone where they are switched off, also after it was loaded again', async () => {
    const page = await rig.open(`#/session/${session}`);
    const place = page.getByText(/^Request \d+ of \d+$/);
    const before = await place.textContent();
    const shortcuts = page.getByRole('checkbox', { name: 'Characters are shortcuts' });
    const choose = async (isOn: boolean): Promise<void> => {
      await page.getByRole('button', { name: 'Keys' }).click();
      await shortcuts.setChecked(isOn);
      await page.getByRole('button', { name: 'Close' }).click();
    };
    await choose(false);
    await page.reload();
    await place.waitFor();
    for (const key of ['[', '?', '/', 'g', 'm']) await page.keyboard.press(key);
    expect(await place.textContent()).toBe(before);
    expect(page.url()).toContain(`#/session/${session}`);
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await choose(true);
    await page.keyboard.press('g');
    await page.keyboard.press('m');
    await page.waitForURL(/#\/memory/);
  });

  it('edits a memory in one tab, shows it in the other, and takes it back', async () => {
    const [node] = await rig.engine.call('nodes/list', { limit: 1, sessionId: session });
    const { node_id: id = '', title = '' } = node ?? {};
    const [page, other] = await Promise.all([rig.open(`#/node/${id}`), rig.open(`#/node/${id}`)]);
    const heading = (tab: Page, text: string) => tab.getByRole('heading', { level: 2, name: text, exact: true });
    await heading(other, title).waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('title').fill('Another title');
    await page.getByRole('button', { name: 'Save' }).click();
    await Promise.all([page, other].map((tab) => heading(tab, 'Another title').waitFor()));
    await other.getByRole('button', { name: 'history', exact: true }).click();
    await other
      .getByRole('group', { name: 'Earlier versions' })
      .getByText(/until .* before an edit/)
      .first()
      .waitFor();
    await page.locator('main h1').click();
    await page.keyboard.press('u');
    await Promise.all([page, other].map((tab) => heading(tab, title).waitFor()));
  });

  it('forgets a memory and brings it back', async () => {
    const { node } = await rig.engine.call('nodes/remember', {
      text: 'The depot has a blue door',
      projectDir: PROJECT_DIR,
    });
    const page = await rig.open(`#/node/${node.node_id}`);
    const listed = page.getByRole('option').filter({ hasText: 'blue door' });
    await listed.waitFor();
    await page.getByRole('button', { name: 'Forget' }).click();
    await listed.waitFor({ state: 'detached' });
    // A change that fails meanwhile leaves the way back.
    const refusal = { error: { code: 'node_invalid', message: `${'x'.repeat(60)} cannot be pinned` } };
    await page.route('**/v1/ui/pin', (route) => route.fulfill({ json: refusal }));
    await page.locator('.list-row').first().click();
    await page.getByRole('button', { name: 'Pin' }).click();
    await page.getByText(refusal.error.message).waitFor();
    await page.setViewportSize({ width: 390, height: 760 });
    const dismiss = await page.getByRole('button', { name: 'Dismiss' }).boundingBox();
    expect((dismiss?.x ?? 0) + (dismiss?.width ?? 390)).toBeLessThanOrEqual(390);
    await page.setViewportSize({ width: 1200, height: 760 });
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Undone.').waitFor();
    await listed.click();
    await page.getByRole('button', { name: 'Forget' }).click();
    await page.getByRole('button', { name: 'Remove now' }).click();
    await page.getByText('Removed for good.').waitFor();
    await page.getByRole('link', { name: 'Savings' }).click();
    await page.getByText('Removed for good.').waitFor({ state: 'detached' });
    const getRight = (selector: string) =>
      page.evaluate(`document.querySelector('${selector}').getBoundingClientRect().right`);
    await page.locator('.chart .u-wrap').waitFor();
    expect(await getRight('.chart .u-wrap')).toBeLessThanOrEqual(Number(await getRight('.chart')));
    await expect(rig.engine.call('nodes/show', { id: node.node_id, depth: 0 })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  it('counts a memory no longer from when it is forgotten, and again once that is undone', async () => {
    const [node] = await rig.engine.call('nodes/list', { limit: 1, sessionId: session });
    const { title } = await rig.engine.call('sessions/show', { sessionId: session });
    const [page, now, sessions] = await Promise.all(
      [`#/node/${node?.node_id}`, '#/now', '#/session'].map((hash) => rig.open(hash)),
    );
    const counts = async (): Promise<readonly number[]> => {
      const figure = await now?.locator('.figure', { hasText: 'Memories' }).locator('strong').textContent();
      const row = await sessions?.getByRole('option').filter({ hasText: title }).first().textContent();
      return [Number(figure), Number(/(\d+) memor/.exec(row ?? '')?.[1])];
    };
    const before = await counts();
    expect(before).toEqual([expect.toSatisfy(Number.isInteger), expect.toSatisfy(Number.isInteger)]);
    await page?.getByRole('button', { name: 'Forget' }).click();
    await expect.poll(counts).toEqual(before.map((count) => count - 1));
    // Nothing can bring back what is removed.
    await page?.getByRole('button', { name: 'Undo' }).click();
    await expect.poll(counts).toEqual(before);
  });

  it('forgets a fact and brings it back', async () => {
    const file = path.join(rig.paths.factsDir, 'user.md');
    await mkdir(rig.paths.factsDir, { recursive: true });
    await writeFile(file, '---\nscope: user\n---\n\n- Person.Preference: tabs\n- Person.Preference: pnpm\n');
    const list = async () => (await rig.engine.call('facts/list', {})).facts;
    const before = await list();
    const [fact] = before;
    const page = await rig.open('#/library/facts');
    const forget = page.getByRole('button', { name: `Forget ${fact?.value}`, exact: true });
    await forget.click();
    await forget.waitFor({ state: 'detached' });
    expect(await list()).toEqual(before.slice(1));
    await page.getByRole('button', { name: 'Undo' }).click();
    await forget.waitFor();
    expect(await list()).toEqual(before);
    await forget.click();
    await page.getByRole('button', { name: 'Remove now' }).click();
    await page.getByText('Removed for good.').waitFor();
    expect(await list()).toEqual(before.slice(1));
    expect(before).toHaveLength(2);
    expect(await readFile(file, 'utf8')).not.toContain(fact?.value);
  });

  it('offers no way back once a memory is removed', async () => {
    const page = await rig.context.newPage();
    await page.clock.install();
    await page.route('**/v1/ui/forget', (route) => route.fulfill({ json: { result: { ids: [], undo: 'a' } } }));
    await page.goto(`${rig.url}#/node/${hostileId}`);
    await page.getByRole('button', { name: 'Forget' }).click();
    await page.getByRole('button', { name: 'Undo' }).waitFor();
    await page.clock.fastForward(20_000);
    await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
  });

  it('reports an answer that is not JSON, and reconnects to the engine', async () => {
    const page = await rig.context.newPage();
    const body = { contentType: 'text/html', body: '<h1>Another program</h1>' };
    await page.route('**/v1/ui/savings', (route) => route.fulfill(body));
    await page.route('**/session', (route) => route.fulfill(body), { times: 1 });
    await page.goto(`${rig.url}#/savings`);
    await page.getByText('The engine does not answer').waitFor();
    await page.unroute('**/v1/ui/savings');
    await page.reload();
    await page.getByText('Net saved').waitFor();
    const rows = page.getByRole('group', { name: 'Savings by day' });
    await rows.getByText('$').first().waitFor();
    await page.getByRole('button', { name: 'tokens' }).click();
    await rows.getByText('$').first().waitFor({ state: 'detached' });
  });

  it('names each day below the chart once, also one without a midnight', async () => {
    const page = await rig.context.newPage();
    const client = await rig.context.newCDPSession(page);
    await client.send('Emulation.setTimezoneOverride', { timezoneId: 'Africa/Cairo' });
    await page.addInitScript(`const draw = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (...args) {
        (window.drawn ??= []).push(args[0]);
        return draw.apply(this, args);
      }`);
    const days = [20, 21, 22, 23, 24, 25, 26, 27].map((day) => `2026-04-${day}`);
    await page.route('**/v1/ui/savings', async (route) => {
      const { result } = await (await route.fetch()).json();
      const [row] = result.days;
      await route.fulfill({ json: { result: { ...result, days: days.map((day) => ({ ...row, day })) } } });
    });
    await page.goto(`${rig.url}#/savings`);
    await page.locator('.chart canvas').waitFor();
    const read = () => page.evaluate<string[]>("window.drawn.filter((text) => text.startsWith('Apr')).slice(-8)");
    await expect.poll(read).toEqual(days.map((day) => `Apr ${day.slice(-2)}`));
  });

  it('keeps the buttons of a memory in sight, however long its title, and wraps long values', async () => {
    const { node } = await rig.engine.call('nodes/remember', { text: 'The lift is slow', projectDir: PROJECT_DIR });
    const long = 'long'.repeat(1_000);
    await rig.engine.call('nodes/edit', { id: node.node_id, change: { set: { title: long, values: long } } });
    const page = await rig.open(`#/node/${node.node_id}`);
    const box = await page.getByRole('button', { name: 'Forget' }).boundingBox();
    expect(box?.y).toBeLessThan(400);
    const summary = page.getByRole('group', { name: 'Summary' });
    expect(await summary.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);
  });

  it('moves a task by dragging, by keyboard and by a list', async () => {
    const page = await rig.open('#/library/tasks');
    const column = (name: string) => page.getByRole('region', { name, exact: true });
    const card = (name: string, title: string) => column(name).getByRole('article').filter({ hasText: title });
    const dragged = async (): Promise<boolean> => {
      const from = card('active', 'Switch queue_v2');
      if (await from.isVisible()) await from.dragTo(column('blocked'));
      return card('blocked', 'Switch queue_v2').isVisible();
    };
    await expect.poll(dragged).toBe(true);
    await page.evaluate(KEEP_FIRST_FOCUS);
    await card('active', 'Ask Marta').focus();
    await page.keyboard.press('ArrowRight');
    await card('blocked', 'Ask Marta').and(page.locator(':focus')).waitFor();
    expect(await page.evaluate('window.firstFocus')).toContain('Ask Marta');
    await page.keyboard.press('ArrowRight');
    await card('done', 'Ask Marta').waitFor();
    await page.getByLabel('Status of Renew the Northbound key').selectOption('done');
    await card('done', 'Renew the Northbound key').waitFor();
    const statuses = async () => (await rig.engine.call('tasks/list', { all: true })).tasks.map(({ status }) => status);
    await expect.poll(async () => (await statuses()).sort()).toEqual(['blocked', 'done', 'done']);
  });

  it('keeps the keyboard on a task whose move fails', async () => {
    const { id } = await rig.engine.call('tasks/add', {
      title: 'Grease the lift',
      projectDir: PROJECT_DIR,
      by: 'user',
    });
    onTestFinished(async () => void (await rig.engine.call('tasks/remove', { id })));
    const page = await rig.open('#/library/tasks');
    const refusal = { error: { code: 'unsafe_file', message: 'the folder is read-only' } };
    await page.route('**/v1/tasks/status', (route) => route.fulfill({ json: refusal }));
    const card = page.getByRole('article').filter({ hasText: 'Grease the lift' });
    await card.press('ArrowRight');
    await page.getByText(refusal.error.message).waitFor();
    await page.getByRole('region', { name: 'active', exact: true }).locator('article:focus').waitFor();
  });

  it('shows a fact as a whole, however long it is', async () => {
    const page = await rig.open('#/now');
    const fact = {
      ...{ id: 'fact_1', concept: 'Person.Preference', value: 'never force push '.repeat(20), project: '' },
      ...{ origin: 'user', valid_to: null, salience: 0.5 },
    };
    await page.route('**/v1/facts/list', (route) =>
      route.fulfill({ json: { result: { facts: [fact], problems: [] } } }),
    );
    await page.goto(`${rig.url}#/library/facts`);
    const value = page.locator('.fact b');
    await value.waitFor();
    expect(await value.evaluate((element) => element.scrollWidth <= element.clientWidth)).toBe(true);
  });

  it('says since when a task is due', async () => {
    await rig.engine.call('tasks/add', { title: 'Call the carrier', at: 'now', projectDir: PROJECT_DIR, by: 'user' });
    const page = await rig.open('#/library/tasks');
    await page
      .getByRole('article')
      .filter({ hasText: /Call the carrier.*due since/s })
      .waitFor();
  });

  it('shows what was trimmed, what stands for it, and why a line was injected', async () => {
    const page = await rig.open(`#/session/${session}`);
    await page.getByText('This stands for them:').first().waitFor();
    await page.getByText('trimmed', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'difference' }).click();
    const difference = page.getByRole('group', { name: 'Received against sent' });
    for (const kind of ['same', 'removed', 'added']) await difference.locator(`pre.${kind}`).first().waitFor();
    await takePicture(page, 'request');
    await page.keyboard.press('[');
    await page.getByText(/^Request \d+ of \d+$/).waitFor();
    await page.getByRole('button', { name: 'injected' }).click();
    await page.getByText(/^Request \d+ of \d+$/).waitFor();
    await page.goto(`${rig.url}#/session/${STORY.at(-1)?.id}?tab=injected`);
    await page.locator('.message .facts a').nth(1).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  it('never runs what memory says, in any field', async () => {
    const said = await rig.fill(HOSTILE);
    const page = await rig.open(`#/node/${hostileId}`);
    await page.getByText('<img src=x').first().waitFor();
    const shown = async (hash: string, text: string | RegExp): Promise<void> => {
      await page.goto(rig.url + hash);
      await page.locator('main').getByText(text).first().waitFor();
      await settled(page);
    };
    await shown('#/memory?q=hostile%20summary', 'hostile title <img');
    await page.getByRole('option').filter({ hasText: 'hostile title' }).click();
    await page.getByRole('heading', { name: 'hostile title <img' }).waitFor();
    for (const tab of ['detail', 'verbatim', 'sources', 'links', 'history', 'summary']) {
      await page.getByRole('button', { name: tab, exact: true }).click();
      await settled(page);
    }
    await page.getByText('hostile outcome <img').waitFor();
    await page.getByRole('button', { name: 'sources', exact: true }).click();
    await page.getByText('a session that is not kept here').waitFor();
    await shown('#/library/tasks', 'hostile task <img');
    await shown('#/library/topics', 'hostile topic <img');
    await shown('#/library/topics/hostile', 'hostile statement <img');
    await shown('#/graph', /\d+ of \d+ nodes?/);
    await shown('#/now', 'hostile prompt <img');
    await shown(`#/session/${said}`, 'hostile prompt <img');
    for (const part of ['answer', 'output']) await page.getByText(`hostile ${part} <img`).first().waitFor();
    for (const tab of ['difference', 'injected']) {
      await page.getByRole('button', { name: tab }).click();
      await settled(page);
    }
    expect(await page.evaluate('[window.ran, document.querySelectorAll("img, main script").length]')).toEqual([
      ...[undefined, 0],
    ]);
  });

  it('pulls the graph with the mouse, and finds the node below it before and after', async () => {
    const page = await rig.open('#/now');
    // Changes of memory from earlier tests would rearrange the graph.
    expect(await rig.engine.call('flush', { timeoutMs: 60_000 })).toBeTruthy();
    onTestFinished(() => page.close());
    await page.addInitScript(KEEP_PIXELS);
    await page.goto(`${rig.url}?#/graph`);
    await page.locator('.canvas canvas').first().waitFor();
    await settled(page);
    const box = await page.locator('.canvas').boundingBox();
    const [left, top] = [box?.x ?? 0, box?.y ?? 0];
    const marked = page.getByRole('status').filter({ has: page.getByText('Show all') });
    // A graph that is drawn again meanwhile takes no click.
    const isMarked = async (): Promise<boolean> => {
      const [x, y] = await stillNode(page);
      await page.mouse.click(left + x, top + y);
      return marked.waitFor({ timeout: 5_000 }).then(
        () => true,
        () => false,
      );
    };
    const markFirst = async (): Promise<string> => {
      await expect.poll(isMarked).toBe(true);
      return (await marked.locator('b').textContent()) ?? '';
    };
    expect(await markFirst()).not.toBe('');
    await page.getByRole('button', { name: 'Show all' }).click();
    const pull = async (): Promise<void> => {
      await page.mouse.move(left + 4, top + 4);
      await page.mouse.down();
      // Straight down: to the side, the highest node could leave the view.
      await page.mouse.move(left + 4, top + 34, { steps: 8 });
      await page.mouse.up();
    };
    const before = await stillNode(page);
    await pull();
    const after = await stillNode(page);
    expect(after).not.toEqual(before);
    expect(await markFirst()).not.toBe('');
    await page.getByRole('button', { name: 'Show all' }).click();
    // A change of memory draws the graph again; the view stays where it is.
    const drawing = page.locator('.sigma-nodes');
    await drawing.evaluate((canvas) => canvas.setAttribute('data-old', ''));
    await rig.engine.call('nodes/edit', { id: hostileId, change: { set: { title: 'Drawn again' } } });
    await page.locator('.sigma-nodes:not([data-old])').waitFor();
    await expect.poll(() => page.evaluate(FIND_NODE)).toEqual(after);
    // A graph that is drawn again meanwhile takes no pull either.
    const pulledBy = async (): Promise<number> => {
      await pull();
      // A click soon after the release is no double click, which would zoom.
      await page.mouse.click(left + 4, top + 34);
      const [x, y] = await stillNode(page);
      expect(x).toBe(after[0]);
      return y - after[1];
    };
    await expect.poll(pulledBy).toSatisfy((down: number) => down > 0 && down < 50);
    // A graph that is drawn again meanwhile sees the pointer when it moves.
    const pointAtNode = async (): Promise<boolean> => {
      const [x, y] = await stillNode(page);
      await page.mouse.move(left + 4, top + 4);
      await page.mouse.move(left + x, top + y);
      return page.locator('.sigma-hovers').isVisible();
    };
    await expect.poll(pointAtNode).toBe(true);
  });

  it('leads to the nodes of the graph with the keyboard', async () => {
    const page = await rig.open('#/graph');
    await page.locator('.canvas canvas').first().waitFor();
    await settled(page);
    expect(await accessibilityProblems(page)).toEqual([]);
    const nodes = page.getByRole('listbox', { name: 'Nodes, most linked first' });
    await page.getByRole('slider').focus();
    await page.keyboard.press('Tab');
    await nodes.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('ArrowDown');
    const active = page.locator(`[id="${await nodes.getAttribute('aria-activedescendant')}"]`);
    const title = (await active.locator('b').textContent()) ?? '';
    expect(await page.evaluate(MARKED_ROWS)).toBe(1);
    const marked = page.getByRole('status').filter({ has: page.getByText('Show all') });
    await marked.getByText(title, { exact: true }).waitFor();
    await page.setViewportSize({ width: 390, height: 760 });
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/(node|memory)/);
    await page.getByText(title).first().waitFor();
  });

  it('can be left during the layout of the graph without an error', async () => {
    const page = await rig.open('#/now');
    for (let turn = 0; turn < 6; turn += 1) {
      await page.goto(`${rig.url}#/graph`);
      await page.locator('.canvas canvas').first().waitFor();
      await page.waitForTimeout(turn * 100);
      await page.goto(`${rig.url}#/memory`);
      await page.getByRole('listbox', { name: 'Memories' }).waitFor();
    }
    expect(rig.complaints).toEqual([]);
  });

  it('shows the graph as a list without WebGL', async () => {
    const page = await rig.open('#/now');
    onTestFinished(() => page.close());
    await page.addInitScript('HTMLCanvasElement.prototype.getContext = () => null');
    await page.goto(`${rig.url}?#/graph`);
    await page.getByText('This browser has no WebGL').waitFor();
    await page.getByRole('listbox', { name: /Nodes/ }).focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/(node|memory)/);
  });

  it('leaves its connection to other tabs while it is in the background, and catches up in sight', async () => {
    const page = await rig.open('#/memory');
    await page.getByRole('listbox', { name: 'Memories' }).waitFor();
    const isEvents = (request: { url(): string }): boolean => request.url().endsWith('/events');
    await Promise.all([page.waitForEvent('requestfailed', isEvents), setHidden(page, true)]);
    const text = 'The gate of the yard is green';
    await rig.engine.call('nodes/remember', { text, projectDir: PROJECT_DIR });
    await Promise.all([page.waitForRequest(isEvents), setHidden(page, false)]);
    await page.getByText(text).first().waitFor();
    expect(await page.locator('.banner').count()).toBe(0);
  });

  it('says that the engine was updated since the page was loaded', async () => {
    const page = await rig.open('#/now');
    await page.getByText('Context saved today').waitFor();
    await page.route('**/session', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ json: { ...(await response.json()), version: '99.0.0' } });
    });
    await setHidden(page, true);
    await setHidden(page, false);
    await page.getByText('comet-cc 99.0.0 runs now. Load this page again').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  it('keeps a row of a list and a node of the graph marked when others come', async () => {
    const page = await rig.open('#/memory');
    const titles = page.locator('.list-row b');
    const marked = page.locator('.list-row.active b');
    const list = page.getByRole('listbox');
    const markThird = async (): Promise<string> => {
      await list.focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowDown');
      return (await marked.textContent()) ?? '';
    };
    const remember = async (text: string): Promise<void> => {
      await rig.engine.call('nodes/remember', { text, projectDir: PROJECT_DIR });
    };
    const row = await markThird();
    await remember('The forklift is red');
    await expect.poll(() => titles.first().textContent()).toContain('forklift');
    expect(await marked.textContent()).toBe(row);
    await page.goto(`${rig.url}#/graph`);
    await page.locator('.canvas canvas').first().waitFor();
    const node = await markThird();
    const shown = page.locator('.marked b');
    await expect.poll(() => shown.textContent()).toBe(node);
    const counted = page.getByText(/^\d+ of \d+ nodes, /);
    const before = await counted.textContent();
    await remember('The crane is blue');
    await expect.poll(() => counted.textContent()).not.toBe(before);
    expect([await shown.textContent(), await marked.textContent()]).toEqual([node, node]);
  });

  it('begins another search at its best, also with the keyboard', async () => {
    const page = await rig.open('#/memory?q=the%20label');
    const list = page.getByRole('listbox', { name: 'Memories' });
    const query = page.getByRole('searchbox');
    await page
      .getByRole('status')
      .getByText(/fit too little/)
      .waitFor();
    await query.press('ArrowDown');
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/node/);
    await query.fill('sandbox port');
    await page.getByText('7413').first().waitFor();
    expect(await list.evaluate((element) => element.scrollTop)).toBe(0);
    await query.press('ArrowDown');
    expect(await list.getAttribute('aria-activedescendant')).toMatch(/-0$/);
    await query.fill('the label');
    await page
      .getByRole('status')
      .getByText(/fit too little/)
      .waitFor();
    expect(await list.evaluate((element) => element.scrollTop)).toBe(0);
  });

  it('scrolls with the keys of the browser where nothing can be chosen', async () => {
    const page = await rig.open(`#/session/${session}`);
    const list = page.getByRole('group', { name: 'Conversation' });
    const getLeft = () =>
      list.evaluate(({ scrollTop, clientHeight, scrollHeight }) => scrollHeight - clientHeight - scrollTop);
    // A key before the messages are there scrolls nothing.
    await expect.poll(getLeft).toBeGreaterThan(0);
    await list.focus();
    const scroll = async (): Promise<number> => {
      await page.keyboard.press('ArrowDown');
      return list.evaluate((element) => element.scrollTop);
    };
    await expect.poll(scroll).toBeGreaterThan(0);
    await page.keyboard.press('End');
    await expect.poll(getLeft).toBeLessThan(2);
  });

  it('keeps the keyboard in the view when what had the focus is gone', async () => {
    const { node } = await rig.engine.call('nodes/remember', { text: 'The ramp is wet', projectDir: PROJECT_DIR });
    const page = await rig.open(`#/node/${node.node_id}`);
    await page.getByRole('button', { name: 'Forget' }).press('Enter');
    await page.waitForURL(/#\/memory/);
    await page.locator('main:focus').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Undone.').waitFor();
  });

  it('takes the colors of the page, and redraws only when they or the figures change', async () => {
    const page = await rig.open('#/savings');
    const isKept = async (selector: string): Promise<boolean> =>
      (await page.locator(`${selector}[data-old]`).count()) > 0;
    const keep = (selector: string) =>
      page
        .locator(selector)
        .first()
        .evaluate((element) => element.setAttribute('data-old', ''));
    await keep('.chart .uplot');
    const [again] = [page.waitForResponse(/ui\/savings/), await setHidden(page, true), await setHidden(page, false)];
    await again;
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    expect(await isKept('.chart .uplot')).toBe(true);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.locator('.chart .uplot:not([data-old])').waitFor();
    await page.goto(`${rig.url}#/graph`);
    await page.locator('.canvas canvas').first().waitFor();
    await keep('.sigma-nodes');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('.sigma-nodes:not([data-old])').waitFor();
    await page.emulateMedia({ colorScheme: 'dark' });
    await settled(page);
    await page.getByRole('listbox').focus();
    await page.keyboard.press('ArrowDown');
    await page.locator('.marked').waitFor();
    // The title of the marked node has white ground.
    await expect.poll(() => page.evaluate(HAS_DARK_TITLE)).toBe(true);
  });

  it('shows what is chosen, and the parts of a bar, in high contrast', async () => {
    const page = await rig.open('#/now');
    onTestFinished(() => page.emulateMedia({ forcedColors: 'none' }));
    await page.emulateMedia({ forcedColors: 'active' });
    await page.locator('.bar .sent').first().waitFor();
    const getStyle = (selector: string, name: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).${name}`);
    const ground = await getStyle('main .figure', 'backgroundColor');
    for (const part of ['.bar .sent', '.swatch.recalled'])
      expect(await getStyle(part, 'backgroundColor')).not.toBe(ground);
    expect(await getStyle('nav a[aria-current]', 'outlineStyle')).toBe('solid');
    await page.keyboard.press('Tab');
    await page.getByRole('listbox').focus();
    expect(await getStyle('.list-row.active', 'outlineStyle')).toBe('solid');
    await page.goto(`${rig.url}#/savings`);
    await page.getByRole('button', { name: 'money' }).waitFor();
    const outlines = '[...document.querySelectorAll(".tabs button")].map((tab) => getComputedStyle(tab).outlineStyle)';
    expect(await page.evaluate(outlines)).toEqual(['solid', 'none', 'solid', 'none', 'none']);
  });

  it('keeps what was typed into the editor of a memory over a look at another one', async () => {
    const { node } = await rig.engine.call('nodes/remember', { text: 'The scale is off', projectDir: PROJECT_DIR });
    const page = await rig.open(`#/node/${node.node_id}`);
    const title = page.getByLabel('title');
    await page.getByRole('button', { name: 'Edit' }).click();
    await title.fill('The scale is off by two');
    await page.locator('.list-row').nth(1).click();
    await title.waitFor({ state: 'detached' });
    await page.goBack();
    expect(await title.inputValue()).toBe('The scale is off by two');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Edit' }).click();
    expect(await title.inputValue()).toBe('The scale is off');
  });

  it('keeps a way back for each memory that is forgotten within the time', async () => {
    const texts = ['The van is at gate one', 'The van is at gate two'];
    for (const text of texts) await rig.engine.call('nodes/remember', { text, projectDir: PROJECT_DIR });
    const page = await rig.open('#/memory');
    const listed = (text: string) => page.getByRole('option').filter({ hasText: text });
    for (const text of texts) {
      await listed(text).click();
      await page.getByRole('heading', { level: 2, name: text }).waitFor();
      await page.getByRole('button', { name: 'Forget' }).click();
      await listed(text).waitFor({ state: 'detached' });
    }
    for (const text of texts.toReversed()) {
      await page.keyboard.press('u');
      await listed(text).waitFor();
    }
  });

  it('reads the state of the engine again each minute', async () => {
    const page = await rig.context.newPage();
    await page.clock.install();
    await page.goto(`${rig.url}#/health`);
    await page.getByText('Node v').waitFor();
    const again = page.waitForRequest(/ui\/health/);
    await page.clock.fastForward(60_000);
    await again;
  });

  it('shows request, part and place of a session again after a reload and on the way back', async () => {
    const page = await rig.open(`#/session/${session}`);
    const list = page.getByRole('group', { name: 'Conversation' });
    await list.focus();
    await page.keyboard.press('End');
    const getTop = () => list.evaluate(({ scrollTop }) => scrollTop);
    await expect.poll(getTop).toBeGreaterThan(1_000);
    const top = await getTop();
    await page.getByRole('link', { name: 'Health' }).click();
    await list.waitFor({ state: 'detached' });
    await page.goBack();
    await list.waitFor();
    expect(Math.abs((await getTop()) - top)).toBeLessThan(100);
    const shown = page.getByText(/^Request \d+ of \d+$/);
    const [, newest] = /of (\d+)/.exec((await shown.textContent()) ?? '') ?? [];
    await page.getByRole('button', { name: 'difference' }).click();
    await page.evaluate("for (let i = 0; i < 3; i += 1) dispatchEvent(new KeyboardEvent('keydown', { key: '[' }))");
    await page.waitForURL(/tab=difference&request=/);
    await page.reload();
    await page.getByText(`Request ${Number(newest) - 3} of ${newest}`).waitFor();
    await page.getByRole('group', { name: 'Received against sent' }).waitFor();
  });

  it('pauses and resumes', async () => {
    const page = await rig.open('#/health');
    await page.getByRole('button', { name: 'Pause everywhere' }).click();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('button', { name: 'Pause everywhere' }).waitFor();
    expect((await rig.engine.call('status', {})).paused.everywhere).toBe(null);
  });

  it('keeps what was typed while the engine is killed, and connects again to one that forgets what waits', async () => {
    const file = path.join(rig.paths.factsDir, 'user.md');
    await mkdir(rig.paths.factsDir, { recursive: true });
    await writeFile(file, '---\nscope: user\n---\n\n- Person.Preference: quiet cars\n');
    const [fact] = (await rig.engine.call('facts/list', {})).facts;
    await rig.engine.call('ui/forget', { ids: [fact?.id ?? ''] });
    const read = () => readFile(file, 'utf8').catch(() => '');
    expect(await read()).toContain('quiet cars');
    const page = await rig.open(`#/node/${hostileId}`);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('title').fill('Typed before the end');
    const { pid } = await rig.engine.call('status', {});
    process.kill(pid, 'SIGKILL');
    await page.getByText('The engine restarts.').waitFor();
    await page.getByText('The engine restarts.').waitFor({ state: 'detached' });
    expect(await page.getByLabel('title').inputValue()).toBe('Typed before the end');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 2, name: 'Typed before the end' }).waitFor();
    await expect.poll(read).not.toContain('quiet cars');
  });

  it('counts the days of the user where UTC has another one', async () => {
    // Half the world has yesterday in the morning of UTC, and some of it tomorrow in its afternoon.
    const zone = new Date().getUTCHours() < 12 ? 'Etc/GMT+12' : 'Etc/GMT-14';
    vi.stubEnv('TZ', zone);
    const stage = await openBareStage('').finally(() => vi.unstubAllEnvs());
    const context = await rig.browser.newContext({ timezoneId: zone });
    try {
      const page = await context.newPage();
      const today = () => page.evaluate<string>("new Date().toLocaleDateString('en-CA')");
      const [url, before] = [await signIn(page, stage), await today()];
      expect(before).not.toBe(new Date().toISOString().slice(0, 10));
      const [first] = STORY;
      const [turn] = first?.turns ?? [];
      if (first === undefined || turn === undefined) throw new Error('the story has a turn');
      await createClient(stage.way, first, () => {}).play(turn);
      await page.goto(`${url}#/savings`);
      const row = page.getByRole('group', { name: 'Savings by day' }).getByText(/^\d{4}-\d\d-\d\d$/);
      expect([before, await today()]).toContain(await row.first().textContent());
    } finally {
      await context.close();
      await stage.close();
    }
  });

  it('says what to do first in an empty store, and that a store still opens', async () => {
    const page = await rig.context.newPage();
    const empty = await openBareStage('');
    const first: readonly (readonly [string, string])[] = [
      ['#/now', 'No session has sent a request yet'],
      ['#/savings', 'Nothing was counted yet'],
      ['#/session', 'No session is kept yet'],
      ['#/memory', 'No memories yet'],
      ['#/graph', 'Nothing to draw yet'],
      ['#/library', 'No index yet'],
      ['#/library/topics', 'No topic page yet'],
      ['#/library/tasks', 'No task yet'],
      ['#/library/inbox', 'Nothing came in'],
      ['#/library/facts', 'No fact is known yet'],
    ];
    try {
      const url = await signIn(page, empty);
      for (const [hash, text] of first) {
        await page.goto(url + hash);
        await page.getByText(text).waitFor();
      }
    } finally {
      await empty.close();
    }
    const opening = await openBareStage('store:hang');
    try {
      await page.goto(`${await signIn(page, opening)}#/now`);
      await page.getByText('the store is still opening').waitFor();
    } finally {
      await opening.close();
    }
  });

  it('keeps two users of one machine apart in one browser', async () => {
    const other = await openBareStage('');
    try {
      const page = await rig.context.newPage();
      const { url } = await other.engine.call('ui/open', {});
      expect(new URL(url).port).not.toBe(new URL(rig.url).port);
      await page.goto(new URL('/', url).href);
      await page.getByText('This browser is not signed in').waitFor();
      await page.goto(url);
      await page.goto(`${new URL('/', url).href}#/memory`);
      await page.getByText('No memories yet').waitFor();
      await page.goto(`${rig.url}#/memory`);
      await page
        .getByRole('status')
        .filter({ hasText: /\d+ memories/ })
        .waitFor();
    } finally {
      await other.close();
    }
  });

  it('says how to sign in again', async () => {
    const { url: link } = await rig.engine.call('ui/open', {});
    const stolen = await rig.browser.newContext();
    const thief = await stolen.newPage();
    await (await rig.context.newPage()).goto(link);
    await thief.goto(link);
    await thief.getByText('This link was used before, or it has expired').waitFor();
    await stolen.close();
    const page = await rig.open('#/now');
    await rig.context.clearCookies();
    // No click: the page may notice by itself, and take its links away.
    await page.evaluate("location.hash = '#/health'");
    await page.getByText('Run comet-cc ui for a new link').waitFor();
    // Another tab signs in.
    const { url: next } = await rig.engine.call('ui/open', {});
    const other = await rig.context.newPage();
    await other.goto(next);
    await other.close();
    await page.bringToFront();
    await page.evaluate("dispatchEvent(new Event('focus'))");
    await page.getByText('Run comet-cc ui for a new link').waitFor({ state: 'detached' });
    await page.getByText('Node v').waitFor();
    await rig.context.clearCookies();
    await page.goto(`${rig.url}?#/now`);
    await page.getByText('comet-cc ui', { exact: true }).waitFor();
  });
});

async function signIn(page: Page, { engine }: Pick<DashboardRig, 'engine'>): Promise<string> {
  const { url } = await engine.call('ui/open', {});
  await page.goto(url);
  return new URL('/', url).href;
}

/** As a browser says of a tab in the background. */
function setHidden(page: Page, isHidden: boolean): Promise<unknown> {
  return page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`);
}

/** Its shadow is black as well, and nowhere opaque. */
const HAS_DARK_TITLE = `(() => {
  const { width, height } = document.querySelector('.sigma-hovers');
  const { data } = document.querySelector('.sigma-hovers').getContext('2d').getImageData(0, 0, width, height);
  return data.some((red, at) => at % 4 === 0 && red < 100 && data[at + 3] === 255);
})()`;

const KEEP_PIXELS = `{
  const { getContext } = HTMLCanvasElement.prototype;
  HTMLCanvasElement.prototype.getContext = function (type, options) {
    return getContext.call(this, type, { ...options, preserveDrawingBuffer: true });
  };
}`;

/** The middle of the highest node in the drawing, in pixels, after a frame in which it could move. */
const FIND_NODE = `(async () => {
  for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
  const nodes = document.querySelector('.sigma-nodes');
  const copy = new OffscreenCanvas(nodes.width, nodes.height).getContext('2d');
  copy.drawImage(nodes, 0, 0);
  const { data } = copy.getImageData(0, 0, nodes.width, nodes.height);
  const isDrawn = (x, y) => data[4 * (y * nodes.width + x) + 3] === 255;
  for (let y = 4; y < nodes.height - 4; y += 1)
    for (let x = 4; x < nodes.width - 4; x += 1)
      if ([-3, 0, 3].every((down) => [-3, 0, 3].every((right) => isDrawn(x + right, y + down))))
        return [x, y];
  return null;
})()`;

/** Of the highest node, once it is at rest. */
async function stillNode(page: Page): Promise<readonly [number, number]> {
  let last: unknown = null;
  const find = async (): Promise<boolean> => {
    const place = await page.evaluate(FIND_NODE);
    const isStill = place !== null && JSON.stringify(place) === JSON.stringify(last);
    last = place;
    return isStill;
  };
  await expect.poll(find).toBe(true);
  return last as [number, number];
}

/** Waits for pictures of the newest state: fonts, charts and the arranged graph. */
async function settled(page: Page): Promise<void> {
  await expect.poll(() => page.locator('.reading, .layout').count()).toBe(0);
}

/** With `DOCS_SCREENSHOTS=write`. */
async function takePicture(page: Page, name: string): Promise<void> {
  if (process.env['DOCS_SCREENSHOTS'] !== 'write') return;
  const folder = path.join(import.meta.dirname, '..', '..', 'docs', 'images');
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, `dashboard-${name}.png`), await page.screenshot({ animations: 'disabled' }));
}
