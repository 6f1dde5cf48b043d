// The connections of a @platformatic/kafka client, in place of the pool that it makes for itself.
// That pool reads TLS files once and sends no server name to one broker and an address as server
// name to the next, which Node answers by throwing; it forgets connections that failed before their
// sockets are gone; and it leaves a connection without a listener for errors, so that the second
// one ends the process. Here they can also all be cut at once.

import {
  type Broker,
  Connection,
  type ConnectionOptions,
  NetworkError,
  UserError,
} from '@platformatic/kafka';
import type { TlsSettings } from '../contracts/tools.ts';
import type { KafkaFailure } from './failure.ts';
import { kafkaFailureOf } from './platformatic-errors.ts';
import { tlsOptions } from './sockets.ts';

/** What connections are made from. */
export interface ConnectionsOptions {
  readonly clientId: string;
  readonly tls: TlsSettings | undefined;
  readonly connection: ConnectionOptions;
}

interface Link {
  readonly connection: Connection;
  readonly ready: Promise<void> | void;
}

/** At most one connection to each broker, for one producer: one that refuses is not connected again. */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #made = new Set<Connection>();
  readonly #links = new Map<string, Link>();
  readonly #refusals = new Map<string, KafkaFailure>();
  #cut = false;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** The authenticated connection to a broker; made when first asked for, and after a failure. */
  async to(broker: Broker | undefined): Promise<Connection> {
    // A UserError is what the library does not try again.
    if (this.#cut) throw new UserError('the sink released this connection');
    if (broker === undefined) {
      // By this message the library knows that it has to request the cluster's brokers again.
      const stale = { canRetry: true, hasStaleMetadata: true };
      throw new NetworkError('the broker is not there at the moment', stale);
    }
    const key = `${broker.host} ${broker.port}`;
    const refusal = this.#refusals.get(key);
    // With the same password it would only get the account locked.
    if (refusal !== undefined) throw new UserError(refusal.message, { cause: refusal });
    const link = this.#links.get(key) ?? this.#connect(broker, key);
    await link.ready;
    return link.connection;
  }

  /** Ends all connections in order. */
  async close(): Promise<void> {
    await Promise.all([...this.#made].map((connection) => connection.close()));
  }

  /** Cuts all connections and refuses new ones; whatever waits for an answer hears an error. */
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
      // Reported here only: a caller that waits for a response sees just a closed connection.
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
