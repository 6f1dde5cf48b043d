// The page in a real Chromium. Screenshots go to a temporary directory of the run.

import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type BrowserPage, startBrowser } from '../support/chromium.ts';
import { findChromium } from '../support/chromium-program.ts';
import { manualClock } from '../support/manual-clock.ts';
import { tempDir } from '../support/temp.ts';
import {
  busyCluster,
  busyJourney,
  hostile,
  hostileCluster,
  hostileJourney,
  readableLines,
} from './a-journey.ts';
import { aFailure, aMoment, aServer, aSink, aStream, aTap, at, listenTo } from './a-moment.ts';

const screenshots = tempDir('screenshots-');
const isDrawn = `document.querySelectorAll('#streams tbody').length > 0`;

// Where it has to be downloaded first, that is not the first test's time.
beforeAll(async () => {
  await findChromium();
});

test('text from elsewhere stays text, and the page contacts no other server', async () => {
  const { url } = await aServer(hostileJourney, {
    tap: aTap([hostile, `a\u202eb\u0007\nc`]),
    cluster: { look: async () => hostileCluster(), close: () => undefined },
  });
  const page = await startBrowser();

  await page.open(`${url}/`);
  await page.waitFor(isDrawn);
  await page.waitFor(`document.querySelectorAll('#cluster-processes tbody').length === 1`);
  await page.evaluate(`document.getElementById('watch').click()`);
  await page.waitFor(`document.querySelectorAll('#lines li').length === 2`);

  // The browser itself counts how often the text appears, and confirms that it created no element.
  const seen = await page.evaluate<number>(
    `document.body.textContent.split(${JSON.stringify(hostile)}).length - 1`,
  );
  const made = await page.evaluate<number>(
    `document.querySelectorAll('main img, main script, [onload], [onerror]').length`,
  );
  const lines = await page.evaluate<string[]>(
    `[...document.querySelectorAll('#lines li')].map((line) => line.textContent)`,
  );
  const ofCluster = await page.evaluate<number>(
    `document.getElementById('cluster').textContent.split(${JSON.stringify(hostile)}).length - 1`,
  );
  expect(seen).toBeGreaterThan(40);
  expect(ofCluster).toBeGreaterThan(20);
  expect(await page.evaluate(`document.querySelectorAll('#cluster table').length`)).toBe(3);
  expect(lines).toEqual([hostile, 'a\\u202eb\\u0007\\u000ac']);
  expect(made).toBe(0);
  expect(await page.evaluate('typeof window.pwned')).toBe('undefined');
  expect(page.complaints).toEqual([]);
  expect(page.requests.filter((request) => new URL(request).origin !== url)).toEqual([]);
  expect(page.requests.length).toBeGreaterThan(5);
});

test('light and dark, on a phone and on a desk, a busy journey fits the page', async () => {
  const clock = manualClock();
  const start = clock.now();
  const look = () => busyJourney(Math.round((clock.now() - start) / 1_000), clock.now());
  const cluster = { look: async () => busyCluster(clock.now()), close: () => undefined };
  const { url } = await aServer(look, { clock, cluster, tap: aTap(readableLines) });
  await clock.advance(3_000_000);
  const page = await startBrowser();
  await page.look(1440, 900, 'light');
  await page.open(`${url}/`);
  await page.waitFor(`document.querySelectorAll('.chart canvas').length === 4`);
  await clock.advance(1_000);
  await page.waitFor(`document.querySelectorAll('#cluster-processes tbody').length === 3`);
  await page.evaluate(`document.getElementById('watch').click()`);
  await page.waitFor(`document.querySelectorAll('#lines li').length > 2`);

  for (const scheme of ['light', 'dark'] as const) {
    for (const width of [390, 1440]) {
      await page.look(width, 900, scheme);
      await page.waitFor(`document.documentElement.dataset.theme === '${scheme}'`);
      await page.screenshot(join(screenshots, `status-${scheme}-${width}.png`));
      expect(
        await page.evaluate('document.documentElement.scrollWidth - innerWidth'),
      ).toBeLessThanOrEqual(0);
      expect(await worstContrast(page)).toBeGreaterThan(4.5);
    }
  }
  expect(page.complaints).toEqual([]);
});

