// The real program with its status served: a sink goes down and comes back, and probe, numbers and page follow it; and
// what happens where the status cannot be served.

import { beforeAll, expect, test } from 'vitest';
import { aSetup } from '../commands/a-setup.ts';
import { startBrowser } from '../support/chromium.ts';
import { findChromium } from '../support/chromium-program.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { waitUntil } from '../support/temp.ts';
import { aMoment, aServer, ask } from './a-moment.ts';

// Where it has to be downloaded first, that is not the first test's time.
beforeAll(async () => {
  await findChromium();
});

test('a sink goes down and comes back: /readyz and the page say so without a reload', async () => {
  const receiver = await startHttpReceiver();
  const { config } = await aSetup({
    sandbox: { rate: 20, events: 100 },
    sinks: [
      `  post: { type: http, url: "${receiver.url}", format: json, retry: { min: 100ms, max: 300ms } }`,
    ],
    more: ['status: { listen: 127.0.0.1:0 }'],
  });
  const sluice = startSluice(['run', '-c', config]);
  const { url } = JSON.parse(await sluice.waitForLine('"status page"'));
  const ready = async (status: number) => {
    const look = async () => {
      const got = await ask(`${url}/readyz`);
      return got.status === status && got;
    };
    return await waitUntil(look, { what: `/readyz to answer ${status}` });
  };
  const page = await startBrowser();
  await page.look(1440, 900, 'light');
  await page.open(`${url}/`);
  await page.evaluate('window.sameDocument = true');
  const sinkIs = (mood: string) => `document.querySelector('#sinks tbody.${mood}') !== null`;
  await page.waitFor(sinkIs('good'));
  await page.evaluate(`document.getElementById('watch').click()`);
  const line = `document.querySelector('#lines li')?.textContent ?? ''`;
  await page.waitFor(`${line} !== ''`);
  const watched = await page.evaluate<string>(line);
  await ready(200);

  await receiver.close();
  await page.waitFor(sinkIs('warn'));
  const down = JSON.parse((await ready(503)).body);
  await page.waitFor(sinkIs('bad'));
  const shown = () =>
    page.evaluate<Record<string, unknown>>(`(() => {
      const { className, textContent } = document.querySelector('[data-key="sink post"]');
      return {
        verdict: document.getElementById('verdict').textContent,
        attention: document.getElementById('attention').textContent,
        box: className + ' ' + textContent,
        cut: document.querySelectorAll('.pipe.bad').length,
        title: document.title,
      };
    })()`);
  const shownDown = await shown();
  const metricsDown = (await ask(`${url}/metrics`)).body;
  await receiver.reopen();
  await ready(200);
  await page.waitFor(sinkIs('good'));
  const shownUp = await shown();
  const metricsUp = (await ask(`${url}/metrics`)).body;
  const { exitCode } = await sluice.kill();

  expect(down.reasons).toMatchObject([{ part: 'sink', name: 'post', reason: 'not_delivering' }]);
  expect(down.reasons[0].message).toContain('ECONNREFUSED');
  expect(shownDown).toEqual({
    ...{ verdict: '1 thing needs attention', title: '(1) sluice', cut: 1 },
    attention: expect.stringMatching(/^.*Sink post has accepted nothing for \d+ s.*ECONNREFUSED/),
    box: expect.stringMatching(/^box bad .*post.*\d+ to go$/),
  });
  expect(shownUp).toEqual({
    ...{ verdict: 'all is well', title: 'sluice', cut: 0, attention: '' },
    box: expect.stringMatching(/^box good .*post/),
  });
  expect(watched).toMatch(/^\d{4}-\d\d-\d\d .* audit /);
  expect(metricsDown).toContain('\nsluice_sink_failing{sink="post"} 1\n');
  expect(metricsUp).toContain('\nsluice_sink_failing{sink="post"} 0\n');
  expect(await page.evaluate('window.sameDocument')).toBe(true);
  expect(exitCode).toBe(0);
});

test('if the port is in use nothing starts, and the message names the next step', async () => {
  const other = await aServer(() => aMoment());
  const listen = new URL(other.url).host;
  const { config } = await aSetup({ more: [`status: { listen: ${listen} }`] });

  const { exitCode, stderr } = await runSluice(['run', '-c', config]);

  expect(exitCode).toBe(1);
  expect(stderr).toContain(
    `serving the status on ${listen}: another program listens there already`,
  );
  expect(stderr).not.toContain('"running"');
});

test('--once ends with someone still listening', async () => {
  const { config, delivered } = await aSetup({ more: ['status: { listen: 127.0.0.1:0 }'] });
  const sluice = startSluice(['run', '-c', config, '--once']);
  const { url } = JSON.parse(await sluice.waitForLine('"status page"'));
  const listening = ask(`${url}/events`).catch(() => 'cut');

  const { exitCode } = await sluice.exited;
  await listening;

  expect(exitCode).toBe(0);
  expect(delivered()).toHaveLength(250);
});
