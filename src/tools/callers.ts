// Limits the open connections of a listening server. Any client that reaches the port can open
// connections and stay silent, so a connection reserves nothing: above the limit, the connection
// with the oldest activity is closed, never the newest. Invariant: a client that sends its request
// at once, such as a probe, is answered whatever the other clients do.

import type { Socket } from 'node:net';

/** Connections without a limit of their own; this number costs a few megabytes. */
const callersMax = 512;

/** The connections of a server, those with the oldest activity first. */
export class Callers {
  readonly #sockets = new Set<Socket>();
  readonly #known = new WeakSet<Socket>();

  /** A new connection, or one with a new request. */
  seen(socket: Socket): void {
    if (!this.#known.has(socket)) socket.once('close', () => this.#sockets.delete(socket));
    this.#known.add(socket);
    this.#sockets.delete(socket);
    this.#sockets.add(socket);
    const [oldest] = this.#sockets;
    if (this.#sockets.size > callersMax) oldest?.destroy();
  }

  /** Another limit applies to it from now on, and it may be silent for long. */
  keep(socket: Socket): void {
    socket.setTimeout(0);
    this.#sockets.delete(socket);
  }
}
