// The files of a `tls` block, read and parsed when a config is checked: each fault names the file and
// the next step, wherever a block has `tls`. A certificate that has expired is a notice.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { parseConfig } from '../../src/config/config.ts';
import { type Certificates, makeCa } from '../support/certificates.ts';
import { aConfig, configEnv, flawLines } from './config-text.ts';

const read = (file: string) => readFileSync(file, 'utf8');
const ca: Certificates = await makeCa();
const { client, server, expired, leaf } = ca;

/** What the config check reports of files with this content; `/cert`, `/key` and `/ca` name them. */
function flawsOf(files: Readonly<Record<string, string>>, block = (tls: string) => sinkWith(tls)) {
  return flawLines(block(`tls: ${tlsText(files)}`), configEnv({}, files));
}

function tlsText(files: Readonly<Record<string, string>>): string {
  return `{ ${Object.keys(files).map((path) => `${path.slice(1)}_file: ${path}`)} }`;
}

function sinkWith(tls: string): string {
  return aConfig({
    sinks: `  siem: { type: syslog, address: "tls://h:6514", format: cef, ${tls} }`,
  });
}

test.each<readonly [string, Record<string, string>, RegExp | null]>([
  ['one that serves', { '/ca': ca.ca }, null],
  ['one in DER', { '/ca': '0\u0082abc' }, /tsa\.ca_file: the file "\/ca" is not PEM text/],
  ['a damaged one', { '/ca': ca.ca.replace(/MII/, 'AAA') }, /tsa\.ca_file: .* cannot be parsed/],
  ['none', {}, /tsa\.ca_file: the file "\/ca" cannot be read/],
])('the config check reads the authorities of an archive’s time stamps: %s', (_, files, flaw) => {
  const tsa = 'tsa: { url: "http://tsa.example", ca_file: /ca }';
  const proof = `  proof: { type: archive, location: ./a, signing_key: "\${env:KEY}", ${tsa} }`;
  const env = { KEY: signingKeyText('archive.test', Buffer.alloc(32, 1)) };
  const config = aConfig({ sinks: proof });

  const lines = flawLines(config, configEnv(env, files));
  const elsewhere = flawLines(config, { ...configEnv({}, {}), placeholders: 'all' });

  expect(lines).toEqual(flaw === null ? [] : [expect.stringMatching(flaw)]);
  expect(elsewhere).toEqual([]);
});

test.each<readonly [string, Record<string, string>, RegExp | null]>([
  ['a pair that fits', { '/cert': client.cert, '/key': client.key, '/ca': ca.ca }, null],
  [
    'certificate and key in one file',
    { '/cert': client.cert + client.key, '/key': client.key },
    null,
  ],
  ['a chain', { '/cert': ca.chain.cert, '/key': leaf.key }, null],
  [
    'a chain in the wrong order',
    { '/cert': read(ca.intermediateFile) + leaf.cert, '/key': leaf.key },
    /tls\.key_file: the file "\/key" fits certificate 2 in cert_file, not the first one/,
  ],
  [
    'the key of another certificate',
    { '/cert': client.cert, '/key': server.key },
    /tls\.key_file: the file "\/key" does not fit the certificate in cert_file/,
  ],
  [
    'an encrypted key',
    { '/cert': client.cert, '/key': read(ca.encryptedKeyFile) },
    /tls\.key_file: the file "\/key" is encrypted with a passphrase/,
  ],
  [
    'a certificate as key',
    { '/cert': client.cert, '/key': client.cert },
    /tls\.key_file: the file "\/key" has no private key in PEM/,
  ],
  [
    'a key cut off',
    { '/cert': client.cert, '/key': client.key.slice(0, 90) },
    /tls\.key_file: the file "\/key" has no private key in PEM/,
  ],
  [
    'a damaged key',
    { '/cert': client.cert, '/key': client.key.replace(/MIG/, 'AAA') },
    /tls\.key_file: the file "\/key" has a private key that cannot be parsed/,
  ],
  [
    'an authority that is no PEM',
    { '/ca': 'pem' },
    /tls\.ca_file: the file "\/ca" has no certificate in PEM/,
  ],
  [
    'an authority in DER',
    { '/ca': '0\u0082abc' },
    /tls\.ca_file: the file "\/ca" is not PEM text but looks like DER/,
  ],
  ['an empty authority', { '/ca': '' }, /tls\.ca_file: the file "\/ca" is empty/],
  [
    'a damaged certificate',
    { '/cert': client.cert.replace(/MII/, 'AAA'), '/key': client.key },
    /tls\.cert_file: the file "\/cert" has a certificate that cannot be parsed/,
  ],
])('the config check reports %s', (_, files, flaw) => {
  const lines = flawsOf(files);

  expect(lines).toEqual(flaw === null ? [] : [expect.stringMatching(flaw)]);
  // What is in a file never is in a message.
  for (const text of Object.values(files)) {
    for (const line of text.split('\n').filter((each) => /^[A-Za-z0-9+/=]{20}/.test(each))) {
      expect(lines.join()).not.toContain(line.slice(0, 20));
    }
  }
});

