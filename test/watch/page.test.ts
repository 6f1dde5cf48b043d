// The page in a real Chromium. Screenshots go to .cache/screenshots, for people to look at.

import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Watched, WatchedStream } from '../../src/watch/watched.ts';
import { type BrowserPage, startBrowser } from '../support/chromium.ts';
import { findChromium } from '../support/chromium-program.ts';
import { manualClock } from '../support/manual-clock.ts';
import { aFailure, aServer, aSink, aStream, aWatched } from './a-watched.ts';

const screenshots = join(import.meta.dirname, '..', '..', '.cache', 'screenshots');
const isDrawn = `document.querySelectorAll('#streams tbody').length > 0`;

// Where it has to be downloaded first, that is not the first test's time.
beforeAll(async () => {
  await findChromium();
});

/** Markup and script in every place where text can come from elsewhere. */
const hostile = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>"'><svg onload=window.pwned=1>{{7*7}}`;

function hostileJourney(): Watched {
  const error = { ...aFailure(hostile), next: hostile, requestId: hostile, traceId: hostile };
  return aWatched({
    upstreams: [
      {
        name: hostile,
        baseUrl: hostile,
        throttles: [{ path: hostile, waitMs: 5_000, limit: 1, remaining: 0 }],
        endOfLife: [{ endpoint: hostile, deprecationMs: null, sunsetMs: 0 }],
      },
    ],
    streams: [
      aStream({
        name: hostile,
        source: hostile,
        upstream: hostile,
        state: 'halted',
        error,
        order: hostile,
      }),
    ],
    sinks: [aSink({ name: hostile, type: hostile, state: 'refused', error })],
    conditions: [
      { condition: hostile, stream: hostile, observedAt: '2026-01-01T00:00:00Z', message: hostile },
    ],
  });
}

test('text from elsewhere stays text, and the page speaks to nobody else', {
  timeout: 40_000,
}, async () => {
  const { url } = await aServer(hostileJourney);
  const page = await startBrowser();

  await page.open(`${url}/`);
  await page.waitFor(isDrawn);

  // The browser itself says how often the text stands there, and that no element came of it.
  const seen = await page.evaluate<number>(
    `document.body.textContent.split(${JSON.stringify(hostile)}).length - 1`,
  );
  const made = await page.evaluate<number>(
    `document.querySelectorAll('main img, main script, [onload], [onerror]').length`,
  );
  expect(seen).toBeGreaterThan(15);
  expect(made).toBe(0);
  expect(await page.evaluate('typeof window.pwned')).toBe('undefined');
  expect(page.complaints).toEqual([]);
  expect(page.requests.filter((request) => new URL(request).origin !== url)).toEqual([]);
  expect(page.requests.length).toBeGreaterThan(5);
});

