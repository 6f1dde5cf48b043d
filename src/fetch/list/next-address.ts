// The address of a next page, as an answer names it. It is upstream's text and decides where the
// next request goes with its token, so it is followed only where it stays at the origin that was
// asked: of what passes, path and query alone are kept, which no host can be hidden in.

/** Path and query of an address that an answer from `url` names; null: it is not to be followed. */
export function followable(address: string, url: string): string | null {
  const asked = new URL(url);
  const next = URL.parse(address, asked.href);
  if (next === null || next.protocol !== asked.protocol || next.host !== asked.host) return null;
  // A name before the host is there to deceive, or is a credential that is not ours to send.
  if (next.username !== '' || next.password !== '') return null;
  return `${next.pathname}${next.search}`;
}

/**
 * As `followable`, for an upstream that names its own address behind a proxy: path and query of any
 * http or https address, to be requested at the origin that is configured.
 */
export function rebased(address: string, url: string): string | null {
  const next = URL.parse(address, url);
  if (next === null || !/^https?:$/.test(next.protocol)) return null;
  if (next.username !== '' || next.password !== '') return null;
  return `${next.pathname}${next.search}`;
}

/** Targets of the links of a `Link` header that lead to the next page (RFC 8288). */
export function nextLinks(header: string | undefined): readonly string[] {
  const links = header?.match(/(?:<[^>]*>|"(?:[^"\\]|\\.)*"|[^,<"])+/g) ?? [];
  return links.flatMap((link) => {
    const [, target, rest = ''] = /^\s*<([^>]*)>(.*)$/s.exec(link) ?? [];
    const parameters = [...rest.matchAll(/;\s*([^\s=;"]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]+)/g)];
    const textOf = (name: string) => parameters.find(([, key]) => key?.toLowerCase() === name)?.[2];
    const rels = textOf('rel')?.replaceAll('"', '').toLowerCase().split(/\s+/) ?? [];
    // With an anchor it is a link of something else.
    const isNext = rels.includes('next') && textOf('anchor') === undefined;
    return isNext && target !== undefined ? [target.trim()] : [];
  });
}
