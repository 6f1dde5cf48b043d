// A TCP or TLS server that splits what it reads into syslog frames and misbehaves as the test says:
// resets connections at random, stops reading, reads slowly, ignores the peer's close, goes away and
// comes back on the same port. It is the network at its worst for the sinks that have no
// acknowledgement, and it counts exactly which frames were read by an application before a failure.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, Server as TlsServer } from 'node:tls';
import type { Certificates } from './certificates.ts';
import { FrameSplitter, type Framing } from './syslog-frames.ts';
import { afterThisTest, freePort, patienceMs, waitUntil } from './temp.ts';

/** How connections are treated; takes effect at the next bytes of each. */
export type TcpBehaviour =
  /** Reads everything; answers the peer's close with its own. */
  | { readonly kind: 'read' }
  /**
   * Before reading a chunk resets the connection with this probability (0 to 1), so that the chunk
   * and all that was under way is lost although the sender could write it. `seed` makes the
   * sequence of decisions repeatable.
   */
  | { readonly kind: 'reset'; readonly probability: number; readonly seed: number }
  /** Stops reading, keeps the connection open; the sender's buffers fill up. */
  | { readonly kind: 'stall' }
  /** Reads about so many bytes per second. */
  | { readonly kind: 'slow'; readonly bytesPerSecond: number }
  /** Reads, but never answers the peer's close. */
  | { readonly kind: 'half_open' }
  /** Closes each connection in order (FIN) once so many frames were read on it. */
  | { readonly kind: 'close'; readonly afterFrames: number };

export interface Frame {
  readonly framing: Framing;
  /** Without the framing. */
  readonly bytes: Buffer;
  readonly text: string;
  /** Which connection it came over, counting from 1. */
  readonly connection: number;
}

export interface TcpReceiverOptions {
  /** Speak TLS with these; undefined: plain TCP. */
  readonly tls?: Certificates;
  /** Take only TLS clients that show a certificate of the same authority. Default false. */
  readonly clientCertificates?: boolean;
  /** Default `{ kind: 'read' }`. */
  readonly behaviour?: TcpBehaviour;
}

/** A running receiver. It ends with the test that started it. */
export interface TcpReceiver {
  readonly port: number;
  /** Whole frames read so far, over restarts too. */
  readonly frames: readonly Frame[];
  /** What was no framing at all; the connection was reset. A test expects this to be empty. */
  readonly faults: readonly string[];
  /** TCP connections taken so far, whatever became of their handshake. */
  readonly connections: number;
  /** TCP connections open now. */
  readonly open: number;
  /** Frames that a connection ended in the middle of. */
  readonly torn: number;
  /** Connections that were reset: by the `reset` behaviour, by `resetAll` or by `close`. */
  readonly resets: number;
  /** From now on treats connections so, open ones included; stalled ones are read again. */
  behave(behaviour: TcpBehaviour): void;
  /** Resets all open connections now (RST). */
  resetAll(): void;
  /** Waits until so many frames were read, or until the predicate says yes. Default 10 seconds. */
  waitFor(
    until: number | ((frames: readonly Frame[]) => boolean),
    timeoutMs?: number,
  ): Promise<readonly Frame[]>;
  /** From now on shows this certificate in handshakes, if it speaks TLS. */
  show(tls: Certificates): void;
  /** Stops listening and resets every connection: the port refuses from now on. */
  close(): Promise<void>;
  /** Listens again on the same port after `close`. */
  reopen(): Promise<void>;
}

/** Starts a receiver on a free loopback port. */
export async function startTcpReceiver(options: TcpReceiverOptions = {}): Promise<TcpReceiver> {
  const receiver = new Receiver(options, await freePort());
  afterThisTest(() => receiver.close());
  await receiver.reopen();
  return receiver;
}

// As Node's tls.Server wants them.
const ticketKeysBytes = 48;

interface Connected {
  readonly socket: Socket;
  /** Counting from 1. */
  readonly number: number;
}

class Receiver implements TcpReceiver {
  readonly port: number;
  readonly frames: Frame[] = [];
  readonly faults: string[] = [];
  readonly #options: TcpReceiverOptions;
  /** What is read: with TLS those whose handshake is done. */
  readonly #sockets = new Set<Socket>();
  /** The TCP connections, by their far port: only these can be reset, and a handshake may never end. */
  readonly #connected = new Map<number | undefined, Connected>();
  #behaviour: TcpBehaviour;
  #tls: Certificates | undefined;
  #random: () => number;
  #server: Server | undefined;
  #connections = 0;
  #torn = 0;
  #resets = 0;

  constructor(options: TcpReceiverOptions, port: number) {
    this.#options = options;
    this.#behaviour = options.behaviour ?? { kind: 'read' };
    this.#tls = options.tls;
    this.#random = randomFor(this.#behaviour);
    this.port = port;
  }

  get connections(): number {
    return this.#connections;
  }

  get open(): number {
    return this.#connected.size;
  }

