// Flaws of the PEM files of a `tls` block, and the reason why a certificate is not trusted. All TLS
// clients use this file, so that a sink, a source and an upstream report the same fault in the same
// words. Messages contain no text of a file or certificate: a key is secret, and a certificate may
// come from an attacker.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

/** The keys of a `tls` block that name files. */
export const tlsFileKeys = ['ca_file', 'cert_file', 'key_file'] as const;

/** One of `tlsFileKeys`. */
export type TlsFileKey = (typeof tlsFileKeys)[number];

/** The content of the files that are configured and readable. */
export type TlsFiles = Readonly<Partial<Record<TlsFileKey, Uint8Array | undefined>>>;

/** The flaw of a file: a clause about it, such as `is not PEM text`, and the next step. */
export interface TlsFault {
  readonly key: TlsFileKey;
  readonly message: string;
}

/** Labels of RFC 7468 and RFC 1421; OpenSSL accepts two older names for a certificate too. */
const certificatePem = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----[^-]*-----END \1-----/g;
const keyPem = /-----BEGIN ((?:[A-Z0-9]+ )*PRIVATE KEY)-----[\s\S]*?-----END \1-----/;
/** RFC 5958 encryption has its own label; keys of the older form have a header (RFC 1421). */
const encryptedKey = /^-----BEGIN ENCRYPTED |^Proc-Type: 4,ENCRYPTED/m;

/** Flaws that make these files unusable; empty: TLS can use them. */
export function tlsFaults(files: TlsFiles): readonly TlsFault[] {
  const faults: TlsFault[] = [];
  const fault = (key: TlsFileKey, message: string) => faults.push({ key, message });
  const { ca_file: ca, cert_file: cert, key_file: key } = files;
  if (ca !== undefined) {
    const found = certificatesIn(ca);
    if (found.length === 0) fault('ca_file', noPem(ca, 'certificate'));
    else if (found[0] === null) fault('ca_file', damaged);
  }
  const chain = cert === undefined ? [] : certificatesIn(cert);
  if (cert !== undefined) {
    if (chain.length === 0) fault('cert_file', noPem(cert, 'certificate'));
    else if (chain.includes(null)) fault('cert_file', damaged);
  }
  if (key === undefined) return faults;
  const own = keyIn(key);
  if (typeof own === 'string') fault('key_file', own);
  else if (chain.length > 0 && !chain.includes(null) && !fits(chain[0], own)) {
    fault('key_file', misfit(chain, own));
  }
  return faults;
}

/** Flaws that do not prevent TLS: certificates outside their validity. `now`: epoch ms. */
export function tlsNotices(files: TlsFiles, now: number): readonly TlsFault[] {
  const notices: TlsFault[] = [];
  for (const key of ['ca_file', 'cert_file'] as const) {
    const bytes = files[key];
    const found = bytes === undefined ? [] : certificatesIn(bytes);
    // A bundle of authorities often contains expired ones; one valid certificate is enough.
    const late = found.map((one) => one && outside(one, now));
    const [which] =
      key === 'ca_file' && late.includes(null) ? [] : late.filter((it) => it !== null);
    if (which !== undefined) notices.push({ key, message: which });
  }
  return notices;
}

/** The missing issuer as a clause, and the next step. */
export interface MissingIssuer {
  readonly what: string;
  readonly next: string;
}

/**
 * The issuer that an untrusted certificate lacks, by the code of OpenSSL or Node, with the next
 * step; null for other codes. The code does not show whether the receiver or tls.ca_file is at
 * fault, so the text names both.
 */
export function missingIssuer(code: string): MissingIssuer | null {
  switch (code) {
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return {
        what: 'the receiver sent no intermediate certificate, or its certificate is not trusted',
        next: 'Configure the receiver to send its certificate with the intermediate certificates; show the certificates it sends with: openssl s_client -showcerts. If no intermediate is missing, set tls.ca_file to the authority that signed the certificate.',
      };
    case 'UNABLE_TO_GET_ISSUER_CERT':
      return {
        what: 'tls.ca_file has an intermediate certificate without its root certificate',
        next: 'Add the root certificate to tls.ca_file.',
      };
    default:
      return null;
  }
}

const damaged =
  'has a certificate that cannot be parsed; the file may be damaged or only partly written';

function certificatesIn(bytes: Uint8Array): readonly (X509Certificate | null)[] {
  const found = Buffer.from(bytes).toString('latin1').match(certificatePem) ?? [];
  return found.map((pem) => {
    try {
      return new X509Certificate(pem);
    } catch {
      return null;
    }
  });
}

/** The first private key, or its flaw. */
function keyIn(bytes: Uint8Array): KeyObject | string {
  const pem = keyPem.exec(Buffer.from(bytes).toString('latin1'))?.[0];
  if (pem === undefined) return noPem(bytes, 'private key');
  if (encryptedKey.test(pem)) {
    return 'is encrypted with a passphrase, which sluice cannot use; store the key without one, readable for the user of sluice only: openssl pkey -in ENCRYPTED -out KEY';
  }
  try {
    return createPrivateKey(pem);
  } catch {
    return 'has a private key that cannot be parsed; the file may be damaged or only partly written';
  }
}

function noPem(bytes: Uint8Array, what: string): string {
  if (bytes.length === 0) return 'is empty';
  // DER begins with a SEQUENCE (X.690, section 8.9).
  if (bytes[0] === 0x30) {
    const command = what === 'certificate' ? 'x509' : 'pkey';
    return `is not PEM text but looks like DER; convert it: openssl ${command} -inform der -in DER -out PEM`;
  }
  const label = what === 'certificate' ? 'CERTIFICATE' : 'PRIVATE KEY';
  return `has no ${what} in PEM: expected a block that begins with -----BEGIN ${label}-----`;
}

function fits(certificate: X509Certificate | null | undefined, key: KeyObject): boolean {
  return certificate?.checkPrivateKey(key) ?? false;
}

function misfit(chain: readonly (X509Certificate | null)[], key: KeyObject): string {
  const at = chain.findIndex((one) => fits(one, key));
  return at < 0
    ? 'does not fit the certificate in cert_file: the key belongs to another certificate'
    : `fits certificate ${at + 1} in cert_file, not the first one; put that certificate first and the intermediate certificates after it`;
}

function outside({ validFromDate, validToDate }: X509Certificate, now: number): string | null {
  if (now > validToDate.getTime()) {
    return `has a certificate that expired at ${validToDate.toISOString()}; renew it`;
  }
  if (now >= validFromDate.getTime()) return null;
  return `has a certificate that is not valid before ${validFromDate.toISOString()}; is this machine’s clock right?`;
}