test('light and dark, on a phone and on a desk, a busy journey fits the page', {
  timeout: 40_000,
}, async () => {
  const clock = manualClock();
  const start = clock.now();
  const look = () => busyJourney(Math.round((clock.now() - start) / 1_000), clock.now());
  const { url } = await aServer(look, { clock });
  await clock.advance(3_000_000);
  const page = await startBrowser();
  await page.look(1440, 900, 'light');
  await page.open(`${url}/`);
  await page.waitFor(`document.querySelectorAll('.chart').length > 2`, 15_000);

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

test('the keyboard reaches everything, and the choice of colours stays', {
  timeout: 40_000,
}, async () => {
  const { url } = await aServer(() => aWatched());
  const page = await startBrowser();
  await page.look(1440, 900, 'light');
  await page.open(`${url}/`);
  await page.waitFor(isDrawn);

  await page.press('Tab');
  const first = await page.evaluate('document.activeElement.className');
  await page.press('Tab');
  const second = await page.evaluate('document.activeElement.id');
  const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
  await page.press('Enter');
  const chosen = await page.evaluate('document.documentElement.dataset.theme');
  await page.open(`${url}/?again`);
  await page.waitFor(isDrawn);

  expect([first, second, outline, chosen]).toEqual(['skip', 'theme', 'solid', 'dark']);
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
});

test('the page asks for the token, says when it is wrong, and never puts it in an address', {
  timeout: 40_000,
}, async () => {
  const { url } = await aServer(() => aWatched(), { token: 'a-secret-token' });
  const page = await startBrowser();
  await page.open(`${url}/`);
  const typed = (token: string) =>
    page.evaluate(
      `document.getElementById('token').value = '${token}'; document.querySelector('#ask button').click()`,
    );

  await page.waitFor(`document.activeElement.id === 'token'`);
  const hidden = await page.evaluate(`document.getElementById('status').hidden`);
  await typed('wrong');
  await page.waitFor(`document.body.innerText.includes('That is not the token.')`);
  await typed('a-secret-token');
  await page.waitFor(isDrawn);

  expect(hidden).toBe(true);
  expect(await page.evaluate(`document.getElementById('ask').hidden`)).toBe(true);
  expect(page.requests.filter((request) => request.includes('secret'))).toEqual([]);
});

test('the page comes back by itself when sluice does', { timeout: 40_000 }, async () => {
  const before = await aServer(() => aWatched());
  const port = Number(new URL(before.url).port);
  const page = await startBrowser();
  await page.open(`${before.url}/`);
  await page.evaluate('window.sameDocument = true');
  await page.waitFor(isDrawn);

  await before.close();
  await aServer(() => aWatched({ sinks: [aSink({ name: 'newcomer' })] }), { port });
  await page.waitFor(`document.getElementById('sinks').textContent.includes('newcomer')`);

  expect(await page.evaluate('window.sameDocument')).toBe(true);
});

/** Several of everything, in waves, with one sink that fails; so many seconds after the start. */
function busyJourney(seconds: number, now: number): Watched {
  const wave = (height: number, period: number) =>
    Math.round(height * (seconds + (period / 2) * Math.sin(seconds / period)));
  const companies = ['c-1', 'c-2', 'c-3'];
  const end = 100_000 + wave(480, 300);
  const stream = (name: string, parts: Partial<WatchedStream> = {}) =>
    aStream({
      ...{ name, source: name.split('/')[0] ?? name, polls: seconds, records: wave(120, 300) },
      ...{ caughtUpAt: now - 2_300, checkpointAt: now - 4_000, order: 'oldest_first' },
      ...parts,
    });
  const behind = Math.round(900 + 800 * Math.sin(seconds / 400));
  const stuck = 61_000;
  return aWatched({
    upstreams: [
      {
        name: 'edge',
        baseUrl: 'https://api.example.com/v1',
        throttles: [{ path: '/audit/events', waitMs: 0, limit: 60, remaining: 41 }],
        endOfLife: [],
      },
      {
        name: 'ops',
        baseUrl: 'https://svc.example.com',
        throttles: [{ path: '*', waitMs: 12_000, limit: null, remaining: 0 }],
        endOfLife: [{ endpoint: '/api/logs/v1', deprecationMs: null, sunsetMs: 1_830_000_000_000 }],
      },
    ],
    streams: [
      stream('audit'),
      ...companies.map((company) => stream(`web_logs/${company}`, { upstream: 'ops' })),
      stream('firewall/c-1', {
        ...{ upstream: 'ops', state: 'retrying', everyMs: null, order: null, records: 12 },
        error: {
          code: 'upstream_unreachable',
          message: 'reading firewall/c-1: upstream answered 503',
          next: 'It is asked again by itself; nothing is lost.',
          requestId: 'req-7f3a91',
          traceId: null,
        },
      }),
    ],
    spool: {
      bytes: 212e6 + seconds * 60_000,
      bytesMax: 1_073_741_824,
      oldest: end - stuck,
      end,
      oldestAt: now - 5_000_000,
    },
    sinks: [
      aSink({ name: 'lake', type: 'kafka', state: 'sending', position: end, delivered: end }),
      aSink({
        ...{ name: 'siem', type: 'syslog', state: 'sending', lettersHeld: 3, delivered: end },
        ...{ position: end - behind, backlog: behind },
      }),
      aSink({
        ...{ name: 'post', type: 'http', state: 'refused', position: 39_000, backlog: stuck },
        ...{ delivered: 39_000, retries: 214 },
        error: {
          ...aFailure('sending to post: https://ingest.example answered 403: the key was revoked'),
          ...{ code: 'sink_refused', next: 'Renew the key; the events stay held.' },
        },
      }),
    ],
    conditions: [
      {
        condition: 'source.gap_suspected',
        stream: 'audit',
        observedAt: new Date(now - 900_000).toISOString(),
        message: 'the list no longer reaches back to what was read',
      },
    ],
  });
}

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
