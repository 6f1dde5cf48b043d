// A config that replaces another one under a running journey: the restarted and the refused parts, and that any failure
// leaves the old one running. The journey is whole and real, on a sandbox; only the request for a reload comes from the
// test itself.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { untilAborted } from '../../src/contracts/index.ts';
import { openJourney } from '../../src/run/journey.ts';
import { planFrom } from '../../src/run/plan.ts';
import { serveReloads } from '../../src/run/reload.ts';
import { refusedBefore } from '../../src/run/reload-requests.ts';
import type { SentError } from '../../src/run/shard-messages.ts';
import { openTools } from '../../src/run/tools.ts';
import { openLog } from '../../src/watch/log.ts';
import { aSetup, auditPath, type SetupWishes } from '../commands/a-setup.ts';
import { uidsIn } from '../support/a-journey.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { afterThisTest, waitUntil } from '../support/temp.ts';

interface Line {
  readonly msg: string;
  readonly event: string;
  readonly [field: string]: unknown;
}

interface Wishes extends SetupWishes {
  /** Changes the config before it runs. */
  readonly written?: (text: string) => string;
  readonly removalAllowed?: boolean;
}

/** A journey that runs. `reload` changes the config's text and resolves with what was then logged. */
async function aJourney({
  written = (text) => text,
  removalAllowed = false,
  ...wishes
}: Wishes = {}) {
  const setup = await aSetup({ ...wishes, sandbox: { events: 50 } });
  writeFileSync(setup.config, written(readFileSync(setup.config, 'utf8')));
  const logged: Line[] = [];
  const write = (line: string) => void logged.push(JSON.parse(line));
  const tools = openTools(await openLog({ level: 'info', form: 'json', write }));
  const config = readConfig(setup.config);
  const plan = planFrom(config, tools);
  const journey = await openJourney(plan, config.state, tools);
  const stop = new AbortController();
  let ask = Promise.withResolvers<'SIGHUP'>();
  let waiting = 0;
  const hosted: { refused: SentError | null } = { refused: null };
  const requests = {
    next: async (signal: AbortSignal, again?: AbortSignal) => {
      const ending = again === undefined ? signal : AbortSignal.any([signal, again]);
      waiting += 1;
      try {
        return await untilAborted(ask.promise, ending);
      } catch (error) {
        if (again?.aborted) return refusedBefore;
        throw error;
      } finally {
        waiting -= 1;
      }
    },
    follow: () => undefined,
    release: () => undefined,
  };
  /** The pause before the next try of a refused config. */
  let pause: PromiseWithResolvers<void> | null = null;
  const sleep = (ms: number, signal: AbortSignal) => {
    if (ms !== 30_000) return tools.clock.sleep(ms, signal);
    pause = Promise.withResolvers();
    return untilAborted(pause.promise, signal);
  };
  const deps = {
    config,
    plan,
    journey,
    tools: { ...tools, clock: { ...tools.clock, sleep } },
    read: async () => readConfig(setup.config, { env: process.env }),
    requests,
    removalAllowed,
    hosted,
    changed: () => {},
    refused: () => {},
  };
  const reloading = serveReloads(deps, stop.signal);
  const running = journey.pipeline.run(stop.signal, 2_000);
  afterThisTest(async () => {
    stop.abort(new Error('the test is over'));
    await Promise.all([reloading, running]);
    await journey.close();
  });
  const reload = async (change: (text: string) => string) => {
    const before = logged.length;
    writeFileSync(setup.config, change(readFileSync(setup.config, 'utf8')));
    const { resolve } = ask;
    ask = Promise.withResolvers();
    resolve('SIGHUP');
    const ended = () =>
      logged.slice(before).find(({ event }) => /^config_(not_)?(reloaded|unchanged)$/.test(event));
    return await waitUntil(ended, { what: 'the reload to end' });
  };
  /** Ends the pause, and waits for the next one, or for a config that runs. */
  const tryAgain = async () => {
    const { resolve } = await waitUntil(() => pause, { what: 'a pause' });
    const before = logged.length;
    pause = null;
    resolve();
    const runs = () => logged.slice(before).some(({ event }) => event === 'config_reloaded');
    await waitUntil(() => pause !== null || runs(), { what: 'another try' });
  };
  /** What the journey waits for before it reads the config again. */
  const waits = () => ({ requests: waiting, isPausing: pause !== null });
  const events = (name = 'events') => uidsIn(join(setup.dir, `${name}.ndjson`));
  const wait = (name: string, count: number) =>
    waitUntil(() => events(name).length >= count, { what: `${count} events in ${name}` });
  const isSettled = () => {
    const { end } = journey.spool.gauge;
    const { sinks } = journey.pipeline.state;
    return end > 0 && sinks.every(({ position }) => position === end);
  };
  const heldPages = () => journey.spool.gauge.end - journey.spool.gauge.oldest;
  const grow = (count: number) => setup.sandbox.control.grow(auditPath, count);
  const tries = { reload, tryAgain, waits, hosted };
  return { ...setup, journey, logged, ...tries, events, wait, grow, isSettled, heldPages };
}

