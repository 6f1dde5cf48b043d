// Sinks that accompany others, such as an archive's lake: each receives the events of its main sink, under a name that
// no config can use.

import { formats } from '../../formats/index.ts';
import { invariant, type Route } from '../contracts/index.ts';
import { formatBlock } from './shape.ts';
import { batchDefault, type ConfiguredSink } from './sinks.ts';

type Sinks = Readonly<Record<string, ConfiguredSink>>;

/** The sinks with their companions, and the routes extended to them. */
export function withCompanions(sinks: Sinks, routes: readonly Route[]) {
  const added = new Map<string, string>();
  const whole = Object.entries(sinks).flatMap(([name, sink]): [string, ConfiguredSink][] => {
    const companion = sink.definition.companion?.(sink.settings) ?? null;
    if (companion === null) return [[name, sink]];
    const { definition, settings, suffix } = companion;
    added.set(name, `${name}.${suffix}`);
    const format = formats.find(({ type }) => type === definition.usualFormat);
    invariant(format !== undefined, `the format ${definition.usualFormat} is listed`);
    const own: ConfiguredSink = {
      definition,
      settings,
      format: formatBlock(format).parse({ type: format.type }),
      batch: definition.batch ?? batchDefault,
      retry: sink.retry,
    };
    return [
      [name, sink],
      [`${name}.${suffix}`, own],
    ];
  });
  return {
    sinks: Object.fromEntries(whole) as Sinks,
    routes: routes.map((route) => ({
      ...route,
      to: route.to.flatMap((name) => [name, ...(added.has(name) ? [`${added.get(name)}`] : [])]),
    })),
  };
}
