// How the requests of an upstream leave this machine: through which proxy, or directly. Invariant: user and password of
// a proxy are never shown.

import { proxyOfEnvironment } from '../../contracts/index.ts';
import type { UpstreamClient } from '../../run/index.ts';
import { environmentProxy } from '../../tools/index.ts';

/** The route in words; null: no proxy is configured. Throws an ExportError for a wrong variable of the environment. */
export function routeText(
  { route: { urls, proxy } }: Pick<UpstreamClient, 'route'>,
  env: Readonly<Record<string, string | undefined>>,
): string | null {
  if (proxy === null) return null;
  const [data = '', token = data] = urls.map((url) => wayText(url, proxy, env));
  return data === token ? data : `data ${data}; tokens ${token}`;
}

function wayText(
  url: string,
  proxy: string,
  env: Readonly<Record<string, string | undefined>>,
): string {
  if (proxy !== proxyOfEnvironment) return `through ${shownProxy(proxy)}`;
  const found = environmentProxy(url, env);
  if (found === null) return 'direct, as the environment names no proxy for it';
  return `through ${shownProxy(found.address)}, from ${found.variable}`;
}

function shownProxy(address: string): string {
  const { protocol, host } = new URL(address);
  return `${protocol}//${host}`;
}
