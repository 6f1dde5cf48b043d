// The claims of `receipt` about a sink, checked at the receiver: never more than the receiver has.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runHere, runOnceHere, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { waitUntil } from '../support/temp.ts';
import { aSetup, auditPath } from './a-setup.ts';

async function receiptOf(config: string, sink: string) {
  const { stdout, stderr, exitCode } = await runHere([
    'receipt',
    '-c',
    config,
    '--sink',
    sink,
    '--json',
  ]);
  return { receipt: JSON.parse(stdout), stderr, exitCode };
}

test('says nothing can be said before anything ran', async () => {
  const { config } = await aSetup();

  const { receipt, stderr, exitCode } = await receiptOf(config, 'disk');

  expect(exitCode).toBe(1);
  expect(receipt).toMatchObject({ up_to: null, whole: false, begun_at: null, note: null });
  expect(stderr).toContain('nothing is known: there is no state');
});

test('shows up to when delivery is complete, from the time of the request to upstream', async () => {
  const { config, delivered } = await aSetup();
  const before = Date.now();
  await runOnceHere(config);

  const { receipt, stderr, exitCode } = await receiptOf(config, 'disk');

  expect([exitCode, delivered().length]).toEqual([0, 250]);
  expect(stderr).toContain('not signed: the config has no archive');
  expect(receipt).toMatchObject({
    ...{ sink: 'disk', type: 'file', whole: true, waiting: 0, refused: 0, dropped: 0, again: 0 },
    ...{ assurance: 'once', first_event: 0, position: 250 },
    streams: [{ name: 'audit', source: 'audit', up_to: receipt.up_to }],
  });
  expect(Date.parse(receipt.up_to)).toBeGreaterThanOrEqual(before);
  expect(Date.parse(receipt.up_to)).toBeLessThanOrEqual(Date.now());
  const status = await runHere(['status', '-c', config, '--json']);
  expect(JSON.parse(status.stdout).sinks[0].up_to).toBe(receipt.up_to);
});

test('does not advance while the receiver is away, though reading continues', async () => {
  const receiver = await startHttpReceiver();
  const { config, sandbox } = await aSetup({
    sinks: [
      `  post: { type: http, url: ${receiver.url}, retry: { min: 50ms, max: 100ms } }`,
      '  screen: { type: file, path: events.ndjson, format: json }',
    ],
  });
  const sluice = startSluice(['run', '-c', config], { cwd: join(config, '..') });
  const settled = async () => (await receiptOf(config, 'post')).receipt;
  await waitUntil(async () => (await settled()).whole, { what: 'everything to be there' });
  await receiver.close();
  sandbox.control.grow(auditPath, 20);
  const other = await waitUntil(
    async () => {
      const { receipt } = await receiptOf(config, 'screen');
      const waits = await settled();
      const isLater = Date.parse(receipt.up_to) > Date.parse(waits.up_to);
      return receipt.position === 270 && isLater && receipt;
    },
    { what: 'the other sink to have more' },
  );

  const behind = await settled();
  await sluice.kill();

  expect(behind).toMatchObject({ whole: false, waiting: 20, position: 250 });
  expect(Date.parse(behind.up_to)).toBeLessThan(Date.parse(other.up_to));
});

test('lists rejected, dropped and retried events', async () => {
  // The first three events are bad; others are accepted, which shows that the receiver works.
  let bad: readonly string[] = [];
  const receiver = await startHttpReceiver({
    answer: ({ body }) => {
      const uids = [...body.toString().matchAll(/"uid":"([0-9a-f]{64})"/g)].map(
        ([, uid = '']) => uid,
      );
      if (bad.length === 0) bad = uids.slice(0, 3);
      return { answer: 'reply', status: uids.some((uid) => bad.includes(uid)) ? 400 : 200 };
    },
  });
  const { config } = await aSetup({
    sandbox: { events: 40 },
    sinks: [`  post: { type: http, url: ${receiver.url}, retry: { min: 50ms, max: 100ms } }`],
  });
  await runOnceHere(config);
  const refused = await receiptOf(config, 'post');
  const [one, two] = await deadLettersOf(config);
  await runHere(['dead-letters', 'drop', '-c', config, '--yes', '--uid', one ?? '']);
  await runHere(['dead-letters', 'retry', '-c', config, '--uid', two ?? '']);

  const { receipt, exitCode } = await receiptOf(config, 'post');

  expect(refused.receipt).toMatchObject({ whole: false, refused: 3, dropped: 0, again: 0 });
  expect(refused.receipt.up_to).not.toBeNull();
  expect(receipt).toMatchObject({ whole: false, refused: 1, dropped: 1, again: 1, waiting: 1 });
  expect(exitCode).toBe(1);
});

