// Opens one connection to a syslog receiver, plain or over TLS, bounded in time. With TLS the
// handshake is completed and the receiver's certificate verified first; certificates are read from
// their files at each attempt, so that a rotated one applies without a restart. Every failure is an
// ExportError with its next step.

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  connect as connectTls,
  createSecureContext,
} from 'node:tls';
import { type Clock, type TlsSettings, tlsFaults } from '../../../src/contracts/index.ts';
import { type Address, isSecure } from './address.ts';
import {
  connectFailure,
  silentHandshake,
  tlsFaultFailure,
  tlsFileFailure,
  turnedAway,
} from './failures.ts';

/** The receiver and the connection settings. */
export interface SyslogReceiver {
  readonly address: Address;
  readonly tls: TlsSettings;
  /** Bound on connecting, including the TLS handshake. */
  readonly connectTimeoutMs: number;
}

// Detects a vanished peer while nothing is sent; otherwise the stall time does.
const keepAliveIdleMs = 30_000;

/** An open connection. Rejects with an ExportError, or with the signal's reason when aborted. */
export async function dial(to: SyslogReceiver, clock: Clock, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const secure = isSecure(to.address) ? await tlsOptions(to) : null;
  signal.throwIfAborted();
  const options = {
    host: to.address.host,
    port: to.address.port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveIdleMs,
    // The owner must see a receiver's FIN before the socket is closed.
    allowHalfOpen: true,
  };
  const socket = secure ? connectTls({ ...options, ...secure }) : connectTcp(options);
  // A failure between two owners must not end the process; 'close' reaches the next owner.
  socket.on('error', () => {});
  const over = new AbortController();
  const both = AbortSignal.any([over.signal, signal]);
  try {
    await Promise.race([
      once(socket, secure ? 'secureConnect' : 'connect', { signal: both }),
      clock.sleep(to.connectTimeoutMs, both).then(() => {
        if (secure && !socket.connecting) throw silentHandshake(to.address, to.connectTimeoutMs);
        throw Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' });
      }),
    ]);
    return socket;
  } catch (error) {
    socket.destroy();
    signal.throwIfAborted();
    throw connectFailure(to.address, error);
  } finally {
    over.abort();
  }
}

// How long a receiver may take to reject after a TLS 1.3 handshake; silence counts as acceptance.
const refusalWaitMs = 1_000;

/**
 * Connects, makes sure that the receiver keeps the connection, and disconnects; nothing is sent.
 * With TLS 1.3 the client finishes before the receiver has checked its certificate (RFC 8446,
 * section 2), so a rejection comes later.
 */
export async function tryOut(to: SyslogReceiver, clock: Clock, signal: AbortSignal): Promise<void> {
  const socket = await dial(to, clock, signal);
  const over = new AbortController();
  const both = AbortSignal.any([over.signal, signal]);
  try {
    if (!isSecure(to.address)) return;
    socket.resume();
    const verdict = await Promise.race([
      once(socket, 'session', { signal: both }).then(() => 'kept'),
      once(socket, 'end', { signal: both }).then(() => 'ended'),
      once(socket, 'close', { signal: both }).then(() => 'ended'),
      clock.sleep(refusalWaitMs, both).then(() => 'kept'),
    ]);
    if (verdict === 'ended') throw turnedAway(to.address);
  } catch (error) {
    signal.throwIfAborted();
    throw connectFailure(to.address, error);
  } finally {
    over.abort();
    socket.end();
    socket.destroySoon();
  }
}

async function tlsOptions(to: SyslogReceiver): Promise<ConnectionOptions> {
  const { ca_file, cert_file, key_file, min_version, server_name } = to.tls;
  const [ca, cert, key] = await Promise.all([
    readPem('ca_file', ca_file),
    readPem('cert_file', cert_file),
    readPem('key_file', key_file),
  ]);
  const name = server_name ?? to.address.host;
  try {
    const secureContext = createSecureContext({
      minVersion: min_version ?? 'TLSv1.2',
      ...(ca && { ca }),
      ...(cert && { cert }),
      ...(key && { key }),
    });
    return {
      secureContext,
      checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
      // SNI carries names only (RFC 6066, section 3).
      ...(isIP(name) === 0 && { servername: name }),
    };
  } catch (error) {
    const [fault] = tlsFaults({ ca_file: ca, cert_file: cert, key_file: key });
    if (fault !== undefined) throw tlsFaultFailure(to.tls[fault.key] ?? '', fault);
    const files = [ca_file, cert_file, key_file].filter((file) => file !== undefined).join(', ');
    throw tlsFileFailure('*_file', files, error);
  }
}

async function readPem(key: string, file: string | undefined): Promise<Buffer | undefined> {
  if (file === undefined) return undefined;
  try {
    return await readFile(file);
  } catch (error) {
    throw tlsFileFailure(key, file, error);
  }
}
