// An HTTP or HTTPS server that keeps every request it gets and answers as the test says: with any
// status, by resetting the connection, by cutting the answer short, or not at all. It stands in for
// whatever an HTTP sink posts to, and carries the OTLP receiver (`otlp-receiver.ts`). Bodies are
// undone from their content encoding by Node's own zlib.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer, Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import type { Certificates } from './certificates.ts';
import { afterThisTest, freePort, patienceMs, waitUntil } from './temp.ts';

export interface ReceivedRequest {
  /** Counts from 1, over restarts too. */
  readonly number: number;
  readonly method: string;
  /** Path and query, as sent. */
  readonly path: string;
  /** By lower-case name; what occurs more than once is joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** With the content encoding undone. */
  readonly body: Buffer;
  /** The body's length as it came over the wire. */
  readonly wireBytes: number;
}

/** What the receiver does once it has read a whole request. */
export type HttpAnswer =
  | {
      readonly answer: 'reply';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string | Uint8Array;
    }
  /** Resets the connection (RST): the client cannot know whether the request counted. */
  | { readonly answer: 'reset' }
  /** Sends a 200 that promises more body than comes, then closes. */
  | { readonly answer: 'cut' }
  /** Says nothing and keeps the connection open. */
  | { readonly answer: 'hang' };

export type HttpAnswerer = (request: ReceivedRequest) => HttpAnswer | Promise<HttpAnswer>;

export interface HttpReceiverOptions {
  /** Serve HTTPS with these; undefined: HTTP. */
  readonly tls?: Certificates;
  /** Take only clients that show a certificate of the same authority. Default false. */
  readonly clientCertificates?: boolean;
  /** Default: always 200 with an empty body. */
  readonly answer?: HttpAnswerer;
  /**
   * False: a request is passed to the answerer and then forgotten, so that a long run fits into memory. Default true.
   */
  readonly keep?: boolean;
}

/** A running receiver. It ends with the test that started it. */
export interface HttpReceiver {
  /** `http://127.0.0.1:port`, or https; without a slash at the end. */
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  /** From now on answers so; a plain answer stands for always that one. */
  answer(how: HttpAnswerer | HttpAnswer): void;
  /** Waits until so many requests were read, or until the predicate says yes. Default 10 seconds. */
  waitFor(
    until: number | ((requests: readonly ReceivedRequest[]) => boolean),
    timeoutMs?: number,
  ): Promise<readonly ReceivedRequest[]>;
  /** From now on shows this certificate, and drops every connection as a server does that is restarted for it. */
  show(tls: Certificates): void;
  /** Stops listening and drops every connection; what was received stays. */
  close(): Promise<void>;
  /** Listens again on the same port after `close`. */
  reopen(): Promise<void>;
}

/** Answers with the given replies in turn, then with the last one for ever. */
export function inTurn(...answers: readonly HttpAnswer[]): HttpAnswerer {
  let next = 0;
  return () => {
    const answer = answers[Math.min(next, answers.length - 1)];
    next += 1;
    return answer ?? { answer: 'reply', status: 200 };
  };
}

/** Starts a receiver on a free loopback port. */
export async function startHttpReceiver(options: HttpReceiverOptions = {}): Promise<HttpReceiver> {
  const receiver = new Receiver(options, await freePort());
  afterThisTest(() => receiver.close());
  await receiver.reopen();
  return receiver;
}

// As Node's tls.Server wants them.
const ticketKeysBytes = 48;

class Receiver implements HttpReceiver {
  readonly url: string;
  readonly requests: ReceivedRequest[] = [];
  readonly #options: HttpReceiverOptions;
  readonly #port: number;
  #answerer: HttpAnswerer;
  /** TCP connections by their far port: a TLS socket cannot be reset, and what is in a handshake has none. */
  readonly #connected = new Map<number | undefined, Socket>();
  #tls: Certificates | undefined;
  #server: Server | undefined;
  #received = 0;

