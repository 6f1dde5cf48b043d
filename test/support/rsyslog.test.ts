// That rsyslogd as started for the tests receives over every transport and that what it decodes
// comes back whole.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { type Certificates, makeCa, makeUntrustedCa } from './certificates.ts';
import { type Rsyslog, type RsyslogOptions, startRsyslog } from './rsyslog.ts';
import { describeWithShared } from './shared.ts';

const header = '<134>1 2026-01-02T03:04:05.123456Z fw-1 sluice 77 audit';

async function sendDatagram(port: number, text: string): Promise<void> {
  const socket = createSocket('udp4');
  await new Promise((resolve) => socket.send(text, port, '127.0.0.1', resolve));
  socket.close();
}

// Half-closes and waits for the other side's close, as the sinks settle a connection.
async function sendStream(socket: Socket, text: string): Promise<void> {
  socket.end(text);
  socket.resume();
  await once(socket, 'close');
}

function counted(text: string): string {
  return `${Buffer.byteLength(text)} ${text}`;
}

async function receiveOne(text: string, options: RsyslogOptions = {}) {
  const rsyslog = await startRsyslog(options);
  await sendStream(connect(rsyslog.tcpPort, '127.0.0.1'), counted(text));
  const [record] = await rsyslog.waitFor(1);
  if (record === undefined) throw new Error('rsyslog.waitFor(1) gave nothing');
  return record;
}

describe('startRsyslog', () => {
  test('receives over UDP, TCP in both framings, and TLS', async () => {
    const ca = await makeCa();
    const rsyslog = await startRsyslog();

    await sendDatagram(rsyslog.udpPort, `${header} - by udp`);
    const two = `${counted(`${header} - counted\nsecond line`)}${header} - by line feed\n`;
    await sendStream(connect(rsyslog.tcpPort, '127.0.0.1'), two);
    const tls = connectTls({ port: rsyslog.tlsPort, host: '127.0.0.1', ca: ca.ca });
    await sendStream(tls, counted(`${header} - by tls`));

    const records = await rsyslog.waitFor(4);
    const seen = records.map(({ input, msg }) => `${input}: ${msg}`);
    expect(seen.toSorted()).toEqual([
      'tcp: by line feed',
      'tcp: counted\nsecond line',
      'tls: by tls',
      'udp: by udp',
    ]);
  });

  test('gives the parts of an RFC 5424 message with structured data unescaped', async () => {
    const data = '[sluice@32473 uid="ab" text="a\\"b\\\\c\\]d ü"]';
    const record = await receiveOne(`${header} ${data} it happened`);

    expect(record).toEqual({
      pri: 134,
      facility: 16,
      severity: 6,
      version: 1,
      timestamp: '2026-01-02T03:04:05.123456Z',
      hostname: 'fw-1',
      app: 'sluice',
      procid: '77',
      msgid: 'audit',
      structuredDataRaw: data,
      structuredData: { 'sluice@32473': { uid: 'ab', text: 'a"b\\c]d ü' } },
      msg: 'it happened',
      rawmsg: `${header} ${data} it happened`,
      input: 'tcp',
      cef: null,
    });
  });

  const cef =
    'CEF:0|Acme|Edge \\| gate|1|100|Rule changed|5|src=192.0.2.1 msg=a\\=b\\nc \\\\ d act=allow';
  const headers = [
    { where: 'RFC 5424', before: `${header} - ` },
    { where: 'RFC 3164', before: '<134>Jan  2 03:04:05 fw-1 ' },
    { where: 'no syslog header', before: '' },
  ];
  test.for(headers)('decodes CEF after $where', async ({ before }) => {
    const record = await receiveOne(before + cef);

    expect(record.cef).toEqual({
      decoded: true,
      vendor: 'Acme',
      product: 'Edge | gate',
      version: '1',
      signatureId: '100',
      name: 'Rule changed',
      severity: '5',
      extensions: { src: '192.0.2.1', msg: 'a=b\nc \\ d', act: 'allow' },
    });
  });

  test('distinguishes CEF that cannot be parsed from CEF that can', async () => {
    const record = await receiveOne(`${header} - CEF:0|Acme|Edge|1|100|name`);

    expect(record.cef).toEqual({ decoded: false, unparsed: expect.stringContaining('Acme') });
  });

  test('takes a message of 60 KiB whole, and splits it at a lower maxMessage', async () => {
    const text = `${header} - ${'x'.repeat(60_000)}`;

    expect((await receiveOne(text)).rawmsg).toBe(text);
    expect((await receiveOne(text, { maxMessage: '8k' })).rawmsg.length).toBeLessThan(8200);
  });

  test('keeps its ports and records over restart, stop and kill', async () => {
    const rsyslog = await startRsyslog();
    const send = (text: string) =>
      sendStream(connect(rsyslog.tcpPort, '127.0.0.1'), `${header} - ${text}\n`);

    await send('first');
    await rsyslog.waitFor(1);
    const pid = rsyslog.pid;
    await rsyslog.restart();
    await send('second');
    await rsyslog.waitFor(2);
    await rsyslog.kill();
    await expect(send('refused')).rejects.toThrow('ECONNREFUSED');
    await rsyslog.restart();
    await send('third');

    const records = await rsyslog.waitFor(3);
    expect(records.map((record) => record.msg)).toEqual(['first', 'second', 'third']);
    expect(rsyslog.pid).not.toBe(pid);
  });

  test('shows another certificate after a restart with one', async () => {
    const [ca, other] = [await makeCa(), await makeUntrustedCa()];
    const rsyslog = await startRsyslog();

    await rsyslog.restart(other);
    await expect(sendByTls(rsyslog, ca, ca, 'to a stranger')).rejects.toThrow(/certificate/);
    await sendByTls(rsyslog, other, ca, 'to whom it may concern');

    const records = await rsyslog.waitFor(1);
    expect(records.map((record) => record.msg)).toEqual(['to whom it may concern']);
  });

  test('rejects TLS clients without a trusted certificate when configured', async () => {
    const ca = await makeCa();
    const untrusted = await makeUntrustedCa();
    const rsyslog = await startRsyslog({ clientCertificates: true });
    const send = (from: Certificates, text: string) => sendByTls(rsyslog, ca, from, text);

    await send(untrusted, 'from nobody').catch(() => undefined);
    await send(ca, 'from a client');

    const records = await rsyslog.waitFor((all) => all.some((it) => it.msg === 'from a client'));
    expect(records.map((record) => record.msg)).toEqual(['from a client']);
  });
});