const second = (dir: string) => `  second: { type: file, path: ${join(dir, 'second.ndjson')} }\n`;
const withSecond = (dir: string) => (text: string) =>
  text.replace(/sinks:\n/, `sinks:\n${second(dir)}`);
const withoutSecond = (text: string) => text.replace(/ {2}second: .*\n/, '');

test('an added sink starts as after a restart, and the others do not notice', async () => {
  const run = await aJourney({ written: (text) => text.replace('{ dir:', '{ keep: 1h, dir:') });
  await run.wait('events', 50);

  const line = await run.reload(withSecond(run.dir));
  run.grow(30);
  await Promise.all([run.wait('events', 80), run.wait('second', 80)]);

  expect(line).toMatchObject({
    level: 'info',
    reason: 'SIGHUP',
    added: 'sink second',
    unchanged: 'stream audit, sink disk',
    sinks_added: 1,
    streams_unchanged: 1,
  });
  expect(run.events()).toHaveLength(80);
  expect(run.events('second')).toEqual(run.events());
});

test('pages stay for a sink that was added until it has them, and for one that was dropped until its time is over', async () => {
  const receiver = await startHttpReceiver({ answer: () => ({ answer: 'reply', status: 503 }) });
  const run = await aJourney({
    removalAllowed: true,
    written: (text) => text.replace('{ dir:', '{ removed_sinks: 2s, dir:'),
  });
  const post = `  post: { type: http, url: "${receiver.url}", format: json, retry: { min: 20ms, max: 50ms } }\n`;
  await run.reload((text) => text.replace(/sinks:\n/, `sinks:\n${post}`));
  await run.wait('events', 50);
  run.grow(10);
  await run.wait('events', 60);
  await receiver.waitFor(1);
  await waitUntil(() => run.heldPages() > 0, { what: 'pages held for the sink' });

  const line = await run.reload((text) => text.replace(post, ''));

  expect(line).toMatchObject({ removed: 'sink post', unchanged: 'stream audit, sink disk' });
  expect(run.heldPages()).toBeGreaterThan(0);
  await waitUntil(() => run.heldPages() === 0, { what: 'pages to be released' });
});

test('only the sink whose filter changed restarts, and later events follow the new filter', async () => {
  const routes = [
    'routes:',
    '  - { from: [audit], to: [disk] }',
    "  - { from: [audit], to: [second], where: 'event.severity_id >= 99' }",
  ];
  const run = await aJourney({
    more: routes,
    written: (text) => text.replace(/sinks:\n/, 'sinks:\n  second: { type: stdout }\n'),
  });
  await run.wait('events', 50);
  await waitUntil(() => run.isSettled(), {
    what: 'the filtered sink to pass what it does not get',
  });

  const line = await run.reload((text) =>
    text.replace(/ {2}second: .*\n/, second(run.dir)).replace('>= 99', '>= 0'),
  );
  run.grow(20);
  await Promise.all([run.wait('events', 70), run.wait('second', 20)]);

  expect(line).toMatchObject({ changed: 'sink second', unchanged: 'stream audit, sink disk' });
  expect(run.events('second')).toEqual(run.events().slice(-20));
});

test('stored events of a dropped source are still delivered', async () => {
  let isDown = true;
  const receiver = await startHttpReceiver({
    answer: () => ({ answer: 'reply', status: isDown ? 503 : 200 }),
  });
  const run = await aJourney({
    removalAllowed: true,
    sinks: [
      `  post: { type: http, url: "${receiver.url}", format: json, batch: { events: 5 }, retry: { min: 20ms, max: 50ms } }`,
    ],
    more: ['routes:', '  - { from: [audit], to: [post] }'],
  });
  await receiver.waitFor(1);

  const line = await run.reload((text) =>
    text.replaceAll('audit:', 'other:').replace('[audit]', '[other]'),
  );
  isDown = false;
  await waitUntil(() => run.isSettled(), { what: 'all to be delivered' });

  expect(line).toMatchObject({
    added: 'stream other',
    removed: 'stream audit',
    unchanged: 'sink post',
  });
  const [post] = run.journey.pipeline.state.sinks;
  expect(post?.delivered).toBe(100);
});

