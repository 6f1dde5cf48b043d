// The connections of a @platformatic/kafka client, in place of the library's pool. That pool reads TLS files once. It
// passes no server name for one broker and an address as server name for the next, for which Node throws. It forgets
// failed connections before their sockets are closed, and leaves a connection without an error listener, so a second
// error ends the process. Here all connections can also be cut at once.

import {
  type Broker,
  Connection,
  type ConnectionOptions,
  NetworkError,
  UserError,
} from '@platformatic/kafka';
import type { TlsSettings } from '../contracts/index.ts';
import type { KafkaFailure } from './failure.ts';
import { kafkaFailureOf } from './platformatic-errors.ts';
import { tlsOptions } from './sockets.ts';

/** Dependencies of connections. */
export interface ConnectionsOptions {
  readonly clientId: string;
  readonly tls: TlsSettings | undefined;
  readonly connection: ConnectionOptions;
}

interface Link {
  readonly connection: Connection;
  readonly ready: Promise<void> | void;
}

/**
 * At most one connection to each broker, for one producer; a broker that has rejected the login is not connected again.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #made = new Set<Connection>();
  readonly #links = new Map<string, Link>();
  readonly #refusals = new Map<string, KafkaFailure>();
  #cut = false;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** The authenticated connection to a broker; created at the first request, and after a failure. */
  async to(broker: Broker | undefined): Promise<Connection> {
    // The library does not retry a UserError.
    if (this.#cut) throw new UserError('the sink released this connection');
    if (broker === undefined) {
      // This message makes the library request the cluster's brokers again.
      const stale = { canRetry: true, hasStaleMetadata: true };
      throw new NetworkError('the broker is not there at the moment', stale);
    }
    const key = `${broker.host} ${broker.port}`;
    const refusal = this.#refusals.get(key);
    // Another login with the same password could lock the account.
    if (refusal !== undefined) throw new UserError(refusal.message, { cause: refusal });
    const link = this.#links.get(key) ?? this.#connect(broker, key);
    await link.ready;
    return link.connection;
  }

  /** Closes all connections cleanly. */
  async close(): Promise<void> {
    await Promise.all([...this.#made].map((connection) => connection.close()));
  }

  /** Cuts all connections and rejects new ones; waiting requests fail. */
  cut(): void {
    this.#cut = true;
    for (const connection of this.#made) {
      void connection.close(); // without it the library would wait for a connection that is under way
      connection.socket?.destroy();
    }
  }

  #connect({ host, port }: Broker, key: string): Link {
    const { clientId, tls, connection: options } = this.#options;
    const connection = new Connection(
      clientId,
      tls === undefined ? options : { ...options, tls: tlsOptions(tls, host) },
    );
    const ended = (error?: unknown) => {
      // Reported only here: a waiting request sees just a closed connection.
      const failure = kafkaFailureOf(error);
      if (failure.kind !== 'passing') this.#refusals.set(key, failure);
      this.#made.delete(connection);
      connection.socket?.destroy();
      if (this.#links.get(key)?.connection === connection) this.#links.delete(key);
    };
    this.#made.add(connection);
    connection.on('error', ended);
    connection.on('close', ended);
    const ready = connection.connect(host, port);
    ready?.catch(ended); // reported by no other call on a time-out
    const link = { connection, ready };
    this.#links.set(key, link);
    return link;
  }
}
