// The part of the bytes written to a TCP connection that the peer has not acknowledged yet. A write
// that the kernel accepted has not arrived: if the receiver's machine lost power, or a firewall has
// dropped the connection's state, the kernel collects megabytes for minutes without any error.
// Linux shows the length of that queue in /proc/net/tcp (proc(5)); elsewhere it is unknown, and
// only the resend window protects a batch from loss.

import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

/** The arrived part of a connection's bytes. */
export class Arrival {
  readonly #ports: Ports;
  /** Settles when it is known whether the table lists connections of this process. */
  readonly #ready: Promise<unknown> | null;
  #bytes = 0;

  /** To be created while the connection is open. */
  constructor(socket: Socket) {
    this.#ports = portsOf(socket);
    this.#ready = listing.has(this.#ports.table) ? null : sendQueue(this.#ports);
  }

  /**
   * Bytes known to have arrived at the last look, acknowledged by the peer's TCP stack if visible,
   * otherwise accepted by this kernel.
   */
  get bytes(): number {
    return this.#bytes;
  }

  /** Looks again, after this kernel has accepted `flushed` bytes. Never less than before. */
  async look(flushed: number): Promise<number> {
    // No more can have arrived: the table is not read.
    if (flushed <= this.#bytes) return this.#bytes;
    await this.#ready;
    // Bytes flushed while the queue is read only make the queue look longer.
    const queue = await sendQueue(this.#ports);
    // A connection that left the table proves nothing; an 'error' reports a failure.
    if (queue === null && listing.has(this.#ports.table)) return this.#bytes;
    this.#bytes = Math.max(this.#bytes, flushed - (queue ?? 0));
    return this.#bytes;
  }
}

/** Tables that have listed a connection of this process, and so list every one while it is open. */
const listing = new Set<Ports['table']>();

/** Identifies a connection in the kernel's table. */
interface Ports {
  readonly table: '/proc/net/tcp' | '/proc/net/tcp6';
  readonly row: RegExp;
}

function portsOf(socket: Socket): Ports {
  const hex = (port: number | undefined) => (port ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return {
    table: socket.localFamily === 'IPv6' ? '/proc/net/tcp6' : '/proc/net/tcp',
    // Local address:port, remote address:port, state, length of the send queue.
    row: new RegExp(
      `:${hex(socket.localPort)} [0-9A-F]+:${hex(socket.remotePort)} [0-9A-F]{2} ([0-9A-F]{8}):`,
      'g',
    ),
  };
}

/**
 * Unacknowledged bytes; null if there is no table, or the connection is not in it. Addresses are
 * not compared: if another connection has the same pair of ports, the longer queue counts, which
 * can only delay.
 */
async function sendQueue(ports: Ports): Promise<number | null> {
  let table: string;
  try {
    table = await readFile(ports.table, 'latin1');
  } catch {
    return null;
  }
  const lengths = [...table.matchAll(ports.row)].map((row) => Number.parseInt(row[1] ?? '', 16));
  if (lengths.length === 0) return null;
  listing.add(ports.table);
  return Math.max(...lengths);
}
