// The whole main job on the real program: both APIs in, four formats out to real receivers, killed with SIGKILL on the
// way, and nothing lost. The sandbox's ledger has the readable records; the content of each sink is checked.
// SLUICE_JOURNEY_EVENTS sets the length (100,000 for the full journey).

import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { makeCa } from '../support/certificates.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { startRsyslog } from '../support/rsyslog.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const auditEvents = Number(process.env.SLUICE_JOURNEY_EVENTS ?? 6_000);
/** About what one event takes in the file. */
const eventBytes = 1_000;
const timeoutMs = 120_000 + auditEvents * 10;

interface WrittenEvent {
  readonly metadata: {
    readonly uid: string;
    readonly original_event_uid?: string;
    readonly log_name?: string;
  };
}

test('sluice moves audit events, logs and firewall changes to every sink through three SIGKILLs', {
  timeout: timeoutMs,
}, async () => {
  const dir = tempDir();
  const sandbox = await startSandbox({
    events: auditEvents,
    logs: Math.ceil(auditEvents / 6),
    rate: 0,
    firewallEveryS: 0,
  });
  const ca = await makeCa();
  const rsyslog = await startRsyslog({ tls: ca });
  const otlp = await startOtlpReceiver();
  const topic = await newTopic('journey');
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge:
    api: unified
    ends: never
    base_url: ${sandbox.unifiedBaseUrl}
    allow_http: true
    auth: { client_id: ${sandbox.credentials.clientId}, client_secret: \${env:EDGE_SECRET}, scope: events:read }
  ops:
    api: services
    base_url: ${sandbox.servicesBaseUrl}
    allow_http: true
    auth: { client_id: ${sandbox.credentials.clientId}, client_secret: \${env:EDGE_SECRET}, scope: "urn:sandbox:api:public" }
    companies: [c-1, c-2]
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 500 }
  events:
    type: logs
    upstream: ops
    every: 1s
    page_limit: 500
    path: /api/logs/v1/companies/{company_id}/events
    mapping: { class: network_activity, fields: { src_endpoint.ip: client_ip, dst_endpoint.ip: server_ip, dst_endpoint.port: port } }
  firewall: { type: firewall, upstream: ops, every: 1s, confirm_after: 0s, baseline: full }
sinks:
  siem: { type: syslog, address: "tls://127.0.0.1:${rsyslog.tlsPort}", format: { type: cef, vendor: Acme, product: Edge }, resend_window: 500ms, max_message: 60000, tls: { ca_file: ${ca.caFile} } }
  lake: { type: kafka, brokers: ${JSON.stringify(await kafkaBrokers())}, topic: ${topic}, format: json, exactly_once: true, compression: gzip }
  otel: { type: otlp, url: "${otlp.url}", compression: gzip }
  disk: { type: file, path: ${dir}/out/events.ndjson, format: json, rotate: { bytes: 2MiB } }
`,
  );
  const surroundings = { cwd: dir, env: { EDGE_SECRET: sandbox.credentials.clientSecret } };

  for (const share of [0.1, 0.4, 0.7]) {
    const running = startSluice(['run', '-c', config], surroundings);
    await waitUntil(
      () => !running.running || bytesWritten(dir) >= auditEvents * share * eventBytes,
      {
        what: () =>
          `a share of ${share} of the events in the file; stderr: ${running.stderr.slice(-5).join('\n')}`,
        timeoutMs,
        everyMs: 5,
      },
    );
    expect(running.running).toBe(true);
    await running.kill('SIGKILL');
    await running.exited;
  }
  sandbox.control.changeFirewall('c-1', { kind: 'object', op: 'change' });
  const last = await runSluice(['run', '-c', config, '--once', '--timeout', '100s'], {
    ...surroundings,
    timeoutMs,
  });

  expect(last.stderr.concat(last.stdout)).not.toContain(sandbox.credentials.clientSecret);
  expect([last.exitCode, last.stderr]).toEqual([0, last.stderr]);
  const inFile = writtenTo(dir);
  const uids = inFile.map(({ metadata }) => metadata.uid);
  const expected = new Set(uids);
  expect(uids.length).toBe(expected.size);

  const ledger = sandbox.ledger();
  const audit = inFile
    .filter(({ metadata }) => metadata.log_name === 'audit')
    .map(({ metadata }) => metadata.original_event_uid);
  expect(new Set(audit)).toEqual(new Set(ledger.list('/v1/audit/events').ids()));
  expect(audit.length).toBe(auditEvents);
  const logs = inFile.filter(({ metadata }) => metadata.log_name === 'events');
  expect(logs.length).toBe(
    ledger.list('/api/logs/v1/companies/c-1/events').size +
      ledger.list('/api/logs/v1/companies/c-2/events').size,
  );
  expect(inFile.some(({ metadata }) => metadata.log_name === 'firewall')).toBe(true);

  const inKafka = await consumeAll(topic, { until: expected.size, timeoutMs });
  const kafkaUids = inKafka.map(({ headers }) => String(headers.uid));
  expect(kafkaUids.length).toBe(expected.size);
  expect(new Set(kafkaUids)).toEqual(expected);

  const inOtlp = otlp.records().map(({ attributes }) => String(attributes['log.record.uid']));
  expect(new Set(inOtlp)).toEqual(expected);
  expect(otlp.faults).toEqual([]);

  const inSyslog = rsyslog.records();
  expect(
    new Set(inSyslog.map(({ structuredData }) => structuredData['sluice@32473']?.uid)),
  ).toEqual(expected);
  expect(inSyslog.filter(({ cef }) => cef?.decoded !== true)).toEqual([]);
  console.log(
    `journey: ${expected.size} events; repeats: ${inOtlp.length - expected.size} OTLP, ${inSyslog.length - expected.size} syslog, ${kafkaUids.length - expected.size} Kafka, 0 file`,
  );
  await sandbox.close();
});

function segments(dir: string): readonly string[] {
  return globSync('out/events*', { cwd: dir }).map((name) => join(dir, name));
}

/** How much is in the file by now; segments are renamed while one looks. */
function bytesWritten(dir: string): number {
  return segments(dir).reduce(
    (sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}

/** Every event in the finished segments and the one under way, a torn last line left out. */
function writtenTo(dir: string): readonly WrittenEvent[] {
  return segments(dir).flatMap((path) => {
    const lines = readFileSync(path, 'utf8').split('\n');
    return lines.slice(0, -1).map((line) => JSON.parse(line) as WrittenEvent);
  });
}
