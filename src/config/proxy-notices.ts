// A proxy that the environment names and an upstream does not use: often the only way out of a network.

import { environmentProxy } from '../tools/index.ts';
import type { UpstreamSettings } from '../upstream/index.ts';
import type { BlockReading } from './block.ts';
import type { NamedBlock } from './section.ts';

/** Adds a notice if requests of this upstream go directly, and the environment names a proxy for its address. */
export function proxyNotice(
  { proxy, base_url: url }: Pick<UpstreamSettings, 'proxy' | 'base_url'>,
  { written, path }: NamedBlock<unknown>,
  { notices, around: configEnv }: BlockReading,
): void {
  if (proxy !== undefined) return;
  let variable: string | undefined;
  try {
    variable = environmentProxy(url, configEnv.env)?.variable;
  } catch {
    return; // a wrong variable that nothing uses
  }
  if (variable === undefined) return;
  const what = `${variable} is set, and this upstream has no proxy: requests go directly`;
  notices?.add(written.keyAt, path, `${what}; set proxy: env to use it`);
}