  get torn(): number {
    return this.#torn;
  }

  get resets(): number {
    return this.#resets;
  }

  behave(behaviour: TcpBehaviour): void {
    this.#behaviour = behaviour;
    this.#random = randomFor(behaviour);
    for (const socket of this.#sockets) {
      if (behaviour.kind === 'stall') socket.pause();
      else socket.resume();
    }
  }

  show(tls: Certificates): void {
    this.#tls = tls;
    if (this.#server instanceof TlsServer) {
      this.#server.setSecureContext(shown(tls));
      // Else sessions would be resumed, in which no certificate is looked at.
      this.#server.setTicketKeys(randomBytes(ticketKeysBytes));
    }
  }

  resetAll(): void {
    for (const { socket } of this.#connected.values()) this.#reset(socket);
  }

  async waitFor(
    until: number | ((frames: readonly Frame[]) => boolean),
    timeoutMs = patienceMs,
  ): Promise<readonly Frame[]> {
    const enough = () =>
      typeof until === 'number' ? this.frames.length >= until : until(this.frames);
    const what = () =>
      `frames at port ${this.port}; ${this.frames.length} read over ${this.connections} connections`;
    await waitUntil(enough, { what, timeoutMs });
    return this.frames;
  }

  async reopen(): Promise<void> {
    if (this.#server !== undefined) return;
    const options = { ...this.#options, ...(this.#tls && { tls: this.#tls }) };
    const server = makeServer(options, (socket) => this.#take(socket));
    server.prependListener('connection', (socket: Socket) => this.#accept(socket));
    this.#server = server;
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = once(server, 'close');
    server.close();
    this.resetAll();
    await closed;
  }

  #reset(socket: Socket): void {
    this.#resets += 1;
    socket.resetAndDestroy();
  }

  #accept(socket: Socket): void {
    this.#connections += 1;
    const { remotePort } = socket;
    const connected = { socket, number: this.#connections };
    this.#connected.set(remotePort, connected);
    socket.on('error', () => socket.destroy()); // the peer's reset is an event of the test, not a fault
    socket.on('close', () => {
      if (this.#connected.get(remotePort) === connected) this.#connected.delete(remotePort);
    });
  }

  #take(socket: Socket): void {
    const connected = this.#connected.get(socket.remotePort);
    if (connected === undefined) return; // reset within the handshake
    const splitter = new FrameSplitter();
    let framesHere = 0;
    this.#sockets.add(socket);
    socket.on('data', (bytes: Buffer) => {
      const behaviour = this.#behaviour;
      if (behaviour.kind === 'reset' && this.#random() < behaviour.probability) {
        this.#reset(connected.socket);
        return;
      }
      framesHere += this.#keep(splitter, bytes, connected.number);
      if (splitter.fault !== null) this.#reset(connected.socket);
      else this.#afterRead(socket, bytes.length, framesHere);
    });
    socket.on('end', () => {
      if (this.#behaviour.kind !== 'half_open') socket.end();
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#sockets.delete(socket);
      if (splitter.pending > 0) this.#torn += 1;
    });
    if (this.#behaviour.kind === 'stall') socket.pause();
  }

  #keep(splitter: FrameSplitter, bytes: Buffer, connection: number): number {
    const frames = splitter.push(bytes);
    for (const { framing, bytes: content } of frames) {
      this.frames.push({ framing, bytes: content, text: content.toString('utf8'), connection });
    }
    if (splitter.fault !== null) this.faults.push(splitter.fault);
    return frames.length;
  }

  #afterRead(socket: Socket, bytes: number, framesHere: number): void {
    const behaviour = this.#behaviour;
    switch (behaviour.kind) {
      case 'slow':
        socket.pause();
        setTimeout(() => socket.resume(), (bytes / behaviour.bytesPerSecond) * 1000);
        return;
      case 'close':
        if (framesHere >= behaviour.afterFrames) socket.end();
        return;
      case 'read':
      case 'reset':
      case 'stall':
      case 'half_open':
        return;
    }
  }
}

function makeServer(options: TcpReceiverOptions, take: (socket: Socket) => void): Server {
  const { tls, clientCertificates = false } = options;
  // Half-open is allowed so that answering the peer's close is this receiver's own decision.
  if (tls === undefined) return createServer({ allowHalfOpen: true, pauseOnConnect: false }, take);
  const server = createTlsServer(
    {
      allowHalfOpen: true,
      ...shown(tls),
      requestCert: clientCertificates,
      rejectUnauthorized: clientCertificates,
    },
    take,
  );
  server.on('tlsClientError', () => undefined); // a refused client is an event of the test
  return server;
}

function shown({ server, ca }: Certificates) {
  return { key: server.key, cert: server.cert, ca };
}

// mulberry32: small, and the same sequence for the same seed everywhere.
function randomFor(behaviour: TcpBehaviour): () => number {
  let state = behaviour.kind === 'reset' ? behaviour.seed : 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
