// A TCP proxy in front of a real receiver, to be the bad network between sluice and it: refuses, resets, stops passing
// bytes on, passes them on slowly, or takes connections that lead nowhere. In peace it is faithful: bytes, their order
// and each side's end are passed on, so what the receiver says by closing reaches the sender.

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../support/temp.ts';

/** How bytes are treated; `stall` keeps connections open, `black_hole` swallows everything. */
export type ProxyMode = 'pass' | 'stall' | 'slow' | 'black_hole';

/** A running proxy. */
export interface NetworkProxy {
  readonly port: number;
  /** Treats connections so from now on; those that led into a black hole are reset when that ends. */
  behave(mode: ProxyMode): void;
  /** Resets every connection, both sides. */
  resetAll(): void;
  /** Refuses connections, and resets those there are. */
  close(): Promise<void>;
  reopen(): Promise<void>;
}

const slowChunkMs = 50;

/** Starts a proxy to a loopback port. The caller closes it. */
export async function startProxy(target: number): Promise<NetworkProxy> {
  const proxy = new TcpProxy(target, await freePort());
  await proxy.reopen();
  return proxy;
}

interface Pair {
  readonly client: Socket;
  readonly receiver: Socket | null;
}

class TcpProxy implements NetworkProxy {
  readonly port: number;
  readonly #target: number;
  readonly #pairs = new Set<Pair>();
  #mode: ProxyMode = 'pass';
  #server: Server | null = null;

  constructor(target: number, port: number) {
    this.#target = target;
    this.port = port;
  }

  behave(mode: ProxyMode): void {
    this.#mode = mode;
    for (const pair of this.#pairs) {
      if (pair.receiver === null) reset(pair);
      else if (mode === 'stall') for (const side of [pair.client, pair.receiver]) side.pause();
      else for (const side of [pair.client, pair.receiver]) side.resume();
    }
  }

  resetAll(): void {
    for (const pair of this.#pairs) reset(pair);
  }

  async reopen(): Promise<void> {
    if (this.#server !== null) return;
    const server = createServer({ allowHalfOpen: true }, (client) => this.#take(client));
    this.#server = server;
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    const closed = once(server, 'close');
    server.close();
    this.resetAll();
    await closed;
  }

  #take(client: Socket): void {
    const hole = this.#mode === 'black_hole';
    const receiver = hole
      ? null
      : connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true });
    const pair: Pair = { client, receiver };
    this.#pairs.add(pair);
    const end = () => {
      reset(pair);
      this.#pairs.delete(pair);
    };
    client.on('error', end);
    client.on('close', () => this.#pairs.delete(pair));
    if (receiver === null) {
      client.resume();
      return;
    }
    receiver.on('error', end);
    this.#pass(client, receiver);
    this.#pass(receiver, client);
  }

  #pass(from: Socket, to: Socket): void {
    from.on('data', (bytes: Buffer) => {
      const goesOn = to.write(bytes);
      const slow = this.#mode === 'slow';
      if (goesOn && !slow) return;
      from.pause();
      const resume = () => {
        if (this.#mode !== 'stall') from.resume();
      };
      if (slow) setTimeout(resume, slowChunkMs);
      else to.once('drain', resume);
    });
    from.on('end', () => to.end());
    from.on('close', (hadError) => {
      if (hadError) to.resetAndDestroy();
    });
  }
}

function reset({ client, receiver }: Pair): void {
  client.resetAndDestroy();
  receiver?.resetAndDestroy();
}
