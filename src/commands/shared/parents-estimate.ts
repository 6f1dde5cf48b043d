// How many requests an hour it takes to read by parents, for `check`: of those that the state knows
// or the config names, else of a thousand. Lists of which something new came lately are asked
// more often, and a reading of all begins with one of each.

import { asksAnHour, type PlannedSource } from '../../fetch/engine.ts';
import { counted } from '../../terminal/index.ts';
import { readState } from '../../watch/index.ts';

/** Requests of one turn: the list's end, and the whole of it now and then. */
const requestsATurn = 2;
/** Where a schedule says no interval. */
const everyMsMin = 60_000;

/** A sentence on each source that reads by parents. */
export function* parentsNotes(sources: readonly PlannedSource[], dir: string): Generator<string> {
  const state = readState(dir);
  for (const { name, streams, parents, schedule } of sources) {
    if (parents === undefined) continue;
    const { each, sweepMs } = parents;
    const held = streams.map((one) => state.streams.get(one.name)?.parents?.known ?? 0);
    const named = 'ids' in each ? each.ids.length * streams.length : 0;
    const known = Math.max(
      named,
      held.reduce((sum, one) => sum + one, 0),
    );
    const count = known === 0 ? 1_000 : known;
    const everyMs = 'everyMs' in schedule ? schedule.everyMs : everyMsMin;
    const isObject = streams.some((one) => one.kind === 'parents' && one.object !== undefined);
    const requests =
      Math.ceil(asksAnHour(count, everyMs, sweepMs)) * (isObject ? 1 : requestsATurn);
    const whose = known === 0 ? 'each 1000 parents' : counted(known, 'parent');
    yield `sources.${name}: about ${requests} requests an hour for ${whose} in rotation, and more for those of which something new comes`;
  }
}
