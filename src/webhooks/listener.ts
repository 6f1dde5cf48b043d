// The addresses at which deliveries arrive: one server per address, with one endpoint per path. Any client can reach
// the port, so a connection's cost is bounded until it has proven to be upstream's: few connections without a
// delivery under way, short time limits for headers and body, and responses without details. Invariant: an address
// stays open while the stream of one of its paths is replaced; a client that sends meanwhile receives a retryable
// response.

import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hostPortText } from '../contracts/config.ts';
import {
  ExportError,
  type ListenAddress,
  type ServerTls,
  type Tools,
  tlsFaults,
} from '../contracts/index.ts';
import { Callers, fingerprintOf } from '../tools/index.ts';
import { BodyBudget } from './body.ts';
import { type DeliveryRefusal, refusals } from './delivery.ts';

/** One request at an endpoint. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly budget: BodyBudget;
  /** The delivery under way is upstream's: its connection is not ended for another one. */
  keep(): void;
  accept(): void;
  refuse(why: DeliveryRefusal): void;
}

/** The endpoint of one stream's deliveries. */
export interface DeliveryEndpoint {
  /**
   * Accepts requests from now on and opens the address if it is closed. Throws an ExportError if the address is not
   * available.
   */
  open(take: (exchange: Exchange) => void): Promise<void>;
  /** Rejects later requests with a retryable response. */
  close(): void;
}

/** Idle timeout of a connection, and time limit of a whole request, milliseconds. */
const silenceMsMax = 5_000;
const requestMsMax = 15_000;
/** Interval at which Node checks these timeouts, milliseconds. */
const lookEveryMs = 500;
/** Time for requests under way when a server closes, milliseconds. */
const closingMsMax = 1_000;
/** Certificate files may be renewed; they are checked this often, while connections arrive. */
const certificateMsMax = 60_000;

interface OpenEndpoint {
  take: ((exchange: Exchange) => void) | null;
  isClosed: boolean;
}

type ListenerTools = Pick<Tools, 'clock' | 'log'>;

/** All addresses. */
export class Listeners {
  readonly #tools: ListenerTools;
  readonly #budget = new BodyBudget();
  readonly #addresses = new Map<string, Address>();

  constructor(tools: ListenerTools) {
    this.#tools = tools;
  }

  /** An endpoint that is not open yet. */
  endpoint(listen: ListenAddress): DeliveryEndpoint {
    const { host, port, path, tls } = listen;
    const name = hostPortText(listen);
    const address = this.#addresses.getOrInsertComputed(
      name,
      () => new Address(name, this.#budget, this.#tools),
    );
    const endpoint: OpenEndpoint = { take: null, isClosed: false };
    address.endpoints.set(path, endpoint);
    return {
      async open(take) {
        await address.listen({ host, port, tls });
        endpoint.take = take;
      },
      close() {
        endpoint.take = null;
        endpoint.isClosed = true;
      },
    };
  }

  /** Closes addresses without endpoints. */
  async sweep(): Promise<void> {
    const idle = [...this.#addresses].filter(([, { endpoints }]) => {
      for (const [path, { isClosed }] of endpoints) if (isClosed) endpoints.delete(path);
      return endpoints.size === 0;
    });
    for (const [name] of idle) this.#addresses.delete(name);
    await Promise.all(idle.map(([, address]) => address.close()));
  }
}

class Address {
  readonly endpoints = new Map<string, OpenEndpoint>();
  readonly #name: string;
  readonly #budget: BodyBudget;
  readonly #tools: ListenerTools;
  readonly #callers = new Callers();
  /** The raw connections by peer: under TLS, requests show another socket object. */
  readonly #sockets = new Map<string, Socket>();
  #server: Server | null = null;
  #tls = '';
  /** Streams open their endpoints concurrently; openings of the address run one after the other. */
  #opening: Promise<unknown> = Promise.resolve();

  constructor(name: string, budget: BodyBudget, tools: ListenerTools) {
    this.#name = name;
    this.#budget = budget;
    this.#tools = tools;
  }

  listen(place: Omit<ListenAddress, 'path'>): Promise<void> {
    const opened = this.#opening.then(() => this.#listen(place));
    this.#opening = opened.catch(() => undefined);
    return opened;
  }

