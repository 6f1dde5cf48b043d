// Connection pools, one per proxy and set of TLS settings (undici keeps one per origin within).
// Certificates, keys and authorities are read only here: when a file has changed on disk, a new
// pool is opened with the new contents and the old one closes after its last request. Invariant: a
// half-written file keeps the old pool in use.

import { readFileSync } from 'node:fs';
import type { PeerCertificate } from 'node:tls';
import type { buildConnector, Dispatcher } from 'undici';
import {
  errorCodeOf,
  HttpFailure,
  proxyFlaw,
  type TlsSettings,
  tlsFaults,
} from '../contracts/index.ts';
import { fileStamp } from './fingerprint.ts';

/** See HttpClientOptions. */
export interface PoolsOptions {
  readonly connectionsMax: number;
  readonly connectTimeoutMs: number;
  readonly certificateCheckMs: number;
}

/** Pools by TLS settings. */
export interface Pools {
  /** The pool for these settings. Throws HttpFailure `tls` if a file is unusable. */
  pool(tls: TlsSettings | undefined, proxy?: string): Promise<Dispatcher>;
  /** Loads undici before the first request, which would wait for it otherwise. */
  ready(): Promise<void>;
  /** Aborts everything. */
  close(): Promise<void>;
}

interface Entry {
  agent: Dispatcher;
  /** Stamps of the files when they were read. */
  stamp: string;
  checkedAtMs: number;
}

/** Idle connections are kept this long by default; proxies drop them at 60 s. */
const keepAliveMs = 30_000;

const noTls: TlsSettings = {};

/** Opens the registry; each pool is opened by the first request that needs it. */
export function openPools(options: PoolsOptions): Pools {
  const entries = new Map<string, Entry>();
  /** The key of each block's pool: a block is used for each request and never changes. */
  const names = new WeakMap<TlsSettings, string>();
  let closed = false;
  const direct = once(() => import('./undici.ts'));
  const proxied = once(() => import('undici'));

  return {
    async pool(tls = noTls, proxy = '') {
      // The config was valid; a proxy from a file or the environment may have changed since.
      const wrong = proxy === '' ? null : proxyFlaw(proxy);
      if (wrong !== null) throw new HttpFailure('unreachable', `proxy: ${wrong}`);
      const { Agent, buildConnector } = await direct();
      const proxies = proxy === '' ? null : await proxied();
      if (closed) throw new HttpFailure('unreachable', 'the HTTP client is closed');
      const name = names.getOrInsertComputed(tls, () =>
        JSON.stringify(tls, Object.keys(tls).sort()),
      );
      const key = name + proxy;
      const nowMs = performance.now();
      const known = entries.get(key);
      if (known && nowMs - known.checkedAtMs < options.certificateCheckMs) return known.agent;
      const stamp = stampOf(tls);
      if (known) known.checkedAtMs = nowMs;
      if (known && (known.stamp === stamp || unusable(tls))) return known.agent;
      const secure = secureOptions(tls);
      const common = {
        allowH2: false,
        connections: options.connectionsMax,
        keepAliveTimeout: keepAliveMs,
        // The client bounds the whole exchange; these bounds between chunks would not.
        headersTimeout: 0,
        bodyTimeout: 0,
      };
      const timeout = options.connectTimeoutMs;
      const agent =
        proxies !== null
          ? new proxies.ProxyAgent({
              ...common,
              uri: proxy,
              connectTimeout: timeout,
              requestTls: secure,
              proxyTls: { ...('ca' in secure && { ca: secure.ca }), ...addressOfProxy(proxy) },
            })
          : new Agent({
              ...common,
              connect: keepingFirstError(buildConnector({ ...secure, timeout, allowH2: false })),
            });
      entries.set(key, { agent, stamp, checkedAtMs: nowMs });
      void known?.agent.close();
      return agent;
    },
    async ready() {
      await direct();
    },
    async close() {
      closed = true;
      await Promise.all([...entries.values()].map((entry) => entry.agent.destroy()));
    },
  };
}

/**
 * undici requests a certificate for the host of a proxy by SNI, which holds names only (RFC 6066, section 3) and which
 * Node rejects for an address. The certificate is then checked for the address.
 */
function addressOfProxy(proxy: string) {
  const { protocol, hostname } = new URL(proxy);
  const address = hostname.replace(/^\[|\]$/g, '');
  const { isIP } = process.getBuiltinModule('node:net');
  if (protocol !== 'https:' || isIP(address) === 0) return {};
  const { checkServerIdentity } = process.getBuiltinModule('node:tls');
  return {
    servername: 'address.invalid',
    checkServerIdentity: (_: string, certificate: PeerCertificate) =>
      checkServerIdentity(address, certificate),
  };
}

/** Cached, because even a repeated dynamic import costs as much as half a page. */
function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load();
    return loading;
  };
}

/**
 * With TLS 1.3 a server rejects a client's certificate after the handshake, by an alert followed by
 * the connection's end. undici reports only the end; closing the connection at the alert keeps its
 * reason.
 */
function keepingFirstError(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result;
      socket?.once('error', (error) => socket.destroy(error));
      callback(...result);
    });
}

function filesOf(tls: TlsSettings): readonly string[] {
  return [tls.ca_file, tls.cert_file, tls.key_file].filter((file) => file !== undefined);
}

function stampOf(tls: TlsSettings): string {
  return filesOf(tls).map(fileStamp).join(' ');
}

function unusable(tls: TlsSettings): boolean {
  try {
    secureOptions(tls);
    return false;
  } catch (error) {
    if (error instanceof HttpFailure) return true;
    throw error;
  }
}

function secureOptions(tls: TlsSettings) {
  // Not imported, because a config check makes no connection.
  const { createSecureContext } = process.getBuiltinModule('node:tls');
  const secure = {
    ...(tls.ca_file === undefined ? {} : { ca: read(tls.ca_file, 'tls.ca_file') }),
    ...(tls.cert_file === undefined ? {} : { cert: read(tls.cert_file, 'tls.cert_file') }),
    ...(tls.key_file === undefined ? {} : { key: read(tls.key_file, 'tls.key_file') }),
    ...(tls.min_version === undefined ? {} : { minVersion: tls.min_version }),
  };
  try {
    // Reports an error now, with the setting's name, that would occur in every connection.
    createSecureContext(secure);
  } catch (error) {
    throw new HttpFailure('tls', misfitText(tls, secure, error), error);
  }
  return tls.server_name === undefined ? secure : { ...secure, servername: tls.server_name };
}

/** Why OpenSSL rejects the files, by file if known. */
function misfitText(
  tls: TlsSettings,
  { ca, cert, key }: { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer },
  error: unknown,
): string {
  const faults = tlsFaults({ ca_file: ca, cert_file: cert, key_file: key });
  if (faults.length > 0) {
    return faults.map((it) => `tls.${it.key}: ${tls[it.key]} ${it.message}`).join('; ');
  }
  const code = errorCodeOf(error) || 'unreadable';
  return `the certificate files do not fit together: ${filesOf(tls).join(', ')} (${code})`;
}

function read(file: string, setting: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const code = errorCodeOf(error) || 'unreadable';
    throw new HttpFailure('tls', `${setting}: cannot read ${file} (${code})`, error);
  }
}
