// A sink that leaves the config keeps its events: after a restart without it and after a reload that drops it. It
// returns at its position, or at the oldest page held with a report of the gap.

import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readState } from '../../src/watch/state.ts';
import { aSetup, auditPath, type Setup, type SetupWishes } from '../commands/a-setup.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { type HttpReceiver, startHttpReceiver } from '../support/http-receiver.ts';
import { afterThisTest, waitUntil } from '../support/temp.ts';

type WithReceiver = Setup & { readonly receiver: HttpReceiver; readonly post: string };

/** A config with a file and an `http` sink `post`, whose receiver is down. */
async function aSetupWithPost(wishes: SetupWishes = {}): Promise<WithReceiver> {
  const receiver = await startHttpReceiver();
  afterThisTest(() => receiver.close());
  await receiver.close();
  const post = `  post: { type: http, url: "${receiver.url}/in", format: json, retry: { min: 50ms, max: 100ms } }`;
  const setup = await aSetup(wishes);
  return { ...setup, receiver, post };
}

function edit({ config }: Setup, change: (text: string) => string): void {
  writeFileSync(config, change(readFileSync(config, 'utf8')));
}

const withPost = (setup: WithReceiver) =>
  edit(setup, (text) => text.replace('sinks:\n', `sinks:\n${setup.post}\n`));
const withoutPost = (setup: WithReceiver) =>
  edit(setup, (text) => text.replace(`${setup.post}\n`, ''));

const once = async ({ config }: Setup) => await runSluice(['run', '-c', config, '--once']);

/** Runs with the sink, which accepts nothing, until the file has so many events. */
async function runWithPost(setup: WithReceiver, events: number): Promise<void> {
  withPost(setup);
  const sluice = startSluice(['run', '-c', setup.config]);
  await waitUntil(() => setup.delivered().length >= events, {
    what: () => `${events} events in the file; stderr: ${sluice.stderr.join('\n')}`,
  });
  await sluice.kill();
}

interface Event {
  readonly metadata: { readonly uid: string; readonly event_code?: string };
  readonly message?: string;
}

function receivedEvents(receiver: HttpReceiver): readonly Event[] {
  return receiver.requests.flatMap(({ body }) =>
    body
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Event),
  );
}

/** What sluice reports of sinks in the file. */
function reportsIn({ dir }: Setup): readonly string[] {
  const lines = readFileSync(`${dir}/events.ndjson`, 'utf8').split('\n').slice(0, -1);
  const events = lines.map((line) => JSON.parse(line) as Event);
  return events.flatMap(({ metadata, message = '' }) =>
    metadata.event_code?.startsWith('sink.') === true ? [message] : [],
  );
}

/** Uids of the events that the receiver has accepted, in order. */
function received({ receiver }: WithReceiver): readonly string[] {
  return receivedEvents(receiver).map(({ metadata: { uid } }) => uid);
}

