// Time stamps (RFC 3161): the request to an authority, and the check of its response, which proves that certain bytes
// existed at a time. node:crypto checks certificates and signatures. Invariants: a stamp is accepted only if everything
// between the bytes and a trusted authority was checked here; nothing outside a signature is trusted.

import { constants, hash, verify, X509Certificate } from 'node:crypto';
import {
  type Der,
  derValue,
  expected,
  generalizedTimeMs,
  oidText,
  readAll,
  readOne,
  tags,
  within,
} from './der.ts';

/** The proven fact: the stamped bytes existed. Times are epoch milliseconds. */
export interface TimeStamp {
  readonly at: number;
  /** The subject of the signing certificate, on one line. */
  readonly by: string;
  /** When the first certificate of the chain to the trusted authority expires. */
  readonly until: number;
}

/** The context of a check. */
export interface StampDeps {
  /** Trusted certificates. */
  readonly authorities: readonly X509Certificate[];
  /** The nonce of the request, if known. */
  readonly nonce?: Uint8Array;
}

const oids = {
  contentType: '1.2.840.113549.1.9.3',
  extendedKeyUsage: '2.5.29.37',
  messageDigest: '1.2.840.113549.1.9.4',
  rsaPss: '1.2.840.113549.1.1.10',
  signedData: '1.2.840.113549.1.7.2',
  signingCertificate: '1.2.840.113549.1.9.16.2.12',
  signingCertificateV2: '1.2.840.113549.1.9.16.2.47',
  timeStamping: '1.3.6.1.5.5.7.3.8',
  tstInfo: '1.2.840.113549.1.9.16.1.4',
} as const;

const hashNames: Readonly<Record<string, string>> = {
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};
/** SHA-256 as an OBJECT IDENTIFIER. */
const sha256Oid = Buffer.from('0609608648016503040201', 'hex');
/** PKIStatus: granted, or granted with changes. */
const grantedMax = 1;
/** Longest certificate chain of a stamp, both ends included. */
const chainMax = 8;

/**
 * The request for a stamp of these bytes: a TimeStampReq in DER, to be sent as `application/timestamp-query`. `nonce`:
 * 16 random bytes, repeated in the response.
 */
export function stampQuery(data: Uint8Array, nonce: Uint8Array): Uint8Array {
  const digest = derValue(tags.octets, hash('sha256', data, 'buffer'));
  const algorithm = derValue(tags.sequence, sha256Oid, derValue(tags.null));
  return derValue(
    tags.sequence,
    derValue(tags.integer, Buffer.of(1)),
    derValue(tags.sequence, algorithm, digest),
    derValue(tags.integer, positive(nonce)),
    derValue(boolean, Buffer.of(0xff)),
  );
}

const boolean = 0x01;

/** An INTEGER in its shortest form for any bytes: neither negative nor with a leading zero. */
function positive(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.of(1), bytes]);
}

/**
 * The fact that a response (TimeStampResp in DER) proves about these bytes. Throws a SyntaxError with the reason if it
 * proves nothing.
 */
export function checkStamp(answer: Uint8Array, data: Uint8Array, deps: StampDeps): TimeStamp {
  try {
    return checked(answer, data, deps);
  } catch (error) {
    // A key or signature that node:crypto cannot parse.
    throw error instanceof SyntaxError ? error : new SyntaxError('the stamp is damaged');
  }
}

function checked(
  answer: Uint8Array,
  data: Uint8Array,
  { authorities, nonce }: StampDeps,
): TimeStamp {
  const { certificates, content, signer } = tokenIn(answer);
  const { imprint, at, nonce: returned } = infoIn(content);
  if (!imprint.digest.equals(hash(imprint.algorithm, data, 'buffer'))) {
    throw new SyntaxError('the stamp is of something else');
  }
  if (nonce !== undefined && !returned?.equals(positive(nonce))) {
    throw new SyntaxError('the stamp is the answer to another question');
  }
  const leaf = checkedSigner(signer, content, certificates);
  checkPurpose(leaf);
  const until = chainEnd(leaf, { at, authorities, between: certificates });
  return { at, by: subjectOf(leaf), until };
}

/** The certificates of a PEM file. Throws a SyntaxError if it has none, or a damaged one. */
export function authoritiesIn(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new SyntaxError('expected certificates in PEM');
  return blocks.map(certificateOf);
}

function certificateOf(bytes: string | Uint8Array): X509Certificate {
  try {
    return new X509Certificate(bytes);
  } catch {
    throw new SyntaxError('a certificate is damaged');
  }
}

/** TimeStampResp (RFC 3161, 2.4.2) and the SignedData (RFC 5652, 5.1) in it. */
function tokenIn(answer: Uint8Array) {
  const [status, token] = within(readOne(answer, tags.sequence));
  const [code] = within(status);
  if (expected(code, tags.integer).content.readInt8() > grantedMax || token === undefined) {
    throw new SyntaxError('the authority has given no stamp');
  }
  const [type, signed] = within(token);
  const [data] = within(signed, context(0));
  const [, , encapsulated, ...others] = within(data);
  const [contentType, content] = within(encapsulated);
  if (oidText(type) !== oids.signedData || oidText(contentType) !== oids.tstInfo) {
    throw new SyntaxError('the answer holds no stamp');
  }
  const [signer, second] = within(others.at(-1), tags.set);
  if (second !== undefined) throw new SyntaxError('the stamp has several signatures');
  const certificates = others.find(({ tag }) => tag === context(0));
  const [bytes] = within(content, context(0));
  return {
    content: expected(bytes, tags.octets).content,
    signer,
    certificates: readAll(certificates?.content ?? Buffer.alloc(0))
      .filter(({ tag }) => tag === tags.sequence)
      .map(({ raw }) => certificateOf(raw)),
  };
}

