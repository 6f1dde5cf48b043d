// The archive sink: its replies to the engine, its errors for a wrong key or location, and the real program with one.
// Its files are tested in test/archive.

import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { archiveSink } from '../../../connectors/sinks/archive.ts';
import { signingKeyText } from '../../../src/archive/note.ts';
import type { Batch, Delivery, Sink, SinkReport } from '../../../src/contracts/sink.ts';
import type { HeldPage } from '../../../src/contracts/spool.ts';
import { readArchive } from '../../archive/a-writer.ts';
import { aSetup } from '../../commands/a-setup.ts';
import { runHere, runOnceHere } from '../../support/cli.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { tempDir, waitUntil } from '../../support/temp.ts';

const key = signingKeyText('archive.test', Buffer.alloc(32, 1));
const never = new AbortController().signal;
const settingsOf = (location: string) => ({ location, signing_key: key, checkpoint_every: '1h' });

/** As the engine sends a batch by itself. */
function send(sink: Sink, batch: Batch): Promise<Delivery> {
  const answer = sink.send(batch, never);
  sink.flush?.();
  return answer;
}

describe('the engine', () => {
  test('resolves when a checkpoint covers the batch, with the expected time', async () => {
    const location = join(tempDir(), 'archive');
    const { sink, batch } = await openSink(archiveSink, settingsOf(location));
    const [first, second] = [someEvents(3), someEvents(3, 3)];

    const answers = [sink.send(batch(first), never), sink.send(batch(second), never)];
    const due = await waitUntil(() => sink.dueInMs?.(), { what: 'pages that wait' });
    sink.flush?.();

    expect(due).toBeGreaterThan(3_000_000);
    expect(await Promise.all(answers)).toEqual([
      { outcome: 'delivered' },
      { outcome: 'delivered' },
    ]);
    expect(sink.dueInMs?.()).toBeNull();
    expect((await readArchive(location)).uids).toEqual([...first, ...second].map(({ uid }) => uid));
  });

  test('may release pages whose checkpoint is awaited', async () => {
    const { sink, batch } = await openSink(archiveSink, settingsOf(tempDir()));
    const sendOne = () => {
      const sent = batch(someEvents(3));
      const answer = sink.send(sent, never);
      return { answer, page: new WeakRef(sent.pages[0] as HeldPage) };
    };

    const { answer, page } = sendOne();
    await waitUntil(() => sink.dueInMs?.(), { what: 'a page that waits' });

    await expect
      .poll(() => {
        collectGarbage();
        return page.deref() === undefined; // A failed expectation would hold the page itself.
      })
      .toBe(true);
    sink.flush?.();
    expect(await answer).toEqual({ outcome: 'delivered' });
  });

  test('gets the archive’s position, and is to resume after that', async () => {
    const location = join(tempDir(), 'archive');
    const before = await openSink(archiveSink, settingsOf(location));
    await send(before.sink, before.batch(someEvents(5)));
    await before.sink.close();
    const { sink, batch } = await openSink(archiveSink, settingsOf(location));

    const answer = await send(sink, batch(someEvents(5)));

    expect(answer).toMatchObject({ outcome: 'retry', afterMs: 0 });
    expect(await sink.committed?.(never)).toEqual({ position: 5, ahead: false });
    expect(await send(sink, batch(someEvents(2, 5)))).toEqual({ outcome: 'delivered' });
  });

  test('of an older copy of the state is warned that the archive is ahead', async () => {
    const location = join(tempDir(), 'archive');
    const before = await openSink(archiveSink, settingsOf(location), {
      epochs: [
        { id: 1, until: 2 },
        { id: 2, until: null },
      ],
    });
    await send(before.sink, before.batch(someEvents(5)));
    await before.sink.close();

    const { sink } = await openSink(archiveSink, settingsOf(location), {
      epochs: [
        { id: 1, until: 2 },
        { id: 3, until: null },
      ],
    });

    expect(await sink.committed?.(never)).toEqual({ position: 2, ahead: true });
  });

  test('sends a checkpoint to every other sink, so that each is a witness', async () => {
    const location = join(tempDir(), 'archive');
    const reported: SinkReport[] = [];
    const { sink, batch } = await openSink(archiveSink, settingsOf(location), {
      report: async (one) => void reported.push(one),
    });

    await send(sink, batch(someEvents(2)));

    const { size, root } = await readArchive(location);
    expect(reported).toMatchObject([{ condition: 'archive.checkpoint', details: { size, root } }]);
    expect(`${reported[0]?.details?.note}`).toMatch(/^archive\.test\n\d+\n.+\n\n— archive\.test /);
  });

  test('may give up at any time', async () => {
    const { sink, batch } = await openSink(archiveSink, settingsOf(tempDir()));
    const stop = new AbortController();

    const answer = sink.send(batch(someEvents(1)), stop.signal);
    stop.abort(new Error('stopping'));

    await expect(answer).rejects.toThrow('stopping');
  });
});