  async #listen({ host, port, tls }: Omit<ListenAddress, 'path'>): Promise<void> {
    const print = fingerprintOf(tls ?? null);
    if (this.#server !== null && print !== this.#tls && this.endpoints.size > 1) {
      throw this.#failure('another source listens there with other tls settings');
    }
    if (this.#server !== null && print !== this.#tls) await this.close();
    if (this.#server !== null) return;
    const server = this.#serverWith(tls);
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject).listen({ host, port }, resolve);
      });
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
      const why = code === 'EADDRINUSE' ? 'another program listens there already' : code;
      throw this.#failure(why, { cause: error });
    }
    server.on('error', (error) =>
      this.#tools.log.warn('webhook_listener_failed', 'the listener', { error: error.message }),
    );
    this.#server = server;
    this.#tls = print;
    this.#tools.log.info('webhook_listening', 'listening for deliveries', { address: this.#name });
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const late = setTimeout(() => server.closeAllConnections(), closingMsMax);
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeIdleConnections();
    });
    clearTimeout(late);
  }

  #serverWith(tls: ServerTls | undefined): Server {
    const options = {
      requestTimeout: requestMsMax,
      headersTimeout: silenceMsMax,
      keepAliveTimeout: silenceMsMax,
      connectionsCheckingInterval: lookEveryMs,
      maxHeaderSize: 8_192,
    };
    const answer = (request: IncomingMessage, response: ServerResponse) =>
      this.#answer(request, response);
    const server =
      tls === undefined
        ? process.getBuiltinModule('node:http').createServer(options, answer)
        : this.#tlsServer(tls, options, answer);
    server.timeout = requestMsMax;
    server.on('connection', (socket) => {
      const peer = peerOf(socket);
      this.#sockets.set(peer, socket);
      socket.once('close', () => this.#sockets.delete(peer));
      this.#callers.seen(socket);
    });
    return server;
  }

  #tlsServer(tls: ServerTls, options: object, answer: Parameters<Server['on']>[1]): Server {
    const { createServer } = process.getBuiltinModule('node:https');
    let secure = this.#secure(tls);
    const server = createServer(
      { ...options, ...secure, handshakeTimeout: silenceMsMax },
      answer as (request: IncomingMessage, response: ServerResponse) => void,
    );
    const { clock, log } = this.#tools;
    let lookedAt = clock.monotonic();
    server.on('connection', () => {
      if (clock.monotonic() - lookedAt < certificateMsMax) return;
      lookedAt = clock.monotonic();
      try {
        const now = this.#secure(tls);
        if (fingerprintOf(now) === fingerprintOf(secure)) return;
        server.setSecureContext(now);
        secure = now;
      } catch (error) {
        log.warn(
          'webhook_certificate_not_loaded',
          'the renewed certificate could not be loaded; keeping the old one',
          {
            error: String(error),
          },
        );
      }
    });
    return server;
  }

  #secure({ cert_file, key_file, ca_file, min_version = 'TLSv1.2' }: ServerTls) {
    let secure: { cert: Buffer; key: Buffer; ca: Buffer | undefined };
    try {
      const ca = ca_file === undefined ? undefined : readFileSync(ca_file);
      secure = { cert: readFileSync(cert_file), key: readFileSync(key_file), ca };
    } catch (error) {
      throw this.#failure(String(error), { cause: error });
    }
    const { cert, key, ca } = secure;
    const [fault] = tlsFaults({ cert_file: cert, key_file: key, ca_file: ca });
    if (fault !== undefined) {
      const file = { cert_file, key_file, ca_file }[fault.key];
      throw this.#failure(`tls.${fault.key}: the file ${file} ${fault.message}`, {
        next: 'Replace the file; sluice reads it again at the next attempt.',
      });
    }
    return {
      ...{ cert: String(cert), key: String(key), minVersion: min_version },
      ...(ca !== undefined && {
        ...{ ca: String(ca), requestCert: true, rejectUnauthorized: true },
      }),
    };
  }

  #failure(
    why: string,
    { cause, next }: { readonly cause?: unknown; readonly next?: string } = {},
  ): ExportError {
    const usual =
      'Choose another address as listen, or stop the process that uses this one. Polled sources read what upstream cannot deliver meanwhile.';
    const what = `listening on ${this.#name}: ${why}`;
    return new ExportError('config_invalid', what, { next: next ?? usual, cause });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const socket = this.#sockets.get(peerOf(request.socket)) ?? request.socket;
    const callers = this.#callers;
    callers.seen(socket);
    const end = (status: number, text: string, headers: Readonly<Record<string, string>> = {}) => {
      if (response.writableEnded || socket.destroyed) return;
      callers.seen(socket);
      const usual = { 'content-type': 'text/plain; charset=utf-8' };
      response.writeHead(status, { ...usual, ...headers }).end(`${text}\n`);
    };
    const refuse = (why: DeliveryRefusal) => {
      const { status, text, ...rest } = refusals[why];
      const again = 'retryAfterS' in rest ? { 'retry-after': String(rest.retryAfterS) } : {};
      const allow: Record<string, string> = status === 405 ? { allow: 'POST' } : {};
      // The rest of the body is not awaited.
      const isCut: Record<string, string> = request.complete ? {} : { connection: 'close' };
      end(status, text, { ...again, ...allow, ...isCut });
    };
    // RFC 9112 section 3.2; a proxy before this listener may have used the other header.
    if ((request.headersDistinct.host?.length ?? 0) > 1) {
      end(400, 'a request has one Host header', { connection: 'close' });
      return;
    }
    const endpoint = this.endpoints.get(request.url?.split('?', 1)[0] ?? '');
    if (endpoint === undefined) end(404, 'nothing is accepted here');
    else if (endpoint.take === null) refuse('closing');
    else {
      const keep = () => callers.keep(socket);
      const accept = () => end(200, 'held');
      endpoint.take({ request, response, budget: this.#budget, keep, accept, refuse });
    }
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