/** TSTInfo (RFC 3161, 2.4.2). */
function infoIn(content: Buffer) {
  const [, , imprint, , at, ...others] = within(readOne(content, tags.sequence));
  const [algorithm, digest] = within(imprint);
  const nonce = others.find(({ tag }) => tag === tags.integer)?.content;
  return {
    imprint: { algorithm: hashOf(algorithm), digest: expected(digest, tags.octets).content },
    at: generalizedTimeMs(at),
    nonce,
  };
}

function hashOf(algorithm: Der | undefined): string {
  const name = hashNames[oidText(within(algorithm)[0])];
  if (name === undefined) throw new SyntaxError('the stamp uses a hash that is not safe');
  return name;
}

/** The signing certificate of a SignerInfo (RFC 5652, 5.3). */
function checkedSigner(
  signer: Der | undefined,
  content: Buffer,
  certificates: readonly X509Certificate[],
): X509Certificate {
  const [, , digestAlgorithm, signedAttributes, signatureAlgorithm, signature] = within(signer);
  const digest = hashOf(digestAlgorithm);
  const attributes = new Map(
    within(signedAttributes, context(0)).map((attribute) => {
      const [type, values] = within(attribute);
      return [oidText(type), within(values, tags.set)[0]];
    }),
  );
  const over = expected(attributes.get(oids.messageDigest), tags.octets).content;
  const isOver =
    oidText(attributes.get(oids.contentType)) === oids.tstInfo &&
    over.equals(hash(digest, content, 'buffer'));
  const leaf = certificates.find(isNamedBy(attributes));
  if (leaf === undefined) throw new SyntaxError('the certificate that has signed is not in it');
  // The signature covers the attributes as a SET, in place of the [0] tag.
  const signed = Buffer.from(expected(signedAttributes, context(0)).raw);
  signed[0] = tags.set;
  const isPss = oidText(within(signatureAlgorithm)[0]) === oids.rsaPss;
  const key = { key: leaf.publicKey, ...(isPss && pss) };
  const isEdwards = leaf.publicKey.asymmetricKeyType?.startsWith('ed') ?? false;
  const bytes = expected(signature, tags.octets).content;
  if (!isOver || !verify(isEdwards ? null : digest, signed, key, bytes)) {
    throw new SyntaxError('the signature of the stamp is wrong');
  }
  return leaf;
}

const pss = {
  padding: constants.RSA_PKCS1_PSS_PADDING,
  saltLength: constants.RSA_PSS_SALTLEN_AUTO,
};

/** Whether the signed attributes name the certificate by a hash (RFC 5035; SHA-1 before that). */
function isNamedBy(attributes: ReadonlyMap<string, Der | undefined>) {
  const newer = attributes.get(oids.signingCertificateV2);
  const [certificates] = within(newer ?? attributes.get(oids.signingCertificate));
  const [first] = within(certificates);
  const parts = within(first);
  const [algorithm] = parts;
  const usual = newer === undefined ? 'sha1' : 'sha256';
  const digest = algorithm?.tag === tags.sequence ? hashOf(algorithm) : usual;
  const named = expected(
    parts.find(({ tag }) => tag === tags.octets),
    tags.octets,
  ).content;
  return ({ raw }: X509Certificate) => named.equals(hash(digest, raw, 'buffer'));
}

/** RFC 3161, 2.3: the key is for time stamps only, and the extension is critical. */
function checkPurpose({ raw, keyUsage }: X509Certificate): void {
  const [body] = within(readOne(raw, tags.sequence));
  const extensions = within(body).find(({ tag }) => tag === context(3));
  const isCritical = within(within(extensions, context(3))[0]).some((extension) => {
    const [id, critical] = within(extension);
    return oidText(id) === oids.extendedKeyUsage && critical?.tag === boolean;
  });
  if (isCritical && keyUsage?.length === 1 && keyUsage[0] === oids.timeStamping) return;
  throw new SyntaxError('the certificate that has signed is not one for time stamps');
}

/** When the first certificate of the chain to an authority expires; all must be valid at `at`. */
function chainEnd(
  leaf: X509Certificate,
  { at, authorities, between }: StampDeps & { at: number; between: readonly X509Certificate[] },
): number {
  let until = Number.POSITIVE_INFINITY;
  let one: X509Certificate | undefined = leaf;
  for (let steps = 0; one !== undefined && steps < chainMax; steps += 1) {
    const { validFromDate, validToDate, raw } = one;
    if (at < validFromDate.getTime() || at > validToDate.getTime()) {
      const when = new Date(at).toISOString();
      throw new SyntaxError(`the certificate of ${subjectOf(one)} was not valid at ${when}`);
    }
    until = Math.min(until, validToDate.getTime());
    if (steps > 0 && authorities.some((authority) => authority.raw.equals(raw))) return until;
    const issued: X509Certificate = one;
    const isIssuer = (other: X509Certificate): boolean =>
      other.ca && issued.checkIssued(other) && issued.verify(other.publicKey);
    one = authorities.find(isIssuer) ?? between.find(isIssuer);
  }
  throw new SyntaxError('the stamp is not signed by a trusted authority');
}

function subjectOf({ subject }: X509Certificate): string {
  return subject.replaceAll('\n', ', ');
}

function context(number: number): number {
  return 0xa0 + number;
}
