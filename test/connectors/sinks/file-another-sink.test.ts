// A file that another sink of the same state wrote before: a config swaps two paths, renames a sink, or gives the file
// of a removed sink to another one. The sinks get different events, so the progress of one says nothing about the other.

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fileSink } from '../../../connectors/sinks/file.ts';
import type { Event } from '../../../src/contracts/event.ts';
import { anEvent } from '../../support/an-event.ts';
import { openSink } from '../../support/sink-opening.ts';
import { tempDir } from '../../support/temp.ts';
import { name, uidsIn, written } from './file-engine.ts';

const never = new AbortController().signal;

/** Opens the file as a sink of this name, sends these events in one batch, and closes it. */
async function write(path: string, sinkName: string, offsets: readonly number[]) {
  const { sink, batch } = await openSink(fileSink, { path }, { name: sinkName });
  const reach = await sink.committed?.(never);
  const events: Event[] = offsets.map((offset) => anEvent({ offset }));
  const { outcome } = await sink.send(batch(events), never);
  await sink.close();
  return { outcome, position: reach?.position };
}

describe.each([
  ['a path', name],
  ['a path with {company}', `{company}-${name}`],
])('%s', (_, file) => {
  test('the events of a sink that comes later are written, although the first one was further', async () => {
    const dir = tempDir();
    const path = join(dir, file);

    const first = await write(path, 'first', [3, 5, 7]);
    const second = await write(path, 'second', [2, 4, 6]);
    const third = await write(path, 'first', [8]);

    expect(first.outcome).toBe('delivered');
    expect(second).toMatchObject({ outcome: 'delivered', position: 0 });
    expect(third.outcome).toBe('delivered');
    const wanted = [3, 5, 7, 2, 4, 6, 8].map((offset) => anEvent({ offset }).uid);
    expect(uidsIn(written(dir))).toEqual(wanted);
  });

  test('events that the other sink wrote are not written again', async () => {
    const dir = tempDir();
    const path = join(dir, file);

    await write(path, 'first', [0, 1, 2]);
    await write(path, 'renamed', [0, 1, 2, 3]);
    await write(path, 'renamed', [4]);

    const wanted = [0, 1, 2, 3, 4].map((offset) => anEvent({ offset }).uid);
    expect(uidsIn(written(dir))).toEqual(wanted);
  });
});
