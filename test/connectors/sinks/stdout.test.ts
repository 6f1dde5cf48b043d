// The stdout sink in a process of its own, since it writes to that process's standard output.

import { describe, expect, test } from 'vitest';
import { json } from '../../../formats/json.ts';
import { someEvents } from '../../support/sink-opening.ts';
import { startSinkProcess } from '../../support/sink-process.ts';

const format = json.make({ type: 'json', schema: 'ocsf', raw_data: false });
const linesOf = (count: number, first = 0) =>
  someEvents(count, first).map((event) => `${format.encode(event)}\n`);

describe('stdout', () => {
  test('writes events as lines and nothing else', async () => {
    const sink = await startSinkProcess('stdout', {});
    let text = '';
    sink.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });

    const first = await sink.ask({ ask: 'send', count: 3, first: 0 });
    const second = await sink.ask({ ask: 'send', count: 2, first: 3 });

    expect([first, second]).toEqual([{ outcome: 'delivered' }, { outcome: 'delivered' }]);
    await expect.poll(() => text).toBe(linesOf(5).join(''));
  });

  test('waits for a reader that stands still, without holding up its process', async () => {
    const sink = await startSinkProcess('stdout', {});
    const count = 2000; // a megabyte and more: no pipe takes that at once
    let answered = false;

    const sending = sink.ask({ ask: 'send', count, first: 0 }).then((answer) => {
      answered = true;
      return answer;
    });
    const probed = await sink.ask({ ask: 'probe' });
    const answeredBeforeReading = answered;
    let text = '';
    sink.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });

    expect(probed).toEqual({ outcome: 'done' });
    expect(answeredBeforeReading).toBe(false);
    expect(await sending).toEqual({ outcome: 'delivered' });
    await expect.poll(() => text).toBe(linesOf(count).join(''));
  });

  test('stops when its reader has gone, and the process continues', async () => {
    const sink = await startSinkProcess('stdout', {});
    sink.stdout.destroy();

    const first = await sink.ask({ ask: 'send', count: 1, first: 0 });
    const second = await sink.ask({ ask: 'send', count: 1, first: 1 });

    const gone = { outcome: 'refused', scope: 'sink', code: 'sink_refused' };
    expect(first).toMatchObject({
      ...gone,
      message: 'sending to sink-under-test: the reader of standard output closed the pipe',
    });
    expect(second).toMatchObject(gone);
  });
});
