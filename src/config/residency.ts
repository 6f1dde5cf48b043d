// Residency labels: a route must not lead from an upstream with one label to a sink with another. An upstream or sink
// without a label allows every route.

import type { Route } from '../contracts/index.ts';
import type { UpstreamSettings } from '../upstream/index.ts';
import type { Flaws } from './flaws.ts';
import type { Ends } from './routes.ts';
import type { Section } from './section.ts';

/** Reports each sink that gets events of an upstream with a different label. Without routes, every sink gets all. */
export function checkResidency(
  {
    upstreams,
    ends,
    routes,
  }: {
    readonly upstreams: Section<UpstreamSettings>;
    readonly ends: Ends;
    readonly routes: readonly Route[];
  },
  flaws: Flaws,
): void {
  for (const sink of ends.sinks.entries.values()) {
    const there = sink.settings?.residency;
    if (there === undefined) continue;
    for (const source of ends.sources.entries.values()) {
      const { upstream } = source.settings?.settings ?? {};
      const here = upstreams.entries.get(upstream ?? '')?.settings?.residency;
      if (upstream === undefined || here === undefined || here === there) continue;
      const isRouted =
        routes.length === 0 ||
        routes.some(({ from, to }) => from.includes(source.name) && to.includes(sink.name));
      if (!isRouted) continue;
      const written = sink.written.children?.get('residency') ?? sink.written;
      flaws.add(
        written.at,
        [...sink.path, 'residency'],
        `this sink has residency ${there}, and gets events of source ${source.name} from upstream ${upstream} with residency ${here}; remove the route from ${source.name} to ${sink.name}, or correct a label`,
      );
    }
  }
}
