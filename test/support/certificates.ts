// Temporary certificates for TLS tests, made by the openssl command: an authority, a server certificate for 127.0.0.1,
// ::1 and localhost, a client certificate, and a server certificate that expired yesterday. A second, unrelated
// authority is the untrusted one. They are made once per run, live in the run's directory and are valid for two days.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from './children.ts';
import { oncePerRun, runDir } from './once-per-run.ts';

/** A certificate and its private key (PKCS #8, unencrypted), as files and as PEM text. */
export interface KeyPair {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

/** An authority and what it signed. */
export interface Certificates {
  readonly caFile: string;
  /** The authority's certificate, PEM. */
  readonly ca: string;
  /** For 127.0.0.1, ::1 and localhost. */
  readonly server: KeyPair;
  /** For client authentication; subject CN=client.test. */
  readonly client: KeyPair;
  /** Like `server`, but its validity ended yesterday. */
  readonly expired: KeyPair;
  /** Like `server`, but an intermediate authority signed it; only its own certificate is in it. */
  readonly leaf: KeyPair;
  /** Like `leaf`, with the intermediate's certificate after it. */
  readonly chain: KeyPair;
  /** For client authentication, signed by the intermediate; only its own certificate is in it. */
  readonly clientLeaf: KeyPair;
  /** Like `clientLeaf`, with the intermediate's certificate after it. */
  readonly clientChain: KeyPair;
  /** The intermediate's certificate, which the authority signed. */
  readonly intermediateFile: string;
  /** The key of `client`, encrypted with a passphrase. */
  readonly encryptedKeyFile: string;
}

/** The certificates of this run: the same authority for every test file and every receiver. */
export function makeCa(): Promise<Certificates> {
  return oncePerRun('certificates', makeCertificates);
}

/** Certificates of an authority that `makeCa()`'s certificates know nothing of. */
export function makeUntrustedCa(): Promise<Certificates> {
  return oncePerRun('untrusted_certificates', makeUntrustedCertificates);
}

/** Makes the certificates; for `global-setup.ts`, everyone else calls `makeCa`. */
export function makeCertificates(): Promise<Certificates> {
  return makeAuthority('ca', 'sluice test authority');
}

/** Makes the untrusted certificates; for `global-setup.ts`, everyone else calls `makeUntrustedCa`. */
export function makeUntrustedCertificates(): Promise<Certificates> {
  return makeAuthority('untrusted-ca', 'an untrusted authority');
}

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

async function makeAuthority(folder: string, name: string): Promise<Certificates> {
  const dir = join(runDir(), folder);
  mkdirSync(dir, { recursive: true });
  const caFile = join(dir, 'ca.pem');
  const caKeyFile = join(dir, 'ca.key');
  const mayOnlySign = [
    'basicConstraints=critical,CA:TRUE',
    'keyUsage=critical,keyCertSign,cRLSign',
  ];
  await openssl('req', ['-x509', ...newKey, ...mayOnlySign.flatMap((it) => ['-addext', it])], {
    subj: `/CN=${name}`,
    days: '2',
    out: caFile,
    keyout: caKeyFile,
  });
  const issue = (kind: Kind) => issueCertificate({ dir, caFile, caKeyFile }, kind);
  const intermediate = await issue('intermediate');
  const below = { dir, caFile: intermediate.certFile, caKeyFile: intermediate.keyFile };
  const leaf = await issueCertificate(below, 'leaf');
  const clientLeaf = await issueCertificate(below, 'client-leaf');
  const withIntermediate = (pair: KeyPair, name: string): KeyPair => {
    const cert = pair.cert + intermediate.cert;
    const certFile = join(dir, name);
    writeFileSync(certFile, cert);
    return { ...pair, certFile, cert };
  };
  const client = await issue('client');
  const encryptedKeyFile = join(dir, 'client-encrypted.key');
  await openssl('pkey', ['-aes256'], {
    in: client.keyFile,
    passout: 'pass:a passphrase',
    out: encryptedKeyFile,
  });
  return {
    caFile,
    ca: readFileSync(caFile, 'utf8'),
    leaf,
    chain: withIntermediate(leaf, 'chain.pem'),
    clientLeaf,
    clientChain: withIntermediate(clientLeaf, 'client-chain.pem'),
    intermediateFile: intermediate.certFile,
    encryptedKeyFile,
    server: await issue('server'),
    client,
    expired: await issue('expired'),
  };
}

type Kind = 'server' | 'client' | 'expired' | 'intermediate' | 'leaf' | 'client-leaf';

interface Authority {
  readonly dir: string;
  readonly caFile: string;
  readonly caKeyFile: string;
}

async function issueCertificate(authority: Authority, kind: Kind): Promise<KeyPair> {
  const at = (ending: string) => join(authority.dir, `${kind}.${ending}`);
  writeFileSync(
    at('ext'),
    kind === 'intermediate'
      ? 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign'
      : [
          'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1',
          `extendedKeyUsage=${kind.startsWith('client') ? 'clientAuth' : 'serverAuth'}`,
          'keyUsage=digitalSignature',
          'basicConstraints=CA:FALSE',
        ].join('\n'),
  );
  await openssl('req', newKey, { subj: `/CN=${kind}.test`, keyout: at('key'), out: at('csr') });
  await openssl('x509', ['-req', '-CAcreateserial'], {
    in: at('csr'),
    CA: authority.caFile,
    CAkey: authority.caKeyFile,
    extfile: at('ext'),
    days: kind === 'expired' ? '-1' : '2',
    out: at('pem'),
  });
  return {
    certFile: at('pem'),
    keyFile: at('key'),
    cert: readFileSync(at('pem'), 'utf8'),
    key: readFileSync(at('key'), 'utf8'),
  };
}

async function openssl(
  command: string,
  flags: readonly string[],
  options: Readonly<Record<string, string>>,
): Promise<void> {
  const pairs = Object.entries(options).flatMap(([name, value]) => [`-${name}`, value]);
  const result = await runProgram('openssl', [command, ...flags, ...pairs]);
  if (result.exitCode === 0) return;
  throw new Error(
    `making test certificates: openssl ${command} failed: ${result.errors.trim()}. ` +
      'The TLS tests need the openssl command (Debian: apt-get install openssl).',
  );
}
