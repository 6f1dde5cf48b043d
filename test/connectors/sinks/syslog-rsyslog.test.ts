// The syslog sink against a real rsyslogd, over UDP, TCP in both framings and TLS: what arrives was understood by a
// program that other people wrote, is complete, and survives rsyslogd being restarted, killed and frozen.

import { expect, test } from 'vitest';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import { anEvent } from '../../support/an-event.ts';
import { makeCa } from '../../support/certificates.ts';
import { type Rsyslog, startRsyslog } from '../../support/rsyslog.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { deliverAll } from './syslog-resend.ts';

const never = new AbortController().signal;

const ways = [
  { way: 'udp', protocol: 'rfc5424', format: 'cef' },
  { way: 'tcp', framing: 'octet_counting', protocol: 'rfc5424', format: 'json' },
  { way: 'tcp', framing: 'octet_counting', protocol: 'rfc3164', format: 'cef' },
  { way: 'tcp', framing: 'newline', protocol: 'rfc5424', format: 'cef' },
  { way: 'tls', framing: 'octet_counting', protocol: 'rfc5424', format: 'cef' },
] as const;

test.each(ways)('rsyslog understands $way, $framing, $protocol, $format', async (wish) => {
  const rsyslog = await startRsyslog();
  const config = { ...(await configFor(rsyslog, wish.way)), protocol: wish.protocol };
  const opened = await openSink(
    syslogSink,
    { ...config, ...('framing' in wish && { framing: wish.framing }), hostname: 'gw-1' },
    { format: wish.format },
  );
  // UDP is best effort: so few that they fit into the receiver's buffer, however slowly it reads.
  const count = wish.way === 'udp' ? 50 : 500;
  const events = [
    ...someEvents(count),
    anEvent({ offset: count, ocsf: { message: 'é 日本 🛡 "]\\ a=b|c\n<0>1 - - - - - - forged' } }),
  ];

  await deliverAll(opened, events);
  await opened.sink.close();

  const records = await rsyslog.waitFor(events.length);
  expect(records).toHaveLength(events.length);
  expect(new Set(records.map(({ hostname, input }) => `${hostname} ${input}`))).toEqual(
    new Set([`gw-1 ${wish.way}`]),
  );
  if (wish.protocol === 'rfc5424') {
    expect(records.map(({ structuredData }) => structuredData['sluice@32473']?.uid)).toEqual(
      events.map(({ uid }) => uid),
    );
  }
  if (wish.format === 'cef') {
    expect(records.every(({ cef }) => cef?.decoded)).toBe(true);
  }
});

test('rsyslog reads RFC 3164 times in the zone that is set, daylight saving included', async () => {
  const rsyslog = await startRsyslog();
  const config = { ...(await configFor(rsyslog, 'tcp')), protocol: 'rfc3164' };
  const opened = await openSink(syslogSink, { ...config, timezone: 'Europe/Zurich' });
  const [winter, summer] = ['2026-01-15T23:30:00Z', '2026-07-15T22:30:00Z'];
  // Just before and at each change, and the second pass of the hour that occurs twice.
  const changes = ['2026-03-29T00:59:59Z', '2026-03-29T01:00:00Z', '2026-10-25T00:59:59Z'];
  const times = [winter, summer, ...changes, '2026-10-25T01:00:00Z', winter];
  const events = times.map((time, offset) => anEvent({ offset, ocsf: { time: Date.parse(time) } }));

  await deliverAll(opened, events);
  await opened.sink.close();

  const records = await rsyslog.waitFor(events.length);
  expect(records.map(({ timestamp }) => timestamp.slice(5, 19))).toEqual([
    '01-16T00:30:00',
    '07-16T00:30:00',
    '03-29T01:59:59',
    '03-29T03:00:00',
    '10-25T02:59:59',
    '10-25T02:00:00',
    '01-16T00:30:00',
  ]);
});

test.each(['tcp', 'tls'] as const)(
  'rsyslog answers our close with its own over %s',
  async (way) => {
    const rsyslog = await startRsyslog();
    const config = { ...(await configFor(rsyslog, way)), resend_window: '50ms' };
    const opened = await openSink(syslogSink, config);
    const events = someEvents(3000);

    const { retries } = await deliverAll(opened, events, { batchSize: 20, ahead: 8 });

    expect(retries).toBe(0);
    expect(opened.sink.notice?.()).toBeNull();
    await rsyslog.waitFor(() => uidsOf(rsyslog).size >= events.length); // it has read, and may write later
    expect(uidsOf(rsyslog)).toEqual(new Set(events.map(({ uid }) => uid)));
  },
);

test.each(['tcp', 'tls'] as const)(
  'rsyslog restarted meanwhile loses nothing over %s',
  async (way) => {
    const rsyslog = await startRsyslog();
    const opened = await openSink(syslogSink, await configFor(rsyslog, way));
    const events = someEvents(2000);

    const delivering = deliverAll(opened, events, { batchSize: 20, ahead: 8 });
    await rsyslog.waitFor(500);
    await rsyslog.restart();
    const { retries } = await delivering;
    await opened.sink.close();

    await rsyslog.waitFor(() => uidsOf(rsyslog).size >= events.length);
    expect(uidsOf(rsyslog)).toEqual(new Set(events.map(({ uid }) => uid)));
    expect(retries).toBeGreaterThan(0);
  },
);

test('probe passes for a real rsyslog over TLS with client certificates, and not without one', async () => {
  const rsyslog = await startRsyslog({ clientCertificates: true });
  const tls = await makeCa();
  const { address } = await configFor(rsyslog, 'tls');
  const files = { cert_file: tls.client.certFile, key_file: tls.client.keyFile };
  const probe = (own: object) =>
    syslogSink.probe(
      parseSettings(syslogSink, { address, tls: { ca_file: tls.caFile, ...own } }),
      testTools(),
      never,
    );

  await probe(files);

  await expect(probe({})).rejects.toMatchObject({ code: 'sink_refused' });
  expect(rsyslog.records()).toEqual([]);
});

async function configFor(rsyslog: Rsyslog, way: 'udp' | 'tcp' | 'tls') {
  switch (way) {
    case 'udp':
      return { address: `udp://127.0.0.1:${rsyslog.udpPort}` };
    case 'tcp':
      return { address: `tcp://127.0.0.1:${rsyslog.tcpPort}`, resend_window: '200ms' };
    case 'tls':
      return {
        address: `tls://localhost:${rsyslog.tlsPort}`,
        resend_window: '200ms',
        tls: { ca_file: (await makeCa()).caFile },
      };
  }
}

function uidsOf(rsyslog: Rsyslog): ReadonlySet<string | undefined> {
  return new Set(
    rsyslog.records().map(({ structuredData }) => structuredData['sluice@32473']?.uid),
  );
}
