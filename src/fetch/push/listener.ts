// The addresses at which deliveries come in: one server each, with a door for every path. Anybody
// can reach such a port, so what a connection may cost is bounded before it has shown that it is
// upstream's: few connections without a delivery under way, little time for headers and body, and
// answers that say nothing. What must stay true: an address stays open while the stream behind a
// door is made anew, and whoever comes meanwhile is asked to come again.

import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ExportError } from '../../contracts/errors.ts';
import { hostPortText } from '../../contracts/settings.ts';
import type { ListenPlace, ServerTls } from '../../contracts/source.ts';
import { tlsFaults } from '../../contracts/tls-files.ts';
import type { Tools } from '../../contracts/tools.ts';
import { Callers } from '../../tools/callers.ts';
import { fingerprintOf } from '../../tools/fingerprint.ts';
import { BodyBudget } from './body.ts';
import { type DeliveryRefusal, refusals } from './delivery.ts';

/** One request at a door. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly budget: BodyBudget;
  /** What is under way here is upstream's: its connection is not ended for another's sake. */
  keep(): void;
  accept(): void;
  refuse(why: DeliveryRefusal): void;
}

/** Where one stream's deliveries come in. */
export interface DeliveryPort {
  /**
   * Has requests taken from now on, listening where nobody does yet. Throws an ExportError where
   * the address is not to be had.
   */
  open(take: (exchange: Exchange) => void): Promise<void>;
  /** Whoever comes from now on is asked to come again. */
  close(): void;
}

/** Who says nothing for so long is let go, and who takes longer for a whole request. */
const silenceMsMax = 5_000;
const requestMsMax = 15_000;
/** How often Node looks whose time is over. */
const lookEveryMs = 500;
/** What is under way when a server ends has been answered by then, or never will be. */
const closingMsMax = 1_000;
/** Certificates are renewed in their files; they are looked at this often, while somebody comes. */
const certificateMsMax = 60_000;

interface OpenDoor {
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

  /** A door that is not open yet. */
  door(place: ListenPlace): DeliveryPort {
    const { host, port, path, tls } = place;
    const name = hostPortText(place);
    const address = this.#addresses.get(name) ?? new Address(name, this.#budget, this.#tools);
    this.#addresses.set(name, address);
    const door: OpenDoor = { take: null, isClosed: false };
    address.doors.set(path, door);
    return {
      async open(take) {
        await address.listen({ host, port, tls });
        door.take = take;
      },
      close() {
        door.take = null;
        door.isClosed = true;
      },
    };
  }

  /** Ends what no door leads to any more. */
  async sweep(): Promise<void> {
    const idle = [...this.#addresses].filter(([, { doors }]) => {
      for (const [path, { isClosed }] of doors) if (isClosed) doors.delete(path);
      return doors.size === 0;
    });
    for (const [name] of idle) this.#addresses.delete(name);
    await Promise.all(idle.map(([, address]) => address.close()));
  }
}

/** One address. */
class Address {
  readonly doors = new Map<string, OpenDoor>();
  readonly #name: string;
  readonly #budget: BodyBudget;
  readonly #tools: ListenerTools;
  readonly #callers = new Callers();
  /** The connections themselves by who is at their other end: under TLS requests show another. */
  readonly #sockets = new Map<string, Socket>();
  #server: Server | null = null;
  #tls = '';
  /** Streams open their doors at the same time; the address is opened by one after the other. */
  #opening: Promise<unknown> = Promise.resolve();

  constructor(name: string, budget: BodyBudget, tools: ListenerTools) {
    this.#name = name;
    this.#budget = budget;
    this.#tools = tools;
  }

  listen(place: Omit<ListenPlace, 'path'>): Promise<void> {
    const opened = this.#opening.then(() => this.#listen(place));
    this.#opening = opened.catch(() => undefined);
    return opened;
  }

  async #listen({ host, port, tls }: Omit<ListenPlace, 'path'>): Promise<void> {
    const print = fingerprintOf(tls ?? null);
    if (this.#server !== null && print !== this.#tls && this.doors.size > 1) {
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
      this.#callers.heard(socket);
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
    callers.heard(socket);
    const end = (status: number, text: string, headers: Readonly<Record<string, string>> = {}) => {
      if (response.writableEnded || socket.destroyed) return;
      callers.heard(socket);
      const usual = { 'content-type': 'text/plain; charset=utf-8' };
      response.writeHead(status, { ...usual, ...headers }).end(`${text}\n`);
    };
    const refuse = (why: DeliveryRefusal) => {
      const { status, text, ...rest } = refusals[why];
      const again = 'retryAfterS' in rest ? { 'retry-after': String(rest.retryAfterS) } : {};
      const allow: Record<string, string> = status === 405 ? { allow: 'POST' } : {};
      // What is still to come of the body is not waited for.
      const isCut: Record<string, string> = request.complete ? {} : { connection: 'close' };
      end(status, text, { ...again, ...allow, ...isCut });
    };
    // RFC 9112 section 3.2; a proxy before this listener may have read the other one.
    if ((request.headersDistinct.host?.length ?? 0) > 1) {
      end(400, 'a request has one Host header', { connection: 'close' });
      return;
    }
    const door = this.doors.get(request.url?.split('?', 1)[0] ?? '');
    if (door === undefined) end(404, 'nothing is accepted here');
    else if (door.take === null) refuse('closing');
    else {
      const keep = () => callers.keep(socket);
      const accept = () => end(200, 'held');
      door.take({ request, response, budget: this.#budget, keep, accept, refuse });
    }
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
