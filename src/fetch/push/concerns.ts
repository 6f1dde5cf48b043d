// Which streams a delivery is news for. Nothing is configured for it: an event's name begins with
// the resource that it is about, and a resource's paths are called like it. A stream that is asked
// for nothing is asked a little sooner, which is all that can go wrong.

import type { Stream } from '../../contracts/source.ts';

/**
 * True where a stream of the same upstream may hold what an event of this name tells of: the trail
 * of all that is done always, `/sites` for `site.status_changed`, `/mc/incidents/…` for
 * `incident.created`.
 */
export function isConcerned(event: string | null, stream: Stream): boolean {
  if (stream.kind === 'list' && stream.records === 'audit') return true;
  const [family = ''] = (event ?? '').toLowerCase().split(/[._:/]/);
  // `policy` and `policies` differ in more than an s.
  const stem = family.replace(/y$/, '');
  if (stem.length < 3 || stream.kind === 'push') return false;
  return stream.paths.some((path) => path.split('/').some((part) => part.startsWith(stem)));
}
