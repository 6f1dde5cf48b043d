// The `upstreams` of a config: each block by its declaration, with the companies of its list or file; and what the
// environment has for it, a proxy that it does not use.

import { environmentProxy } from '../tools/index.ts';
import {
  type UpstreamBlock,
  type UpstreamSettings,
  upstreamFields,
  upstreamFlaws,
} from '../upstream/index.ts';
import { parseBlock } from './block.ts';
import { readCompanies } from './companies.ts';
import type { Flaws } from './flaws.ts';
import type { Surroundings } from './references.ts';
import { type NamedBlock, reportBlockFlaw, type Section } from './section.ts';
import { upstreamBlock } from './shape.ts';

/** Reads all upstreams. */
export function readUpstreams(
  section: Section<null>,
  configEnv: Surroundings,
  flaws: Flaws,
): Section<UpstreamSettings> {
  return section.map((entry) => {
    const settings: UpstreamBlock | null = parseBlock(upstreamBlock, entry, flaws) ?? null;
    // An unreadable credential has been reported already and must not count as missing too.
    const auth = entry.written.children?.get('auth');
    const isBroken = [...(auth?.children?.values() ?? [])].some(({ broken }) => broken);
    const before = flaws.count;
    const own = isBroken ? [] : upstreamFlaws(settings ?? rightKeys(entry));
    for (const flaw of own) reportBlockFlaw(flaw, entry, flaws);
    const isRight = flaws.count === before;
    if (settings === null) return null;
    const companies = readCompanies(settings, entry, configEnv, flaws);
    return isRight && companies !== null ? { ...settings, ...companies } : null;
  });
}

/** The valid keys of a block with an invalid one, so that their flaws are reported in the same run. */
function rightKeys({ written }: NamedBlock<null>): Partial<UpstreamBlock> {
  const right = Object.entries(upstreamFields).flatMap(([key, field]) => {
    const parsed = field.safeParse(written.children?.get(key)?.value);
    return parsed.success ? [[key, parsed.data]] : [];
  });
  return Object.fromEntries(right);
}

/** A notice for each upstream without a proxy whose address has one in the environment: often the only way out of a network. */
export function checkProxies(
  upstreams: Section<UpstreamSettings>,
  { env }: Surroundings,
  flaws: Flaws,
): void {
  for (const { settings, written, path } of upstreams.entries.values()) {
    if (settings === null || settings.proxy !== undefined) continue;
    const variable = proxyVariable(settings.base_url, env);
    if (variable === undefined) continue;
    const what = `${variable} is set, and this upstream has no proxy: requests go directly`;
    flaws.add(written.keyAt, path, `${what}; set proxy: env to use it`, 'notice');
  }
}

function proxyVariable(url: string, env: Surroundings['env']): string | undefined {
  try {
    return environmentProxy(url, env)?.variable;
  } catch {
    return undefined; // a wrong variable that nothing uses
  }
}
