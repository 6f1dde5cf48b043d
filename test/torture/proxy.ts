// A TCP proxy in front of a real server, as a bad network between sluice and the server: refuses, resets, stops passing
// bytes on, passes them on slowly, or accepts connections that lead nowhere or to an impostor. Without an act it is
// faithful: bytes, their order and each side's end are passed on, so a receiver's close reaches the sender. Listeners
// see the traffic, so that a run can kill the program at that very moment.

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
  /** From now on leads to another loopback port, or back to its own; connections there are reset. */
  leadTo(port: number | null): void;
  /** Refuses connections, and resets those there are. */
  close(): Promise<void>;
  reopen(): Promise<void>;
}

/** Functions called right after bytes, or the server's end, were passed on; not for fewer bytes than `substance`. */
export interface ProxyOptions {
  readonly sent?: () => void;
  readonly answered?: () => void;
  readonly ended?: () => void;
  /**
   * The server's end is passed on only where it answers the client's, and is else a reset. So it is without a proxy,
   * where a server that ends before it has got everything resets what comes then; but what has got into a proxy is
   * acknowledged, and a server's early end would look like its answer.
   */
  readonly endsInTurn?: boolean;
}

const slowChunkMs = 50;
/** Bytes of a chunk that holds more than a handshake, an empty page or an acknowledgement. */
const substance = 1_500;

/** Starts a proxy to a loopback port. The caller closes it. */
export async function startProxy(
  target: number,
  options: ProxyOptions = {},
): Promise<NetworkProxy> {
  const proxy = new TcpProxy(target, await freePort(), options);
  await proxy.reopen();
  return proxy;
}

interface Pair {
  readonly client: Socket;
  readonly receiver: Socket | null;
}

class TcpProxy implements NetworkProxy {
  readonly port: number;
  readonly #own: number;
  readonly #options: ProxyOptions;
  readonly #pairs = new Set<Pair>();
  #mode: ProxyMode = 'pass';
  #target: number;
  #server: Server | null = null;

  constructor(target: number, port: number, options: ProxyOptions) {
    this.#own = target;
    this.#target = target;
    this.#options = options;
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

  leadTo(port: number | null): void {
    this.#target = port ?? this.#own;
    this.resetAll();
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
    const { sent, answered, ended, endsInTurn } = this.#options;
    this.#pass(client, receiver, sent);
    this.#pass(receiver, client, answered);
    // Another turn of the loop, so that what the server did before the last bytes reached it is seen before its answer.
    client.on('end', () => receiver.write('', () => twoTurns(() => receiver.end())));
    receiver.on('end', () => {
      if (endsInTurn === true && !receiver.writableEnded) reset(pair);
      else client.end(ended);
    });
  }

  #pass(from: Socket, to: Socket, report: (() => void) | undefined): void {
    from.on('data', (bytes: Buffer) => {
      const goesOn = to.write(bytes);
      if (bytes.length >= substance) report?.();
      const slow = this.#mode === 'slow';
      if (goesOn && !slow) return;
      from.pause();
      const resume = () => {
        if (this.#mode !== 'stall') from.resume();
      };
      if (slow) setTimeout(resume, slowChunkMs);
      else to.once('drain', resume);
    });
    from.on('close', (hadError) => {
      if (hadError) to.resetAndDestroy();
    });
  }
}

function twoTurns(act: () => void): void {
  setImmediate(() => setImmediate(act));
}

function reset({ client, receiver }: Pair): void {
  client.resetAndDestroy();
  receiver?.resetAndDestroy();
}
