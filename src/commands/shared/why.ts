// The effect of a config's routes on the newest stored events: how many pass each filter, on which the filter fails and
// why, and which redaction finds nothing. Read-only: nothing is sent, and no position moves.

import type { Config } from '../../config/index.ts';
import { type Event, isObject, type Route } from '../../contracts/index.ts';
import { lookInto } from '../../hold/index.ts';
import type { WholePlan } from '../../run/index.ts';
import { normalisersOf, PageDecoder } from '../../send/index.ts';
import { counted } from '../../terminal/index.ts';
import { cleanText, compileFilter } from '../../tools/index.ts';
import { notHere } from '../../watch/index.ts';

const eventsMax = 1_000;
const readBytesMax = 16 * 1024 * 1024;
const reasonsMax = 3;

/** A line for each filter and each redaction. Throws `state_damaged`. */
export function whyLines(config: Config, plan: WholePlan): readonly string[] {
  const events = newestEvents(config, plan);
  if (events.length === 0)
    return [`no event is held to look at${notHere(config)}; state.keep keeps delivered events`];
  return config.routes.flatMap((route, index) => {
    const coming = events.filter(({ source }) => route.from.includes(source));
    const name = `routes[${index}]`;
    if (coming.length === 0) return [`${name}: no event of ${route.from.join(', ')} is held`];
    return [...filterLines(name, route, coming), ...redactionLines(name, route, coming)];
  });
}

function newestEvents({ state: { dir } }: Config, plan: WholePlan): readonly Event[] {
  const decoder = new PageDecoder(normalisersOf(plan.sources));
  return lookInto(dir, [], (store) => {
    const { oldest, end } = store.gauge();
    const events: Event[] = [];
    let at = Math.max(oldest, end - eventsMax);
    for (;;) {
      const pages = store.read(at, readBytesMax);
      const last = pages.at(-1);
      if (last === undefined) return events.slice(-eventsMax);
      for (const page of pages) {
        if (page.context.kind !== 'answer') events.push(...decoder.decode(page).events);
      }
      at = last.first + last.count;
    }
  });
}

function filterLines(
  name: string,
  { where, mask }: Route,
  events: readonly Event[],
): readonly string[] {
  if (where === undefined) return [];
  const unjudged = new Map<string, number>();
  const failed = (error: string) => {
    // The error of a filter may repeat a value.
    const why = mask === undefined ? error : 'not shown, because the route masks values';
    unjudged.set(why, (unjudged.get(why) ?? 0) + 1);
  };
  const passes = compileFilter(where, failed);
  const passing = events.filter((event) => passes(event)).length;
  const failures = [...unjudged.values()].reduce((sum, n) => sum + n, 0);
  const never = passing === failures ? ': it never matched' : '';
  return [
    `${name}.where: passes ${passing} of ${events.length}${never}`,
    ...Array.from(unjudged)
      .slice(0, reasonsMax)
      .map(
        ([why, n]) =>
          `${name}.where: could not judge ${counted(n, 'event')}, which pass: ${cleanText(why, 200)}`,
      ),
  ];
}

function redactionLines(
  name: string,
  { redact = [], mask = {} }: Route,
  events: readonly Event[],
): readonly string[] {
  const changes = [
    ...redact.map((path) => ({ path, key: 'redact' })),
    ...Object.keys(mask).map((path) => ({ path, key: 'mask' })),
  ];
  return changes.map(({ path, key }) => {
    const steps = path.split('.');
    const found = events.filter(({ ocsf }) => isAt(ocsf, steps)).length;
    const reported = found === 0 ? 'never present in' : `present in ${found} of`;
    return `${name}.${key} ${path}: ${reported} ${events.length}`;
  });
}

/** True if there is a value at the path, also within lists. */
function isAt(value: unknown, [step, ...rest]: readonly string[]): boolean {
  if (step === undefined) return value !== undefined;
  if (Array.isArray(value)) return value.some((one) => isAt(one, [step, ...rest]));
  return isObject(value) && Object.hasOwn(value, step) && isAt(value[step], rest);
}
