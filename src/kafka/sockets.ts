// The sockets that a Kafka client speaks through. The client asks for them here, and here they can
// all be cut at once: that is what makes giving up on a dead broker and closing take a bounded
// time, whatever the client is waiting for. TLS files are read at each connection, so that a
// renewed certificate is taken up without a restart.

import { readFileSync } from 'node:fs';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { TlsSettings } from '../contracts/tools.ts';

const keepAliveDelayMs = 60_000;

/** The connections of one client. */
export class Sockets {
  readonly #tls: TlsSettings | undefined;
  readonly #open = new Set<Socket>();
  #cut = false;

  constructor(tls: TlsSettings | undefined) {
    this.#tls = tls;
  }

  /** Begins a connection; `connected` is called when it stands, with TLS after the handshake. */
  connect(host: string, port: number, connected: () => void): Socket {
    if (this.#cut) throw new Error('the sink released this connection');
    const socket =
      this.#tls === undefined
        ? connectTcp({ host, port }, connected)
        : connectTls({ host, port, ...tlsOptions(this.#tls, host) }, connected);
    // Requests end in a short segment; held back for an answer it would cost 40 ms each.
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepAliveDelayMs);
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  }

  /** Cuts all connections and refuses new ones. The client hears an error on each. */
  cut(): void {
    this.#cut = true;
    for (const socket of this.#open) {
      socket.destroy(new Error('the sink released this connection'));
    }
  }
}

/** How to speak TLS to a broker; reads the files. An address has no server name in Node. */
export function tlsOptions(tls: TlsSettings, host: string): ConnectionOptions {
  const serverName = tls.server_name ?? (isIP(host) === 0 ? host : undefined);
  return {
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(tls.ca_file === undefined ? {} : { ca: readFileSync(tls.ca_file) }),
    ...(tls.cert_file === undefined ? {} : { cert: readFileSync(tls.cert_file) }),
    ...(tls.key_file === undefined ? {} : { key: readFileSync(tls.key_file) }),
    ...(tls.min_version === undefined ? {} : { minVersion: tls.min_version }),
  };
}
