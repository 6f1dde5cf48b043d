// The connections of a @platformatic/kafka client, in place of the library's pool. That pool reads TLS files once. It
// passes no server name for one broker and an address as server name for the next, for which Node throws. It forgets
// failed connections before their sockets are closed, and leaves a connection without an error listener, so a second
// error ends the process. Here all connections can also be cut at once.
//
// The library authenticates again on the same connection before the session ends (KIP-368), and sends other requests in
// between, which a broker answers with ILLEGAL_SASL_STATE and a closed connection. Here a new connection replaces the old
// one. A producer id and a transaction belong to no connection, so they continue.

import {
  AuthenticationError,
  type Broker,
  type CallbackWithPromise,
  Connection,
  type ConnectionOptions,
  NetworkError,
  SASLMechanisms,
  UserError,
} from '@platformatic/kafka';
import type { TlsSettings } from '../contracts/index.ts';
import { type KafkaFailure, kafkaFailureOf } from './failure.ts';
import type { KafkaSasl } from './port.ts';
import { rejectionIn } from './sasl.ts';
import { tlsOptions } from './sockets.ts';

/** Dependencies of connections. */
export interface ConnectionsOptions {
  readonly clientId: string;
  readonly tls: TlsSettings | undefined;
  readonly sasl?: KafkaSasl | undefined;
  /** Limits, milliseconds; default: those of the library. */
  readonly connection: { readonly connectTimeout?: number; readonly requestTimeout?: number };
}

interface Link {
  readonly connection: Connection;
  readonly ready: Promise<void> | void;
}

interface Refusal {
  readonly failure: KafkaFailure;
  /** By `performance.now()`. */
  readonly until: number;
}

/** The library's limit for a request. */
const requestMsMax = 30_000;
/** Another login with the same password could lock the account. A password may have been changed after this time. */
const refusedPasswordMs = 30_000;
/** The next login has another token, and may have another certificate. */
const refusedMs = 1_000;

/** A connection that reports the approaching end of its session, in place of another authentication. */
class Session extends Connection {
  /** Called by the library after 80 % of the session. */
  override reauthenticate(): void {
    if (this.isConnected()) this.ends();
  }

  ends = (): void => undefined;
}

/**
 * At most one connection to each broker for new requests, for one producer. A broker that has rejected the login is not
 * connected again for a while.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #made = new Set<Connection>();
  readonly #links = new Map<string, Link>();
  readonly #refusals = new Map<string, Refusal>();
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
    if (refusal !== undefined && performance.now() < refusal.until) {
      throw new UserError(refusal.failure.message, { cause: refusal.failure });
    }
    const link = this.#links.getOrInsertComputed(key, () => this.#connect(broker, key));
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

  #connect(broker: Broker, key: string): Link {
    const { clientId, tls, sasl, connection: limits } = this.#options;
    const connection = new Session(clientId, {
      ...limits,
      ...(tls !== undefined && { tls: tlsOptions(tls, broker.host) }),
      ...(sasl !== undefined && { sasl: saslOf(sasl) }),
    });
    const ended = (error?: unknown) => {
      // Reported only here: a waiting request sees just a closed connection.
      const failure = kafkaFailureOf(error);
      if (failure.kind !== 'passing') this.#refuse(key, failure);
      this.#made.delete(connection);
      void connection.close(); // ends its timer
      connection.socket?.destroy();
      if (this.#links.get(key)?.connection === connection) this.#links.delete(key);
    };
    this.#made.add(connection);
    connection.on('error', ended);
    connection.on('close', ended);
    connection.ends = () => this.#replace(broker, key, connection);
    const ready = connection.connect(broker.host, broker.port);
    ready?.catch(ended); // reported by no other call on a time-out
    return { connection, ready };
  }

  /** If the new connection fails, the old one serves until the broker ends its session. */
  #replace(broker: Broker, key: string, old: Connection): void {
    if (this.#cut || this.#links.get(key)?.connection !== old) return;
    const link = this.#connect(broker, key);
    const replaced = () => {
      if (this.#links.get(key)?.connection === old) this.#links.set(key, link);
      // No request that is under way lasts longer.
      const { requestTimeout = requestMsMax } = this.#options.connection;
      setTimeout(() => void old.close(), requestTimeout).unref();
    };
    void link.ready?.then(replaced, () => undefined);
  }

  #refuse(key: string, failure: KafkaFailure): void {
    const { sasl } = this.#options;
    const isDenied = failure.kind === 'denied' && sasl !== undefined;
    const isToken = sasl?.mechanism === 'oauthbearer';
    if (isDenied && isToken) sasl.drop();
    const pauseMs = isDenied && !isToken ? refusedPasswordMs : refusedMs;
    this.#refusals.set(key, { failure, until: performance.now() + pauseMs });
  }
}

const mechanisms = {
  plain: SASLMechanisms.PLAIN,
  'scram-sha-256': SASLMechanisms.SCRAM_SHA_256,
  'scram-sha-512': SASLMechanisms.SCRAM_SHA_512,
} as const;

function saslOf(sasl: KafkaSasl): NonNullable<ConnectionOptions['sasl']> {
  if (sasl.mechanism === 'oauthbearer') {
    const { OAUTHBEARER: mechanism } = SASLMechanisms;
    return { mechanism, token: () => sasl.token(), authBytesValidator: validated };
  }
  const { mechanism, username, password } = sasl;
  return { mechanism: mechanisms[mechanism], username, password: () => password.reveal() };
}

function validated(reply: Buffer, callback: CallbackWithPromise<Buffer>): void {
  const rejection = rejectionIn(reply);
  if (rejection === null) callback(null, reply);
  else callback(new AuthenticationError(rejection));
}
