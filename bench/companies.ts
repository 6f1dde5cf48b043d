// `npx node bench/companies.ts [--companies N] [--every SECONDS] [--seconds N] [--trouble NAME,NAME]`: one bad company among
// many. For each trouble: the age of the other companies' records at the receiver, /readyz, the lines of attention, the
// streams that alerts name, and the memory of the process.

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  badCompany,
  configOfMany,
  startManyCompanies,
  type Trouble,
  troubles,
} from '../test/support/many-companies.ts';
import { countedOf, inDirectory, startSluice } from './program.ts';

const listsPerCompany = 2;

/** What is measured of one trouble. */
export async function companyTrouble(
  trouble: Trouble | null,
  { companies, everyS, seconds }: { companies: number; everyS: number; seconds: number },
) {
  const { upstream, url, close } = await startManyCompanies({
    companies,
    recordEveryMs: everyS * 1_000,
  });
  return await inDirectory(async (dir) => {
    const ids = join(dir, 'companies.txt');
    writeFileSync(ids, `${upstream.ids.join('\n')}\n`);
    const port = 20_000 + Math.floor(Math.random() * 30_000);
    const config = configOfMany(dir, url, { ids, every: `${everyS}s`, page: port });
    upstream.trouble = trouble;
    const { child, said } = startSluice(['run'], config, dir);
    const status = `http://127.0.0.1:${port}`;
    while (upstream.seen.size < (companies - 1) * listsPerCompany) {
      if (child.exitCode !== null) throw new Error(`sluice has ended:\n${said.log}`);
      await delay(100);
    }
    // The first polls are spread over time, and read what was there before.
    await delay(everyS * 2_000);
    upstream.ages = [];
    const before = countedOf(child.pid ?? 0);
    let notReady = 0;
    let rssBytes = 0;
    for (let i = 0; i < seconds; i += 1) {
      await delay(1_000);
      const { status: code } = await fetch(`${status}/readyz`);
      if (code !== 200) notReady += 1;
      rssBytes = Math.max(rssBytes, countedOf(child.pid ?? 0)?.rssBytes ?? 0);
    }
    const ages = upstream.ages.toSorted((a, b) => a - b);
    const { attention } = (await (await fetch(`${status}/status.json`)).json()) as {
      attention?: readonly unknown[];
    };
    const metrics = await (await fetch(`${status}/metrics`)).text();
    const alerted = metrics
      .split('\n')
      .filter((line) => /^sluice_stream_(halted|failing)\{.* 1$/.test(line));
    const cpuUs = (countedOf(child.pid ?? 0)?.cpuUs ?? 0) - (before?.cpuUs ?? 0);
    child.kill();
    await once(child, 'close');
    return {
      p50: ages[Math.floor(ages.length / 2)] ?? Number.NaN,
      p99: ages[Math.floor(ages.length * 0.99)] ?? Number.NaN,
      records: ages.length,
      notReady,
      attention: attention ?? [],
      alerted,
      badRequests: upstream.requests.get(badCompany) ?? 0,
      rssBytes,
      cpuPercent: cpuUs / seconds / 10_000,
    };
  }).finally(close);
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      companies: { type: 'string', default: '300' },
      every: { type: 'string', default: '10' },
      seconds: { type: 'string', default: '60' },
      trouble: { type: 'string', default: `none,${troubles.join(',')}` },
    },
  });
  const of = {
    companies: Number(values.companies),
    everyS: Number(values.every),
    seconds: Number(values.seconds),
  };
  const rows = [];
  for (const name of values.trouble.split(',')) {
    const trouble = troubles.find((one) => one === name) ?? null;
    const measured = await companyTrouble(trouble, of);
    rows.push({
      trouble: name,
      'p50 s': measured.p50 / 1_000,
      'p99 s': measured.p99 / 1_000,
      records: measured.records,
      'not ready': measured.notReady,
      attention: measured.attention.length,
      alerted: measured.alerted.length,
      'bad requests': measured.badRequests,
      'RSS MB': Math.round(measured.rssBytes / 1e6),
      'CPU %': Math.round(measured.cpuPercent),
    });
    console.log(
      JSON.stringify({
        ...rows.at(-1),
        texts: measured.attention.slice(0, 3),
        by: measured.alerted.slice(0, 3),
      }),
    );
  }
  console.table(rows);
}
