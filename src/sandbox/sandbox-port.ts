// A port of the sandbox on loopback. A fault can close it, so connections are refused, and reopen it at the same port.
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { SandboxOptions } from './options.ts';

/** One listening port. */
export class SandboxPort {
  readonly #tls: SandboxOptions['tls'];
  readonly #server: Server;
  #port = 0;
  #isRefusing = false;

  constructor(tls: SandboxOptions['tls'], listener: RequestListener) {
    this.#tls = tls;
    this.#server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
    // Longer than clients keep idle connections, so that a reused one is not closed during a request.
    this.#server.keepAliveTimeout = 65_000;
  }

  get port(): number {
    return this.#port;
  }

  /** `http://127.0.0.1:PORT`, or https. */
  get url(): string {
    return `${this.#tls === undefined ? 'http' : 'https'}://127.0.0.1:${this.#port}`;
  }

  /** Rejects if the port is in use; 0: any free one. */
  listen(port: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', (cause) => {
      reject(
        new Error(`starting the sandbox: port ${port} of 127.0.0.1 cannot be used`, { cause }),
      );
    });
    this.#server.listen(port, '127.0.0.1', () => {
      const address = this.#server.address();
      this.#port = typeof address === 'object' && address !== null ? address.port : port;
      resolve();
    });
    return promise;
  }

  /** Closes every connection; new ones are refused until `reopen`. */
  refuse(): void {
    if (this.#isRefusing) return;
    this.#isRefusing = true;
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Ends `refuse`. If another process has bound the port meanwhile, it stays closed. */
  reopen(): void {
    if (!this.#isRefusing) return;
    this.#isRefusing = false;
    this.#server.once('error', () => undefined);
    this.#server.listen(this.#port, '127.0.0.1');
  }

  close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    return promise;
  }
}
