// The syslog sink over RELP against a real rsyslogd with imrelp, plain and over TLS: what it answers has arrived, and it
// loses nothing when it is restarted, killed and frozen.

import { expect, test } from 'vitest';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import { deliver } from '../../contracts/deliver.ts';
import { anEvent } from '../../support/an-event.ts';
import { makeCa } from '../../support/certificates.ts';
import { type Rsyslog, startRsyslog } from '../../support/rsyslog.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';

const never = new AbortController().signal;
const ways = ['relp', 'relps'] as const;

test.each(ways)('rsyslog takes and answers every message over %s', async (way) => {
  const rsyslog = await startRsyslog();
  const opened = await openSink(syslogSink, await configFor(rsyslog, way), { format: 'cef' });
  const hostile = anEvent({
    offset: 2000,
    ocsf: { message: 'é 日本 🛡 "]\\ a=b|c\n2 syslog 5 hello\n0 serverclose 0\n' },
  });
  const events = [...someEvents(2000), hostile];

  const { attempts, refused } = await deliver(opened, events, 500);
  await opened.sink.close();

  const records = rsyslog.records();
  expect([attempts, refused]).toEqual([5, []]);
  expect(records.map(uidOf)).toEqual(events.map(({ uid }) => uid));
  expect(records.every(({ cef, input }) => cef?.decoded && input === way)).toBe(true);
});

test.each(ways)(
  'an rsyslog that is restarted, killed and frozen loses nothing over %s',
  async (way) => {
    const rsyslog = await startRsyslog();
    const config = { ...(await configFor(rsyslog, way)), stall_timeout: '500ms' };
    const opened = await openSink(syslogSink, config);
    const events = someEvents(6000);

    const delivering = deliver(opened, events, 100);
    await rsyslog.waitFor(500);
    await rsyslog.restart();
    await rsyslog.waitFor((records) => distinct(records) >= 1500);
    await rsyslog.kill();
    await rsyslog.restart();
    await rsyslog.waitFor((records) => distinct(records) >= 3000);
    rsyslog.pause();
    await rsyslog.kill();
    await rsyslog.restart();
    const { refused } = await delivering;
    await opened.sink.close();

    expect(refused).toEqual([]);
    await rsyslog.waitFor((records) => distinct(records) >= events.length);
    expect(new Set(rsyslog.records().map(uidOf))).toEqual(new Set(events.map(({ uid }) => uid)));
  },
);

const uidOf = ({
  structuredData,
}: {
  structuredData: Readonly<Record<string, Readonly<Record<string, string>>>>;
}) => structuredData['sluice@32473']?.uid;

function distinct(records: Parameters<Parameters<Rsyslog['waitFor']>[0] & object>[0]): number {
  return new Set(records.map(uidOf)).size;
}

async function configFor(rsyslog: Rsyslog, way: 'relp' | 'relps') {
  if (way === 'relp') return { address: `relp://127.0.0.1:${rsyslog.relpPort}` };
  const { caFile } = await makeCa();
  return { address: `relps://localhost:${rsyslog.relpsPort}`, tls: { ca_file: caFile } };
}

test('a message that is longer than rsyslog takes becomes a dead letter that names the limit', async () => {
  const rsyslog = await startRsyslog({ maxMessage: '4k' });
  const config = { ...(await configFor(rsyslog, 'relp')), max_message: 20_000 };
  const opened = await openSink(syslogSink, config);
  const events = Array.from({ length: 40 }, (_, offset) =>
    offset % 20 === 15
      ? anEvent({ offset, ocsf: { message: 'long '.repeat(3000) } })
      : anEvent({ offset }),
  );
  const long = events.filter((_, i) => i % 20 === 15).map(({ uid }) => uid);

  const { refused } = await deliver(opened, events, 16);
  await opened.sink.close();

  expect(refused.map(({ uid }) => uid)).toEqual(long);
  expect(refused[0]?.reason).toMatch(
    /ended 2 sessions over this message of 1\d{4} bytes: its limit is at least \d+ and less than that .*maxDataSize/,
  );
  const others = events.map(({ uid }) => uid).filter((uid) => !long.includes(uid));
  expect(new Set(rsyslog.records().map(uidOf))).toEqual(new Set(others));
});

test('probe opens and closes a session, and reports a missing receiver', async () => {
  const rsyslog = await startRsyslog({ clientCertificates: true });
  const { caFile, client } = await makeCa();
  const probe = (config: object) =>
    syslogSink.probe(
      parseSettings(syslogSink, { connect_timeout: '5s', ...config }),
      testTools(),
      never,
    );
  const secure = `relps://localhost:${rsyslog.relpsPort}`;
  const files = { cert_file: client.certFile, key_file: client.keyFile };

  await probe({ address: `relp://127.0.0.1:${rsyslog.relpPort}` });
  await probe({ address: secure, tls: { ca_file: caFile, ...files } });

  await expect(probe({ address: secure, tls: { ca_file: caFile } })).rejects.toThrow();
  await expect(probe({ address: secure, tls: files })).rejects.toThrow('not trusted');
  await expect(probe({ address: `relps://127.0.0.1:${rsyslog.relpPort}` })).rejects.toThrow();
  await expect(probe({ address: `relp://127.0.0.1:${rsyslog.tcpPort}` })).rejects.toMatchObject({
    next: expect.stringContaining('use tcp:// or tls://'),
  });
  await rsyslog.stop();
  await expect(probe({ address: secure, tls: { ca_file: caFile } })).rejects.toThrow(
    'ECONNREFUSED',
  );
});
