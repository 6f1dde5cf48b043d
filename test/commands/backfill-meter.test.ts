// A backfill's progress as it is shown: a bar on a terminal, a line a minute in a log.

import { describe, expect, test } from 'vitest';
import { besideMeter, meterFor } from '../../src/commands/shared/backfill-meter.ts';
import type { BackfillProgress } from '../../src/hold/backfills.ts';
import { openLog } from '../../src/watch/log.ts';

function progress(parts: Partial<BackfillProgress>): BackfillProgress {
  return {
    ...{ version: 1, state: 'reading', at: 0, read: 0, held: 0, untimed: 0 },
    ...{ reachedAt: null, share: null, behind: 0, error: null },
    ...parts,
  };
}

/** A meter on a clock of the test's, and what it has written. */
async function aMeter(isTTY: boolean) {
  const written: string[] = [];
  const time = { now: 0 };
  const write = (text: string) => void written.push(text);
  const log = await openLog({ level: 'info', form: 'json', write });
  const meter = meterFor({ isTTY, write }, { log, name: 'audit', now: () => time.now });
  return { meter, written, time, log };
}

describe('on a terminal', () => {
  test('a bar is redrawn in place, with rate and time left', async () => {
    const { meter, written, time } = await aMeter(true);
    meter.show(progress({ share: 0 }));
    time.now = 10_000;
    meter.show(progress({ read: 5_000, held: 1_200, behind: 300, share: 0.25 }));

    expect(written.at(-1)).toBe(
      '\r\u001b[Kaudit [######------------------] 25%  5000 read, 1200 held, 300 to deliver  500/s  30s left',
    );
  });

  test('nothing is said that is not known', async () => {
    const { meter, written } = await aMeter(true);

    meter.show(progress({ read: 100 }));

    expect(written.at(-1)).toMatch(/\[-{24}\] \?% {2}100 read, 0 held, 0 to deliver$/);
  });

  test('the sink that it waits for is named, with its failure', async () => {
    const { meter, written } = await aMeter(true);
    const behind = { state: 'delivering', behind: 7, share: 1 } as const;

    meter.show(progress({ ...behind, slowest: { sink: 'siem', error: null } }));
    meter.show(
      progress({ ...behind, slowest: { sink: 'siem', error: 'sending to siem: refused' } }),
    );

    expect(written[0]).toMatch(/7 to deliver to siem {2}delivering$/);
    expect(written[1]).toMatch(
      /7 to deliver to siem {2}which fails: sending to siem: refused {2}delivering$/,
    );
  });

  test('makes way for a line of the log', async () => {
    const { meter, written, log } = await aMeter(true);
    meter.show(progress({}));

    besideMeter(log, meter.clear).with({ a: 1 }).warn('sink_failed', 'trouble');

    expect(written.at(-2)).toBe('\r\u001b[K');
    expect(JSON.parse(written.at(-1) ?? '')).toMatchObject({
      event: 'sink_failed',
      msg: 'trouble',
      a: 1,
    });
  });
});

test('a line of a log names the sink that the backfill waits for', async () => {
  const { meter, written } = await aMeter(false);

  meter.show(progress({ behind: 7, slowest: { sink: 'siem', error: 'sending to siem: refused' } }));

  const line = JSON.parse(written[0] ?? '');
  expect(line).toMatchObject({ to_deliver: 7, sink: 'siem', error: 'sending to siem: refused' });
});

test('in a log there is a line a minute', async () => {
  const { meter, written, time } = await aMeter(false);
  for (; time.now <= 120_000; time.now += 500) {
    meter.show(progress({ read: time.now / 10, share: time.now / 240_000 }));
  }

  expect(written).toHaveLength(3);
  expect(JSON.parse(written[1] ?? '')).toMatchObject({
    msg: 'backfilling',
    percent: 25,
    records_per_s: 100,
    left: '3m 0s',
  });
});