test('a sink that is stuck does not delay a reload, and none of its events are lost', async () => {
  const [stuck, good] = await Promise.all([
    startHttpReceiver({ answer: () => ({ answer: 'hang' }) }),
    startHttpReceiver(),
  ]);
  const run = await aJourney({
    sinks: [`  post: { type: http, url: "${stuck.url}", format: json }`],
    more: ['shutdown: { timeout: 100ms }'],
  });
  await stuck.waitFor(1);

  const line = await run.reload((text) => text.replace(stuck.url, good.url));
  await waitUntil(() => run.isSettled(), { what: 'all to be delivered' });

  expect(line).toMatchObject({ changed: 'sink post', unchanged: 'stream audit' });
  expect(run.journey.pipeline.state.sinks[0]?.delivered).toBe(50);
});

test('every error is reported with its location, and the old config stays in use until the file is corrected', async () => {
  const run = await aJourney();
  const good = readFileSync(run.config, 'utf8');

  const line = await run.reload((text) =>
    text.replace('every: 100ms', 'every: soon').replace('type: file', 'type: fiel'),
  );
  run.grow(10);
  await run.wait('events', 60);

  expect(line).toMatchObject({ level: 'error', code: 'config_invalid', flaws: 2 });
  expect(line.next).toContain(`sluice check -c ${run.config}`);
  const flaws = run.logged.filter(({ event }) => event === 'config_flaw');
  expect(flaws.map(({ error }) => error)).toEqual([
    expect.stringContaining(`${run.config}:10:`),
    expect.stringContaining(`${run.config}:12:`),
  ]);
  expect(await run.reload(() => good)).toMatchObject({
    msg: 'config read again: no change',
  });
});

test('a reload that drops streams or sinks is refused unless allowed; so is a change that needs a restart', async () => {
  const run = await aJourney({ written: (text) => text });
  await run.reload(withSecond(run.dir));

  const dropped = await run.reload(withoutSecond);
  const fixed = await run.reload((text) =>
    withSecond(run.dir)(text).replace('{ dir:', '{ max_bytes: 1MiB, dir:'),
  );
  run.grow(10);
  await Promise.all([run.wait('events', 60), run.wait('second', 10)]);

  expect(dropped).toMatchObject({ code: 'config_invalid', level: 'error' });
  expect(dropped.error).toContain('it drops sink second');
  expect(dropped.next).toContain('--allow-removal');
  expect(fixed.error).toContain('state differs');
  expect(fixed.next).toContain('Restart to apply');
});

test('a secret that cannot be read refuses the reload, and is not printed', async () => {
  const run = await aJourney();
  const key = join(run.dir, 'secret');
  writeFileSync(key, 'sandbox-secret');
  await run.reload((text) =>
    text.replace('client_secret: sandbox-secret', `client_secret: "\${file:${key}}"`),
  );
  rmSync(key);

  const line = await run.reload((text) => text.replace('every: 100ms', 'every: 90ms'));

  expect(line).toMatchObject({ level: 'error', code: 'config_invalid' });
  expect(JSON.stringify(run.logged)).not.toContain('sandbox-secret');
});

test('a refused config is tried again, and runs once its secret is there; the same refusal is logged once', async () => {
  const run = await aJourney();
  const key = join(run.dir, 'secret');
  const refusals = () => run.logged.filter(({ event }) => event === 'config_not_reloaded').length;
  await run.reload((text) =>
    withSecond(run.dir)(text).replace(
      'client_secret: sandbox-secret',
      `client_secret: "\${file:${key}}"`,
    ),
  );
  await run.tryAgain();
  await run.tryAgain();
  expect(refusals()).toBe(1);

  writeFileSync(key, 'sandbox-secret');
  await run.tryAgain();

  expect(run.logged.at(-1)).toMatchObject({
    event: 'config_reloaded',
    reason: 'it was refused before',
  });
  run.grow(10);
  await run.wait('second', 10);
  expect(run.waits()).toEqual({ requests: 1, isPausing: false });
});

test('a shard runs the config that was accepted last, and reports that the one in the file is refused', async () => {
  const run = await aJourney();
  run.hosted.refused = { code: 'config_invalid', message: 'it drops a sink', next: 'Put it back.' };

  await run.reload(withSecond(run.dir));

  await waitUntil(() => run.logged.at(-1)?.event === 'config_not_reloaded', {
    what: 'the refusal',
  });
  expect(run.logged.at(-1)).toMatchObject({ error: 'it drops a sink' });
  run.grow(10);
  await run.wait('second', 10);
});