interface RoundTripVector {
  readonly where: 'ext' | 'ext_last' | 'header';
  readonly value: string;
  readonly cef: string;
  /** `same`: liblognorm is known to give the value back exactly. */
  readonly liblognorm: string | null;
}

const vectors = ['data', 'vectors', 'cef-roundtrip-own.ndjson'];
describeWithShared('CEF decoding', vectors, (path) => {
  test('gives back every value of the shared round-trip vectors', async () => {
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    const cases = lines.map((line): RoundTripVector => JSON.parse(line));
    const exact = cases.filter((vector) => vector.liblognorm === 'same');
    const rsyslog = await startRsyslog();

    const stream = exact.map(({ cef }) => counted(cef)).join('');
    await sendStream(connect(rsyslog.tcpPort, '127.0.0.1'), stream);

    const records = await rsyslog.waitFor(exact.length);
    const decoded = records.map(({ cef }, index) => {
      if (cef === null || !cef.decoded) return cef;
      return exact[index]?.where === 'header' ? cef.name : cef.extensions.cs1;
    });
    // A CEF header holds no line end: the encoder of these vectors wrote a blank, as the standard says.
    const expected = exact.map(({ where, value }) =>
      where === 'header' ? value.replace(/\r\n|\r|\n/g, ' ') : value,
    );
    expect(decoded).toEqual(expected);
    expect(exact.length).toBeGreaterThan(100);
  });
});

async function sendByTls(rsyslog: Rsyslog, ca: Certificates, from: Certificates, text: string) {
  const { cert, key } = from.client;
  const tls = connectTls({ port: rsyslog.tlsPort, host: '127.0.0.1', ca: ca.ca, cert, key });
  await once(tls, 'secureConnect');
  await sendStream(tls, counted(`${header} - ${text}`));
}
