// TLS in front of a receiver that speaks none: each connection is decrypted and passed on. It shows one certificate, and
// with an authority accepts only clients with a certificate from there, by a handshake as servers of any kind make it.

import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import type { KeyPair } from './certificates.ts';
import { afterThisTest } from './temp.ts';

/** The certificate that is shown, and the authority of the clients. */
export interface TlsFrontOptions {
  readonly shows: KeyPair;
  /** PEM; undefined: clients need no certificate. */
  readonly ca?: string;
  /** For gRPC, which needs HTTP/2. */
  readonly isHttp2?: boolean;
}

/** Listens on a free loopback port until the test ends, and passes connections on to `port`. */
export async function startTlsFront(port: number, options: TlsFrontOptions) {
  const { shows, ca, isHttp2 = false } = options;
  const clients =
    ca === undefined
      ? { requestCert: true, rejectUnauthorized: false }
      : { ca, requestCert: true, rejectUnauthorized: true };
  const sockets = new Set<Socket>();
  /** Names in the certificates of the clients; undefined: none. */
  const clientNames: (string | undefined)[] = [];
  const server = createServer(
    {
      // Without an authority a certificate is requested too, and none is refused.
      ...{ cert: shows.cert, key: shows.key, ...clients },
      ...(isHttp2 && { ALPNProtocols: ['h2'] }),
      allowHalfOpen: true,
    },
    (inside) => {
      const name = inside.getPeerCertificate().subject?.CN;
      clientNames.push(Array.isArray(name) ? name[0] : name);
      const onward = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      inside.pipe(onward).pipe(inside);
      for (const [socket, other] of [
        [inside, onward],
        [onward, inside],
      ] as const) {
        sockets.add(socket);
        socket.on('error', () => other.destroy());
        socket.on('close', () => other.destroy());
      }
    },
  );
  server.on('tlsClientError', () => undefined); // the client reports it
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterThisTest(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, clients: clientNames };
}
