// The causes of an exchange without a complete response, in terms that an operator can act on.
// undici, node:net and OpenSSL each have their own codes; only the reasons of HttpFailure leave
// this file. Messages contain addresses and codes, never headers, bodies or a certificate's own
// text.

import { errorCodeOf, errorText, HttpFailure, missingIssuer } from '../contracts/index.ts';
import { cleanText } from './clean-text.ts';

/** The phase of an exchange. */
export type Phase = 'connecting' | 'waiting for the answer' | 'reading the answer';

const tlsCodes =
  /^(ERR_SSL_|ERR_TLS_|ERR_OSSL_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|PATH_LENGTH_|EPROTO$)/;

/** The first pattern that matches the code counts. */
const tlsHints: readonly (readonly [RegExp, string])[] = [
  [
    /PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS/,
    'the server offers no TLS version that is accepted here; see tls.min_version',
  ],
  [/WRONG_VERSION_NUMBER|PACKET_LENGTH|HTTP_REQUEST/, 'the port does not speak TLS'],
  [/ALTNAME|HOSTNAME_MISMATCH/, 'the certificate is for another name; see tls.server_name'],
  [/CERT_HAS_EXPIRED/, 'the certificate has expired'],
  [/CERT_NOT_YET_VALID/, 'the certificate is not valid yet; is this machine’s clock right?'],
  [
    /SELF_SIGNED|UNABLE_TO_|DEPTH_ZERO|INVALID_CA/,
    'the certificate’s authority is not trusted here; see tls.ca_file',
  ],
  [
    /CERTIFICATE_REQUIRED|ALERT_(BAD|UNSUPPORTED)_CERTIFICATE|ALERT_UNKNOWN_CA|CERTIFICATE_UNKNOWN|HANDSHAKE_FAILURE|DECRYPT_ERROR/,
    'the receiver did not accept the client certificate of sluice, or requires one; see tls.cert_file (with its intermediate certificates) and tls.key_file',
  ],
];

/** Translates any error of undici, node:net or node:tls in `phase`. */
export function toHttpFailure(error: unknown, phase: Phase): HttpFailure {
  if (error instanceof HttpFailure) return error;
  const code = codeOf(error);
  if (tlsCodes.test(code)) return new HttpFailure('tls', tlsMessage(code), error);
  switch (code) {
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
      return new HttpFailure('timeout', `${phase}: ${messageOf(error)}`, error);
    case 'UND_ERR_HEADERS_OVERFLOW':
    case 'HPE_HEADER_OVERFLOW':
      return new HttpFailure('too_large', 'the answer’s headers are too large', error);
    case 'UND_ERR_INVALID_ARG':
      return new HttpFailure('encoding', `the request cannot be sent: ${messageOf(error)}`, error);
  }
  if (phase === 'connecting') return new HttpFailure('unreachable', messageOf(error), error);
  const what = code.startsWith('HPE_') ? `the answer is not HTTP (${code})` : messageOf(error);
  return new HttpFailure('cut', `${phase}: ${what}`, error);
}

function tlsMessage(code: string): string {
  const issuer = missingIssuer(code);
  if (issuer !== null) return `TLS failed: ${issuer.what} (${code}). ${issuer.next}`;
  const hint = tlsHints.find(([pattern]) => pattern.test(code))?.[1];
  return hint === undefined ? `TLS failed (${code})` : `TLS failed: ${hint} (${code})`;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return errorCodeOf(error) || codeOf(error.cause);
}

/** Failures of several addresses of one name are an AggregateError with an empty message. */
function messageOf(error: unknown): string {
  const messageLengthMax = 300;
  if (error instanceof AggregateError) {
    const parts = error.errors.map((part) => messageOf(part));
    return cleanText(parts.join('; '), messageLengthMax);
  }
  return cleanText(errorText(error), messageLengthMax);
}
