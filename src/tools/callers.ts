// Who may stay connected to a server of ours. Whoever reaches the port can open connections and say
// nothing, so a connection is no claim to a place: where places run out, the one that was heard
// from least lately is ended, never the one that has just come. What must stay true: who asks as
// soon as it is connected, as probes do, is answered whatever the others do.

import type { Socket } from 'node:net';

/** Connections without a place of their own; as many cost a few megabytes. */
const callersMax = 512;

/** The connections of a server, those heard from least lately first. */
export class Callers {
  readonly #sockets = new Set<Socket>();
  readonly #known = new WeakSet<Socket>();

  /** One that has just come, or has just asked for something. */
  heard(socket: Socket): void {
    if (!this.#known.has(socket)) socket.once('close', () => this.#sockets.delete(socket));
    this.#known.add(socket);
    this.#sockets.delete(socket);
    this.#sockets.add(socket);
    const [oldest] = this.#sockets;
    if (this.#sockets.size > callersMax) oldest?.destroy();
  }

  /** It has a place of its own now, bounded elsewhere, and may be silent for long. */
  keep(socket: Socket): void {
    socket.setTimeout(0);
    this.#sockets.delete(socket);
  }
}