async function deadLettersOf(config: string): Promise<readonly string[]> {
  const { stdout } = await runHere(['dead-letters', 'list', '-c', config, '--json']);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).uid);
}

test('names the sources, filters and fields that the config keeps from the sink', async () => {
  const { config } = await aSetup({
    sources: ['  other: { type: audit_events, upstream: edge }'],
    more: [
      'routes:',
      "  - { from: [audit], to: [disk], where: 'event.severity_id >= 3', redact: [message] }",
    ],
  });

  const { receipt } = await receiptOf(config, 'disk');

  expect(receipt).toMatchObject({
    elsewhere: ['other'],
    filters: ['audit: event.severity_id >= 3'],
    redacted: ['message'],
  });
});

describe('with an archive', () => {
  async function anArchive() {
    const setup = await aSetup();
    const keyFile = join(setup.dir, 'archive.key');
    const made = await runHere(['archive', 'keys', 'new', keyFile]);
    const archive = `  proof: { type: archive, location: ${join(setup.dir, 'archive')}, signing_key: "\${file:${keyFile}}" }`;
    const config = readFileSync(setup.config, 'utf8').replace('sinks:\n', `sinks:\n${archive}\n`);
    writeFileSync(setup.config, config);
    await runOnceHere(setup.config);
    const printed = await runHere(['receipt', '-c', setup.config, '--sink', 'disk']);
    return { ...setup, vkey: made.stdout.trim(), printed };
  }

  test('is signed with its key, and checked with nothing but the public one', async () => {
    const { dir, vkey, printed } = await anArchive();
    const file = join(dir, 'receipt.txt');
    writeFileSync(file, printed.stdout);
    const changed = join(dir, 'changed.txt');
    writeFileSync(changed, printed.stdout.replace(/^waiting: 0$/m, 'waiting: 1'));
    const check = (of: string) => runHere(['receipt', 'check', of, '--key', vkey]);

    const [right, wrong] = [await check(file), await check(changed)];

    expect([printed.exitCode, printed.stderr]).toEqual([0, '']);
    expect(printed.stdout).toMatch(/^sluice receipt 1\nsink: disk \(file\)\n/);
    expect(right).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`by ${vkey}`) });
    expect(wrong).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('FALSE') });
  });

  test('names a file of keys that does not exist, and the way to a key', async () => {
    const { dir, printed } = await anArchive();
    const file = join(dir, 'receipt.txt');
    writeFileSync(file, printed.stdout);

    const checked = await runHere(['receipt', 'check', file, '--key', join(dir, 'none.vkey')]);

    expect(checked.exitCode).toBe(64);
    expect(checked.stderr).toMatch(/--key: there is no file .*none\.vkey; its operator prints/);
  });

  test('takes no checkpoint for a receipt, and no receipt for a checkpoint', async () => {
    const { dir, vkey, printed } = await anArchive();
    const checkpoint = join(dir, 'archive', 'checkpoint');
    const checked = await runHere(['receipt', 'check', checkpoint, '--key', vkey]);
    writeFileSync(checkpoint, printed.stdout);

    const verified = await runHere(['archive', 'verify', join(dir, 'archive'), '--key', vkey]);

    expect(checked).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('no receipt') });
    expect(verified.exitCode).not.toBe(0);
  });
});

test('requires the sink’s name, and a key that exists', async () => {
  const { config } = await aSetup();

  const [unknown, other, keyless] = [
    await runHere(['receipt', '-c', config]),
    await runHere(['receipt', '-c', config, '--sink', 'dsk']),
    await runHere(['receipt', 'check', config]),
  ];

  expect([unknown.exitCode, other.exitCode, keyless.exitCode]).toEqual([64, 64, 64]);
  expect(other.stderr).toContain('did you mean disk?');
});
