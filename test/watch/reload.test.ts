// The real program reads another config while its page is open: what the live tail offers and shows follows, without a
// reload of the page and without a wish of the reader lost.

import { readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { aSetup } from '../commands/a-setup.ts';
import { startBrowser } from '../support/chromium.ts';
import { findChromium } from '../support/chromium-program.ts';
import { startSluice } from '../support/cli.ts';

// Where it has to be downloaded first, that is not the first test's time.
beforeAll(async () => {
  await findChromium();
});

test('after SIGHUP the live tail offers the new sinks, and shows events as they now are', async () => {
  const { config, dir } = await aSetup({
    sandbox: { rate: 20, events: 100 },
    more: ['status: { listen: 127.0.0.1:0 }'],
  });
  // Moved to the front, so that a sink can be added at the end.
  const lines = readFileSync(config, 'utf8').trimEnd().split('\n');
  writeFileSync(config, `${[lines.at(-1), ...lines.slice(0, -1)].join('\n')}\n`);
  const sluice = startSluice(['run', '-c', config]);
  const { url } = JSON.parse(await sluice.waitForLine('"status page"'));
  await sluice.waitForLine('"running"');
  const page = await startBrowser();
  await page.look(1440, 900, 'light');
  await page.open(`${url}/`);
  await page.evaluate('window.sameDocument = true');
  const select = `document.getElementById('form')`;
  await page.waitFor(`${select}.options.length > 0`);
  await page.evaluate(`${select}.value = 'sink disk'; document.getElementById('watch').click()`);
  const newest = `(document.querySelector('#lines li:last-child')?.textContent ?? '')`;
  await page.waitFor(`${newest}.startsWith('{')`);
  const offered = `[...${select}.options].map(({ value }) => value).join()`;
  const before = await page.evaluate<string>(offered);

  const changed = readFileSync(config, 'utf8').replace('format: json', 'format: cef');
  writeFileSync(config, `${changed}  another: { type: file, path: ${dir}/another.log }\n`);
  process.kill(sluice.pid, 'SIGHUP');
  await page.waitFor(`${offered} === ${JSON.stringify(`${before},sink another`)}`);
  await page.waitFor(`${newest}.startsWith('CEF:0|')`);
  const all = `[...document.querySelectorAll('#lines li')].map(({ textContent }) => textContent)`;
  const shown = await page.evaluate<string[]>(all);
  const complaints = [...page.complaints];
  const { exitCode } = await sluice.kill();

  expect(before).toMatch(/,sink disk$/);
  expect(shown.filter((line) => !line.startsWith('CEF:0|'))).toEqual([]);
  expect(await page.evaluate(`${select}.value`)).toBe('sink disk');
  expect(await page.evaluate('window.sameDocument')).toBe(true);
  expect(complaints).toEqual([]);
  expect(exitCode).toBe(0);
});