test('the keyboard reaches everything, reads the charts, and chooses colours that stay', async () => {
  const clock = manualClock();
  const look = () => busyJourney(Math.round(clock.monotonic() / 1_000), clock.now());
  const { url } = await aServer(look, { clock, tap: aTap(['a line']) });
  await clock.advance(600_000);
  const page = await startBrowser();
  await page.look(1440, 900, 'light');
  await page.open(`${url}/`);
  await page.waitFor(`document.querySelectorAll('.chart canvas').length === 4`);
  await page.evaluate(`document.getElementById('watch').click()`);
  await page.waitFor(`document.querySelectorAll('#lines li').length > 0`);
  const focused = `(() => {
    const { id, className, name, href, localName } = document.activeElement;
    return id || href?.split('#')[1] || name || className || localName;
  })()`;

  const reached: string[] = [];
  const outlines = new Set<string>();
  while (!reached.includes('lines') && reached.length < 80) {
    await page.press('Tab');
    reached.push(await page.evaluate(focused));
    outlines.add(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'));
    if (reached.at(-1) === 'theme') await page.press('Enter');
  }

  const crosshairs = await page.evaluate<string[]>(`(() => {
    const key = new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true });
    for (let times = 0; times < 30; times += 1) document.querySelector('.chart').dispatchEvent(key);
    return [...document.querySelectorAll('.chart .when')].map((node) => node.textContent);
  })()`);

  const titles = ['journey', 'charts', 'streams', 'sinks', 'events'].map((name) => `${name}-title`);
  expect(reached.slice(0, 7)).toEqual(['main', ...titles, 'theme']);
  expect(reached.filter((at) => at === 'chart card')).toHaveLength(4);
  expect(reached).toEqual(expect.arrayContaining(['find', 'summary', 'form', 'where', 'wrap']));
  expect(reached).toEqual(expect.arrayContaining(['watch', 'lines']));
  expect([...outlines]).toEqual(['solid']);
  expect(crosshairs).toHaveLength(4);
  expect(crosshairs[0]).toMatch(/^\d\d:\d\d:\d\d$/);
  expect(new Set(crosshairs).size).toBe(1);
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
  await page.open(`${url}/?again`);
  await page.waitFor(isDrawn);
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
});

test('ten thousand streams: the worst first, the others counted and found', async () => {
  const streams = Array.from({ length: 10_000 }, (_, index) =>
    aStream({
      name: `web_logs/c-${index}`,
      source: 'web_logs',
      ...(index === 7_777 ? { state: 'halted', error: aFailure('the cursor is gone') } : {}),
    }),
  );
  const { url } = await aServer(() => aMoment({ streams }));
  const { text } = await listenTo(`${url}/events`);
  const page = await startBrowser();
  await page.look(1440, 900, 'light');
  await page.open(`${url}/`);
  await page.waitFor(isDrawn);
  const seen = (selector: string) =>
    page.evaluate<string>(`document.querySelector('${selector}').textContent`);

  const first = await seen('#streams tbody');
  const counted = await seen('#streams-count');
  const picture = await seen('[data-key="source web_logs"]');
  const rows = await page.evaluate(`document.querySelectorAll('#streams tbody').length`);
  await page.evaluate(`document.getElementById('more').click()`);
  await page.waitFor(`document.querySelectorAll('#streams tbody').length === 100`);
  const elements = await page.evaluate(`document.querySelectorAll('*').length`);
  const states = text()
    .split('\n\n')
    .filter((event) => event.startsWith('event: state'));
  await page.evaluate(`(() => {
    document.getElementById('find').value = 'C-4242';
    document.getElementById('find').dispatchEvent(new Event('input'));
  })()`);
  await page.waitFor(`document.querySelectorAll('#streams tbody').length === 1`);

  expect(first).toContain('web_logs/c-7777');
  expect(first).toContain('the cursor is gone');
  expect(counted).toBe('10,000 streams, the 100 most urgent');
  expect(picture).toContain('10,000 streams');
  expect(rows).toBe(12);
  expect(elements).toBeLessThan(2_500);
  expect(states.length).toBeGreaterThan(0);
  expect(Math.max(...states.map(({ length }) => length))).toBeLessThan(75_000);
  expect(await seen('#streams tbody')).toContain('web_logs/c-4242');
  expect(await seen('#streams-count')).toBe('1 of 10,000 streams found');
});

test('times advance between two updates, and without updates the page claims nothing', async () => {
  const clock = manualClock();
  const waiting = aStream({ next_poll_at: at(clock.now() + 12_000) });
  const halted = aStream({
    name: 'logs',
    state: 'halted',
    next_poll_at: at(clock.now() + 900_000),
  });
  // More than stand there at first: what needs someone comes before them.
  const others = Array.from({ length: 15 }, (_, index) => aStream({ name: `other-${index}` }));
  const streams = [waiting, ...others, halted];
  const sinks = [aSink({ dead_letters: 1 })];
  const { url } = await aServer(() => aMoment({ streams, sinks }), { clock });
  const page = await startBrowser();
  const seen = (selector: string) =>
    page.evaluate<string>(`document.querySelector('${selector}').textContent`);
  const pass = (ms: number) =>
    page.evaluate(`{ const now = Date.now; Date.now = () => now() + ${ms}; }`);
  await page.open(`${url}/`);
  await page.waitFor(isDrawn);

  const atFirst = await seen('#streams');
  await pass(4_000);
  await page.waitFor(`/next poll in [5-8] s/.test(document.getElementById('streams').textContent)`);
  await pass(4_000);
  await page.waitFor(`document.getElementById('verdict').textContent === 'no connection'`);
  const [link, title] = [await seen('#link'), await seen('title')];
  await clock.advance(1_000);
  await page.waitFor(`document.getElementById('verdict').textContent !== 'no connection'`);

  expect(atFirst).toMatch(/logshalted; next poll in 1[45] min.*auditnext poll in 1[0-2] s/);
  expect(link).toMatch(/^no update for \d+ s; reconnecting$/);
  expect(title).toBe('(?) sluice');
  expect(await seen('#verdict')).toBe('1 thing needs attention');
  expect(await seen('#attention')).toMatch(
    /Stream logs is halted.*Sink siem has refused 1 event for good/,
  );
});

test('events are watched with the form and filter of the reader, until the reader stops', async () => {
  const { url } = await aServer(() => aMoment(), { tap: aTap(['one event', 'another event']) });
  const page = await startBrowser();
  await page.open(`${url}/`);
  await page.waitFor(isDrawn);
  const wish = (name: string, value: string) =>
    page.evaluate(`(() => {
      document.querySelector('#tail [name=${name}]').value = '${value}';
      document.querySelector('#tail [name=${name}]').dispatchEvent(new Event('change', { bubbles: true }));
    })()`);
  const offered = await page.evaluate(
    `[...document.getElementById('form').options].map(({ text }) => text)`,
  );
  const asked = () => page.requests.filter((request) => request.includes('/tail?'));

  expect(asked()).toEqual([]);
  await page.evaluate(`document.getElementById('watch').click()`);
  await page.waitFor(`document.querySelectorAll('#lines li').length === 2`);
  await wish('form', 'cef');
  await wish('text', 'another');
  await page.waitFor(`document.querySelectorAll('#lines li').length === 1`);
  const reported = await page.evaluate(`document.getElementById('tail-note').textContent`);
  await wish('where', 'not CEL');
  await page.waitFor(`document.getElementById('tail-note').textContent === 'where: not CEL'`);

  expect(offered).toEqual(['readable', 'json', 'cef', 'as sent to siem']);
  expect(reported).toBe('1 of 2 events shown.');
  expect(asked().at(-1)).toBe(`${url}/tail?form=cef&stream=&text=another&where=not+CEL`);
  expect(await page.evaluate(`document.getElementById('watch').textContent`)).toBe('Watch');
});

test('a stream and a sink are retried when their button is pressed', async () => {
  const asked: string[] = [];
  const retry = (name: string) => {
    asked.push(name);
    return [{ part: 'stream', waitsUntil: null } as const];
  };
  const { url } = await aServer(() => aMoment(), { retry, token: 'a-token' });
  const page = await startBrowser();
  await page.open(`${url}/`);
  await page.waitFor(`!document.getElementById('ask').hidden`);
  await page.evaluate(`(() => {
    document.getElementById('token').value = 'a-token';
    document.querySelector('#ask button').click();
  })()`);
  await page.waitFor(isDrawn);

  for (const id of ['streams', 'sinks']) {
    await page.evaluate(`document.querySelector('#${id} .retry').click()`);
  }

  await expect.poll(() => asked).toEqual(['audit', 'siem']);
});

test('with a name and a password the browser prompts by itself, and the page works', async () => {
  const { url } = await aServer(() => aMoment(), { basicAuth: ['ana', 'a:password'] });
  const page = await startBrowser();
  const address = `${url.replace('//', '//ana:a%3Apassword@')}/`;

  await page.evaluate(`location.href = ${JSON.stringify(address)}`).catch(() => undefined);
  await page.waitFor(`location.href.startsWith('http') && ${isDrawn}`);

  expect(await page.evaluate(`document.getElementById('ask').hidden`)).toBe(true);
});

test('the page prompts for the token, reports a wrong one, and never puts it in an address', async () => {
  const { url } = await aServer(() => aMoment(), { token: 'a-secret-token' });
  const page = await startBrowser();
  await page.open(`${url}/`);
  const typed = (token: string) =>
    page.evaluate(
      `document.getElementById('token').value = '${token}'; document.querySelector('#ask button').click()`,
    );

  await page.waitFor(`document.activeElement.id === 'token'`);
  const hidden = await page.evaluate(`document.getElementById('status').hidden`);
  await typed('wrong');
  await page.waitFor(`document.body.innerText.includes('The token is wrong.')`);
  await typed('a-secret-token');
  await page.waitFor(isDrawn);

  expect(hidden).toBe(true);
  expect(await page.evaluate(`document.getElementById('ask').hidden`)).toBe(true);
  expect(page.requests.filter((request) => request.includes('secret'))).toEqual([]);
});

test('the page comes back by itself when sluice does', async () => {
  const before = await aServer(() => aMoment());
  const port = Number(new URL(before.url).port);
  const page = await startBrowser();
  await page.open(`${before.url}/`);
  await page.evaluate('window.sameDocument = true');
  await page.waitFor(isDrawn);

  await before.close();
  await aServer(() => aMoment({ sinks: [aSink({ name: 'newcomer' })] }), { port });
  await page.waitFor(`document.getElementById('sinks').textContent.includes('newcomer')`);

  expect(await page.evaluate('window.sameDocument')).toBe(true);
});

/** The smallest contrast of any text with the ground it stands on (WCAG 2.2, 1.4.3). */
function worstContrast(page: BrowserPage): Promise<number> {
  return page.evaluate(`(() => {
    const part = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const luminance = ([r, g, b]) =>
      0.2126 * part(r / 255) + 0.7152 * part(g / 255) + 0.0722 * part(b / 255);
    const groundOf = (node) => {
      for (let at = node; at; at = at.parentElement) {
        const colour = numbers(getComputedStyle(at).backgroundColor);
        if (colour.length === 3 || colour[3] > 0) return colour;
      }
      return [255, 255, 255];
    };
    const texts = [...document.querySelectorAll('body *')].filter((node) =>
      [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== '') &&
      node.getClientRects().length > 0);
    return Math.min(...texts.map((node) => {
      const [a, b] = [luminance(numbers(getComputedStyle(node).color)), luminance(groundOf(node))];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }));
  })()`);
}
