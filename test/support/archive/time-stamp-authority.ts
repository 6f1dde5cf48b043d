// A time-stamp authority that shares no code with sluice: `openssl ts` behind a loopback HTTP server, with certificates of
// its own. It ends with the test.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ProgramResult, runProgram } from '../children.ts';
import { type HttpReceiver, startHttpReceiver } from '../http-receiver.ts';
import { tempDir } from '../temp.ts';

/** A running authority. */
export interface TimeStampAuthority {
  readonly url: string;
  /** PEM file of what its stamps lead to. */
  readonly caFile: string;
  /** To have it answer in another way, and back with `stamps`. */
  readonly receiver: HttpReceiver;
  readonly stamps: Parameters<HttpReceiver['answer']>[0];
  /** A TimeStampResp over bytes. */
  stamp(data: Uint8Array): Promise<Buffer>;
  /** The same stamp signed by this one's key, whatever its certificate is for: `openssl cms` does not mind. */
  sign(stamp: Uint8Array): Promise<Buffer>;
  /** What `openssl ts -verify` makes of a stamp. */
  verify(dataFile: string, stampFile: string): Promise<ProgramResult>;
}

/** What differs from a good one. */
interface AuthorityWishes {
  /** Days that its certificate is valid; below 0 it has ended. Default 2. */
  readonly days?: number;
  /** Extensions of its certificate. */
  readonly extensions?: readonly string[];
  /** Arguments of `openssl req -newkey` for its key. Default: an elliptic curve. */
  readonly key?: readonly string[];
  /** Lines of the `openssl ts` section. */
  readonly config?: readonly string[];
}

const curve = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
const purpose = ['basicConstraints=CA:FALSE', 'extendedKeyUsage=critical,timeStamping'];

const tstInfo = '1.2.840.113549.1.9.16.1.4';

/** Starts an authority. */
export async function startTimeStampAuthority({
  days = 2,
  extensions = purpose,
  key = curve,
  config = [],
}: AuthorityWishes = {}): Promise<TimeStampAuthority> {
  const dir = tempDir('tsa-');
  const at = (name: string) => join(dir, name);
  const ca = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign'];
  await openssl('req', '-x509', '-newkey', ...curve, '-nodes', '-subj', '/CN=stamp root', [
    ...['-days', '9', '-keyout', at('ca.key'), '-out', at('ca.pem')],
    ...ca.flatMap((one) => ['-addext', one]),
  ]);
  writeFileSync(at('ext'), extensions.join('\n'));
  await openssl('req', '-newkey', ...key, '-nodes', '-subj', '/O=test/CN=tsa', [
    ...['-keyout', at('tsa.key'), '-out', at('tsa.csr')],
  ]);
  await openssl('x509', '-req', '-CAcreateserial', '-days', String(days), [
    ...['-in', at('tsa.csr'), '-CA', at('ca.pem'), '-CAkey', at('ca.key')],
    ...['-extfile', at('ext'), '-out', at('tsa.pem')],
  ]);
  writeFileSync(at('serial'), '01');
  const lines = [
    ...['[tsa]', 'default_tsa=t', '[t]', `serial=${at('serial')}`],
    ...[`signer_cert=${at('tsa.pem')}`, `signer_key=${at('tsa.key')}`, 'signer_digest=sha256'],
    ...['default_policy=1.2.3.4.1', 'digests=sha256,sha512', 'accuracy=secs:1', ...config],
  ];
  writeFileSync(at('tsa.cnf'), `${lines.join('\n')}\n`);
  const reply = inTurn(async (query: Uint8Array) => {
    writeFileSync(at('query'), query);
    await openssl('ts', '-reply', '-config', at('tsa.cnf'), '-queryfile', at('query'), [
      ...['-out', at('reply')],
    ]);
    return readFileSync(at('reply'));
  });
  const stamps = async ({ body }: { readonly body: Buffer }) => ({
    answer: 'reply' as const,
    status: 200,
    headers: { 'content-type': 'application/timestamp-reply' },
    body: await reply(body),
  });
  const receiver = await startHttpReceiver({ answer: stamps });
  return {
    ...{ url: receiver.url, caFile: at('ca.pem'), receiver, stamps },
    async stamp(data) {
      writeFileSync(at('data'), data);
      await openssl('ts', '-query', '-sha256', '-cert', '-data', at('data'), ['-out', at('asked')]);
      return await reply(readFileSync(at('asked')));
    },
    async sign(stamp) {
      writeFileSync(at('other'), stamp);
      await openssl('ts', '-reply', '-in', at('other'), ['-token_out', '-out', at('token')]);
      const der = ['-inform', 'DER', '-in'];
      await openssl('cms', '-verify', '-noverify', ...der, at('token'), ['-out', at('info')]);
      await openssl('cms', '-sign', '-binary', '-nodetach', '-cades', '-md', 'sha256', [
        ...['-in', at('info'), '-econtent_type', tstInfo, '-outform', 'DER', '-nosmimecap'],
        ...['-signer', at('tsa.pem'), '-inkey', at('tsa.key'), '-out', at('signed')],
      ]);
      const granted = Buffer.from('3003020100', 'hex');
      const token = readFileSync(at('signed'));
      const head = Buffer.from([0x30, 0x82, 0, 0]);
      head.writeUInt16BE(granted.length + token.length, 2);
      return Buffer.concat([head, granted, token]);
    },
    verify: (data, stamp) =>
      runProgram('openssl', [
        'ts',
        '-verify',
        '-data',
        data,
        '-in',
        stamp,
        '-CAfile',
        at('ca.pem'),
      ]),
  };
}

/** One after the other: the serial number is in a file. */
function inTurn<A, B>(work: (given: A) => Promise<B>): (given: A) => Promise<B> {
  let last: Promise<unknown> = Promise.resolve();
  return (given) => {
    const next = last.then(() => work(given));
    last = next.catch(() => undefined);
    return next;
  };
}

async function openssl(command: string, ...args: readonly (string | readonly string[])[]) {
  const { exitCode, errors } = await runProgram('openssl', [command, ...args.flat()]);
  if (exitCode !== 0) throw new Error(`openssl ${command} failed: ${errors.trim()}`);
}
