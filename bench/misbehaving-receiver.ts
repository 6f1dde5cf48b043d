// A syslog receiver for the loss bench, as unreliable as a schedule says, that counts distinct uids. What it does depends on the
// number of a connection and on the time since its start, never on who sends, so that two senders meet the same.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Certificates } from '../test/support/certificates.ts';
import { FrameSplitter } from '../test/support/syslog-frames.ts';

/**
 * `resets`: a connection lives for 0.8 to 2 s; each fifth then hangs and is reset with unread bytes, the others are
 * closed in order. `restarts`: each 3 s the receiver hangs, resets all connections, and is back half a second later.
 * `hangs`: each 3 s it reads nothing for 6 s, longer than senders wait, while its kernel accepts bytes; then it resets
 * all connections. `shutdown`: it reads everything, and more slowly than bytes arrive; the sender is stopped meanwhile.
 */
export type Schedule = 'resets' | 'restarts' | 'hangs' | 'shutdown';

/** What has arrived. */
export interface Tally {
  readonly uids: ReadonlySet<string>;
  /** Whole messages, repeats included. */
  readonly messages: number;
  readonly connections: number;
  readonly resets: number;
}

const hangMs = 150;
const restartEveryMs = 3_000;
const downMs = 500;
const hangEveryMs = 3_000;
const longHangMs = 6_000;
const slowBytesPerSecond = 150_000;
const lifeMs = (connection: number) => 800 + ((connection * 617) % 1_200);
const isDoomed = (connection: number) => connection % 5 === 2;

/** See the head of this file. */
export class MisbehavingReceiver {
  readonly #schedule: Schedule;
  readonly #tls: Certificates | null;
  readonly #uids = new Set<string>();
  readonly #sockets = new Set<Socket>();
  /** What carries a connection, by the sender's port: beneath TLS, where alone a reset can be made. */
  readonly #carriers = new Map<number | undefined, Socket>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #server: Server | null = null;
  #port = 0;
  #messages = 0;
  #connections = 0;
  #resets = 0;
  /** From here on it behaves, so that what is still held can be delivered. */
  #behaves = false;
  #hangs = false;

  constructor(schedule: Schedule, tls: Certificates | null) {
    this.#schedule = schedule;
    this.#tls = tls;
  }

  get port(): number {
    return this.#port;
  }

  get tally(): Tally {
    return {
      messages: this.#messages,
      uids: this.#uids,
      connections: this.#connections,
      resets: this.#resets,
    };
  }

  async open(): Promise<void> {
    await this.#listen();
    if (this.#schedule === 'restarts') this.#after(restartEveryMs, () => this.#restart());
    if (this.#schedule === 'hangs') this.#after(hangEveryMs, () => this.#hang());
  }

  /** Reads at full speed from now on, and neither hangs nor resets. */
  behave(): void {
    this.#behaves = true;
    this.#hangs = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Resolves when nothing has arrived for a while. */
  async quiet(): Promise<void> {
    for (let before = -1; before !== this.#messages; ) {
      before = this.#messages;
      await new Promise((resolve) => this.#after(1_000, () => resolve(undefined)));
    }
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const socket of this.#sockets) socket.destroy();
    await this.#stopListening();
  }

  async #listen(): Promise<void> {
    const take = (socket: Socket) => this.#take(socket);
    const { key, cert } = this.#tls?.server ?? { key: '', cert: '' };
    this.#server =
      this.#tls === null
        ? createServer({ allowHalfOpen: true }, take)
        : createTlsServer({ allowHalfOpen: true, key, cert }, take);
    this.#server.on('tlsClientError', () => undefined);
    this.#server.on('connection', (carrier) => this.#carriers.set(carrier.remotePort, carrier));
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    if (typeof address === 'object' && address !== null) this.#port = address.port;
  }

  async #stopListening(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = once(server, 'close');
    server.close();
    await closed;
  }

  #restart(): void {
    if (this.#behaves) return;
    for (const socket of this.#sockets) socket.pause();
    this.#after(hangMs, async () => {
      const closed = this.#stopListening();
      for (const socket of this.#sockets) this.#reset(socket);
      await closed;
      this.#after(downMs, async () => {
        await this.#listen();
        this.#after(restartEveryMs, () => this.#restart());
      });
    });
  }

  #hang(): void {
    if (this.#behaves) return;
    this.#hangs = true;
    for (const socket of this.#sockets) socket.pause();
    this.#after(longHangMs, () => {
      if (this.#behaves) return;
      this.#hangs = false;
      for (const socket of this.#sockets) this.#reset(socket);
      this.#after(hangEveryMs, () => this.#hang());
    });
  }

  #reset(socket: Socket): void {
    this.#resets += 1;
    this.#carriers.get(socket.remotePort)?.resetAndDestroy();
    socket.destroy();
  }

  #take(socket: Socket): void {
    this.#connections += 1;
    const splitter = new FrameSplitter();
    this.#sockets.add(socket);
    socket.on('data', (bytes: Buffer) => {
      for (const { bytes: message } of splitter.push(bytes)) {
        this.#messages += 1;
        const uid = /uid="([0-9a-f]+)"/.exec(message.toString('latin1'))?.[1];
        if (uid !== undefined) this.#uids.add(uid);
      }
      if (this.#schedule === 'shutdown' && !this.#behaves) {
        socket.pause();
        this.#after((bytes.length / slowBytesPerSecond) * 1_000, () => socket.resume());
      }
    });
    socket.on('end', () => socket.end());
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#sockets.delete(socket));
    if (this.#schedule === 'resets') this.#endAfter(socket, this.#connections);
    if (this.#hangs) socket.pause();
  }

  #endAfter(socket: Socket, connection: number): void {
    this.#after(lifeMs(connection), () => {
      if (this.#behaves || socket.destroyed) return;
      if (!isDoomed(connection)) {
        socket.end();
        return;
      }
      socket.pause();
      this.#after(hangMs, () => this.#reset(socket));
    });
  }

  #after(ms: number, act: () => unknown): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void act();
    }, ms);
    this.#timers.add(timer);
  }
}
