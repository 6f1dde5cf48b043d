// Failures between sluice and a syslog receiver, in an operator's terms. Only the codes of Node and
// OpenSSL are used, because their texts may quote bytes from the receiver. No failure here loses an
// event: events without confirmed delivery stay in the spool and are sent again.

import { ExportError, missingIssuer, type TlsFault } from '../../../src/contracts/index.ts';
import { type Address, isSecure } from './address.ts';

const heldNext = 'Nothing was lost: messages without a confirmation are sent again.';

/** A connection could not be made, or TLS was rejected by either side, then or later. */
export function connectFailure(address: Address, error: unknown): ExportError {
  if (error instanceof ExportError) return error;
  const code = codeOf(error);
  const doing = `connecting to ${address.text}`;
  if (isSecure(address) && isTlsCode(code)) {
    const { what, next } = tlsFailure(code);
    return new ExportError('sink_refused', `${doing}: ${what} (${code})`, {
      next: `${next} The files are read again at each attempt; events stay held until then.`,
      details: { address: address.text, reason: code },
      cause: error,
    });
  }
  return new ExportError('sink_unreachable', `${doing}: ${systemReasons[code] ?? code}`, {
    next: `Check that the receiver listens there and that no firewall is in the way. ${heldNext}`,
    details: { address: address.text, reason: code },
    cause: error,
  });
}

/** The receiver accepted the connection, and never answered the handshake of TLS. */
export function silentHandshake(address: Address, timeoutMs: number): ExportError {
  const what = `connected, but no answer to the TLS handshake within ${timeoutMs / 1_000} s`;
  return new ExportError('sink_unreachable', `connecting to ${address.text}: ${what}`, {
    next: `A port of plain syslog never answers: use its TLS port, or an address with tcp:// or relp://. Else see the receiver’s log. ${heldNext}`,
    details: { address: address.text },
  });
}

/** An open connection ended with an error. TLS 1.3 rejects client certificates only here. */
export function brokenConnection(address: Address, error: unknown): ExportError {
  const code = codeOf(error);
  if (isSecure(address) && isTlsCode(code)) return connectFailure(address, error);
  return broken(address, systemReasons[code] ?? code, { cause: error });
}

/** An open connection ended, or is given up, for the reason `what`. */
export function broken(
  address: Address,
  what: string,
  { cause, hint = '' }: { readonly cause?: unknown; readonly hint?: string } = {},
): ExportError {
  const tlsHint = isSecure(address)
    ? 'A receiver that ends every connection at once may want a client certificate that it trusts.'
    : '';
  return new ExportError('sink_unreachable', `sending to ${address.text}: ${what}`, {
    next: `Check that the receiver runs, and its log. ${heldNext} ${hint || tlsHint}`.trim(),
    details: { address: address.text },
    ...(cause === undefined ? {} : { cause }),
  });
}

/** The receiver accepted the connection and closed it before anything was sent. */
export function turnedAway(address: Address): ExportError {
  return new ExportError(
    'sink_refused',
    `connecting to ${address.text}: the receiver closed the connection right after the handshake`,
    {
      next: 'Set tls.cert_file and tls.key_file to a client certificate that the receiver trusts, or see its log.',
      details: { address: address.text },
    },
  );
}

/** A file named under `tls` cannot be read or used. */
export function tlsFileFailure(key: string, file: string, error: unknown): ExportError {
  const code = codeOf(error);
  return new ExportError('config_invalid', `reading tls.${key} ${file}: ${code}`, {
    next: 'Name a PEM file that this user can read; it is read again at each attempt.',
    details: { file, reason: code },
    cause: error,
  });
}

/** The content of a file named under `tls` cannot be used, as `fault` explains. */
export function tlsFaultFailure(file: string, { key, message }: TlsFault): ExportError {
  return new ExportError('config_invalid', `tls.${key}: the file ${file} ${message}`, {
    next: 'Replace the file; it is read again at each attempt.',
    details: { file, reason: key },
  });
}

/** The code of OpenSSL or Node for a failure; never its text. */
function codeOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error) return String(error.code);
  return error instanceof Error ? error.name : 'unknown';
}

const systemReasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused (ECONNREFUSED)',
  ECONNRESET: 'the receiver reset the connection (ECONNRESET)',
  EPIPE: 'the receiver has closed the connection (EPIPE)',
  ETIMEDOUT: 'no answer (ETIMEDOUT)',
  EHOSTUNREACH: 'no route to the host (EHOSTUNREACH)',
  ENETUNREACH: 'no route to the network (ENETUNREACH)',
  ENOTFOUND: 'the name is not known (ENOTFOUND)',
  EAI_AGAIN: 'the name service does not answer (EAI_AGAIN)',
};

// System codes are `E` and a word; OpenSSL's begin with ERR_ or name a certificate's fault.
function isTlsCode(code: string): boolean {
  return code === 'EPROTO' || (/^[A-Z0-9_]+$/.test(code) && !/^E(?!RR_)/.test(code));
}

interface TlsFailure {
  readonly what: string;
  readonly next: string;
}

const expired = {
  what: 'the receiver’s certificate is not valid today',
  next: 'Renew the receiver’s certificate, or set this machine’s clock.',
};
const tlsFailures: readonly (readonly [RegExp, TlsFailure])[] = [
  [/^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/, expired],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    {
      what: 'the receiver’s certificate is for another name',
      next: 'Use the host that the certificate names, or set tls.server_name to it.',
    },
  ],
  [
    /^ERR_SSL_.*(PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL)/,
    {
      what: 'the receiver does not speak this version of TLS',
      next: 'Let the receiver accept TLS 1.2 or newer, or look at tls.min_version.',
    },
  ],
  [
    /^ERR_SSL_.*ALERT/,
    {
      what: 'the receiver refused the connection',
      next: 'Set tls.cert_file and tls.key_file to a client certificate that the receiver trusts, or see its log.',
    },
  ],
  [
    /^(ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)|EPROTO$)/,
    {
      what: 'the server there does not speak TLS',
      next: 'Use the receiver’s TLS port, often 6514, or tcp:// (relp:// for RELP) if it has none.',
    },
  ],
  [
    /CERT|SIGNATURE|ISSUER|CHAIN|CRL/,
    {
      what: 'the receiver’s certificate is not trusted',
      next: 'Set tls.ca_file to the authority that signed the receiver’s certificate.',
    },
  ],
];

function tlsFailure(code: string): TlsFailure {
  const issuer = missingIssuer(code);
  if (issuer !== null) return issuer;
  const known = tlsFailures.find(([pattern]) => pattern.test(code));
  return known ? known[1] : { what: 'TLS failed', next: 'Check the receiver’s log as well.' };
}
