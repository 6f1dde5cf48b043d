// Which streams a delivery is news for. This needs no configuration: an event's name begins with its resource, and the
// resource's paths contain the same name. A wrong match only polls a stream a little sooner.

import type { Stream } from '../contracts/index.ts';

/**
 * True if a stream of the same upstream may contain the subject of this event: the audit trail always, `/sites` for
 * `site.status_changed`, `/mc/incidents/…` for `incident.created`.
 */
export function isConcerned(event: string | null, stream: Stream): boolean {
  if (stream.kind === 'list' && stream.records === 'audit') return true;
  const [family = ''] = (event ?? '').toLowerCase().split(/[._:/]/);
  // `policy` and `policies` differ in more than an s.
  const stem = family.replace(/y$/, '');
  if (stem.length < 3 || stream.kind === 'push') return false;
  return stream.paths.some((path) => path.split('/').some((part) => part.startsWith(stem)));
}
