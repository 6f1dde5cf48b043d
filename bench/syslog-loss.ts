// `npx node bench/syslog-loss.ts --seconds 15 --rate 2000`: what is lost on the way to a syslog receiver that resets connections,
// restarts, hangs, or is slow while the sender ends (`--schedule hangs`: only this one). sluice is the real program over TCP and TLS, ended with SIGTERM and started
// again, as an operator would; beside it syslog-client, alone and with a program that sends again what the library
// reports as failed. All meet the same schedule (misbehaving-receiver.ts). Ends with 1 if sluice has lost anything.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startSandbox } from '../src/sandbox/sandbox.ts';
import { type Certificates, makeCa } from '../test/support/certificates.ts';
import { MisbehavingReceiver, type Schedule } from './misbehaving-receiver.ts';
import { inDirectory, startSluice } from './program.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '15' },
    rate: { type: 'string', default: '2000' },
    schedule: { type: 'string' },
  },
});
const seconds = Number(values.seconds);
const rate = Number(values.rate);
const auditPath = '/v1/audit/events';

/** What one sender did with what it was given. */
interface Outcome {
  readonly given: number;
  /** What the sender itself reported as failed; null where there is no such report, since it sends again by itself. */
  readonly failed: number | null;
}

type Sender = (receiver: MisbehavingReceiver, schedule: Schedule) => Promise<Outcome>;

async function endOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

/** The library, in a program of its own; stopped after half its time if the schedule requires it. */
function plain(resending: 'once' | 'again'): Sender {
  return async (receiver, schedule) => {
    const script = new URL('./plain-syslog-client.ts', import.meta.url).pathname;
    const args = [script, receiver.port, rate, seconds, resending].map(String);
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    if (schedule === 'shutdown') await delay((seconds * 1_000) / 2).then(() => child.kill());
    await once(child, 'close');
    return JSON.parse(said) as Outcome;
  };
}

/** The real program: runs for the time, is ended with SIGTERM, and started again to deliver what it still held. */
function sluice(ca: Certificates | null): Sender {
  return async (receiver) => {
    const sandbox = await startSandbox({ events: 0, logs: 0, rate, firewallEveryS: 0 });
    const { clientId, clientSecret } = sandbox.credentials;
    const address = `${ca === null ? 'tcp' : 'tls'}://127.0.0.1:${receiver.port}`;
    const tls = ca === null ? '' : `, tls: { ca_file: ${ca.caFile} }`;
    try {
      return await inDirectory(async (dir) => {
        const config = `state: { dir: ${dir}/state }
upstreams:
  edge: { api: unified, ends: never, base_url: "${sandbox.unifiedBaseUrl}", allow_http: true, auth: { client_id: ${clientId}, client_secret: ${clientSecret}, scope: events:read } }
sources:
  audit: { type: audit_events, upstream: edge, every: 200ms, page_limit: 1000 }
sinks:
  siem: { type: syslog, address: "${address}"${tls}, resend_window: 500ms, retry: { min: 50ms, max: 500ms } }
shutdown: { timeout: 1s }
`;
        const first = startSluice(['run'], config, dir);
        await delay(seconds * 1_000);
        sandbox.control.setRate(0);
        first.child.kill();
        await endOf(first.child);
        const second = startSluice(['run', '--once'], config, dir);
        // It would not end before a receiver that lets nothing stand for half a second.
        receiver.behave();
        if ((await endOf(second.child)) !== 0)
          throw new Error(`sluice failed:\n${second.said.log}`);
        return { given: sandbox.ledger().list(auditPath).size, failed: null };
      });
    } finally {
      await sandbox.close();
    }
  };
}

const certificates = await makeCa();
const senders: readonly (readonly [string, Sender, Certificates | null])[] = [
  ['sluice, TCP', sluice(null), null],
  ['sluice, TLS', sluice(certificates), certificates],
  ['syslog-client', plain('once'), null],
  ['syslog-client, failures sent again', plain('again'), null],
];

const rows: Record<string, string | number>[] = [];
let lostBySluice = 0;
for (const schedule of ['resets', 'restarts', 'hangs', 'shutdown'] as const) {
  if ((values.schedule ?? schedule) !== schedule) continue;
  for (const [name, send, tls] of senders) {
    const receiver = new MisbehavingReceiver(schedule, tls);
    await receiver.open();
    const { given, failed } = await send(receiver, schedule);
    await receiver.quiet();
    await receiver.close();
    const { uids, messages, connections, resets } = receiver.tally;
    const lost = given - uids.size;
    if (name.startsWith('sluice')) lostBySluice += lost;
    rows.push({
      schedule,
      sender: name,
      given,
      arrived: uids.size,
      lost,
      'reported as failed': failed ?? '-',
      repeats: messages - uids.size,
      connections,
      resets,
    });
  }
}
console.table(rows);
console.log(`${seconds} s at ${rate} events/s for each row, Node ${process.versions.node}`);
process.exit(lostBySluice === 0 ? 0 : 1);
