// `npx node bench/companies.ts [--companies N] [--every SECONDS] [--rate N] [--seconds N] [--trouble all|NAME,NAME] [--together]`:
// many companies, without a broken one or with some. The age of records at the receiver, /readyz, the lines of attention, the
// alerts that name a broken company, and the CPU and memory of sluice and, apart, of the scripted upstream. `--rate`: events a
// second of each company; default: one for each list in the time between two polls. Each trouble has a run of its own with
// one broken company. With `--together` there is one run, and each trouble has its own company.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { configOfMany, type Trouble, troubles } from '../test/support/many-companies.ts';
import type { ManyCompaniesFacts, ManyCompaniesReady } from './many-companies-server.ts';
import { countedOf, inDirectory, startSluice } from './program.ts';

const listsPerCompany = 2;
/** As often as Prometheus reads the metrics. */
const lookEveryMs = 15_000;
/** The alerts about one stream in deploy/prometheus/alerts.yaml, by metric. */
const alertOf: Readonly<Record<string, string>> = {
  sluice_stream_halted: 'SluiceStreamHalted',
  sluice_stream_failing: 'SluiceStreamFailing',
  sluice_stream_stalled: 'SluiceStreamFailing',
  sluice_stream_clock_ahead_seconds: 'SluiceClockAhead',
};
/** How long the expression of an alert has to hold. */
const forMs: Readonly<Record<string, number>> = {
  SluiceStreamHalted: 60_000,
  SluiceStreamFailing: 15 * 60_000,
  SluiceClockAhead: 15 * 60_000,
};

/** The size of a run. */
interface Size {
  readonly companies: number;
  readonly everyS: number;
  /** Time between two records of a list, seconds. */
  readonly recordEveryS: number;
  readonly seconds: number;
}

/** What is measured of companies that are broken in these ways, the first company in the first way. */
export async function companyTroubles(broken: readonly Trouble[], size: Size) {
  const { companies, everyS, recordEveryS, seconds } = size;
  const options = {
    companies,
    recordEveryMs: recordEveryS * 1_000,
    broken: Object.fromEntries(broken.map((trouble, i) => [`c-${i}`, trouble])),
  };
  const script = new URL('./many-companies-server.ts', import.meta.url).pathname;
  // JSON has no NaN.
  const peer = fork(script, [JSON.stringify(options)], { serialization: 'advanced' });
  try {
    const [{ url, ids }] = (await once(peer, 'message')) as [ManyCompaniesReady];
    return await inDirectory(async (dir) => {
      const file = join(dir, 'companies.txt');
      writeFileSync(file, `${ids.join('\n')}\n`);
      const page = await freePort();
      const config = configOfMany(dir, url, { ids: file, every: `${everyS}s`, page });
      const { child, said } = startSluice(['run'], config, dir);
      try {
        const well = (companies - broken.length) * listsPerCompany;
        for (let looks = 0; ; looks += 1) {
          const { seen } = await factsOf(peer, 'look');
          if (looks % 15 === 0) console.log(`${seen} of ${well} lists have sent a record`);
          if (seen >= well) break;
          if (child.exitCode !== null) throw new Error(`sluice has ended:\n${said.log}`);
          await delay(1_000);
        }
        console.log(`measured from ${everyS * 2} s later, for ${seconds} s`);
        // The first polls are spread over time, and read what was there before.
        await delay(everyS * 2_000);
        return await observed({ peer, sluice: child, page, seconds, broken });
      } finally {
        child.kill();
        await once(child, 'close');
      }
    });
  } finally {
    peer.disconnect();
  }
}

interface Running {
  readonly peer: ChildProcess;
  readonly sluice: ChildProcess;
  readonly page: number;
  readonly seconds: number;
  readonly broken: readonly Trouble[];
}

