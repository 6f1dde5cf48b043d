// `npx node bench/latency.ts [--rates N,N] [--seconds N] [--json FILE]`: the age of events on arrival, at each of these rates:
// almost idle, and at half of what one core keeps up with. An upstream's list grows by that many events a second and is
// polled once a second; each event has the time it became visible, and the receiver, CEF over TCP, records the time of
// arrival. Everything beyond the poll interval is sluice's, including its durable spool. The share of a core shows how high
// the load was.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { configOf } from './jobs.ts';
import { countedOf, inDirectory, startSluice } from './program.ts';
import { writeResults } from './results.ts';
import { pageEvents, recordsOf } from './work.ts';

const { values } = parseArgs({
  options: {
    rates: { type: 'string', default: '1,60000' },
    seconds: { type: 'string', default: '60' },
    json: { type: 'string' },
    serve: { type: 'string' },
    begun: { type: 'string', default: '0' },
  },
});
const everyMs = 1_000;
/** More than ` rt=1790000000000 `. */
const timeChars = 20;
/** The first seconds, in which code is compiled, do not count. */
const settledMs = 5_000;
/** Spreads the events over the time between two polls: at one event a second each would have the same age. */
const spread = (n: number) => (n * 0.618) % 1;

/** The upstream, in a process of its own: event n becomes visible about n / rate seconds after the start. */
function serveGrowingList(rate: number, begun: number): void {
  const templates = recordsOf(0).map((record) =>
    JSON.stringify({ ...record, id: '\n', timestamp: '\n' }).split('"\\n"'),
  );
  const visible = () => {
    const all = ((Date.now() - begun) / 1_000) * rate;
    const last = Math.floor(all);
    return last + (spread(last) <= all - last ? 1 : 0);
  };
  const textOf = (n: number) => {
    const [before, between, after] = templates[n % pageEvents] ?? [];
    const at = new Date(begun + ((n + spread(n)) / rate) * 1_000).toISOString();
    return `${before}"evt_${n}"${between}"${at}"${after}`;
  };
  createServer((request, response) => {
    const cursor = new URL(request.url ?? '/', 'http://localhost').searchParams.get('cursor');
    const from = Number(cursor ?? 0);
    const to = Math.min(from + pageEvents, visible());
    const texts = Array.from({ length: Math.max(0, to - from) }, (_, i) => textOf(from + i));
    response.setHeader('content-type', 'application/json');
    response.end(`{"data":[${texts.join(',')}],"next_cursor":"${Math.max(from, to)}"}`);
  }).listen(0, '127.0.0.1', function (this: { address(): unknown }) {
    process.stdout.write(`${(this.address() as AddressInfo).port}\n`);
  });
  process.stdin.resume().once('end', () => process.exit(0));
}

/** What events are old at a rate, and what sluice uses meanwhile. */
async function measured(rate: number, seconds: number) {
  const begun = Date.now();
  const args = [import.meta.filename, '--serve', String(rate), '--begun', String(begun)];
  const upstream = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(upstream.stdout, 'data')) as [Buffer];
  let ages: number[] = [];
  const receiver = createTcpServer((socket) => {
    let rest = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      const now = Date.now();
      const text = rest + chunk;
      let end = 0;
      for (const { 0: found, 1: time, index } of text.matchAll(/ rt=(\d{13}) /g)) {
        ages.push(now - Number(time));
        end = index + found.length;
      }
      // A time may be cut by the end of a chunk.
      rest = text.slice(Math.max(end, text.length - timeChars));
    });
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  const used = await inDirectory(async (dir) => {
    const sinks = `siem: { type: syslog, address: "tcp://127.0.0.1:${port}", format: cef }`;
    const config = configOf(dir, Number(line.toString()), sinks).replace('every: 30s', 'every: 1s');
    const { child, said } = startSluice(['run'], config, dir);
    const counted = () => {
      const now = countedOf(child.pid ?? 0);
      if (now === null) throw new Error(`sluice has ended:\n${said.log}`);
      return now;
    };
    await delay(settledMs);
    const before = counted();
    ages = [];
    await delay(seconds * 1_000);
    const { cpuUs, rssPeakBytes } = counted();
    const ended = Float64Array.from(ages).sort();
    child.kill();
    await once(child, 'close');
    return { ages: ended, cpuUs: cpuUs - before.cpuUs, rssPeakBytes };
  });
  upstream.kill();
  receiver.close();
  const share = (part: number) => used.ages[Math.floor(used.ages.length * part)] ?? null;
  return {
    'events/s': rate,
    events: used.ages.length,
    'p50 ms': share(0.5),
    'p99 ms': share(0.99),
    'most ms': used.ages.at(-1) ?? null,
    'CPU % of a core': Number((used.cpuUs / seconds / 10_000).toFixed(1)),
    'RSS peak MB': Math.round(used.rssPeakBytes / 1e6),
  };
}

if (values.serve === undefined) {
  const rows = [];
  for (const rate of values.rates.split(',').map(Number)) {
    rows.push(await measured(rate, Number(values.seconds)));
    console.table(rows);
  }
  const events = rows.reduce((sum, row) => sum + row.events, 0);
  if (values.json !== undefined) writeResults(values.json, events, { everyMs, rows });
} else serveGrowingList(Number(values.serve), Number(values.begun));