  constructor(options: HttpReceiverOptions, port: number) {
    this.#options = options;
    this.#port = port;
    this.#tls = options.tls;
    this.#answerer = options.answer ?? (() => ({ answer: 'reply', status: 200 }));
    this.url = `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  }

  answer(how: HttpAnswerer | HttpAnswer): void {
    this.#answerer = typeof how === 'function' ? how : () => how;
  }

  async waitFor(
    until: number | ((requests: readonly ReceivedRequest[]) => boolean),
    timeoutMs = patienceMs,
  ): Promise<readonly ReceivedRequest[]> {
    const enough = () =>
      typeof until === 'number' ? this.requests.length >= until : until(this.requests);
    const what = () => `requests at ${this.url}; ${this.requests.length} came`;
    await waitUntil(enough, { what, timeoutMs });
    return this.requests;
  }

  show(tls: Certificates): void {
    this.#tls = tls;
    if (this.#server instanceof HttpsServer) {
      this.#server.setSecureContext(shown(tls));
      // Else sessions would be resumed, in which no certificate is looked at.
      this.#server.setTicketKeys(randomBytes(ticketKeysBytes));
    }
    this.#dropAll();
  }

  async reopen(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = makeServer({ ...this.#options, ...(this.#tls && { tls: this.#tls }) });
    server.on('request', (request, response) => void this.#take(request, response));
    server.prependListener('connection', (socket: Socket) => this.#accept(socket));
    this.#server = server;
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = once(server, 'close');
    server.close();
    this.#dropAll();
    await closed;
  }

  // Those in a handshake too, of which the HTTP server knows nothing yet.
  #dropAll(): void {
    for (const socket of this.#connected.values()) socket.destroy();
  }

  #accept(socket: Socket): void {
    const { remotePort } = socket;
    this.#connected.set(remotePort, socket);
    socket.once('close', () => {
      if (this.#connected.get(remotePort) === socket) this.#connected.delete(remotePort);
    });
  }

  async #take(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of message) chunks.push(Buffer.from(chunk));
    } catch {
      return; // the client went away in the middle: no whole request, nothing to answer
    }
    try {
      this.#received += 1;
      const request = received(message, Buffer.concat(chunks), this.#received);
      if (this.#options.keep !== false) this.requests.push(request);
      const answer = await this.#answerer(request);
      if (answer.answer === 'reset')
        this.#connected.get(message.socket.remotePort)?.resetAndDestroy();
      else give(answer, response);
    } catch (error) {
      response.writeHead(400).end(`the test receiver cannot take this: ${String(error)}`);
    }
  }
}

function makeServer(options: HttpReceiverOptions): Server {
  const { tls, clientCertificates = false } = options;
  if (tls === undefined) return createHttpServer();
  return createHttpsServer({
    ...shown(tls),
    requestCert: clientCertificates,
    rejectUnauthorized: clientCertificates,
  });
}

function shown({ server, ca }: Certificates) {
  return { key: server.key, cert: server.cert, ca };
}

function received(message: IncomingMessage, wire: Buffer, number: number): ReceivedRequest {
  const headers = Object.entries(message.headersDistinct).map(([name, values]) => [
    name,
    (values ?? []).join(', '),
  ]);
  return {
    number,
    method: message.method ?? '',
    path: message.url ?? '',
    headers: Object.fromEntries(headers),
    body: decode(wire, message.headers['content-encoding'] ?? 'identity'),
    wireBytes: wire.length,
  };
}

function decode(wire: Buffer, encoding: string): Buffer {
  switch (encoding) {
    case 'identity':
      return wire;
    case 'gzip':
      return gunzipSync(wire);
    case 'deflate':
      return inflateSync(wire);
    case 'zstd':
      return zstdDecompressSync(wire);
    case 'br':
      return brotliDecompressSync(wire);
  }
  throw new Error(`unknown content encoding ${encoding}`);
}

function give(
  answer: Exclude<HttpAnswer, { readonly answer: 'reset' }>,
  response: ServerResponse,
): void {
  switch (answer.answer) {
    case 'reply':
      response.writeHead(answer.status, answer.headers).end(answer.body);
      return;
    case 'cut':
      response.writeHead(200, { 'content-length': '1000' });
      response.write('{', () => response.destroy());
      return;
    case 'hang':
      return;
  }
}
