// The proxy that the environment names for an address (`proxy: env`): HTTPS_PROXY, HTTP_PROXY and NO_PROXY, each also in
// lower case, which wins. NO_PROXY as curl reads it (https://curl.se/docs/manpage.html, "--noproxy"): names with their
// subdomains, addresses, CIDR blocks and `*`, and as Go reads it an optional port. Invariant: no text of a variable is
// in an error, because it may contain a password.

import { BlockList, isIP } from 'node:net';
import { ExportError, proxyFlaw } from '../contracts/index.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** The proxy for an address and the variable that names it; null: a direct connection. */
export interface EnvironmentProxy {
  readonly address: string;
  readonly variable: string;
}

/** The proxy that the environment names for this http or https address. Throws an ExportError for a wrong variable. */
export function environmentProxy(url: string, env: Env): EnvironmentProxy | null {
  const to = new URL(url);
  const name = to.protocol === 'http:' ? 'HTTP_PROXY' : 'HTTPS_PROXY';
  const variable = [name.toLowerCase(), name].find((one) => (env[one] ?? '') !== '');
  const text = variable === undefined ? undefined : env[variable];
  if (variable === undefined || text === undefined) return null;
  if (isExcluded(to, env.no_proxy || env.NO_PROXY || '')) return null;
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const flaw = proxyFlaw(address);
  if (flaw === null) return { address, variable };
  throw new ExportError('config_invalid', `the environment variable ${variable}: ${flaw}`, {
    next: `Correct ${variable}, or set the proxy in the config.`,
  });
}

/** True if NO_PROXY has the address. */
function isExcluded(to: URL, list: string): boolean {
  const host = bare(to.hostname);
  const port = to.port || (to.protocol === 'http:' ? '80' : '443');
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => entry === '*' || matches(entry.toLowerCase(), host, port));
}

function matches(entry: string, host: string, port: string): boolean {
  // An IPv6 address without brackets has no port.
  const [, bracketed, plain = '', requiredPort] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(
    entry,
  ) ?? ['', undefined, entry];
  const name = bare(bracketed ?? plain);
  if (requiredPort !== undefined && requiredPort !== port) return false;
  if (name === '') return false;
  if (isIP(host) > 0) return isSameAddress(name, host);
  const domain = name.replace(/^\./, '');
  return host === domain || host.endsWith(`.${domain}`);
}

/** An address equals another in any notation, or is in a CIDR block. */
function isSameAddress(entry: string, host: string): boolean {
  const [network = '', bits] = entry.split('/');
  const family = isIP(network) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(network) === 0 || isIP(network) !== isIP(host)) return false;
  const most = family === 'ipv6' ? 128 : 32;
  const length = bits === undefined ? most : Number(bits);
  if (!/^\d+$/.test(bits ?? '0') || length > most) return false;
  const block = new BlockList();
  block.addSubnet(network, length, family);
  return block.check(host, family);
}

/** A host without brackets and without the dot of a full name. */
function bare(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
}