async function observed({ peer, sluice, page, seconds, broken }: Running) {
  const { requests: before } = await factsOf(peer, 'begin');
  const cpuBefore = { sluice: countedOf(sluice.pid ?? 0), peer: countedOf(peer.pid ?? 0) };
  const companies = broken.map((trouble, i) => new Watched(`c-${i}`, trouble));
  const until = performance.now() + seconds * 1_000;
  const looks = { all: 0, notReady: 0, linesMost: 0, rssBytes: 0 };
  let attention: readonly Matter[] = [];
  while (performance.now() < until) {
    await delay(Math.min(lookEveryMs, until - performance.now()));
    const { status } = await fetch(`http://127.0.0.1:${page}/readyz`);
    const facts = await fetch(`http://127.0.0.1:${page}/status.json`);
    attention = ((await facts.json()) as { attention?: readonly Matter[] }).attention ?? [];
    const metrics = await (await fetch(`http://127.0.0.1:${page}/metrics`)).text();
    for (const company of companies) company.look(attention, metrics);
    looks.all += 1;
    looks.notReady += status === 200 ? 0 : 1;
    looks.linesMost = Math.max(looks.linesMost, attention.length);
    looks.rssBytes = Math.max(looks.rssBytes, countedOf(sluice.pid ?? 0)?.rssBytes ?? 0);
    const { records } = await factsOf(peer, 'look');
    const leftS = Math.round((until - performance.now()) / 1_000);
    console.log(
      `${records} records, at most ${Math.round(looks.rssBytes / 1e6)} MB; ${leftS} s left`,
    );
  }
  const { records, ages, requests } = await factsOf(peer, 'end');
  const cpuPercent = (child: ChildProcess, begun: ReturnType<typeof countedOf>) =>
    ((countedOf(child.pid ?? 0)?.cpuUs ?? 0) - (begun?.cpuUs ?? 0)) / seconds / 10_000;
  return {
    figures: {
      'p50 s': ages.p50 / 1_000,
      'p99 s': ages.p99 / 1_000,
      'most s': ages.most / 1_000,
      records,
      looks: looks.all,
      'not ready': looks.notReady,
      'lines, most': looks.linesMost,
      'RSS MB': Math.round(looks.rssBytes / 1e6),
      'CPU %': Number(cpuPercent(sluice, cpuBefore.sluice).toFixed(1)),
      'CPU % of upstream': Number(cpuPercent(peer, cpuBefore.peer).toFixed(1)),
    },
    companies: companies.map((one) => ({
      ...one.found(),
      requests: (requests[one.company] ?? 0) - (before[one.company] ?? 0),
    })),
    attention,
  };
}

interface Matter {
  readonly who: string;
  readonly what: string;
  readonly message: string | null;
}

/** One broken company: its lines of attention, and the alerts of deploy/prometheus/alerts.yaml that name it. */
class Watched {
  readonly company: string;
  readonly #trouble: Trouble;
  readonly #alerts = new Set<string>();
  /** When each series of an alert became true, by alert and stream. */
  readonly #since = new Map<string, number>();
  #linesMost = 0;
  #looksWithLine = 0;

  constructor(company: string, trouble: Trouble) {
    this.company = company;
    this.#trouble = trouble;
  }

  look(attention: readonly Matter[], metrics: string): void {
    const named = new RegExp(String.raw`\b${this.company}\b`);
    const lines = attention.filter(({ who, what }) => named.test(`${who} ${what}`)).length;
    this.#linesMost = Math.max(this.#linesMost, lines);
    if (lines > 0) this.#looksWithLine += 1;
    const now = performance.now();
    const holding = new Set<string>();
    for (const line of metrics.split('\n')) {
      const [, name = '', stream = ''] = /^(\w+)\{.*stream="([^"]+)".*\} [1-9]/.exec(line) ?? [];
      if (name === '' || !named.test(stream)) continue;
      if (name === 'sluice_source_conditions_total') this.#alerts.add('SluiceSourceCondition');
      const alert = alertOf[name];
      if (alert !== undefined) holding.add(`${alert} ${stream}`);
    }
    for (const key of this.#since.keys()) if (!holding.has(key)) this.#since.delete(key);
    for (const key of holding) {
      const since = this.#since.get(key) ?? now;
      this.#since.set(key, since);
      const [alert = ''] = key.split(' ');
      if (now - since >= (forMs[alert] ?? 0)) this.#alerts.add(alert);
    }
  }

  found() {
    return {
      trouble: this.#trouble,
      company: this.company,
      'lines, most': this.#linesMost,
      'looks with a line': this.#looksWithLine,
      alerts: [...this.#alerts].join(', '),
    };
  }
}

async function factsOf(peer: ChildProcess, message: string): Promise<ManyCompaniesFacts> {
  peer.send(message);
  const [facts] = (await once(peer, 'message')) as [ManyCompaniesFacts];
  return facts;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      companies: { type: 'string', default: '300' },
      every: { type: 'string', default: '10' },
      seconds: { type: 'string', default: '60' },
      rate: { type: 'string' },
      trouble: { type: 'string', default: '' },
      together: { type: 'boolean', default: false },
    },
  });
  const everyS = Number(values.every);
  const size = {
    companies: Number(values.companies),
    everyS,
    recordEveryS: values.rate === undefined ? everyS : listsPerCompany / Number(values.rate),
    seconds: Number(values.seconds),
  };
  const names = troubles.filter(
    (name) => values.trouble === 'all' || values.trouble.split(',').includes(name),
  );
  const isOneRun = values.together || names.length === 0;
  const rows = [];
  for (const broken of isOneRun ? [names] : names.map((name) => [name])) {
    const { figures, companies, attention } = await companyTroubles(broken, size);
    if (companies.length > 0) console.table(companies);
    for (const { who, what, message } of attention) console.log(`${who} ${what}: ${message}`);
    rows.push({ trouble: broken.length > 1 ? 'together' : (broken[0] ?? 'none'), ...figures });
    console.table(rows);
  }
}
