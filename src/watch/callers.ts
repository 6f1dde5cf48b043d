// Who may stay connected to the status. Whoever reaches the port can open connections and say
// nothing, so a connection is no claim to a place: where places run out, the one that was heard
// from least lately is ended, never the one that has just come. What must stay true: who asks as
// soon as it is connected, as probes do, is answered whatever the others do.

import type { Socket } from 'node:net';

/** Connections that are not event streams; as many cost a few megabytes. */
const callersMax = 512;

/** The connections of a server, those heard from least lately first. */
export class Callers {
  readonly #sockets = new Set<Socket>();

  /** One that has just come, or has just asked for something. */
  heard(socket: Socket): void {
    if (!this.#sockets.delete(socket)) socket.once('close', () => this.#sockets.delete(socket));
    this.#sockets.add(socket);
    const [oldest] = this.#sockets;
    if (this.#sockets.size > callersMax) oldest?.destroy();
  }

  /** It listens to events from now on, may be silent for long, and is bounded elsewhere. */
  listens(socket: Socket): void {
    socket.setTimeout(0);
    this.#sockets.delete(socket);
  }
}
