// One bad company among many on the real program, in each way of test/support/many-companies.ts: the records of the others go
// on arriving, /readyz stays 200, and `status` has one line that names the company. bench/companies.ts measures how fresh the
// others stay.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runSluice, startSluice } from '../support/cli.ts';
import { testSome } from '../support/long.ts';
import {
  badCompany,
  configOfMany,
  startManyCompanies,
  type Trouble,
} from '../support/many-companies.ts';
import { afterThisTest, freePort, tempDir, waitUntil } from '../support/temp.ts';

const companies = 12;

async function aRun(trouble: Trouble) {
  const { upstream, url, close } = await startManyCompanies({
    ...{ companies, recordEveryMs: 500, slowMs: 20_000, hugeBytes: 40_000_000 },
  });
  afterThisTest(close);
  const dir = tempDir('bad-company-');
  const ids = join(dir, 'companies.txt');
  const config = join(dir, 'sluice.yaml');
  const page = await freePort();
  writeFileSync(ids, `${upstream.ids.join('\n')}\n`);
  writeFileSync(config, configOfMany(dir, url, { ids, every: '500ms', page }));
  upstream.broken.set(badCompany, trouble);
  const sluice = startSluice(['run', '-c', config]);
  const everyList = async () => {
    upstream.seen.clear();
    await waitUntil(() => upstream.seen.size === (companies - 1) * 2, {
      what: () =>
        `records of each list, found ${upstream.seen.size}; ${sluice.stderr.slice(-5).join('\n')}`,
    });
  };
  const ready = async () => (await fetch(`http://127.0.0.1:${page}/readyz`)).status;
  const attention = async () => {
    const { stdout } = await runSluice(['status', '-c', config]);
    return stdout.split('\n').filter((line) => /^ ?!/.test(line.slice(0, 2)));
  };
  const metrics = async () => (await fetch(`http://127.0.0.1:${page}/metrics`)).text();
  return { upstream, sluice, everyList, ready, attention, metrics };
}

/** The lines of `status` for a company: one, or none if the company is read. */
const shown: Readonly<Partial<Record<Trouble, 1>>> = { denied: 1, gone: 1, nonsense: 1 };

describe('one company', () => {
  testSome(2, ['denied', 'throttled', 'huge', 'gone', 'slow', 'nonsense', 'endless'])(
    'is %s: the others are read, and nothing is red',
    async (trouble) => {
      const run = await aRun(trouble);
      await run.everyList();
      await waitUntil(() => (run.upstream.requests.get(badCompany) ?? 0) >= 3, {
        what: 'requests of the bad company',
      });
      const statuses: number[] = [];
      for (let i = 0; i < 3; i += 1) {
        await run.everyList();
        statuses.push(await run.ready());
      }
      const lines =
        shown[trouble] === undefined
          ? await run.attention()
          : await waitUntil(
              async () => {
                const found = await run.attention();
                return found.some((line) => line.includes(badCompany)) ? found : undefined;
              },
              { what: 'a line about the company' },
            );
      const { exitCode } = await run.sluice.kill();

      expect(statuses).toEqual([200, 200, 200]);
      expect(lines.filter((line) => line.includes(`${badCompany}`)).length).toBe(
        shown[trouble] ?? lines.length,
      );
      expect(lines.length).toBeLessThanOrEqual(1);
      expect(exitCode).toBe(0);
    },
  );

  test('has a clock that is 400 days ahead: SluiceClockAhead names its streams alone, and companies have a label', async () => {
    const run = await aRun('wrong_clock');
    const aheadS = async () =>
      Array.from(
        (await run.metrics()).matchAll(
          /^sluice_stream_clock_ahead_seconds\{.*stream="(.*?)"\} (\S+)$/gm,
        ),
        ([, stream = '', seconds]) => [stream, Number(seconds)] as const,
      );
    await run.everyList();
    const found = await waitUntil(
      async () => {
        const ahead = (await aheadS()).filter(([, seconds]) => seconds > 600);
        return ahead.length === 2 ? ahead : undefined;
      },
      { what: 'both streams of the company' },
    );
    const all = await aheadS();
    const labels = Array.from(
      (await run.metrics()).matchAll(
        /^sluice_stream_info\{.*,stream="(.*?)".*company="(.*?)"\} 1$/gm,
      ),
      ([, stream = '', company = '']) =>
        [stream.split('/').includes(company), company, stream] as const,
    );
    await run.sluice.kill();

    expect(found.every(([stream]) => stream.endsWith(`/${badCompany}`))).toBe(true);
    expect(found.map(([, seconds]) => Math.round(seconds / 86_400))).toEqual([400, 400]);
    expect(all.length).toBe(labels.length);
    expect(new Set(labels.map(([, company]) => company))).toEqual(new Set(run.upstream.ids));
    expect(labels.filter(([isOf]) => !isOf)).toEqual([]);
  });
});
