// One file of a sink with placeholders cannot be written: its events wait, durably and in order, and those of other files
// are delivered. The real sender and spool; a path is unusable where a file is in place of its directory.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fileSink } from '../../../connectors/sinks/file.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import { openSpool } from '../../../src/hold/spool.ts';
import { idOf, senderOn } from '../../send/a-sender.ts';
import { anAppend } from '../../support/a-page.ts';
import { openSink, someEvents, type TestTools, testTools } from '../../support/sink-opening.ts';
import { afterThisTest, tempDir, waitUntil } from '../../support/temp.ts';

async function aJourney() {
  const [state, out] = [tempDir(), tempDir()];
  const spool = await openSpool({
    ...{ dir: state, sync: 'normal', keepMs: 0, sinks: ['s'], bytesMax: 1e9, eager: true },
    reserveBytesMax: 2 ** 20,
  });
  const append = (source: string, ids: readonly string[]) =>
    spool.append(anAppend({ stream: source, source, ids }));
  const start = async (eventsMax = 6, tools: TestTools = testTools()) => {
    const { position } = await spool.progress('s');
    const path = join(out, '{source}', 'events.ndjson');
    const { sink } = await openSink(fileSink, { path }, { position, tools });
    const sender = senderOn(spool, sink, { position, eventsMax });
    const [stop, kill] = [new AbortController(), new AbortController()];
    const ended = sender.run({ stop: stop.signal, kill: kill.signal });
    ended.catch(() => undefined);
    afterThisTest(() => {
      stop.abort(new Error('the test is over'));
      kill.abort(new Error('the test is over'));
    });
    const end = async () => {
      stop.abort(new Error('enough'));
      await ended;
      await sink.close();
    };
    const reaches = (position: number) =>
      waitUntil(() => sender.state.position === position, {
        what: () => `position ${position}: ${JSON.stringify(sender.state)}`,
      });
    return { sender, end, reaches };
  };
  const written = (source: string) => {
    const file = join(out, source, 'events.ndjson');
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
    return lines.map((line) => JSON.parse(line).id);
  };
  return { spool, append, start, written, out };
}

test('a file that cannot be written delays only its own events, also over a restart', async () => {
  const { spool, append, start, written, out } = await aJourney();
  writeFileSync(join(out, 'b'), 'in place of the directory');
  // The first batch is of this file alone: only a look at the directory shows that others work.
  await append('b', ['b0', 'b1']);
  const first = await start(2);
  await first.reaches(2);
  await append('a', ['a0', 'a1']);
  await append('b', ['b2']);
  await append('a', ['a2']);
  await first.reaches(6);
  const { setAside, error, deadLetters } = first.sender.state;
  await first.end();

  const second = await start();
  await append('b', ['b3', 'b4']);
  await append('a', ['a3']);
  await second.reaches(9);
  rmSync(join(out, 'b'));
  await waitUntil(() => second.sender.state.setAside.length === 0, { what: 'b to be delivered' });
  await append('b', ['b5']);
  await second.reaches(10);
  await second.end();
  // The next process finds nothing to repeat.
  const third = await start();
  await append('a', ['a4']);
  await third.reaches(11);
  await third.end();
  await spool.close();

  expect(setAside).toMatchObject([{ destination: join(out, 'b', 'events.ndjson'), events: 3 }]);
  expect(setAside[0]?.reason).toContain(join(out, 'b', 'events.ndjson'));
  expect([error, deadLetters, second.sender.state.deadLetters]).toEqual([null, 0, 0]);
  expect(written('a')).toEqual(['a0', 'a1', 'a2', 'a3', 'a4']);
  expect(written('b')).toEqual(['b0', 'b1', 'b2', 'b3', 'b4', 'b5']);
});

test('a process that ends between a write and its settlement repeats no event that was set aside', async () => {
  const { spool, append, start, written, out } = await aJourney();
  writeFileSync(join(out, 'b'), 'in place of the directory');
  await append('b', ['b0', 'b1', 'b2']);
  const first = await start();
  await first.reaches(3);
  await first.end();
  rmSync(join(out, 'b'));
  // As a process does that ends before it removes the event from those set aside.
  const path = join(out, '{source}', 'events.ndjson');
  const opened = await openSink(fileSink, { path }, { position: 3 });
  const [row] =
    (await spool.aside?.read('s', join(out, 'b', 'events.ndjson'), {
      ...{ after: 0, most: 1 },
    })) ?? [];
  const [event] = someEvents(1, row?.offset);
  if (event === undefined || row === undefined) throw new Error('nothing is set aside');
  const own = { ...event, uid: row.uid, context: row.context };
  const line = { ...own, ocsf: { id: 'b0' } as never };
  expect(await opened.sink.send(opened.batch([line]), new AbortController().signal)).toEqual({
    outcome: 'delivered',
  });
  await opened.sink.close();

  const second = await start();
  await waitUntil(() => written('b').length > 2 && second.sender.state.setAside.length === 0, {
    what: 'b to be delivered',
  });
  await second.end();
  await spool.close();

  expect(idOf({ raw: row.record } as never)).toBe('b0');
  expect(written('b')).toEqual(['b0', 'b1', 'b2']);
});

test('where no file can be created, the whole sink waits and sets nothing aside', async () => {
  const { spool, append, start, written, out } = await aJourney();
  rmSync(out, { recursive: true });
  writeFileSync(out, 'in place of the directory');
  await append('b', ['b0']);
  const first = await start();
  await waitUntil(() => first.sender.state.error !== null, { what: 'the fault to be reported' });
  const { setAside, position } = first.sender.state;
  rmSync(out);
  mkdirSync(out);
  await first.reaches(1);
  // An attempt from before the repair may set it aside after it.
  await waitUntil(() => written('b').length > 0 && first.sender.state.setAside.length === 0, {
    what: 'b to be delivered',
  });
  await first.end();
  await spool.close();

  expect([setAside, position]).toEqual([[], 0]);
  expect(written('b')).toEqual(['b0']);
});

test('a fault of one file that passes by itself sets nothing aside', async () => {
  const { spool, append, start, written, out } = await aJourney();
  let isBusy = true;
  const lockFile = (path: string) => {
    if (isBusy && path.startsWith(join(out, 'b')))
      throw new ExportError('sink_unreachable', 'another process writes the file', {
        next: 'Wait.',
      });
    return { release: () => undefined };
  };
  await append('a', ['a0']);
  await append('b', ['b0']);
  const { sender, reaches, end } = await start(6, { ...testTools(), lockFile });
  await waitUntil(() => sender.state.retries > 1, {
    what: () => `retries: ${JSON.stringify(sender.state)}`,
  });
  const { setAside, position } = sender.state;
  isBusy = false;
  await reaches(2);
  await end();
  await spool.close();

  expect([setAside, position]).toEqual([[], 0]);
  expect([written('a'), written('b')]).toEqual([['a0'], ['b0']]);
});