const edge = 'api: unified, base_url: "https://h/v1", auth: { api_key: k }';
test.each<readonly [string, (tls: string) => string]>([
  ['an upstream', (tls) => aConfig({ upstreams: `  edge: { ${edge}, ${tls} }` })],
  ['a syslog receiver', sinkWith],
  ['a RELP receiver', (tls) => sinkWith(tls).replace('tls://', 'relps://')],
  [
    'Kafka',
    (tls) => aConfig({ sinks: `  k: { type: kafka, brokers: ["k:9092"], topic: t, ${tls} }` }),
  ],
  [
    'a state in Kafka',
    (tls) =>
      aConfig({ top: `state: { dir: /d, kafka: { brokers: ["k:9092"], prefix: p, ${tls} } }` }),
  ],
  [
    'an http receiver',
    (tls) => aConfig({ sinks: `  h: { type: http, url: "https://h", ${tls} }` }),
  ],
  [
    'the log collector',
    (tls) => aConfig({ top: `log: { otlp: { url: "https://c/v1/logs", ${tls} } }` }),
  ],
  [
    'S3',
    (tls) => aConfig({ sinks: `  s: { type: s3, bucket: bucket, region: eu-west-1, ${tls} }` }),
  ],
  [
    'webhooks',
    (tls) =>
      aConfig({
        sources: `  w: { type: webhooks, upstream: edge, listen: "127.0.0.1:1", path: /in, secret: s, ${tls} }`,
      }),
  ],
])('the files of %s are checked', (_, block) => {
  const files = { '/cert': client.cert, '/key': read(ca.encryptedKeyFile) };

  expect(flawsOf(files, block).join('\n')).toMatch(
    /tls\.key_file: .* is encrypted with a passphrase/,
  );
});

test('an expired certificate is a notice with its time, and stops nothing', () => {
  const files = { '/cert': expired.cert, '/key': expired.key, '/ca': ca.ca + expired.cert };

  const { notices } = parseConfig(
    sinkWith(`tls: ${tlsText(files)}`),
    'c.yaml',
    configEnv({}, files),
  );

  const late = notices.filter(({ path }) => path.includes('.tls.'));
  expect(late).toHaveLength(1);
  expect(late[0]).toMatchObject({
    path: 'sinks.siem.tls.cert_file',
    message: expect.stringMatching(/^the file "\/cert" has a certificate that expired at \d{4}-/),
  });
});

test('the files of a block with other flaws are reported together with them', () => {
  const lines = flawsOf({}, () => sinkWith('tls: { ca_file: /none }, retry: { min: 2m, max: 1m }'));

  expect(lines).toEqual([
    expect.stringMatching(/tls\.ca_file: the file "\/none" cannot be read/),
    expect.stringContaining('retry.min is longer than retry.max'),
  ]);
});
