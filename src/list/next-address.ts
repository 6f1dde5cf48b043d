// The address of a next page, as a response names it. It is upstream's text, and the next request sends the token to
// it. Invariant: it is followed only within the requested origin. Only path and query are kept, which cannot contain a
// host.

/** Path and query of an address in a response from `url`; null: the address must not be followed. */
export function followable(address: string, url: string): string | null {
  const asked = new URL(url);
  const next = URL.parse(address, asked.href);
  if (next === null || next.protocol !== asked.protocol || next.host !== asked.host) return null;
  // User info before the host is a deception, or a credential that sluice must not send.
  if (next.username !== '' || next.password !== '') return null;
  return `${next.pathname}${next.search}`;
}

/**
 * As `followable`, for an upstream behind a proxy that names its own address: path and query of any http or https
 * address, to be requested at the configured origin.
 */
export function rebased(address: string, url: string): string | null {
  const next = URL.parse(address, url);
  if (next === null || !/^https?:$/.test(next.protocol)) return null;
  if (next.username !== '' || next.password !== '') return null;
  return `${next.pathname}${next.search}`;
}

/** Targets of the links with `rel=next` in a `Link` header (RFC 8288). */
export function nextLinks(header: string | undefined): readonly string[] {
  const links = header?.match(/(?:<[^>]*>|"(?:[^"\\]|\\.)*"|[^,<"])+/g) ?? [];
  return links.flatMap((link) => {
    const [, target, rest = ''] = /^\s*<([^>]*)>(.*)$/s.exec(link) ?? [];
    const parameters = [...rest.matchAll(/;\s*([^\s=;"]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]+)/g)];
    const textOf = (name: string) => parameters.find(([, key]) => key?.toLowerCase() === name)?.[2];
    const rels = textOf('rel')?.replaceAll('"', '').toLowerCase().split(/\s+/) ?? [];
    // A link with an anchor belongs to another resource.
    const isNext = rels.includes('next') && textOf('anchor') === undefined;
    return isNext && target !== undefined ? [target.trim()] : [];
  });
}