test('a sink that is missing from the config for two runs resumes at its position', async () => {
  const setup = await aSetupWithPost({ sandbox: { events: 600 } });
  await runWithPost(setup, 600);
  withoutPost(setup);
  const without = [await once(setup)];
  setup.sandbox.control.grow(auditPath, 600);
  without.push(await once(setup));
  withPost(setup);
  await setup.receiver.reopen();

  const after = await once(setup);

  expect(without.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
  expect(after.exitCode).toBe(0);
  expect(new Set(received(setup)).size).toBe(1_200);
  expect(received(setup)).toHaveLength(1_200);
  expect(setup.delivered()).toHaveLength(1_200);
});

test('a sink that a reload drops resumes at its position when a reload brings it back', async () => {
  const setup = await aSetupWithPost({ sandbox: { events: 300 } });
  withPost(setup);
  const sluice = startSluice(['run', '-c', setup.config, '--allow-removal']);
  const reloaded = async (change: () => void) => {
    const before = sluice.stderr.length;
    change();
    process.kill(sluice.pid, 'SIGHUP');
    await waitUntil(
      () => sluice.stderr.slice(before).some((line) => line.includes('"config reloaded"')),
      { what: () => `a reload; stderr: ${sluice.stderr.slice(before).join('\n')}` },
    );
  };
  await waitUntil(() => setup.delivered().length === 300, { what: '300 events in the file' });
  await reloaded(() => withoutPost(setup));
  setup.sandbox.control.grow(auditPath, 300);
  await waitUntil(() => setup.delivered().length === 600, { what: '600 events in the file' });
  await setup.receiver.reopen();

  await reloaded(() => withPost(setup));
  await waitUntil(() => new Set(received(setup)).size >= 600, { what: 'all events at the sink' });
  await sluice.kill();

  expect(received(setup)).toHaveLength(600);
});

test('a sink that returns after its time resumes at the oldest page held and reports the gap', {
  tags: ['long'],
}, async () => {
  const setup = await aSetupWithPost({ sandbox: { events: 600 } });
  edit(setup, (text) => text.replace('state: {', 'state: { removed_sinks: 0s,'));
  await runWithPost(setup, 600);
  withoutPost(setup);
  // What the first run releases at its end, the second one reports.
  const without = [await once(setup), await once(setup)];
  withPost(setup);
  await setup.receiver.reopen();
  setup.sandbox.control.grow(auditPath, 100);

  const after = await once(setup);

  const gap = receivedEvents(setup.receiver).filter(
    ({ metadata }) => metadata.event_code === 'sink.gap',
  );
  expect(without.map(({ stderr }) => stderr).join('\n')).toContain(
    '"events kept for a removed sink were released"',
  );
  expect(reportsIn(setup)).toEqual([
    '600 events that were kept for the removed sink post were released: state.removed_sinks is over',
  ]);
  expect(after.exitCode).toBe(0);
  expect(after.stderr).toContain('"a sink returns and does not get all events"');
  expect(gap.map(({ message }) => message)).toEqual([
    'sink post was not in the config, and 601 events are no longer kept for it: numbers 0 to 600',
  ]);
  expect(received(setup)).toHaveLength(101);
});

test('a full spool releases the pages that only a removed sink needs, and polling resumes', {
  tags: ['long'],
}, async () => {
  const setup = await aSetupWithPost({ sandbox: { events: 2_000 } });
  edit(setup, (text) => text.replace('state: {', 'state: { max_bytes: 1MiB,'));
  await runWithPost(setup, 700);
  withoutPost(setup);
  setup.sandbox.control.grow(auditPath, 2_000);

  const after = await once(setup);

  expect([after.exitCode, after.stderr]).toEqual([0, after.stderr]);
  expect(setup.delivered().length).toBeGreaterThanOrEqual(4_000);
  expect(after.stderr).toContain('"events kept for a removed sink were released"');
  expect(reportsIn(setup)[0]).toMatch(
    /^\d+ events that were kept for the removed sink post were released: the spool or its disk is full$/,
  );
});

test('status, attention and sinks show the kept events and until when; sinks remove deletes them', async () => {
  const setup = await aSetupWithPost({ sandbox: { events: 600 } });
  await runWithPost(setup, 600);
  const refused = await runHere(['sinks', 'remove', 'post', '-c', setup.config, '--yes']);
  withoutPost(setup);
  await once(setup);
  const sluice = startSluice(['run', '-c', setup.config]);
  await sluice.waitForLine('"running"');
  const kept = await runHere(['sinks', '-c', setup.config, '--json']);
  const status = await runHere(['status', '-c', setup.config]);
  const asked = await runHere(['sinks', 'remove', 'post', '-c', setup.config]);
  const unknown = await runHere(['sinks', 'remove', 'pots', '-c', setup.config, '--yes']);

  const removed = await runHere(['sinks', 'remove', 'post', '-c', setup.config, '--yes']);
  const after = await runHere(['sinks', '-c', setup.config, '--json']);
  await waitUntil(() => heldIn(setup) === 0, { what: 'the pages to be released' });
  await sluice.kill();

  const [, post] = JSON.parse(kept.stdout).sinks;
  expect(refused.stderr).toContain('the sink post is not removed: the config has it');
  expect(post).toMatchObject({ name: 'post', in_config: false, kept: true, pending: 600 });
  expect(Date.parse(post.kept_until) - Date.parse(post.missing_since)).toBe(86_400_000);
  expect(status.stdout).toContain(
    `Sink post is not in the config: 600 events are kept for it until ${post.kept_until}`,
  );
  expect([asked.exitCode, asked.stdout]).toEqual([
    1,
    '600 events kept for the sink post would be given up; nothing was changed: --yes gives them up\n',
  ]);
  expect([unknown.exitCode, unknown.stderr]).toEqual([
    1,
    'there is no sink pots; did you mean post?\n',
  ]);
  expect([removed.exitCode, removed.stdout]).toEqual([0, 'post: 600 events given up\n']);
  expect(JSON.parse(after.stdout).sinks.map(({ name }: { name: string }) => name)).toEqual([
    'disk',
  ]);
});

/** Events that the spool holds. */
function heldIn({ stateDir }: Setup): number {
  return readState(stateDir).spool.events;
}
