// How much of what was written to a TCP connection its far side has not acknowledged yet. A write
// that the kernel took is not a write that arrived: a receiver whose machine lost power, or that
// sits behind a firewall which has forgotten the connection, lets the kernel collect megabytes
// without any error for minutes. Linux shows the length of that queue in /proc/net/tcp (proc(5));
// elsewhere it is not known, and only the resend window stands between a batch and its loss.

import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

/** What of a connection's bytes has arrived. */
export class Arrival {
  readonly #ports: Ports;
  /** Whether the kernel's table has shown this connection. */
  #listed = false;
  #bytes = 0;

  /** To be made while the connection is open. */
  constructor(socket: Socket) {
    this.#ports = portsOf(socket);
  }

  /** Bytes known to have arrived at the last look, by the far kernel's word or else by ours. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Looks again, where our kernel has taken so many bytes. Never less than before. */
  async look(flushed: number): Promise<number> {
    // What is flushed while the queue is read only makes the queue look longer.
    const queue = await sendQueue(this.#ports);
    if (queue !== null) this.#listed = true;
    // Gone from the table is no news, or bad news that an 'error' will tell.
    else if (this.#listed) return this.#bytes;
    this.#bytes = Math.max(this.#bytes, flushed - (queue ?? 0));
    return this.#bytes;
  }
}

/** What tells a connection from the others in the kernel's table. */
interface Ports {
  readonly table: '/proc/net/tcp' | '/proc/net/tcp6';
  readonly row: RegExp;
}

function portsOf(socket: Socket): Ports {
  const hex = (port: number | undefined) => (port ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return {
    table: socket.localFamily === 'IPv6' ? '/proc/net/tcp6' : '/proc/net/tcp',
    // local address:port, remote address:port, state, length of the send queue
    row: new RegExp(
      `:${hex(socket.localPort)} [0-9A-F]+:${hex(socket.remotePort)} [0-9A-F]{2} ([0-9A-F]{8}):`,
      'g',
    ),
  };
}

/**
 * Bytes not acknowledged now; null where there is no table, or the connection is not in it.
 * Addresses are not compared: should another connection have the same pair of ports, the longer
 * queue counts, which can only delay.
 */
async function sendQueue(ports: Ports): Promise<number | null> {
  let table: string;
  try {
    table = await readFile(ports.table, 'latin1');
  } catch {
    return null;
  }
  const lengths = [...table.matchAll(ports.row)].map((row) => Number.parseInt(row[1] ?? '', 16));
  return lengths.length === 0 ? null : Math.max(...lengths);
}
