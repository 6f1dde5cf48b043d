// The syslog sink's test servers beside test/support/tcp-receiver.ts: a TLS receiver that behaves well but is strict
// about certificates (connections whose handshake fails are closed at once, so that it can always be closed), and a
// network that resets connections.

import { once } from 'node:events';
import { connect, createServer as createTcpServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Certificates } from '../../support/certificates.ts';
import { FrameSplitter } from '../../support/syslog-frames.ts';
import { afterThisTest, waitUntil } from '../../support/temp.ts';

/** Which certificates it shows and wants to see. */
export interface TlsReceiverOptions {
  readonly tls: Certificates;
  /** Take only clients with a certificate of the same authority. Default false. */
  readonly clientCertificates?: boolean;
}

/** A running receiver; it ends with the test. */
export interface TlsReceiver {
  readonly port: number;
  /** Whole frames read so far. */
  readonly frames: readonly string[];
  readonly faults: readonly string[];
  /** Connections taken and connections open, TCP and TLS alike. */
  readonly connections: number;
  readonly open: number;
  waitFor(count: number): Promise<void>;
}

/** Starts a receiver on a free loopback port. */
export async function startTlsReceiver(options: TlsReceiverOptions): Promise<TlsReceiver> {
  const { tls, clientCertificates = false } = options;
  const frames: string[] = [];
  const faults: string[] = [];
  const state = { connections: 0, open: 0 };
  const server = createTlsServer({
    key: tls.server.key,
    cert: tls.server.cert,
    ca: tls.ca,
    requestCert: clientCertificates,
    rejectUnauthorized: clientCertificates,
  });
  server.on('connection', (socket) => {
    state.connections += 1;
    state.open += 1;
    socket.on('close', () => {
      state.open -= 1;
    });
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  server.on('secureConnection', (socket) => {
    const splitter = new FrameSplitter();
    socket.on('error', () => {}); // what a network does to a connection is part of the tests
    socket.on('data', (bytes: Buffer) => {
      for (const { bytes: content } of splitter.push(bytes)) frames.push(content.toString('utf8'));
      if (splitter.fault !== null) faults.push(splitter.fault);
    });
  });
  const port = await listen(server);
  return {
    port,
    frames,
    faults,
    get connections() {
      return state.connections;
    },
    get open() {
      return state.open;
    },
    waitFor: async (count) => {
      await waitUntil(() => frames.length >= count, { what: `${count} frames` });
    },
  };
}

/** How a network treats bytes; the decisions are the same in each run. */
export interface NetworkFaults {
  /** Of resetting both sides instead of passing bytes on, so that they are lost. */
  readonly resetProbability: number;
  /** How long bytes are under way, while their sender's kernel already sees them acknowledged. */
  readonly delayMs: number;
}

/** A network before a receiver. */
export async function faultyNetwork(
  to: { readonly port: number },
  { resetProbability, delayMs }: NetworkFaults,
): Promise<{ readonly port: number; readonly resets: () => number }> {
  let state = 1;
  let resets = 0;
  const server = createTcpServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ port: to.port, host: '127.0.0.1', allowHalfOpen: true });
    const reset = () => {
      near.resetAndDestroy();
      far.resetAndDestroy();
    };
    const later = (act: () => void) => setTimeout(() => near.destroyed || act(), delayMs);
    near.on('data', (bytes: Buffer) =>
      later(() => {
        state = (state * 48_271) % 2_147_483_647; // Lehmer's generator
        if (state / 2_147_483_647 >= resetProbability) {
          far.write(bytes);
          return;
        }
        resets += 1;
        reset();
      }),
    );
    near.on('end', () => later(() => far.end()));
    near.on('error', reset);
    far.on('error', reset);
    far.pipe(near);
  });
  return { port: await listen(server), resets: () => resets };
}

/** Listens on a free loopback port until the test ends. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterThisTest(() => server.close());
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port');
  return address.port;
}
