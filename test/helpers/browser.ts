import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

/** Why browser tests cannot run here, '' where they can; `.ci/run` installs the browser. */
export const BROWSER_MISSING =
  CHROMIUM === undefined && process.env['CI'] === undefined ? 'chromium was not found; .ci/run installs it' : '';

/** Draws WebGL without a graphics card. */
const FLAGS = ['--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--disable-dev-shm-usage'];

/**
 * Composes pages without WebGL, and shows them all in one process, which takes a sixth less processor time each; frames
 * come at another pace.
 */
export const PLAIN_PAGES = [
  '--disable-gpu-compositing',
  '--renderer-process-limit=1',
  '--disable-site-isolation-trials',
] as const;

export function openBrowser(...more: readonly string[]): Promise<Browser> {
  // Its own sandbox refuses to run as root.
  const flags = [...FLAGS, ...more, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])];
  return chromium.launch({ ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }), args: flags });
}

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** What the page breaks of WCAG 2.2 AA, with the elements. @param rules  tags of axe, or names of its rules */
export async function accessibilityProblems(page: Page, rules: readonly string[] = RULES): Promise<string[]> {
  // It looks for a document as soon as it is imported.
  const { default: axe } = await import('axe-core');
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe.source);
  return page.evaluate(`axe.run(document, { runOnly: ${JSON.stringify(rules)} }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ target }) => target).join(', ')))`);
}
