// The syslog sink over TLS: what it trusts and shows, what it says when either side refuses, and that a certificate
// replaced while it runs is taken up. Delivery itself is tested in syslog-stream.test.ts.

import { copyFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import type { ExportError } from '../../../src/contracts/errors.ts';
import type { TlsSettings } from '../../../src/contracts/tools.ts';
import { systemClock } from '../../../src/tools/clock.ts';
import { type Certificates, makeCa, makeUntrustedCa } from '../../support/certificates.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { tempDir, waitUntil } from '../../support/temp.ts';
import {
  faultyNetwork,
  listen,
  startTlsReceiver,
  type TlsReceiverOptions,
} from './syslog-receivers.ts';
import { deliverAll, uidOf } from './syslog-resend.ts';

const never = new AbortController().signal;

test('send delivers over TLS, verified by tls.ca_file', async () => {
  const tls = await makeCa();
  const receiver = await startTlsReceiver({ tls });
  const opened = await openSink(syslogSink, configFor(receiver, { ca_file: tls.caFile }));
  const events = someEvents(2000);

  const { retries } = await deliverAll(opened, events);

  expect(retries).toBe(0);
  expect(receiver.frames.map(uidOf)).toEqual(events.map(({ uid }) => uid));
  expect(receiver.faults).toEqual([]);
});

test.each([{ confirm: 'window' }, { confirm: 'close' }] as const)(
  'a network that resets a fifth of its reads loses nothing, with confirm: $confirm',
  async ({ confirm }) => {
    const tls = await makeCa();
    const receiver = await startTlsReceiver({ tls });
    const network = await faultyNetwork(receiver, { resetProbability: 0.2, delayMs: 20 });
    const config = { ...configFor(network, { ca_file: tls.caFile }), confirm };
    const events = someEvents(1000);

    const { retries } = await deliverAll(await openSink(syslogSink, config), events, { ahead: 4 });

    const uids = receiver.frames.map(uidOf);
    expect(new Set(uids)).toEqual(new Set(events.map(({ uid }) => uid)));
    expect(retries).toBeGreaterThan(0);
    expect(network.resets()).toBeGreaterThan(0);
    expect(receiver.faults).toEqual([]);
  },
);

test('close settles everything at once by the closing handshake of TLS', async () => {
  const tls = await makeCa();
  const receiver = await startTlsReceiver({ tls });
  const config = { ...configFor(receiver, { ca_file: tls.caFile }), resend_window: '1h' };
  const { sink, batch } = await openSink(syslogSink, config);

  const sending = sink.send(batch(someEvents(500)), never);
  await receiver.waitFor(500);
  await sink.close();

  expect(await sending).toEqual({ outcome: 'delivered' });
});

test('a client certificate is shown if the receiver requires one', async () => {
  const tls = await makeCa();
  const receiver = await startTlsReceiver({ tls, clientCertificates: true });
  const files = {
    ca_file: tls.caFile,
    cert_file: tls.client.certFile,
    key_file: tls.client.keyFile,
  };

  await deliverAll(await openSink(syslogSink, configFor(receiver, files)), someEvents(10));

  expect(receiver.frames).toHaveLength(10);
});

describe('probe reports, and send keeps the events of', () => {
  test('a receiver whose authority is not trusted', async () => {
    const answer = await refusal({ tls: await makeUntrustedCa() }, trusting(await makeCa()));

    expect(answer.code).toBe('sink_refused');
    expect(answer.message).toMatch(/certificate is not trusted \([A-Z_]+\)/);
    expect(answer.next).toContain('tls.ca_file');
  });

  test('a receiver that sends no intermediate certificate', async () => {
    const tls = await makeCa();

    const answer = await refusal({ tls: { ...tls, server: tls.leaf } }, trusting(tls));
    const whole = await startTlsReceiver({ tls: { ...tls, server: tls.chain } });

    expect(answer.code).toBe('sink_refused');
    expect(answer.message).toContain('sent no intermediate certificate');
    expect(answer.next).toContain('with the intermediate certificates');
    await syslogSink.probe(
      parseSettings(syslogSink, configFor(whole, trusting(tls))),
      testTools(),
      never,
    );
  });

  test('an encrypted key', async () => {
    const tls = await makeCa();
    const receiver = await startTlsReceiver({ tls });
    const files = { cert_file: tls.client.certFile, key_file: tls.encryptedKeyFile };

    const answer = await probeFailure(receiver, { ...trusting(tls), ...files });

    expect(answer.code).toBe('config_invalid');
    expect(answer.message).toContain('is encrypted with a passphrase');
  });

  test('a receiver whose certificate has expired', async () => {
    const tls = await makeCa();

    const answer = await refusal({ tls: { ...tls, server: tls.expired } }, trusting(tls));

    expect(answer.code).toBe('sink_refused');
    expect(answer.message).toContain('CERT_HAS_EXPIRED');
  });

  test('a receiver whose certificate is for another name', async () => {
    const tls = await makeCa();

    const answer = await refusal({ tls }, { ...trusting(tls), server_name: 'siem.example' });

    expect(answer.code).toBe('sink_refused');
    expect(answer.message).toContain('for another name');
    expect(answer.next).toContain('tls.server_name');
  });

  test('us, without a client certificate, which TLS 1.3 reports only after the handshake', async () => {
    const tls = await makeCa();

    const answer = await refusal({ tls, clientCertificates: true }, trusting(tls));

    expect(answer.code).toBe('sink_refused');
    expect(answer.next).toContain('tls.cert_file');
  });

  test('us, with a client certificate of an authority that the receiver does not trust', async () => {
    const tls = await makeCa();
    const { client } = await makeUntrustedCa();
    const files = { ...trusting(tls), cert_file: client.certFile, key_file: client.keyFile };

    const answer = await refusal({ tls, clientCertificates: true }, files);

    expect(answer.code).toBe('sink_refused');
    expect(answer.next).toContain('tls.cert_file');
  });

  test('a receiver that does not speak TLS', async () => {
    const port = await listen(
      createServer((socket) => {
        socket.on('error', () => {});
        socket.on('data', () => socket.write('220 mail.example ESMTP\r\n'));
      }),
    );

    const answer = await probeFailure({ port }, {});

    expect(answer.code).toBe('sink_refused');
    expect(answer.message).toContain('does not speak TLS');
  });

  test('a receiver of plain syslog, which never answers the handshake', async () => {
    const { promise: greeted, resolve: greet } = Promise.withResolvers<void>();
    const server = createServer((socket) => socket.on('error', () => {}).on('data', () => greet()));
    const config = { address: `tls://127.0.0.1:${await listen(server)}`, connect_timeout: '50ms' };
    const clock = { ...systemClock(), sleep: () => greeted };

    const probed = syslogSink.probe(parseSettings(syslogSink, config), testTools(clock), never);

    await expect(probed).rejects.toMatchObject({
      code: 'sink_unreachable',
      message: expect.stringContaining('no answer to the TLS handshake within 0.05 s'),
      next: expect.stringContaining('tcp://'),
    });
  });

  test('a file that is missing, and one that is no certificate', async () => {
    const receiver = await startTlsReceiver({ tls: await makeCa() });
    const junk = join(tempDir(), 'junk.pem');
    writeFileSync(junk, 'no certificate');

    const missing = await probeFailure(receiver, { ca_file: '/nowhere/ca.pem' });
    const wrong = await probeFailure(receiver, { cert_file: junk, key_file: junk });

    expect(missing.message).toBe('reading tls.ca_file /nowhere/ca.pem: ENOENT');
    expect([missing.code, wrong.code]).toEqual(['config_invalid', 'config_invalid']);
  });
});

test('probe passes if the receiver accepts the connection, and sends nothing', async () => {
  const tls = await makeCa();
  const receiver = await startTlsReceiver({ tls, clientCertificates: true });
  const files = { cert_file: tls.client.certFile, key_file: tls.client.keyFile };
  const settings = parseSettings(syslogSink, configFor(receiver, { ...trusting(tls), ...files }));

  await syslogSink.probe(settings, testTools(), never);

  await waitUntil(() => receiver.connections === 1 && receiver.open === 0, { what: 'a visit' });
  expect(receiver.frames).toEqual([]);
});

test('a replaced authority is taken up at the next connection, without a restart', async () => {
  const [old, renewed] = [await makeUntrustedCa(), await makeCa()];
  const receiver = await startTlsReceiver({ tls: renewed });
  const ca_file = join(tempDir(), 'ca.pem');
  copyFileSync(old.caFile, ca_file);
  const opened = await openSink(syslogSink, configFor(receiver, { ca_file }));
  const events = someEvents(10);

  const before = await opened.sink.send(opened.batch(events), never);
  copyFileSync(renewed.caFile, ca_file);
  const after = await opened.sink.send(opened.batch(events), never);

  expect(before).toMatchObject({ outcome: 'retry', cause: { code: 'sink_refused' } });
  expect(after).toEqual({ outcome: 'delivered' });
});

function trusting(certificates: Certificates): TlsSettings {
  return { ca_file: certificates.caFile };
}

function configFor({ port }: { readonly port: number }, tls: TlsSettings) {
  return { address: `tls://127.0.0.1:${port}`, resend_window: '100ms', tls };
}

/** What probe says, once send has been seen to be answered `retry`, so that the events stay held. */
async function refusal(options: TlsReceiverOptions, tls: TlsSettings): Promise<ExportError> {
  const receiver = await startTlsReceiver(options);
  const { sink, batch } = await openSink(syslogSink, configFor(receiver, tls));

  const answer = await sink.send(batch(someEvents(1)), never);
  const probed = await probeFailure(receiver, tls);

  expect(answer).toMatchObject({ outcome: 'retry', cause: { fault: 'downstream' } });
  expect(receiver.frames).toEqual([]);
  return probed;
}

async function probeFailure(
  receiver: { readonly port: number },
  tls: TlsSettings,
): Promise<ExportError> {
  const settings = parseSettings(syslogSink, configFor(receiver, tls));
  const failure = await Promise.resolve(syslogSink.probe(settings, testTools(), never)).then(
    () => null,
    (error: ExportError) => error,
  );
  if (failure === null) throw new Error('the probe passed');
  return failure;
}
