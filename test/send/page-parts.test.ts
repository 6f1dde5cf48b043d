// Large pages are read in parts that share their memory, as the same events, whether they were just appended or come from disk.

import { expect, test } from 'vitest';
import type { HeldPage, Spool } from '../../src/contracts/spool.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { DecodedPage } from '../../src/send/held-event.ts';
import { partsFrom } from '../../src/send/outlet.ts';
import { scanBody } from '../../src/tools/record-list.ts';
import { aPage } from '../support/a-page.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const MiB = 1024 ** 2;
const normalise = () => ({}) as never;

/** Everything that is held, as a sink reads it. */
async function pagesOf(spool: Spool): Promise<readonly HeldPage[]> {
  const pages: HeldPage[] = [];
  for (let from = 0; from < spool.gauge.end; ) {
    const some = partsFrom(await spool.read(from, 512 * 1024), from, 512 * 1024);
    pages.push(...some);
    const last = some.at(-1);
    from = last === undefined ? spool.gauge.end : last.first + last.count;
  }
  return pages;
}

const reported = (pages: readonly HeldPage[]) =>
  pages.flatMap((page) =>
    new DecodedPage(page, normalise).events.map(({ offset, uid, raw }) => ({
      ...{ offset, uid },
      raw: Buffer.from(raw).toString(),
    })),
  );

test.each([
  { size: 'of 2 MB', pad: 2_000, count: 1_000, half: false },
  { size: 'of 6 MB, which travels to the worker itself', pad: 6_000, count: 1_000, half: false },
  { size: 'of 2 MB, half of it known', pad: 2_000, count: 1_000, half: true },
])('a page $size is read in parts, from memory and from disk', async ({ pad, count, half }) => {
  const ids = Array.from({ length: count }, (_, n) => `r-${n}`);
  const page = aPage({ ids, pad });
  const whole = {
    ...page,
    first: 0,
    count: half ? count / 2 : count,
    kept: half ? Uint32Array.from({ length: count / 2 }, (_, n) => n * 2 + 1) : null,
    uids: half ? page.uids.subarray(0, page.uids.length / 2) : page.uids,
  };
  const expected = reported([{ ...whole, body: Buffer.from(page.body) }]);
  const slices = scanBody(page.body, 'data', 'id').records?.slices;
  const settings = {
    dir: tempDir(),
    sync: 'normal',
    keepMs: 0,
    sinks: ['a'],
    bytesMax: 1e9,
  } as const;

  const spool = await openSpool(settings);
  await spool.append({
    stream: 'audit',
    pages: [{ ...whole, ...(slices === undefined ? {} : { slices }) }],
    checkpoint: null,
  });
  const hot = await pagesOf(spool);
  const again = await pagesOf(spool);
  await spool.close();
  const reopened = await openSpool(settings);
  afterThisTest(() => reopened.close());
  const cold = await pagesOf(reopened);

  expect(hot.length).toBeGreaterThan(1);
  expect(Math.max(...hot.map(({ body }) => body.length))).toBeLessThan(MiB);
  // The same objects each time, so that sinks share what is computed; and what the scan knows goes along.
  expect(again.every((part, index) => part === hot[index])).toBe(true);
  expect(hot.every((part) => part.slices?.exact)).toBe(true);
  expect(reported(hot)).toEqual(expected);
  expect(reported(cold)).toEqual(expected);
});

test('several large pages stay in memory until the sinks have read them', async () => {
  const spool = await openSpool({
    ...{ dir: tempDir(), sync: 'normal', keepMs: 0, sinks: ['a'], bytesMax: 1e9 },
  });
  afterThisTest(() => spool.close());
  const ids = Array.from({ length: 100 }, (_, n) => `r-${n}`);
  for (let n = 0; n < 3; n += 1) {
    const page = aPage({ ids, pad: 23_700, stream: `s${n}` });
    const slices = scanBody(page.body, 'data', 'id').records?.slices;
    await spool.append({
      stream: `s${n}`,
      pages: [{ ...page, ...(slices === undefined ? {} : { slices }) }],
      checkpoint: null,
    });
  }

  const pages = await pagesOf(spool);

  // Only what was read from disk has to be cut and looked through again.
  expect(pages.filter((page) => page.slices?.exact === true)).toHaveLength(pages.length);
  expect(pages.reduce((sum, { count }) => sum + count, 0)).toBe(300);
});
