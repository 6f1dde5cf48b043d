// The sockets of a Kafka client. The client opens them here, and all can be cut at once: giving up on a dead broker and
// closing take a bounded time, whatever the client is waiting for. TLS files are read at each connection, so a renewed
// certificate takes effect without a restart.

import { readFileSync } from 'node:fs';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { TlsSettings } from '../contracts/index.ts';

const keepAliveDelayMs = 60_000;

/** The connections of one client. */
export class Sockets {
  readonly #tls: TlsSettings | undefined;
  readonly #open = new Set<Socket>();
  #cut = false;

  constructor(tls: TlsSettings | undefined) {
    this.#tls = tls;
  }

  /** Opens a connection; `connected` is called when it is established, with TLS after the handshake. */
  connect(host: string, port: number, connected: () => void): Socket {
    if (this.#cut) throw new Error('the sink released this connection');
    const socket =
      this.#tls === undefined
        ? connectTcp({ host, port }, connected)
        : connectTls({ host, port, ...tlsOptions(this.#tls, host) }, connected);
    // A request ends in a short segment; Nagle's algorithm would delay it by 40 ms.
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepAliveDelayMs);
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  }

  /** Cuts all connections and rejects new ones. The client gets an error on each. */
  cut(): void {
    this.#cut = true;
    for (const socket of this.#open) {
      socket.destroy(new Error('the sink released this connection'));
    }
  }
}

/** The TLS options for a broker; reads the files. Node accepts no address as a server name. */
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
