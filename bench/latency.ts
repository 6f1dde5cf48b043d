// `npx node bench/latency.ts [--rate N] [--seconds N]`: the age of events on arrival. An upstream's list grows by a
// fixed number of events a second and is polled once a second; each event has the time it became visible, and the
// receiver, CEF over TCP, records the time of arrival. Everything beyond the poll interval is sluice's, including its
// durable spool.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { parseArgs } from 'node:util';
import { configOf } from './jobs.ts';
import { inDirectory, startSluice } from './program.ts';
import { pageEvents, recordsOf } from './work.ts';

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '5000' },
    seconds: { type: 'string', default: '20' },
    serve: { type: 'string' },
  },
});
const rate = Number(values.rate);
const everyMs = 1_000;
/** The first seconds, in which code is compiled, do not count. */
const settledMs = 5_000;

/** The upstream, in a process of its own: event n becomes visible n / rate seconds after the start. */
function serveGrowingList(begun: number): void {
  const templates = recordsOf(0);
  const visible = () => Math.floor(((Date.now() - begun) / 1_000) * rate);
  createServer((request, response) => {
    const cursor = new URL(request.url ?? '/', 'http://localhost').searchParams.get('cursor');
    const from = Number(cursor ?? 0);
    const to = Math.min(from + pageEvents, visible());
    const data = Array.from({ length: Math.max(0, to - from) }, (_, i) => ({
      ...templates[(from + i) % pageEvents],
      id: `evt_${from + i}`,
      timestamp: new Date(begun + ((from + i) / rate) * 1_000).toISOString(),
    }));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data, next_cursor: String(Math.max(from, to)) }));
  }).listen(0, '127.0.0.1', function (this: { address(): unknown }) {
    process.stdout.write(`${(this.address() as AddressInfo).port}\n`);
  });
  process.stdin.resume().once('end', () => process.exit(0));
}

async function measure(): Promise<void> {
  const begun = Date.now();
  const args = [import.meta.filename, '--serve', String(begun), '--rate', String(rate)];
  const upstream = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(upstream.stdout, 'data')) as [Buffer];
  const ages: number[] = [];
  const receiver = createTcpServer((socket) => {
    let rest = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      const now = Date.now();
      const text = rest + chunk;
      const end = text.lastIndexOf(' rt=') - 1;
      rest = text.slice(Math.max(0, end));
      if (now - begun < settledMs) return;
      for (const [, time] of text.slice(0, Math.max(0, end)).matchAll(/ rt=(\d{13}) /g)) {
        ages.push(now - Number(time));
      }
    });
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  await inDirectory(async (dir) => {
    const sinks = `siem: { type: syslog, address: "tcp://127.0.0.1:${port}", format: cef }`;
    const config = configOf(dir, Number(line.toString()), sinks).replace('every: 30s', 'every: 1s');
    const { child } = startSluice(['run'], config, dir);
    await new Promise((resolve) => setTimeout(resolve, Number(values.seconds) * 1_000));
    child.kill();
    await once(child, 'close');
  });
  upstream.kill();
  receiver.close();
  ages.sort((a, b) => a - b);
  const share = (part: number) => ages[Math.floor(ages.length * part)] ?? Number.NaN;
  console.log(
    `${ages.length} events at ${rate} a second, polled every ${everyMs} ms: age on arrival ${share(0.5)} ms (median), ${share(0.99)} ms (p99), ${share(0.999)} ms (p99.9); beyond the interval ${share(0.99) - everyMs} ms (p99)`,
  );
}

if (values.serve === undefined) await measure();
else serveGrowingList(Number(values.serve));
