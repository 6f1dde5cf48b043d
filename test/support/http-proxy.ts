// An HTTP proxy on loopback, which forwards plain requests and tunnels the rest.
import { once } from 'node:events';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { KeyPair } from './certificates.ts';
import { afterThisTest } from './temp.ts';

/** The proxy's requests. */
export interface ProxySeen {
  readonly method: string;
  readonly target: string;
  readonly credential: string | undefined;
}

/** A proxy that forwards and tunnels for one credential. */
export async function aProxy(
  credential?: string,
  {
    own,
    intercepts,
  }: {
    /** Its certificate: clients speak TLS to it. */
    readonly own?: KeyPair;
    /** It ends each tunnel itself, with this certificate in place of the server's, and answers 200 with {}. */
    readonly intercepts?: KeyPair;
  } = {},
) {
  const seen: ProxySeen[] = [];
  const letIn = ({ method = '', url = '', headers }: IncomingMessage) => {
    const given = headers['proxy-authorization'];
    seen.push({ method, target: url, credential: given });
    return credential === undefined || given === `Basic ${btoa(credential)}`;
  };
  const forward = (request: IncomingMessage, response: ServerResponse) => {
    if (!letIn(request)) {
      response.writeHead(407).end();
      return;
    }
    const { 'proxy-authorization': _, ...headers } = request.headers;
    const onward = httpRequest(request.url ?? '', { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  };
  const server = own === undefined ? createServer(forward) : createTlsServer(own, forward);
  const inside = intercepts && createTlsServer(intercepts, (_, response) => response.end('{}'));
  server.on('connect', (request: IncomingMessage, socket) => {
    if (!letIn(request)) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    if (inside !== undefined) {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      inside.emit('connection', socket);
      return;
    }
    const [host, port] = (request.url ?? '').split(':');
    const onward = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.destroy());
    socket.on('error', () => onward.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterThisTest(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, seen };
}
