// An agent of Node for libraries that bring their own HTTP client: it reads the files of `tls` at each new connection, so
// that a renewed certificate is used without a restart. Invariant: no session of TLS is resumed, because a server would
// accept the client by the certificate of the first connection.

import { readFileSync } from 'node:fs';
import { Agent, type AgentOptions } from 'node:https';
import type { TlsSettings } from '../contracts/index.ts';

type CreateConnection = Agent['createConnection'];

/** An agent with these settings of `tls`, and further options of Node. */
export function tlsAgent(tls: TlsSettings | undefined, options: AgentOptions = {}): Agent {
  const { min_version, server_name } = tls ?? {};
  return new RenewingAgent(tls, {
    ...options,
    maxCachedSessions: 0,
    ...(min_version !== undefined && { minVersion: min_version }),
    ...(server_name !== undefined && { servername: server_name }),
  });
}

class RenewingAgent extends Agent {
  readonly #tls: TlsSettings | undefined;

  constructor(tls: TlsSettings | undefined, options: AgentOptions) {
    super(options);
    this.#tls = tls;
  }

  override createConnection(...[options, callback]: Parameters<CreateConnection>) {
    try {
      return super.createConnection({ ...options, ...filesOf(this.#tls) }, callback);
    } catch (error) {
      // Files that are being replaced: the request fails, and the next one reads them again.
      callback?.(error as Error, undefined as never);
      return undefined;
    }
  }
}

function filesOf({ ca_file, cert_file, key_file }: TlsSettings = {}) {
  return {
    ...(ca_file !== undefined && { ca: readFileSync(ca_file) }),
    ...(cert_file !== undefined && { cert: readFileSync(cert_file) }),
    ...(key_file !== undefined && { key: readFileSync(key_file) }),
  };
}