describe('a fault', () => {
  test.each([
    ['no key', { signing_key: 'PRIVATE' }, /not a signing key/],
    ['a damaged key', { signing_key: key.replace('+cc', '+cd') }, /damaged/],
    ['a key of another name', { origin: 'other' }, /key of archive\.test/],
  ])(
    '%s is refused, with the next step, and repaired without a restart',
    async (_, wrong, text) => {
      const settings = { ...settingsOf(tempDir()), ...wrong };
      const { sink, batch } = await openSink(archiveSink, settings);

      const answer = await send(sink, batch(someEvents(1)));

      expect(answer).toMatchObject({
        outcome: 'refused',
        scope: 'sink',
        cause: { code: 'sink_refused', message: expect.stringMatching(text) },
      });
      expect(JSON.stringify(answer)).not.toContain(key.slice(-20));
      await expect(
        archiveSink.probe(parseSettings(archiveSink, settings), testTools(), never),
      ).rejects.toThrow(text);
    },
  );

  test('an archive that another process writes to is waited for', async () => {
    const location = join(tempDir(), 'archive');
    const other = await openSink(archiveSink, settingsOf(location), { spoolId: 'other' });
    await send(other.sink, other.batch(someEvents(1)));
    const { sink, batch } = await openSink(archiveSink, settingsOf(location));

    expect(await send(sink, batch(someEvents(1)))).toMatchObject({
      outcome: 'retry',
      cause: { code: 'sink_unreachable' },
    });
    await other.sink.close();

    expect(await send(sink, batch(someEvents(1)))).toEqual({ outcome: 'delivered' });
  });

  test('an archive that is gone is refused, and not started again', async () => {
    const location = join(tempDir(), 'archive');
    const { sink, batch } = await openSink(archiveSink, settingsOf(location));
    await send(sink, batch(someEvents(1)));
    rmSync(location, { recursive: true });

    const answer = await send(sink, batch(someEvents(1, 1)));

    expect(answer).toMatchObject({ outcome: 'refused', scope: 'sink' });
  });

  test('a location that cannot be written is found by the probe', async () => {
    const file = join(tempDir(), 'file');
    writeFileSync(file, '');
    chmodSync(file, 0o600);
    const settings = parseSettings(archiveSink, settingsOf(join(file, 'archive')));

    await expect(archiveSink.probe(settings, testTools(), never)).rejects.toMatchObject({
      code: 'sink_refused',
    });
  });

  test('an archive that is there is probed as it is', async () => {
    const location = tempDir();
    const { sink, batch } = await openSink(archiveSink, settingsOf(location));
    await send(sink, batch(someEvents(1)));
    const settings = parseSettings(archiveSink, settingsOf(location));
    const probe = () => archiveSink.probe(settings, testTools(), never);

    await expect(probe()).rejects.toThrow('another process writes to it');
    await sink.close();
    await probe();
  });
});

test('the program archives upstream’s responses, and the archive verifies', async () => {
  const dir = tempDir();
  const keyFile = join(dir, 'key');
  const made = await runHere(['archive', 'keys', 'new', keyFile, '--origin', 'siem.test/2026']);
  const vkey = made.stdout.trim().split('\n').at(-1) ?? '';
  const { config } = await aSetup({
    sinks: [
      `  proof: { type: archive, location: ${dir}/archive, signing_key: "\${file:${keyFile}}" }`,
      `  disk: { type: file, path: ${dir}/events.ndjson }`,
    ],
  });

  const runs = [await runOnceHere(config), await runOnceHere(config)];
  const verified = await runHere(['archive', 'verify', `${dir}/archive`, '--key', vkey]);

  expect(made.exitCode).toBe(0);
  expect(runs.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
  expect(verified).toMatchObject({ exitCode: 0, stderr: '' });
  expect(verified.stdout).toMatch(/250 records/);
  expect(readFileSync(`${dir}/events.ndjson`, 'utf8')).toContain('archive.checkpoint');
});
